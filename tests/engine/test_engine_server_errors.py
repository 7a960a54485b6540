"""Requests that cannot be answered: each gets one clear sentence in the OpenAI error shape, and the service stays."""

import httpx
import pytest

from pascal_engine.engine import Engine
from pascal_engine.schedule.scheduler import Scheduler
from tests.engine.harness import Json, Post, events

HELLO = [{"role": "user", "content": "Hello"}]


def error(response: httpx.Response, status: int) -> str:
    assert response.status_code == status
    content = response.json()["error"]
    assert content["code"] == status
    assert isinstance(content["type"], str)
    assert "\n" not in content["message"]
    return str(content["message"])


async def test_a_prompt_longer_than_a_slot_is_refused(post: Post) -> None:
    response = await post("/v1/completions", prompt=[5] * 128)
    assert "has 128 tokens, but a slot's context holds 128" in error(response, 400)
    body = response.json()["error"]
    assert (body["type"], body["n_prompt_tokens"], body["n_ctx"]) == ("exceed_context_size_error", 128, 128)


@pytest.mark.parametrize(
    ("body", "part"),
    [
        ({}, "'prompt' is wrong: Field required"),
        ({"prompt": ""}, "the prompt is empty"),
        ({"prompt": []}, "the prompt is empty"),
        ({"prompt": 5}, "'prompt"),
        ({"prompt": [1.5]}, "'prompt"),
        ({"prompt": [512]}, "token id 512 is not in the vocabulary"),
        ({"prompt": [-1]}, "token id -1 is not in the vocabulary"),
        ({"prompt": "a", "temperature": "hot"}, "'temperature' is wrong"),
        ({"prompt": "a", "temperature": -1}, "'temperature' is wrong"),
        ({"prompt": "a", "top_p": 1.5}, "'top_p' is wrong"),
        ({"prompt": "a", "max_tokens": "5"}, "'max_tokens' is wrong"),
        ({"prompt": "a", "stop": [1]}, "'stop"),
        ({"prompt": "a", "stream": "yes"}, "'stream' is wrong"),
    ],
)
async def test_a_field_that_is_wrong_is_a_400(body: Json, part: str, post: Post) -> None:
    assert part in error(await post("/v1/completions", **body), 400)


@pytest.mark.parametrize(
    "messages",
    [None, [], "Hello", [5], [{}], [{"role": "user"}], [{"role": 5, "content": "a"}], [{"role": "user", "content": 5}]],
)
async def test_messages_that_are_wrong_are_a_400(messages: object, post: Post) -> None:
    assert error(await post("/v1/chat/completions", messages=messages), 400)


@pytest.mark.parametrize(
    "extra",
    [
        {"tools": [{"type": "function", "function": {"name": "f"}}]},
        {"mirostat": 2},
        {"lora": [{"id": 0, "scale": 1}]},
        {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]},
    ],
)
async def test_what_is_not_implemented_is_refused(extra: Json, post: Post) -> None:
    response = await post("/v1/chat/completions", **{"messages": HELLO, **extra})
    assert "is not supported" in error(response, 400)
    assert response.json()["error"]["type"] == "not_supported_error"


async def test_values_that_ask_for_nothing_are_accepted(post: Post) -> None:
    neutral = {"n": 1, "tools": [], "logprobs": False, "response_format": {"type": "text"}, "seed": None, "user": "a"}
    assert (await post("/v1/chat/completions", messages=HELLO, max_tokens=2, **neutral)).status_code == 200


@pytest.mark.parametrize("path", ["/completion", "/v1/completions", "/v1/chat/completions"])
async def test_what_clients_send_along_for_other_servers_is_passed_over(path: str, post: Post) -> None:
    sampling = {"repeat_penalty": 1.1, "rep_pen": 1.1, "repetition_penalty": 1.1, "tfs_z": 1, "top_a": 0, "typical": 1}
    limits = {"n_predict": 2, "max_new_tokens": 2, "max_tokens": 2, "min_tokens": 0, "truncation_length": 4096}
    texts = {"stop": ["\n"], "stopping_strings": ["\n"], "negative_prompt": "", "custom_token_bans": ""}
    ends = {"ban_eos_token": False, "skip_special_tokens": True, "add_bos_token": True, "penalize_nl": False}
    others = {
        "speculative.n_max": 16,
        "slot_id": -1,
        "keep_alive": "5m",
        "verbosity": "medium",
        "prompt_cache_key": "a",
        "never heard of": {"colour": "red"},
    }
    options = {"include_usage": True, "include_obfuscation": False, "chunk_size": 5}
    asked = {"prompt": "a"} if "chat" not in path else {"messages": HELLO}
    body = {**asked, **sampling, **limits, **texts, **ends, **others, "stream_options": options}
    response = await post(path, **body)
    assert response.status_code == 200, response.text


