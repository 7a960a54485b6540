"""Fixtures of the engine's tests.

PASCAL_ENGINE_INSTRUCTIONS=portable (or avx2, avx512) runs all of them on that instruction set alone.
"""

import os
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import httpx
import numpy as np
import numpy.typing as npt
import pytest

from pascal_engine.backend.cpu import _native
from pascal_engine.engine import Engine
from pascal_engine.schedule.sequence import Sequence
from pascal_engine.server import create_app
from tests.engine.harness import DATA, Logits, Post, open_tiny
from tests.engine.speaking import chatty
from tests.engine.synthetic import Q, SyntheticWriter

if forced := os.environ.get("PASCAL_ENGINE_INSTRUCTIONS"):
    _native.set_instructions(forced)
    _native.instruction_sets = lambda: [forced]


@pytest.fixture(scope="session")
def data() -> Path:
    return DATA


@pytest.fixture(scope="session")
def synthetic(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """synthetic(arch, *kinds): path of a model of random blocks whose matrices take the types in turn."""
    folder = tmp_path_factory.mktemp("synthetic")

    def make(arch: str, *kinds: Q) -> Path:
        path = folder / f"{arch}-{'-'.join(kind.name for kind in kinds)}.gguf"
        if not path.exists():
            SyntheticWriter(path, arch, kinds)
        return path

    return make


@pytest.fixture
def logits_seen(monkeypatch: pytest.MonkeyPatch) -> Logits:
    """Fills up as the test goes on."""
    seen: Logits = {}
    take = Sequence.take

    def recording(self: Sequence, logits: npt.NDArray[np.float32], now: float) -> None:
        seen.setdefault(self.request.tokens, []).append(logits.tobytes())
        take(self, logits, now)

    monkeypatch.setattr(Sequence, "take", recording)
    return seen


@pytest.fixture(scope="session")
def served(data: Path) -> Iterator[Engine]:
    """An engine of three slots whose thread runs."""
    engine = open_tiny(data / "qwen35-tiny.gguf", parallel=3, ctx=128)
    engine.worker.start()
    yield engine
    engine.worker.stop()


@pytest.fixture(scope="session")
def large(data: Path) -> Iterator[Engine]:
    """An engine of three slots with room for tools, whose template knows tools and thoughts; its thread runs."""
    engine = chatty(open_tiny(data / "qwen35-tiny.gguf", parallel=3, ctx=1024))
    engine.worker.start()
    yield engine
    engine.worker.stop()


@pytest.fixture
async def client(served: Engine) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(create_app(served), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://engine", timeout=30) as client:
        yield client


@pytest.fixture
def post(client: httpx.AsyncClient) -> Post:
    return lambda path, **body: client.post(path, json=body)
