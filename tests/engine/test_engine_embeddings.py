"""Embeddings: their bits are a function of the text alone, and their HTTP face is OpenAI's and llama-server's."""

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai import AsyncOpenAI

from pascal_engine.backend.batch import Batch
from pascal_engine.engine import BackendName, Engine
from pascal_engine.schedule.pooling import Pooler, Pooling
from pascal_engine.schedule.sequence import Embedded, GenerationRequest
from pascal_engine.server import create_app
from pascal_engine.server.embeddings import normalized
from pascal_engine.server.options import ServerOptions
from tests.engine.harness import GREEDY, Inbox, Json, Post, drain, open_tiny, run, submit

F32 = npt.NDArray[np.float32]
LONG = tuple(5 + at * at % 400 for at in range(150))
PROMPTS = (LONG, (*LONG[:100], 7), LONG[:1], LONG[3:90])


def embedding_request(tokens: tuple[int, ...], pooling: Pooling) -> GenerationRequest:
    return GenerationRequest(tokens, reuse=False, pooling=pooling)


def embedding(inbox: Inbox) -> F32:
    (found,) = [event for event in inbox.events if isinstance(event, Embedded)]
    return found.values


@pytest.mark.parametrize(
    ("model", "backend", "pooling"),
    [
        ("qwen35", "cpu", "mean"),
        ("qwen35", "cpu", "last"),
        ("llama", "cpu", "mean"),
        ("qwen35", "reference", "mean"),
    ],
)
def test_an_embedding_has_the_same_bits_alone_and_beside_others(
    model: str, backend: BackendName, pooling: Pooling, data: Path
) -> None:
    engine = open_tiny(data / f"{model}-tiny.gguf", parallel=4, backend=backend)
    alone = [embedding(run(engine, embedding_request(prompt, pooling))[0]) for prompt in PROMPTS]
    chats = [GenerationRequest(LONG[:n], 20, GREEDY, ignore_eos=True, marks=(n - 9,)) for n in (30, 140, 149)]
    running = [submit(engine, chat) for chat in chats[:2]]
    engine.scheduler.step()
    together = [submit(engine, embedding_request(prompt, pooling)) for prompt in PROMPTS]
    running.append(submit(engine, chats[2]))
    drain(engine)
    assert [embedding(inbox).tobytes() for inbox in together] == [values.tobytes() for values in alone]
    answers = [inbox.tokens for inbox in running]
    assert answers == [run(open_tiny(data / f"{model}-tiny.gguf", backend=backend), chat)[0].tokens for chat in chats]


def test_an_embedding_is_made_of_the_states_that_logits_are_made_of(data: Path) -> None:
    engine = open_tiny(data / "qwen35-tiny.gguf", parallel=1)
    prompt = list(LONG[:40])
    (inbox,) = run(engine, embedding_request(tuple(prompt), "last"))
    model, pools = engine.model, engine.scheduler._pools
    pools.clear(0, len(prompt))
    logits = model.forward(Batch.prefill(prompt, 0, 0), pools)
    head = model._backend.linear(embedding(inbox)[None, None], model._weights.output)
    np.testing.assert_array_equal(model._backend.to_numpy(head)[:, 0], logits)


def test_embeddings_leave_no_state_behind(data: Path) -> None:
    engine = open_tiny(data / "qwen35-tiny.gguf", parallel=1)
    (inbox,) = run(engine, embedding_request(LONG, "mean"))
    assert len(engine.scheduler.cache) == 0
    assert (inbox.end.usage.prompt_n, inbox.end.usage.predicted_n) == (len(LONG), 0)  # type: ignore[union-attr]


@given(st.lists(st.integers(1, 5), min_size=1, max_size=6), st.sampled_from(["mean", "last"]))
def test_pooling_does_not_depend_on_chunks(lengths: list[int], pooling: Pooling) -> None:
    states = np.random.default_rng(3).standard_normal((sum(lengths), 8)).astype(np.float32)
    whole, parts = Pooler(pooling), Pooler(pooling)
    whole.add(states)
    for part in np.split(states, np.cumsum(lengths)[:-1]):
        parts.add(part)
    assert whole.embedding.tobytes() == parts.embedding.tobytes()
    expected = states.astype(np.float64).mean(axis=0) if pooling == "mean" else states[-1]
    np.testing.assert_allclose(whole.embedding, expected, rtol=1e-6)


