"""How many tokens the prompt of a chat has."""

import asyncio

from pascal_engine.engine import Engine
from pascal_engine.server.chat.prompt import render_chat
from pascal_engine.server.chat.schema import ChatBody
from pascal_engine.server.prompts import prompt_tokens


async def count_tokens(engine: Engine, chat: ChatBody) -> int:
    """Renders and tokenises off the event loop; what makes no prompt is a 400."""
    tokens = await asyncio.to_thread(lambda: prompt_tokens(engine, render_chat(engine, chat)))
    return len(tokens)
