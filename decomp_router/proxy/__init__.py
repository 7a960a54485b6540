"""The HTTP face: pass-through, chat completions that may fan out, /decompose, and the router's own state."""
