"""Our answers against those recorded from llama-server: status, fields, types, kinds of events, meaning."""

import asyncio
import copy
import json
from collections.abc import Callable
from contextlib import ExitStack
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import httpx
import pytest

from pascal_engine.engine import Engine, EngineOptions
from pascal_engine.server import create_app
from pascal_engine.server.options import ServerOptions
from tests.engine.harness import Json
from tests.engine.recorded.allowed import ALLOWED, Allowed
from tests.engine.recorded.compare import Difference, differences
from tests.engine.recorded.model import AlphabetWriter
from tests.engine.recorded.record import CONTEXT, HERE, OUT, SLOTS, answer
from tests.engine.recorded.requests import BY_NAME, EXCHANGES, Exchange
from tests.engine.recorded.said import contradictions, said

RECORDING = json.loads(OUT.read_text(encoding="utf-8"))
THEIRS: dict[str, Json] = RECORDING["exchanges"]
STREAMED = [name for name in BY_NAME if name.endswith("-stream") and name.removesuffix("-stream") in BY_NAME]


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Json]:
    """Our answers to all requests, sent in order and one at a time."""
    folder = tmp_path_factory.mktemp("recorded")
    model = folder / "alphabet.gguf"
    AlphabetWriter(model)
    options: dict[str, ServerOptions] = {
        "plain": ServerOptions(metrics=True, slot_save_path=folder),
        "thinking": ServerOptions(),
        "embeddings": ServerOptions(pooling="mean"),
        "bare": ServerOptions(slots=False),
        "keyed": ServerOptions(api_keys=("secret",)),
    }
    with ExitStack() as stack:
        clients = {}
        for server, chosen in options.items():
            engine = _engine(model, "thinking" if server == "thinking" else "chat")
            engine.worker.start()
            stack.callback(engine.worker.stop)
            transport = httpx.ASGITransport(create_app(engine, chosen), raise_app_exceptions=False)
            clients[server] = httpx.AsyncClient(transport=transport, base_url="http://engine")
        return asyncio.run(_answers(clients))


def _engine(model: Path, template: str) -> Engine:
    source = (HERE / f"{template}.jinja").read_text(encoding="utf-8")
    alias = RECORDING["recorded"]["model"]
    return Engine.open(model, EngineOptions(SLOTS * CONTEXT, SLOTS, alias=alias, chat_template=source))


async def _answers(clients: dict[str, httpx.AsyncClient]) -> dict[str, Json]:
    found = {}
    for exchange in EXCHANGES:
        client = clients[exchange.server]
        for name in exchange.before:
            await _send(client, BY_NAME[name])
        found[exchange.name] = answer(await _send(client, exchange))
    return found


async def _send(client: httpx.AsyncClient, exchange: Exchange) -> httpx.Response:
    return await client.request(exchange.method, exchange.path, **exchange.content())


def allowed(name: str, difference: Difference) -> Allowed | None:
    for entry in ALLOWED:
        where = fnmatchcase(name, entry.exchanges) and fnmatchcase(difference.path, entry.path)
        if where and entry.kind == difference.kind:
            return entry
    return None


def forced(exchange: Exchange) -> bool:
    """Whether the request leaves the model no choice about what it says."""
    body = exchange.body if isinstance(exchange.body, dict) else {}
    required = body.get("tool_choice") in ("required", {"type": "any"}) or isinstance(body.get("tool_choice"), dict)
    return required or any(field in body for field in ("grammar", "json_schema")) or "-json-schema" in exchange.name


def planted(name: str, change: Callable[[Any], object]) -> set[tuple[str, str]]:
    """Kinds and paths of the differences between a recorded answer and itself changed."""
    changed = copy.deepcopy(THEIRS[name])
    change(changed)
    return {(difference.kind, difference.path) for difference in differences(THEIRS[name], changed)}


