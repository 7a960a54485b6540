"""The HTTP face, on the application itself: no sockets."""

import asyncio
import json
import pkgutil
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.types import Message

from pascal_engine.engine import Engine
from pascal_engine.server import create_app
from tests.engine.harness import Json, Post, events, open_tiny

HELLO = [{"role": "user", "content": "Hello"}]
GREEDY = {"temperature": 0, "ignore_eos": True, "max_tokens": 12}


async def test_health_props_slots_and_models(client: httpx.AsyncClient, served: Engine) -> None:
    assert (await client.get("/health")).json() == {"status": "ok"}
    props = (await client.get("/props")).json()
    assert props["default_generation_settings"]["n_ctx"] == 128
    assert props["total_slots"] == 3
    assert props["chat_template"] == served.template.source
    assert props["model_path"] == served.info.path
    slots = (await client.get("/slots")).json()
    assert [slot["id"] for slot in slots] == [0, 1, 2]
    assert all(slot["n_ctx"] == 128 for slot in slots)
    (model,) = (await client.get("/v1/models")).json()["data"]
    assert model["id"] == "tiny qwen35"
    assert model["meta"]["n_vocab"] == 512


@pytest.mark.parametrize(
    ("slow", "path", "body"),
    [
        ("pascal_engine.tokenizer.Tokenizer.decode", "/detokenize", {"tokens": [9]}),
        ("pascal_engine.server.native.schemas.DetokenizeBody.model_validate", "/detokenize", {"tokens": [9] * 50_000}),
        ("pascal_engine.server.anthropic.routes.chat_body", "/v1/messages", {"messages": HELLO, "max_tokens": 2}),
        ("pascal_engine.server.responses.routes.chat_body", "/v1/responses", {"input": "Hi", "max_output_tokens": 2}),
    ],
)
async def test_a_body_that_takes_long_holds_nobody_up(
    slow: str, path: str, body: Json, post: Post, client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, released = threading.Event(), threading.Event()
    original = pkgutil.resolve_name(slow)

    def held(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        begun.set()
        assert released.wait(timeout=20)
        return original(*args, **kwargs)

    monkeypatch.setattr(slow, held)
    answer = asyncio.ensure_future(post(path, **body))
    assert await asyncio.to_thread(begun.wait, 20)
    assert (await client.get("/health")).status_code == 200
    assert not answer.done()
    released.set()
    assert (await answer).status_code == 200


async def test_tokens_there_and_back(post: Post) -> None:
    tokens = (await post("/tokenize", content="Hello 🎉")).json()["tokens"]
    assert (await post("/detokenize", tokens=tokens)).json() == {"content": "Hello 🎉"}
    pieces = (await post("/tokenize", content="🎉", with_pieces=True)).json()["tokens"]
    assert b"".join(bytes(piece["piece"]) for piece in pieces) == "🎉".encode()
    parsed, plain = [
        (await post("/tokenize", content="<|im_end|>", parse_special=flag)).json()["tokens"] for flag in (True, False)
    ]
    assert len(parsed) == 1 < len(plain)


async def test_apply_template(post: Post) -> None:
    prompt = (await post("/apply-template", messages=HELLO)).json()["prompt"]
    assert prompt == "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n"
    begun = [*HELLO, {"role": "assistant", "content": "Well,"}]
    assert (await post("/apply-template", messages=begun)).json()["prompt"] == prompt + "Well,"
    parts = [{"role": "user", "content": [{"type": "text", "text": "Hel"}, {"type": "text", "text": "lo"}]}]
    assert (await post("/apply-template", messages=parts)).json()["prompt"] == prompt.replace("Hello", "Hel\nlo")


async def test_completion_of_text_and_of_tokens(post: Post, served: Engine) -> None:
    settings = {"n_predict": 12, "temperature": 0, "ignore_eos": True, "return_tokens": True}
    by_text = (await post("/completion", prompt="Hello", **settings)).json()
    by_tokens = (await post("/completion", prompt=served.tokenizer.encode("Hello"), **settings)).json()
    assert by_text["tokens"] == by_tokens["tokens"]
    assert len(by_text["tokens"]) == by_text["tokens_predicted"] == 12
    assert served.tokenizer.decode(by_text["tokens"]) == by_text["content"]
    assert by_text["stop_type"] == "limit"
    assert by_text["stop"] is True
    assert (await post("/completion", prompt="Hello", n_predict=2)).json()["tokens"] == []


async def test_timings_and_usage_add_up(post: Post) -> None:
    answer = (await post("/v1/chat/completions", messages=HELLO, **GREEDY)).json()
    timings, usage = answer["timings"], answer["usage"]
    assert timings["cache_n"] == usage["prompt_tokens_details"]["cached_tokens"]
    assert timings["cache_n"] + timings["prompt_n"] == usage["prompt_tokens"]
    assert timings["predicted_n"] == usage["completion_tokens"] == 12
    assert usage["total_tokens"] == usage["prompt_tokens"] + 12
    for phase, count in (("prompt", timings["prompt_n"]), ("predicted", 11)):  # the first token is the prompt's work
        milliseconds = timings[f"{phase}_ms"]
        assert timings[f"{phase}_per_second"] == pytest.approx(1000 * count / milliseconds)
        assert timings[f"{phase}_per_token_ms"] == pytest.approx(milliseconds / count)


@pytest.mark.parametrize("path", ["/completion", "/v1/completions", "/v1/chat/completions"])
async def test_a_stream_adds_up_to_the_whole_answer(path: str, post: Post) -> None:
    asked: Json = {**GREEDY, **({"messages": HELLO} if "chat" in path else {"prompt": "Hello"})}
    whole = (await post(path, **asked)).json()
    streamed = await post(path, **asked, stream=True)
    assert streamed.text.endswith("data: [DONE]\n\n") == (path != "/completion")
    chunks = events(streamed)
    assert "".join(text_of(chunk) for chunk in chunks) == text_of(whole)
    assert chunks[-1]["timings"]["predicted_n"] == 12


def text_of(answer: Json) -> str:
    if "content" in answer:
        return str(answer["content"])
    choice = answer["choices"][0]
    if "text" in choice:
        return str(choice["text"])
    return str((choice.get("message") or choice["delta"]).get("content") or "")


async def test_a_chat_stream_has_one_role_one_reason_and_usage_where_asked(post: Post) -> None:
    asked = {"messages": HELLO, **GREEDY, "stream": True}
    chunks = events(await post("/v1/chat/completions", **asked, stream_options={"include_usage": True}))
    assert [chunk["choices"][0]["delta"].get("role") for chunk in chunks[:-1]] == ["assistant"] + [None] * (
        len(chunks) - 2
    )
    reasons = [chunk["choices"][0]["finish_reason"] for chunk in chunks[:-1]]
    assert reasons == [None] * (len(chunks) - 2) + ["length"]
    assert chunks[-1]["choices"] == []
    assert chunks[-1]["usage"]["completion_tokens"] == 12
    assert len({chunk["id"] for chunk in chunks}) == 1
    assert all("usage" not in chunk for chunk in events(await post("/v1/chat/completions", **asked)))


async def test_a_stop_string_never_leaks_into_a_stream(post: Post) -> None:
    asked: Json = {"prompt": "Hello", "n_predict": 20, "temperature": 0, "ignore_eos": True}
    whole = (await post("/completion", **asked)).json()["content"]
    stop = whole[6:9]
    chunks = events(await post("/completion", **asked, stop=[stop], stream=True))
    assert "".join(chunk["content"] for chunk in chunks) == whole[: whole.index(stop)]
    assert (chunks[-1]["stop_type"], chunks[-1]["stopping_word"]) == ("word", stop)


async def test_requests_at_once_get_what_each_gets_alone(post: Post) -> None:
    asked = [{"prompt": "Hello" * n, "seed": n, "n_predict": 10, "return_tokens": True} for n in range(1, 7)]
    alone = [(await post("/completion", **body)).json()["tokens"] for body in asked]
    together = await asyncio.gather(*(post("/completion", **body) for body in asked))
    assert [response.json()["tokens"] for response in together] == alone


@pytest.mark.parametrize("streamed", [True, False])
@pytest.mark.parametrize("steps", [0, 3])
async def test_a_client_that_goes_away_frees_its_slot(streamed: bool, steps: int, data: Path) -> None:
    engine = open_tiny(data / "qwen35-tiny.gguf", parallel=1)
    request = {"prompt": "Hello", "ignore_eos": True, "stream": streamed}
    inbox: asyncio.Queue[Message] = asyncio.Queue()
    await inbox.put({"type": "http.request", "body": json.dumps(request).encode()})
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": "/completion", "headers": [], "query_string": b""}
    call = asyncio.ensure_future(create_app(engine)(scope, inbox.get, send))
    while not engine.scheduler.has_work:
        await asyncio.sleep(0)
    for _ in range(steps):
        engine.scheduler.step()
    await inbox.put({"type": "http.disconnect"})
    await call
    engine.scheduler.step()
    assert not engine.scheduler.has_work
    assert not any(message.get("more_body") is False for message in sent)


@pytest.mark.parametrize("path", ["/completion", "/v1/messages"])
async def test_a_client_that_leaves_before_its_body_is_there_is_no_failure(
    path: str, served: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    inbox: asyncio.Queue[Message] = asyncio.Queue()
    inbox.put_nowait({"type": "http.request", "body": b'{"prompt":', "more_body": True})
    inbox.put_nowait({"type": "http.disconnect"})

    async def send(message: Message) -> None:
        assert message.get("status", 400) == 400

    scope = {"type": "http", "method": "POST", "path": path, "headers": [], "query_string": b""}
    await create_app(served)(scope, inbox.get, send)
    assert not caplog.records


async def test_a_prompt_no_slot_could_hold_is_refused_without_being_tokenised(
    client: httpx.AsyncClient, served: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tokenising ten megabytes once kept everyone else waiting for twelve seconds."""

    def encode(*_: object, **__: object) -> list[int]:
        raise AssertionError("tokenised")

    monkeypatch.setattr(type(served.tokenizer), "encode", encode)
    for route, body in (
        ("/completion", {"prompt": "word " * 200_000}),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "word " * 200_000}]}),
    ):
        answer = await client.post(route, json=body)
        assert answer.status_code == 400
        assert answer.json()["error"]["type"] == "exceed_context_size_error"


async def test_a_body_past_any_use_is_not_read_to_its_end(client: httpx.AsyncClient) -> None:
    answer = await client.post("/tokenize", content=b'{"content": "' + b"a" * (5 << 20) + b'"}')
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, 413)


@pytest.mark.parametrize(
    ("route", "raw"),
    [
        ("/apply-template", b'{"messages": [{"role": "user", "content": "\\ud800"}]}'),
        ("/completion", b'{"prompt": "hi", "n_predict": 1, "temperature": Infinity}'),
    ],
)
async def test_what_could_not_be_answered_in_json_is_refused(client: httpx.AsyncClient, route: str, raw: bytes) -> None:
    answer = await client.post(route, content=raw)
    assert answer.status_code == 400
    assert answer.json()["error"]["message"]
