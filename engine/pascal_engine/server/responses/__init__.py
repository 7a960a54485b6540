"""The OpenAI Responses API: translated to a chat, and the chat's events back."""