@pytest.fixture
async def embedder(served: Engine) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a server started with --embeddings --pooling mean."""
    transport = httpx.ASGITransport(create_app(served, ServerOptions(pooling="mean")), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://engine", timeout=30) as client:
        yield client


def vectors(answer: httpx.Response) -> list[list[float]]:
    data = answer.json()["data"]
    assert [entry["index"] for entry in data] == list(range(len(data)))
    return [entry["embedding"] for entry in data]


async def test_texts_tokens_and_lists_of_them(embedder: httpx.AsyncClient, served: Engine) -> None:
    texts = ["Hello", "List three cities", "fox", "dog", "1"]
    tokens = [served.tokenizer.encode(text, add_special=True) for text in texts]
    answer = await embedder.post("/v1/embeddings", json={"input": texts, "model": "any"})
    assert answer.json()["usage"]["prompt_tokens"] == sum(map(len, tokens))
    assert answer.json()["object"] == "list"
    assert vectors(await embedder.post("/v1/embeddings", json={"input": tokens})) == vectors(answer)
    alone = [(await embedder.post("/v1/embeddings", json={"input": one})) for one in (texts[0], tokens[1])]
    assert [vectors(one)[0] for one in alone] == vectors(answer)[:2]
    assert all(np.linalg.norm(vector) == pytest.approx(1) for vector in vectors(answer))


@pytest.mark.parametrize("path", ["/embedding", "/embeddings", "/v1/embeddings"])
async def test_content_is_answered_in_the_shape_of_llama_server(path: str, embedder: httpx.AsyncClient) -> None:
    (entry,) = (await embedder.post(path, json={"content": "Hello", "embd_normalize": -1})).json()
    openai = await embedder.post("/v1/embeddings", json={"input": "Hello", "embd_normalize": -1})
    assert entry == {"index": 0, "embedding": vectors(openai)}


def test_normalization_follows_the_numbers_of_llama_server() -> None:
    values = np.array([3, -4, 0], np.float32)
    expected: dict[int, list[float]] = {-1: [3, -4, 0], 0: [24570, -32760, 0], 1: [3 / 7, -4 / 7, 0], 2: [0.6, -0.8, 0]}
    for kind, wanted in expected.items():
        np.testing.assert_allclose(normalized(values, kind), wanted, rtol=1e-6)
    assert not normalized(np.zeros(3, np.float32), 2).any()


@pytest.mark.parametrize(
    ("body", "part"),
    [
        ({}, "either 'input' or 'content'"),
        ({"input": "a", "content": "a"}, "either 'input' or 'content'"),
        ({"input": []}, "one text at least"),
        ({"input": ["a", ""]}, "the prompt is empty"),
        ({"input": [[512]]}, "token id 512"),
        ({"input": [5] * 128}, "has 128 tokens"),
        ({"input": ["a"] * 2049}, "2048 at most"),
        ({"input": "a", "dimensions": 8}, "'dimensions' is not supported"),
        ({"input": "a", "encoding_format": "hex"}, "'encoding_format' is wrong"),
    ],
)
async def test_inputs_that_are_wrong_are_a_400(body: Json, part: str, embedder: httpx.AsyncClient) -> None:
    answer = await embedder.post("/v1/embeddings", json=body)
    assert answer.status_code == 400
    assert part in answer.json()["error"]["message"]


async def test_a_server_started_without_embeddings_says_so(post: Post) -> None:
    answer = await post("/v1/embeddings", input="a")
    assert answer.status_code == 501
    assert answer.json()["error"] == {
        "code": 501,
        "message": "This server does not support embeddings. Start it with `--embeddings`",
        "type": "not_supported_error",
    }


async def test_official_client_embeds(embedder: httpx.AsyncClient) -> None:
    async with AsyncOpenAI(base_url="http://engine/v1", api_key="none", http_client=embedder) as official:
        by_base64 = await official.embeddings.create(model="any", input=["Hello", "fox"])
        by_float = await official.embeddings.create(model="any", input=["Hello", "fox"], encoding_format="float")
    for one, other in zip(by_base64.data, by_float.data, strict=True):
        np.testing.assert_allclose(one.embedding, other.embedding, rtol=1e-6)
