"""llama-server's own routes: what /completion takes and answers, tokens, slots, metrics, keys."""

import asyncio
import json
import re
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import asdict
from pathlib import Path

import httpx
import pytest

from pascal_engine.engine import Engine, EngineOptions, RequestDefaults
from pascal_engine.sampling.constraint import Constraint, ConstraintError
from pascal_engine.sampling.params import SAMPLERS, SamplingParams
from pascal_engine.schedule.sequence import GenerationRequest
from pascal_engine.server import create_app
from pascal_engine.server.native.schemas import NativeCompletionBody
from pascal_engine.server.options import ServerOptions
from tests.engine.harness import Json, Post, drain, events, open_tiny, submit

GREEDY: Json = {"temperature": 0, "ignore_eos": True, "n_predict": 8, "return_tokens": True}
BAN = float("-inf")


def request_of(engine: Engine, **fields: object) -> GenerationRequest:
    return NativeCompletionBody.model_validate({"prompt": "a", **fields}).request(engine, [5])


def message(response: httpx.Response, status: int = 400) -> str:
    assert response.status_code == status, response.text
    return str(response.json()["error"]["message"])


async def test_a_prompt_may_mix_text_and_ids(post: Post, served: Engine) -> None:
    tokens = served.tokenizer.encode("Hello")
    whole = (await post("/completion", prompt="Hello Hello", **GREEDY)).json()
    rest = served.tokenizer.encode(" Hello")
    for prompt in ([*tokens, *rest], ["Hello", *rest], [*tokens, " Hello"], {"prompt_string": "Hello Hello"}):
        answer = (await post("/completion", prompt=prompt, **GREEDY)).json()
        assert answer["tokens"] == whole["tokens"]
        assert answer["prompt"] == "Hello Hello"
        assert answer["tokens_evaluated"] == len(tokens) + len(rest)


@pytest.mark.parametrize("stream", [False, True])
async def test_several_prompts_give_a_list_of_answers(stream: bool, post: Post) -> None:
    prompts: list[object] = ["Hello", [5, 6, 7], ["Hel", 5], {"prompt_string": "lo"}]
    alone = [(await post("/completion", prompt=prompt, **GREEDY)).json() for prompt in prompts]
    response = await post("/completion", prompt=prompts, **GREEDY, stream=stream)
    if not stream:
        assert [answer["index"] for answer in response.json()] == [0, 1, 2, 3]
        assert [answer["tokens"] for answer in response.json()] == [answer["tokens"] for answer in alone]
        return
    chunks = events(response)
    for index, answer in enumerate(alone):
        own = [chunk for chunk in chunks if chunk["index"] == index]
        assert [token for chunk in own for token in chunk["tokens"]] == answer["tokens"]
        assert [chunk["stop"] for chunk in own] == [False] * (len(own) - 1) + [True]


async def test_several_answers_have_seeds_of_their_own(post: Post) -> None:
    asked: Json = {"n_predict": 8, "ignore_eos": True, "return_tokens": True}
    answers = (await post("/completion", prompt=["Hello", "Hel"], n_cmpl=2, seed=7, **asked)).json()
    for index, (prompt, seed) in enumerate((prompt, seed) for prompt in ("Hello", "Hel") for seed in (7, 8)):
        assert answers[index]["index"] == index
        assert (
            answers[index]["tokens"] == (await post("/completion", prompt=prompt, seed=seed, **asked)).json()["tokens"]
        )


async def test_a_list_of_one_prompt_is_one_answer(post: Post) -> None:
    assert (await post("/completion", prompt=["Hello"], n_predict=1)).json()["tokens_predicted"] == 1


