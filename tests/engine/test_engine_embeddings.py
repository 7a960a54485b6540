"""Embeddings: their bits are a function of the text alone, and their HTTP face is OpenAI's and llama-server's."""

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pascal_engine.backend.batch import Batch
from pascal_engine.engine import BackendName
from pascal_engine.schedule.pooling import Pooler, Pooling
from pascal_engine.schedule.sequence import Embedded, GenerationRequest
from tests.engine.harness import BACKENDS, GREEDY, Inbox, drain, open_tiny, run, submit

F32 = npt.NDArray[np.float32]
LONG = tuple(5 + at * at % 400 for at in range(150))
PROMPTS = (LONG, (*LONG[:100], 7), LONG[:1], LONG[3:90])


def embedding_request(tokens: tuple[int, ...], pooling: Pooling) -> GenerationRequest:
    return GenerationRequest(tokens, reuse=False, pooling=pooling)


def embedding(inbox: Inbox) -> F32:
    (found,) = [event for event in inbox.events if isinstance(event, Embedded)]
    return found.values


@pytest.mark.parametrize("pooling", ["mean", "last"])
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("model", ["qwen35", "llama"])
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