@pytest.mark.parametrize(
    ("name", "change", "found"),
    [
        ("health", lambda answer: answer.update(status=503), ("status", "")),
        ("health", lambda answer: answer.update(content_type="text/plain"), ("content type", "")),
        ("completion-text", lambda answer: answer["body"].pop("truncated"), ("missing", "truncated")),
        ("completion-text", lambda answer: answer["body"].update(more=1), ("extra", "more")),
        ("completion-text", lambda answer: answer["body"].update(tokens_cached=9.5), ("type", "tokens_cached")),
        ("completion-text", lambda answer: answer["body"].update(tokens=[5]), ("length", "tokens")),
        ("completion-text", lambda answer: answer["body"].update(stop_type="eos"), ("value", "stop_type")),
        ("chat-stream", lambda answer: answer["events"].pop(), ("missing", "<done>")),
        ("chat-stream", lambda answer: answer["events"].pop(0), ("missing", "<role>")),
        ("chat-stream", lambda answer: answer["events"][2][1].pop("id"), ("missing", "<content>.id")),
        ("metrics", lambda answer: answer["lines"].pop(1), ("missing", THEIRS["metrics"]["lines"][1])),
    ],
)
def test_a_difference_is_found(name: str, change: Callable[[Any], object], found: tuple[str, str]) -> None:
    assert planted(name, lambda answer: None) == set()
    assert planted(name, change) == {found}


def test_the_recording_is_of_these_requests() -> None:
    assert {name: exchange["request"] for name, exchange in THEIRS.items()} == {
        exchange.name: exchange.request() for exchange in EXCHANGES
    }


@pytest.mark.parametrize("name", BY_NAME)
def test_an_answer_is_like_llama_servers(name: str, ours: dict[str, Json]) -> None:
    found = {str(item) for item in differences(THEIRS[name], ours[name]) if not allowed(name, item)}
    assert not found


@pytest.mark.parametrize("name", BY_NAME)
def test_an_answer_does_not_contradict_itself(name: str, ours: dict[str, Json]) -> None:
    request = THEIRS[name]["request"]
    assert list(contradictions(request, ours[name])) == []
    assert list(contradictions(request, THEIRS[name])) == []


@pytest.mark.parametrize("name", [exchange.name for exchange in EXCHANGES if forced(exchange)])
def test_what_is_forced_is_said_as_llama_server_says_it(name: str, ours: dict[str, Json]) -> None:
    if THEIRS[name]["status"] == ours[name]["status"] == 200:
        assert said(ours[name]).meaning() == said(THEIRS[name]).meaning()


@pytest.mark.parametrize("name", [name for name in BY_NAME if "logit-bias" in name] + ["tokenize-mix"])
def test_tokens_that_are_named_are_the_same(name: str, ours: dict[str, Json]) -> None:
    assert ours[name]["body"]["tokens"] == THEIRS[name]["body"]["tokens"]


def test_a_refusal_says_why_and_nothing_fails(ours: dict[str, Json]) -> None:
    for name in (name for name in BY_NAME if ours[name]["status"] >= 400):
        refusal = ours[name]
        assert refusal["status"] < 500 or refusal["status"] == THEIRS[name]["status"] == 501, name
        assert refusal["body"]["error"]["message"], name
        assert refusal["body"]["error"]["type"], name


@pytest.mark.parametrize("name", STREAMED)
def test_a_stream_says_what_the_whole_answer_says(name: str, ours: dict[str, Json]) -> None:
    whole, stream = ours[name.removesuffix("-stream")], ours[name]
    assert whole["status"] == stream["status"]
    if whole["status"] == 200:
        assert said(stream).meaning() == said(whole).meaning()


def test_what_is_allowed_is_needed(ours: dict[str, Json]) -> None:
    needed = {allowed(name, item) for name in BY_NAME for item in differences(THEIRS[name], ours[name])}
    assert [entry for entry in ALLOWED if entry not in needed] == []
