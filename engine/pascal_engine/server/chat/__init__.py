"""Chats: messages to a prompt, and what the model writes to content, reasoning and calls of functions."""

from pascal_engine.server.chat.answer import apply_template, respond
from pascal_engine.server.chat.run import ChatRun, start_chat

__all__ = ["ChatRun", "apply_template", "respond", "start_chat"]