@pytest.mark.parametrize(
    ("prompt", "words"),
    [
        ([], "the prompt is empty"),
        ([""], "the prompt is empty"),
        (["a", ""], "the prompt is empty"),
        ([5, [6]], "mixes token ids and prompts"),
        ([5, 512], "token id 512 is not in the vocabulary"),
        ({"prompt_string": "a", "multimodal_data": ["x"]}, "'multimodal_data' is not supported"),
        ({"text": "a"}, "'prompt"),
        (["a", [5] * 128], "has 128 tokens, but a slot's context holds 128"),
        (True, "'prompt"),
    ],
)
async def test_a_prompt_that_will_not_do_is_a_400(prompt: object, words: str, post: Post) -> None:
    assert words in message(await post("/completion", prompt=prompt))


async def test_fields_become_sampling_params(served: Engine) -> None:
    fields: Json = {
        "temperature": 0.5,
        "dynatemp_range": 0.1,
        "dynatemp_exponent": 2,
        "top_k": 7,
        "top_p": 0.5,
        "min_p": 0.1,
        "typical_p": 0.9,
        "top_n_sigma": 2,
        "xtc_probability": 0.2,
        "xtc_threshold": 0.3,
        "min_keep": 2,
        "repeat_last_n": -1,
        "repeat_penalty": 1.1,
        "presence_penalty": 0.3,
        "frequency_penalty": -0.4,
        "dry_multiplier": 0.8,
        "dry_base": 2,
        "dry_allowed_length": 3,
        "dry_penalty_last_n": 9,
        "seed": 11,
        "n_probs": 3,
        "post_sampling_probs": True,
    }
    sampling = request_of(
        served, **fields, dry_sequence_breakers=["x"], samplers=["top-k", "typ", "temp"], logit_bias=[[5, 1.5]]
    ).sampling
    assert {name: asdict(sampling)[name] for name in fields} == fields
    assert sampling.dry_sequence_breakers == ("x",)
    assert sampling.samplers == ("top_k", "typ_p", "temperature")
    assert sampling.logit_bias == ((5, 1.5),)


async def test_what_is_not_given_is_the_servers_default(data: Path) -> None:
    defaults = RequestDefaults(SamplingParams(temperature=0.3, seed=4), max_tokens=3)
    engine = Engine.open(data / "qwen35-tiny.gguf", EngineOptions(64, 1, defaults=defaults))
    request = request_of(engine, top_k=5)
    assert request.sampling == SamplingParams(temperature=0.3, seed=4, top_k=5)
    assert request.max_tokens == 3
    assert request_of(engine, n_predict=-1).max_tokens is None
    assert request_of(engine, seed=-1).sampling.seed is None


async def test_the_rest_of_a_request(served: Engine) -> None:
    request = request_of(
        served, stop=["a", ""], id_slot=2, t_max_predict_ms=50, return_progress=True, stream=True, cache_prompt=False
    )
    assert (request.stop, request.slot, request.time_limit_ms) == (("a",), 2, 50)
    assert (request.report_progress, request.reuse) == (True, False)
    plain = request_of(served, id_slot=-1, t_max_predict_ms=-1, return_progress=True)
    assert (plain.slot, plain.time_limit_ms, plain.report_progress) == (None, None, False)
    assert request_of(served, n_predict=3, max_tokens=9).max_tokens == 3
    assert request_of(served, max_tokens=0).max_tokens == 0
    assert request_of(served, samplers="kt").sampling.samplers == ("top_k", "temperature")
    assert request_of(served, samplers="edskypmxt").sampling.samplers == SAMPLERS
    assert request_of(served, top_k=-1).sampling.top_k == 0
    assert request_of(served, seed=0xFFFFFFFF).sampling.seed is None


