"""The forward pass against transformers at float32."""

import json
import os
from pathlib import Path
from typing import TypedDict

import numpy as np
import pytest

from pascal_engine.backend.batch import BLOCK, Batch
from pascal_engine.backend.cpu import CpuBackend
from pascal_engine.engine import BackendName, Engine
from pascal_engine.memory import StatePools
from pascal_engine.schedule.sequence import GenerationRequest
from tests.engine.harness import BACKENDS, GREEDY, Logits, open_tiny, run

ARCHITECTURES = ("llama", "qwen3next", "qwen35", "qwen35moe")


class Answer(TypedDict):
    """What transformers computes for one prompt."""

    prompt: str
    ids: list[int]
    greedy: list[int]
    last_logits: list[float]


def answers(path: Path) -> list[Answer]:
    loaded: list[Answer] = json.loads(path.read_text())
    return loaded


def greedy(engine: Engine, prompt: tuple[int, ...], n: int) -> list[int]:
    """The next `n` tokens; where one of them ends an answer, another request goes on behind it."""
    tokens: list[int] = []
    while len(tokens) < n:
        (inbox,) = run(engine, GenerationRequest((*prompt, *tokens), n - len(tokens), GREEDY))
        tokens += inbox.tokens
    return tokens


def check(engine: Engine, answers: list[Answer], seen: Logits) -> float:
    """Asserts the greedy tokens; the largest difference of the first logits, relative to the largest logit."""
    worst = 0.0
    for answer in answers:
        assert engine.tokenizer.encode(answer["prompt"]) == answer["ids"]
        tokens = tuple(answer["ids"])
        assert greedy(engine, tokens, 48) == answer["greedy"]
        expected = np.array(answer["last_logits"])
        got = np.frombuffer(seen[tokens][0], np.float32)
        worst = max(worst, float(np.abs(got - expected).max() / np.abs(expected).max()))
    return worst


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_logits_and_greedy_tokens_are_those_of_transformers(
    arch: str, backend: BackendName, data: Path, logits_seen: Logits
) -> None:
    engine = open_tiny(data / f"{arch}-tiny.gguf", parallel=1, backend=backend)
    assert check(engine, answers(data / f"{arch}-tiny.json"), logits_seen) <= 1e-4


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_logits_of_long_contexts(arch: str, data: Path) -> None:
    """The last tokens are decoded one by one, the others prefilled."""
    expected = {
        int(count): logits for count, logits in json.loads((data / f"{arch}-tiny-long.json").read_text()).items()
    }
    tokens, n_prefilled = [place * place % 509 for place in range(max(expected))], sorted(expected)[-2]
    engine = open_tiny(data / f"{arch}-tiny.gguf", parallel=1, ctx=len(tokens))
    pools = StatePools(CpuBackend(1), engine.model.params, 1, len(tokens))
    seen = {}
    for start in range(0, n_prefilled, BLOCK):
        chunk = tokens[start : min(start + BLOCK, n_prefilled)]
        seen[start + len(chunk)] = engine.model.forward(Batch.prefill(chunk, start, 0), pools)[0]
    for place in range(n_prefilled, len(tokens)):
        seen[place + 1] = engine.model.forward(Batch.decode([tokens[place]], [place], [0]), pools)[0]
    for count, logits in expected.items():
        assert np.abs(seen[count] - logits).max() <= 1e-4 * np.abs(logits).max()


@pytest.mark.skipif("PASCAL_ENGINE_FIXTURES" not in os.environ, reason="PASCAL_ENGINE_FIXTURES names no directory")
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("arch", ARCHITECTURES[1:])
def test_larger_models_made_by_llama_cpps_converter(arch: str, backend: BackendName, logits_seen: Logits) -> None:
    folder = Path(os.environ["PASCAL_ENGINE_FIXTURES"])
    engine = open_tiny(folder / f"{arch}-mini-F32.gguf", parallel=1, backend=backend)
    worst = check(engine, answers(folder / f"{arch}-mini.json"), logits_seen)
    print(f"{arch}: {worst:.2e}")
    assert worst <= 1e-4


def test_half_precision_keys_and_values_stay_close(data: Path, logits_seen: Logits) -> None:
    engine = open_tiny(data / "llama-tiny.gguf", parallel=1, kv="f16")
    for answer in answers(data / "llama-tiny.json"):
        tokens = tuple(answer["ids"])
        run(engine, GenerationRequest(tokens, 1, GREEDY))
        expected = np.array(answer["last_logits"])
        got = np.frombuffer(logits_seen[tokens][0], np.float32)
        assert 0 < np.abs(got - expected).max() <= 5e-3 * np.abs(expected).max()


def test_the_multi_token_prediction_block_is_not_run(data: Path) -> None:
    assert open_tiny(data / "qwen35-tiny.gguf", parallel=1).info.params.n_layers == 4
