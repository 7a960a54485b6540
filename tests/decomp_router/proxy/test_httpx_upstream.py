"""The upstream over HTTP: what leaves for the engine is what came."""

from __future__ import annotations

import httpx
import pytest

from decomp_router.execute.upstream import UpstreamRequest
from decomp_router.proxy.httpx_upstream import HttpxUpstream


@pytest.mark.parametrize("target", [b"/../x", b'/a"<>{}|?q="<>{}', b"/%7Ea/./b?x=%2F", b"/v1/models"])
async def test_the_target_is_not_tidied(target: bytes) -> None:
    seen = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request.extensions["target"])
        return httpx.Response(200)

    upstream = HttpxUpstream(httpx.MockTransport(answer), "http://engine/base", httpx.Timeout(5))
    async with upstream.stream(UpstreamRequest("GET", target, ())) as response:
        assert response.status == 200
    assert seen == [b"/base" + target]