async def test_logit_bias_in_all_its_forms(served: Engine) -> None:
    hello = served.tokenizer.encode("Hello")
    expected = {5: 1.5, 6: BAN, **dict.fromkeys(hello, -2.0)}
    for given in (
        [[5, 1.5], [6, False], ["Hello", -2]],
        {"5": 1.5, "6": False, "Hello": -2},
        [[5, 1], [5, 0.5], [6, 3], [6, False], ["Hello", -2.0]],
    ):
        assert dict(request_of(served, logit_bias=given).sampling.logit_bias) == expected


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"logit_bias": [[5]]}, "'logit_bias' must be a list"),
        ({"logit_bias": [5]}, "'logit_bias' must be a list"),
        ({"logit_bias": [[5, True]]}, "'logit_bias' must be a list"),
        ({"logit_bias": [[5.5, 1]]}, "'logit_bias' must be a list"),
        ({"logit_bias": [[512, 1]]}, "'logit_bias' names token 512"),
        ({"logit_bias": {"-1": 1}}, "'logit_bias' names token -1"),
        ({"logit_bias": "5"}, "'logit_bias"),
        ({"top_p": -0.1}, "'top_p' is wrong"),
        ({"typical_p": 2}, "'typical_p' is wrong"),
        ({"repeat_penalty": 0}, "'repeat_penalty' is wrong"),
        ({"repeat_last_n": -2}, "'repeat_last_n' is wrong"),
        ({"dry_base": 0.5}, "'dry_base' is wrong"),
        ({"dry_sequence_breakers": []}, "'dry_sequence_breakers' is wrong"),
        ({"samplers": ["top_k", "magic"]}, "the sampler 'magic' is not known"),
        ({"samplers": "kz"}, "the sampler 'z' is not known"),
        ({"seed": -2}, "'seed' is wrong"),
        ({"n_probs": 1001}, "'n_probs' is wrong"),
        ({"n_predict": -2}, "'n_predict' is wrong"),
        ({"id_slot": 3}, "there is no slot 3; slots run from 0 to 2"),
        ({"grammar": "root ::= 'a'", "json_schema": {}}, "both 'grammar' and 'json_schema'"),
        ({"response_fields": "content"}, "'response_fields' is wrong"),
        ({"mirostat": 1}, "'mirostat' is not supported"),
        ({"lora": [{"id": 0, "scale": 1}]}, "'lora' is not supported"),
        ({"image_data": ["x"]}, "'image_data' is not supported"),
        ({"n_cmpl": 129}, "'n_cmpl' is wrong"),
        ({"n_cmpl": 65, "prompt": ["a", "b"]}, "more than 128 answers"),
        ({"n_indent": 4}, "'n_indent' is not supported"),
    ],
)
async def test_fields_out_of_range_and_not_done_are_refused(fields: Json, words: str, post: Post) -> None:
    assert words in message(await post("/completion", **{"prompt": "a", **fields}))


async def test_values_of_llama_server_that_ask_for_nothing_are_accepted(post: Post) -> None:
    neutral = {"mirostat": 0, "mirostat_tau": 5, "lora": [], "n_keep": -1, "n_indent": 0, "id_slot": -1, "grammar": ""}
    assert (await post("/completion", prompt="a", n_predict=1, **neutral)).status_code == 200


async def test_response_fields_pick_and_unnest(post: Post) -> None:
    paths = ["content", "generation_settings/n_predict", "timings/prompt_n", "none", "content/none", "a/b"]
    answer = (await post("/completion", prompt="Hello", n_predict=2, response_fields=paths)).json()
    assert answer.keys() == {"content", "generation_settings/n_predict", "timings/prompt_n"}
    assert answer["generation_settings/n_predict"] == 2


async def test_the_settings_are_told_as_llama_server_does(post: Post) -> None:
    answer = (await post("/completion", prompt="a", n_predict=1, stop=["x"], logit_bias=[[5, False]])).json()
    settings = answer["generation_settings"]
    assert settings["seed"] == 0xFFFFFFFF
    assert settings["samplers"] == list(SAMPLERS)
    assert (settings["n_predict"], settings["max_tokens"], settings["stop"]) == (1, 1, ["x"])
    assert settings["logit_bias"] == [{"token": 5, "bias": None}]


