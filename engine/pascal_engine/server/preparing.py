"""Where a request is prepared: beside the event loop, and one with a grammar apart from the others."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from pascal_engine.engine import Engine
from pascal_engine.server.schemas import GenerationBody

B = TypeVar("B", bound=GenerationBody)
T = TypeVar("T")

_GRAMMARS = ThreadPoolExecutor(1, "grammars")
"""Grammars are compiled one at a time, a hostile one for seconds: whoever waits for that holds no other thread."""


async def prepared(make: Callable[[Engine, B], T], engine: Engine, body: B) -> T:
    """`make(engine, body)`, which renders, tokenises and compiles."""
    if body.holds_answer:
        return await asyncio.get_running_loop().run_in_executor(_GRAMMARS, make, engine, body)
    return await asyncio.to_thread(make, engine, body)
