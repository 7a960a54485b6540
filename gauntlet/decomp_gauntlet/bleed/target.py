"""The engine under test, over HTTP."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httpx

from decomp_gauntlet.bleed.answer import Answer, Ask
from decomp_gauntlet.bleed.stream import Collector
from decomp_router.execute.sse import DONE, events

CHAT = "/v1/chat/completions"
PROBE = "Explain how a candle burns, in one sentence."
EXTRAS: dict[str, dict[str, Any]] = {
    "tokens": {"return_tokens": True},
    "logprobs": {"logprobs": True, "top_logprobs": 8},
    "ignore_eos": {"ignore_eos": True},
    "cache_prompt": {"cache_prompt": False},
}
"""Fields that not every engine takes; each makes the test sharper."""


class TargetError(RuntimeError):
    """The engine cannot be tested; the message says why and what to do."""


@dataclass(frozen=True)
class Traits:
    """What probing found: the fields of `EXTRAS` that the engine takes, and its slots and their context in tokens
    where it tells."""

    extras: frozenset[str]
    n_slots: int | None
    n_ctx: int | None
    chars_per_token: float


class Target:
    """Asks greedily, each answer as a stream; `client` has the engine's URL as its base."""

    def __init__(self, client: httpx.AsyncClient, model: str | None, max_tokens: int, seed: int) -> None:
        self._client = client
        self._body: dict[str, Any] = {"temperature": 0, "seed": seed, "max_tokens": max_tokens}
        if model is not None:
            self._body["model"] = model
        self._extras: frozenset[str] = frozenset()
        self.max_tokens = max_tokens

    async def probe(self) -> Traits:
        """What the engine is and takes. Raises TargetError where it gives no answer."""
        if "model" not in self._body and (name := await self._first_model()):
            self._body["model"] = name
        usage = (await self._post({})).get("usage") or {}
        self._extras = frozenset([name for name, fields in EXTRAS.items() if await self._takes(fields)])
        props = await self._get("/props")
        settings = props.get("default_generation_settings") or {}
        n_prompt = usage.get("prompt_tokens") or len(PROBE) // 4
        return Traits(self._extras, props.get("total_slots"), settings.get("n_ctx"), len(PROBE) / n_prompt)

    async def answer(
        self, ask: Ask, begun: Callable[[], None] = lambda: None, leave_after: int | None = None
    ) -> Answer:
        """The whole answer, or the beginning if we hang up after so many pieces. `begun` is called at its first piece.

        Raises TargetError where the answer is none.
        """
        body = self._body | self._fields(ask) | {"messages": list(ask.messages), "stream": True}
        collected = Collector()
        try:
            async with self._client.stream("POST", CHAT, json=body) as response:
                if response.status_code != 200:
                    await response.aread()
                    raise refusal(self._client.base_url, response)
                async for data in events(response.aiter_bytes()):
                    if data == DONE:
                        break
                    _take(collected, data)
                    if collected.n_pieces == 1:
                        begun()
                    if leave_after is not None and collected.n_pieces >= leave_after:
                        break
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise unreachable(self._client.base_url, error) from error
        begun()
        return collected.answer()

    def _fields(self, ask: Ask) -> dict[str, Any]:
        wanted = self._extras - ({"cache_prompt"} if ask.cached else set())
        return {key: value for name in sorted(wanted) for key, value in EXTRAS[name].items()}

    async def _takes(self, fields: dict[str, Any]) -> bool:
        try:
            await self._post(fields)
        except TargetError:
            return False
        return True

    async def _post(self, fields: dict[str, Any]) -> dict[str, Any]:
        """A short answer to the probe, in one piece."""
        body = self._body | {"max_tokens": 1, "messages": [{"role": "user", "content": PROBE}]} | fields
        try:
            response = await self._client.post(CHAT, json=body)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise unreachable(self._client.base_url, error) from error
        if response.status_code != 200:
            raise refusal(self._client.base_url, response)
        return _object(response)

    async def _first_model(self) -> str | None:
        """Some servers refuse a request that names no model."""
        models = (await self._get("/v1/models")).get("data") or [{}]
        name: str | None = models[0].get("id")
        return name

    async def _get(self, path: str) -> dict[str, Any]:
        """What an optional route tells; nothing where there is none."""
        try:
            response = await self._client.get(path)
            return _object(response) if response.status_code == 200 else {}
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise unreachable(self._client.base_url, error) from error
        except TargetError:
            return {}


def _object(response: httpx.Response) -> dict[str, Any]:
    try:
        content = response.json()
    except ValueError:
        content = None
    if not isinstance(content, dict):
        raise TargetError(f"{response.url} does not answer with a JSON object; is an engine served there?")
    return content


def _take(collected: Collector, data: bytes) -> None:
    try:
        chunk = json.loads(data)
        if "error" in chunk:
            raise TargetError(f"the engine broke off an answer: {_message(chunk)}")
        collected.add(chunk)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise TargetError(f"the engine's stream is none of a chat: {data[:80]!r}") from error


def unreachable(url: httpx.URL, error: Exception) -> TargetError:
    """No answer at all."""
    if isinstance(error, httpx.TimeoutException):
        return TargetError(f"{url} gave no answer in time; give it more with --timeout, or less work with --slots.")
    if isinstance(error, httpx.UnsupportedProtocol):
        return TargetError(f"{url} is no URL of a server; give one such as http://127.0.0.1:8080.")
    if isinstance(error, httpx.ConnectError):
        return TargetError(f"nothing listens at {url}; start the engine, or correct the URL.")
    return TargetError(f"{url} broke the connection off ({error or type(error).__name__}); see the engine's log.")


def refusal(url: httpx.URL, response: httpx.Response) -> TargetError:
    """An answer other than success."""
    status = response.status_code
    if status in (401, 403):
        return TargetError(f"{url} refuses us ({status}); give the engine's key with --api-key.")
    if status == 404:
        return TargetError(f"{url} has no {CHAT} (404); name the address of a chat engine.")
    try:
        message = _message(response.json())
    except ValueError:
        message = response.text[:200].strip() or "no reason given"
    return TargetError(f"{url} refuses a request with {status}: {message}")


def _message(content: Any) -> str:  # noqa: ANN401 whatever the engine sent
    error = content.get("error", content) if isinstance(content, dict) else content
    return str(error.get("message", error) if isinstance(error, dict) else error)