async def test_a_stream_tells_slot_counts_and_timings(post: Post, served: Engine) -> None:
    chunks = events(await post("/completion", prompt="Hello", **GREEDY, stream=True, timings_per_token=True))
    *parts, last = chunks
    assert [chunk["tokens_predicted"] for chunk in parts] == list(range(1, 9))
    assert {chunk["id_slot"] for chunk in chunks} == {last["id_slot"]}
    assert all(chunk["tokens_evaluated"] == last["tokens_evaluated"] for chunk in parts)
    for n_tokens, chunk in enumerate(parts, start=1):
        assert chunk["timings"]["predicted_n"] == n_tokens
        assert chunk["timings"]["prompt_ms"] == last["timings"]["prompt_ms"]
    assert (last["content"], last["tokens"]) == ("", [])
    plain = events(await post("/completion", prompt="Hello", **GREEDY, stream=True))
    assert all("timings" not in chunk for chunk in plain[:-1])


@pytest.mark.parametrize("post_sampling", [False, True])
async def test_probabilities_come_with_each_token(post_sampling: bool, post: Post, served: Engine) -> None:
    asked: Json = {**GREEDY, "temperature": 1, "seed": 3, "n_probs": 4, "post_sampling_probs": post_sampling}
    answer = (await post("/completion", prompt="Hello", **asked)).json()
    told = answer["completion_probabilities"]
    value, top = ("prob", "top_probs") if post_sampling else ("logprob", "top_logprobs")
    assert [entry["id"] for entry in told] == answer["tokens"]
    for entry in told:
        assert entry.keys() == {"id", "token", "bytes", value, top}
        assert bytes(entry["bytes"]) == served.tokenizer.token_bytes(entry["id"])
        assert 1 <= len(entry[top]) <= 4
        values = [likely[value] for likely in entry[top]]
        assert values == sorted(values, reverse=True)
        assert all(0 < number <= 1 if post_sampling else number <= 0 for number in values)
    chunks = events(await post("/completion", prompt="Hello", **asked, stream=True))
    assert [part for chunk in chunks for part in chunk.get("completion_probabilities", [])] == told


async def test_probabilities_of_a_stop_string_are_left_out(post: Post) -> None:
    whole = (await post("/completion", prompt="Hello", **GREEDY)).json()["content"]
    answer = (await post("/completion", prompt="Hello", **GREEDY, n_probs=1, stop=whole[3:5])).json()
    assert len(answer["completion_probabilities"]) < len(answer["tokens"])


async def test_a_grammar_or_schema_holds_the_answer(post: Post) -> None:
    assert (await post("/completion", prompt="a", grammar='root ::= "yes" | "no"')).json()["content"] in ("yes", "no")
    schema = {"type": "object", "properties": {"a": {"enum": [1, 2]}}, "required": ["a"], "additionalProperties": False}
    answer = (await post("/completion", prompt="a", json_schema=schema, n_predict=100)).json()
    assert json.loads(answer["content"])["a"] in (1, 2)
    assert message(await post("/completion", prompt="a", grammar="root ::= ("))
    assert message(await post("/completion", prompt="a", json_schema={"type": "none"}))


async def test_progress_of_the_prompt_is_streamed(post: Post) -> None:
    asked: Json = {"prompt": [7] * 100, "n_predict": 2, "cache_prompt": False, "stream": True}
    chunks = events(await post("/completion", **asked, return_progress=True))
    progress = [chunk["prompt_progress"] for chunk in chunks if "prompt_progress" in chunk]
    assert progress[-1]["processed"] == progress[-1]["total"] == 100
    assert all(part.keys() == {"total", "cache", "processed", "time_ms"} for part in progress)
    assert not any("prompt_progress" in chunk for chunk in events(await post("/completion", **asked)))


async def test_no_tokens_at_all(post: Post) -> None:
    answer = (await post("/completion", prompt="Hello", n_predict=0)).json()
    assert (answer["content"], answer["tokens_predicted"], answer["stop_type"]) == ("", 0, "limit")


