"""What the router need not touch: the same bytes, whatever they are."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import pytest

from decomp_router.proxy.app import create_app
from decomp_router.proxy.httpx_upstream import HttpxUpstream
from tests.decomp_router.fakes import Exchange, FixedReader
from tests.decomp_router.proxy.scripted_engine import (
    PLAN,
    TIMEOUT,
    ScriptedEngine,
    client_of,
    in_front_of,
    settings,
)

ODD_JSON = '{ "messages" : [ {"role":"user","content":"h\u2028i \\u00e9"} ],\n "n":2 , "x": 1.0e0}'.encode()


@pytest.mark.parametrize("fanout", ["off", "auto"])
@pytest.mark.parametrize(
    "body",
    [
        ODD_JSON,
        b"not json",
        b"",
        b"\xff\xfe\x00",
        b"[" * 100_000,
        b'{"messages": 3}',
        json.dumps({"messages": [{"role": "user", "content": PLAN.prompt}], "tools": [{"type": "function"}]}).encode(),
        json.dumps({"messages": [{"role": "user", "content": PLAN.prompt}], "n": 2}).encode(),
        json.dumps(
            {"messages": [{"role": "user", "content": PLAN.prompt}], "response_format": {"type": "json_schema"}}
        ).encode(),
    ],
)
async def test_a_chat_request_that_may_not_fan_out_arrives_as_it_was_sent(body: bytes, fanout: str) -> None:
    engine = ScriptedEngine([b'{"choi', b'ces":[]}'], headers=[(b"content-type", b"application/json; x=y")])
    async with client_of(in_front_of(engine, fanout=fanout)) as client:
        answer = await client.post("/v1/chat/completions", content=body)
    assert engine.requests[-1].body == body
    assert answer.content == b'{"choices":[]}'
    assert answer.headers.raw == [(b"content-type", b"application/json; x=y")]


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD"])
@pytest.mark.parametrize("path", ["/", "/v1/models", "/health", "/a%2Fb/%C3%A9?x=1&y=%20&z", "/decompose/x", "/router"])
async def test_any_method_and_route(method: str, path: str) -> None:
    engine = ScriptedEngine([b"fine"], status=418, headers=[(b"X-One", b"1"), (b"X-One", b"2")])
    async with client_of(in_front_of(engine)) as client:
        answer = await client.request(method, path)
    assert answer.status_code == 418
    assert answer.headers.raw == [(b"X-One", b"1"), (b"X-One", b"2")]
    assert answer.content == (b"" if method == "HEAD" else b"fine")
    assert (engine.requests[0].method, engine.requests[0].target) == (method, path.encode())


async def test_headers_travel_but_for_those_of_the_connection() -> None:
    engine = ScriptedEngine(
        [b"\x1f\x8b not decoded"],
        headers=[
            (b"Content-Encoding", b"gzip"),
            (b"Connection", b"close, X-Hop"),
            (b"X-Hop", b"1"),
            (b"Keep-Alive", b"timeout=5"),
            (b"Date", b"yesterday"),
        ],
    )
    sent = {"Authorization": "Bearer k", "Accept-Encoding": "br", "TE": "trailers", "X-Own": "1", "Expect": "nothing"}
    exchange = Exchange(in_front_of(engine), "GET", b"/v1/models", b"", httpx.Headers(sent).raw)
    start = await exchange.message()
    assert start["headers"] == [(b"Content-Encoding", b"gzip"), (b"Date", b"yesterday")]
    assert (await exchange.message())["body"] == b"\x1f\x8b not decoded"
    assert dict(engine.requests[0].headers) == {
        b"authorization": b"Bearer k",
        b"accept-encoding": b"br",
        b"x-own": b"1",
        b"host": b"engine:8080",
    }


async def test_the_base_path_of_the_upstream_comes_first() -> None:
    engine = ScriptedEngine([b""])
    async with client_of(in_front_of(engine, "http://engine:8080/api/")) as client:
        await client.get("/v1/models")
    assert engine.requests[0].target == b"/api/v1/models"


async def test_chunks_come_as_the_engine_sends_them() -> None:
    later = asyncio.Event()
    frames: list[bytes | asyncio.Event] = ["data: {\u2028".encode(), b"\x85}\n", later, b"\ndata: [DONE]\n\n"]
    engine = ScriptedEngine(frames)
    exchange = Exchange(in_front_of(engine, fanout="auto"), "POST", b"/completion", b'{"prompt": "x"}')
    assert (await exchange.message())["status"] == 200
    assert (await exchange.message())["body"] == frames[0]
    assert (await exchange.message())["body"] == frames[1]
    assert exchange.silent()
    later.set()
    assert (await exchange.message())["body"] == frames[3]
    assert await exchange.message() == {"type": "http.response.body", "body": b""}
    await exchange.over()


async def test_an_upload_in_parts_arrives_whole() -> None:
    engine = ScriptedEngine([b"ok"])
    exchange = Exchange(
        in_front_of(engine), "POST", b"/upload", b"", [(b"transfer-encoding", b"chunked"), (b"content-type", b"a/b")]
    )
    exchange.say(b"one ", more=True)
    exchange.say(b"two")
    await exchange.message()
    assert engine.requests[0].body == b"one two"
    exchange.leave()
    await exchange.over()


@pytest.mark.parametrize("path", [b"/v1/chat/completions", b"/completion"])
@pytest.mark.parametrize("fanout", ["off", "auto"])
@pytest.mark.parametrize("begun", [False, True])
async def test_a_client_that_leaves_ends_the_upstreams_work(path: bytes, fanout: str, begun: bool) -> None:
    never = asyncio.Event()
    engine = ScriptedEngine([b"data: 1\n\n", never] if begun else [never])
    exchange = Exchange(in_front_of(engine, fanout=fanout), "POST", path, b'{"prompt": "x"}')
    await asyncio.wait_for(engine.got_one.wait(), 5)
    if begun:
        await exchange.message()
        await exchange.message()
    exchange.leave()
    await exchange.over()
    await asyncio.wait_for(engine.left.wait(), 1)


async def test_a_client_that_leaves_amid_its_upload() -> None:
    engine = ScriptedEngine([b"ok"])
    exchange = Exchange(in_front_of(engine), "POST", b"/v1/chat/completions", b"", [(b"content-length", b"9")])
    exchange.say(b"half", more=True)
    exchange.leave()
    await exchange.over()
    assert exchange.silent()


class Unreachable(httpx.AsyncBaseTransport):
    """A transport that fails as told."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        raise self.error


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (httpx.ConnectError("refused"), "The upstream http://engine:8080 cannot be reached; is the engine running?"),
        (httpx.ConnectTimeout(""), "The upstream http://engine:8080 did not accept a connection within 10 s."),
        (httpx.ReadTimeout(""), "The upstream http://engine:8080 stayed silent for 600 s."),
        (httpx.RemoteProtocolError("gone"), "The upstream http://engine:8080 broke off: gone."),
        (httpx.ReadError(""), "The upstream http://engine:8080 broke off: ReadError."),
    ],
)
@pytest.mark.parametrize("fanout", ["off", "auto"])
async def test_an_upstream_that_is_down(error: Exception, sentence: str, fanout: str) -> None:
    app = create_app(
        settings(fanout=fanout),
        FixedReader(PLAN),
        HttpxUpstream(Unreachable(error), "http://engine:8080", TIMEOUT),
    )
    asked: dict[str, Any] = {"messages": [{"role": "user", "content": PLAN.prompt}], "stream": True}
    async with client_of(app) as client:
        for answer in (await client.get("/v1/models"), await client.post("/v1/chat/completions", json=asked)):
            assert answer.status_code == 502
            assert answer.json()["error"] == {
                "message": sentence,
                "type": "upstream_error",
                "param": None,
                "code": None,
            }
        assert (await client.get("/router/health")).status_code == 200


async def test_an_upstream_that_dies_in_the_midst_leaves_an_answer_without_an_end() -> None:
    class Dying(httpx.AsyncByteStream):
        async def __aiter__(self) -> Any:  # noqa: ANN401
            yield b"data: 1\n\n"
            raise httpx.ReadError("reset")

    class Transport(httpx.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            return httpx.Response(200, stream=Dying())

    app = create_app(settings(), FixedReader(PLAN), HttpxUpstream(Transport(), "http://engine", TIMEOUT))
    exchange = Exchange(app, "POST", b"/completion", b"{}")
    assert (await exchange.message())["status"] == 200
    assert (await exchange.message())["more_body"]
    await exchange.over()
    assert exchange.silent()
