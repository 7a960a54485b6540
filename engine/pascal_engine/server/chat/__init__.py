"""Chats: messages to a prompt, and what the model writes to content, reasoning and tool calls."""