async def test_tokenize_takes_mixed_content_and_nothing(post: Post, served: Engine) -> None:
    mixed = (await post("/tokenize", content=["Hello", 5])).json()["tokens"]
    assert mixed == [*served.tokenizer.encode("Hello"), 5]
    assert (await post("/tokenize")).json() == {"tokens": []}
    assert (await post("/detokenize")).json() == {"content": ""}
    assert "token id 512" in message(await post("/tokenize", content=[512]))


async def test_slots_tell_what_they_do(data: Path) -> None:
    engine = open_tiny(data / "qwen35-tiny.gguf", parallel=1, ctx=64)
    transport = httpx.ASGITransport(create_app(engine))
    async with httpx.AsyncClient(transport=transport, base_url="http://engine") as client:
        asked = asyncio.ensure_future(client.post("/completion", json={"prompt": "Hello", **GREEDY}))
        while not engine.scheduler.has_work:
            await asyncio.sleep(0)
        engine.scheduler.step()
        (slot,) = (await client.get("/slots")).json()
        assert slot["is_processing"] is True
        assert slot["params"]["n_predict"] == 8
        assert slot["next_token"] == [{"has_next_token": True, "has_new_line": False, "n_remain": 7, "n_decoded": 1}]
        assert message(await client.get("/slots?fail_on_no_slot=1"), 503)
        while engine.scheduler.has_work:
            engine.scheduler.step()
        await asked
        (slot,) = (await client.get("/slots?fail_on_no_slot=1")).json()
        assert slot["is_processing"] is False


@pytest.fixture(scope="module")
def engine(data: Path) -> Iterator[Engine]:
    engine = open_tiny(data / "qwen35-tiny.gguf", parallel=2, ctx=128)
    engine.worker.start()
    yield engine
    engine.worker.stop()