@pytest.mark.parametrize(
    ("extra", "words"),
    [
        ({"repetition_penalty": 1.3}, "'repetition_penalty' is another server's name; give 'repeat_penalty' instead"),
        ({"repetition_penalty": 1.3, "repeat_penalty": 1.2}, "give 'repeat_penalty' instead"),
        ({"max_new_tokens": 5}, "give 'n_predict' instead"),
        ({"tfs_z": 0.9}, "'tfs_z' is not supported"),
        ({"slot_id": 0}, "'slot_id' is not supported"),
        ({"min_tokens": 5}, "'min_tokens' is not supported"),
    ],
)
async def test_what_they_ask_for_is_not(extra: Json, words: str, post: Post) -> None:
    assert words in error(await post("/completion", prompt="a", **extra), 400)


async def test_inside_a_field_names_are_held_to_those_it_has(post: Post) -> None:
    shape = {"type": "text", "sub field": 5}
    refused = error(await post("/v1/chat/completions", messages=HELLO, response_format=shape), 400)
    assert "the field 'response_format.sub field' is not known" in refused


async def test_the_limit_goes_by_each_of_its_names(post: Post) -> None:
    for limits in ({"max_completion_tokens": 3}, {"max_completion_tokens": 3, "max_tokens": 2}, {"max_tokens": 3}):
        answer = (await post("/completion", prompt="a", ignore_eos=True, **limits)).json()
        assert answer["tokens_predicted"] == 3


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("/completion", "stop"),
        ("/completion", "dry_sequence_breakers"),
        ("/v1/chat/completions", "stop"),
        ("/v1/messages", "stop_sequences"),
        ("/v1/responses", "stop"),
    ],
)
async def test_no_request_may_have_so_many_texts_that_it_slows_down_others(path: str, field: str, post: Post) -> None:
    asked = {"prompt": "a"} if path == "/completion" else {"input": "a"} if "resp" in path else {"messages": HELLO}
    limit = "max_output_tokens" if "resp" in path else "max_tokens"
    many = [f"text {number}" for number in range(257)]
    response = await post(path, **asked, **{field: many})
    assert response.status_code == 400
    assert f"'{field}" in response.text
    assert (await post(path, **asked, **{limit: 1, field: many[:-1]})).status_code == 200


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b"\xff\xfe", b"[" * 100_000, b'"text"'])
async def test_a_body_that_is_no_json_object_is_a_400(content: bytes, client: httpx.AsyncClient) -> None:
    assert "JSON" in error(await client.post("/v1/chat/completions", content=content), 400)


async def test_unknown_routes_and_methods(client: httpx.AsyncClient) -> None:
    assert "no such route" in error(await client.get("/v2/none"), 404)
    assert "method" in error(await client.get("/completion"), 405)


async def test_a_full_queue_is_a_503(post: Post, served: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served.scheduler._queue, "_most", 0)
    response = await post("/completion", prompt="a")
    assert "try again later" in error(response, 503)
    assert response.json()["error"]["type"] == "unavailable_error"


async def test_an_unforeseen_error_is_a_500_and_the_service_stays(
    post: Post, monkeypatch: pytest.MonkeyPatch, served: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(Scheduler, "submit", lambda *arguments: 1 / 0)
        assert "see its log" in error(await post("/completion", prompt="a"), 500)
    assert (await post("/completion", prompt="a", n_predict=1)).status_code == 200


async def test_a_failure_in_mid_stream_is_an_event(
    post: Post, served: Engine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(type(served.model), "forward", lambda *arguments: 1 / 0)
        chunks = events(await post("/v1/completions", prompt="a", stream=True))
        assert error(await post("/v1/completions", prompt="a"), 500)
    assert chunks[-1]["error"]["code"] == 500
    assert (await post("/completion", prompt="a", n_predict=1)).status_code == 200