@pytest.fixture
async def full(engine: Engine, tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a server with everything switched on."""
    options = ServerOptions(slot_save_path=tmp_path, metrics=True, props=True)
    transport = httpx.ASGITransport(create_app(engine, options))
    async with httpx.AsyncClient(transport=transport, base_url="http://engine", timeout=30) as client:
        yield client


async def test_a_slot_is_saved_erased_and_restored(full: httpx.AsyncClient, engine: Engine, tmp_path: Path) -> None:
    prompt = "Hello " * 20
    first = (await full.post("/completion", json={"prompt": prompt, **GREEDY, "id_slot": 0})).json()
    slot = first["id_slot"]
    saved = (await full.post(f"/slots/{slot}?action=save", json={"filename": "a b.bin"})).json()
    n_tokens = first["tokens_cached"]
    assert (saved["id_slot"], saved["filename"], saved["n_saved"]) == (slot, "a b.bin", n_tokens)
    assert saved["n_written"] == (tmp_path / "a b.bin").stat().st_size
    assert saved["timings"].keys() == {"save_ms"}
    assert (await full.post(f"/slots/{slot}?action=erase", json={})).json() == {"id_slot": slot, "n_erased": n_tokens}
    restored = (await full.post("/slots/1?action=restore", json={"filename": "a b.bin"})).json()
    assert (restored["n_restored"], restored["n_read"]) == (n_tokens, saved["n_written"])
    turn = [*engine.tokenizer.encode(prompt), *first["tokens"], 5]
    reused = (await full.post("/completion", json={"prompt": turn, **GREEDY})).json()
    assert reused["timings"]["cache_n"] == n_tokens


@pytest.mark.parametrize(
    "name",
    [
        *("", ".", "..", "../x", "a/b", "a\\b", "/etc/x", ".hidden", "x.", " x", "x ", "a\0b", "a\nb", "a..b"),
        *("c:x", "a*", "\u2215x", "\uff0e\uff0e", "x" * 201, "\u00e9" * 101),
    ],
)
async def test_a_file_of_a_slot_is_a_plain_name(name: str, full: httpx.AsyncClient, tmp_path: Path) -> None:
    for action in ("save", "restore"):
        response = await full.post(f"/slots/0?action={action}", json={"filename": name})
        assert "plain name of a file" in message(response)
    assert not list(tmp_path.iterdir())


async def test_slot_actions_that_cannot_be(full: httpx.AsyncClient, client: httpx.AsyncClient) -> None:
    assert "?action=save" in message(await full.post("/slots/0?action=burn", json={}))
    assert "there is no slot 7" in message(await full.post("/slots/7?action=erase", json={}))
    assert "cannot be read" in message(await full.post("/slots/0?action=restore", json={"filename": "none"}))
    assert "'x' is no number of a slot" in message(await full.post("/slots/x?action=erase"))
    assert "--slot-save-path" in message(await client.post("/slots/0?action=erase", json={}), 501)


async def test_a_slot_at_work_is_left_alone(data: Path, tmp_path: Path) -> None:
    engine = open_tiny(data / "qwen35-tiny.gguf", parallel=1, ctx=64)
    inbox = submit(engine, GenerationRequest((5,), 4))
    engine.scheduler.step()
    transport = httpx.ASGITransport(create_app(engine, ServerOptions(slot_save_path=tmp_path)))
    async with httpx.AsyncClient(transport=transport, base_url="http://engine") as client:
        asked = asyncio.ensure_future(client.post("/slots/0?action=erase", json={}))
        while not engine.scheduler._calls:
            await asyncio.sleep(0)
        drain(engine)
        assert "slot 0 is at work" in message(await asked, 409)
    assert len(inbox.tokens) == 4


SERIES = {
    "counter": "prompt_tokens_total prompt_tokens_cached_total prompt_seconds_total tokens_predicted_total"
    " tokens_predicted_seconds_total n_decode_total n_tokens_max spec_decode_num_draft_tokens_total"
    " spec_decode_num_accepted_tokens_total spec_decode_num_drafts_total",
    "gauge": "prompt_tokens_seconds predicted_tokens_seconds requests_processing requests_deferred"
    " n_busy_slots_per_decode",
}


async def scrape(client: httpx.AsyncClient) -> dict[str, float]:
    """All series; names, types and text are those of Prometheus' format."""
    response = await client.get("/metrics")
    assert response.headers["content-type"] == "text/plain; version=0.0.4"
    lines = response.text.splitlines()
    kinds = dict(re.findall(r"^# TYPE llamacpp:(\w+) (\w+)$", response.text, re.MULTILINE))
    assert kinds == {name: kind for kind, names in SERIES.items() for name in names.split()}
    values = dict(line.removeprefix("llamacpp:").split() for line in lines if not line.startswith("#"))
    assert values.keys() == kinds.keys()
    return {name: float(value) for name, value in values.items()}


async def test_metrics_count_what_was_done(full: httpx.AsyncClient) -> None:
    before = await scrape(full)
    asked = {"prompt": [9] * 20, **GREEDY, "cache_prompt": False}
    answers = await asyncio.gather(*(full.post("/completion", json=asked) for _ in range(3)))
    assert all(answer.status_code == 200 for answer in answers)
    async with asyncio.timeout(30):  # an answer arrives just before the step that made it ends, and is counted
        while (after := await scrape(full))["prompt_tokens_total"] < before["prompt_tokens_total"] + 60:
            await asyncio.sleep(0)
    grown = {name: after[name] - before[name] for name in SERIES["counter"].split()}
    assert (grown["prompt_tokens_total"], grown["tokens_predicted_total"]) == (60, 24)
    assert 3 + 7 <= grown["n_decode_total"] <= 3 + 3 * 7
    assert after["n_tokens_max"] >= 28
    assert grown["prompt_seconds_total"] > 0
    assert 1 <= after["n_busy_slots_per_decode"] <= 2
    assert after["requests_deferred"] == 0
    idle = await scrape(full)
    assert (idle["prompt_tokens_seconds"], idle["predicted_tokens_seconds"]) == (0, 0)


async def test_routes_are_switched_on_and_off(full: httpx.AsyncClient, client: httpx.AsyncClient) -> None:
    assert "--metrics" in message(await client.get("/metrics"), 501)
    assert "--props" in message(await client.post("/props", json={}), 501)
    assert (await full.post("/props", json={})).json() == {"success": True}
    told = (await full.get("/props")).json()
    assert (told["endpoint_metrics"], told["endpoint_props"], told["endpoint_slots"]) == (True, True, True)


async def test_slots_may_be_kept_to_oneself(engine: Engine) -> None:
    transport = httpx.ASGITransport(create_app(engine, ServerOptions(slots=False)))
    async with httpx.AsyncClient(transport=transport, base_url="http://engine") as client:
        assert "--no-slots" in message(await client.get("/slots"), 501)


async def test_keys(engine: Engine, caplog: pytest.LogCaptureFixture) -> None:
    app = create_app(engine, ServerOptions(api_keys=("first", "\u00e9second"), metrics=True))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://engine") as client:
        for path in ("/health", "/v1/health"):
            assert (await client.get(path)).status_code == 200
        for headers in ({}, {"authorization": "Bearer wrong"}, {"authorization": "Basic first"}, {"x-api-key": "fir"}):
            for path in ("/props", "/metrics", "/nowhere", "/v1/models"):
                refused = await client.get(path, headers=headers)
                assert message(refused, 401) == "Invalid API Key"
                assert refused.json()["error"]["type"] == "authentication_error"
        good = ({"authorization": "Bearer first"}, {"x-api-key": "first"}, {"Authorization": "Bearer \u00e9second"})
        for accepted in good:
            headers = [(name.encode(), value.encode("utf-8")) for name, value in accepted.items()]
            assert (await client.get("/props", headers=headers)).status_code == 200
    assert "first" not in caplog.text


@pytest.mark.parametrize(
    ("origins", "origin", "allowed"),
    [
        ("*", "https://a.example", "https://a.example"),
        ("*", "", None),
        ("localhost", "http://localhost:3000", "http://localhost:3000"),
        ("localhost", "http://[::1]:3000", "http://[::1]:3000"),
        ("localhost", "https://localhost.example", None),
        ("localhost", "http://[", None),
        ("https://a.example", "https://b.example", "https://a.example"),
    ],
)
async def test_pages_in_browsers(origins: str, origin: str, allowed: str | None, engine: Engine) -> None:
    app = create_app(engine, ServerOptions(api_keys=("k",), cors_origins=origins))
    headers = {"origin": origin} if origin else {}
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://engine") as client:
        asked = await client.options("/v1/chat/completions", headers=headers)
        assert (asked.status_code, asked.headers["access-control-allow-headers"]) == (200, "*")
        for answer in (
            asked,
            await client.get("/health", headers=headers),
            await client.get("/props", headers=headers),
        ):
            assert answer.headers.get("access-control-allow-origin") == allowed


async def test_the_name_is_the_alias(data: Path) -> None:
    engine = Engine.open(data / "qwen35-tiny.gguf", EngineOptions(64, 1, alias="small"))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(create_app(engine)), base_url="http://e") as client:
        models = (await client.get("/v1/models")).json()
    assert models["data"][0]["id"] == models["models"][0]["name"] == "small"


async def test_grammars_that_take_long_hold_up_nobody_else(
    full: httpx.AsyncClient, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A dozen of them once took all threads that other requests are tokenised on."""
    go_on = threading.Event()

    def slow(grammar: str) -> Constraint:
        assert go_on.wait(30)
        raise ConstraintError("the grammar took too long")

    monkeypatch.setattr(engine.constraints, "from_gbnf", slow)
    held = [asyncio.ensure_future(full.post("/completion", json={"prompt": "a", "grammar": "x"})) for _ in range(40)]
    try:
        for _ in range(100):  # until all of them have got as far as they get
            await asyncio.sleep(0)
        assert (await full.post("/completion", json={"prompt": "a", **GREEDY})).status_code == 200
    finally:
        go_on.set()
    assert {answer.status_code for answer in await asyncio.gather(*held)} == {400}
