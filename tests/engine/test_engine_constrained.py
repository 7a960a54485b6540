"""Answers of a model that knows nothing, held to 200 schemas and grammars."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from random import Random

import jsonschema
import pytest

from pascal_engine.engine import Engine
from pascal_engine.sampling.constraint import Constraint, ConstraintCompiler
from pascal_engine.sampling.params import SamplingParams
from pascal_engine.schedule.sequence import Finished, GenerationRequest
from tests.engine.grammars import pattern, schema
from tests.engine.harness import Inbox, drain, open_tiny, submit

Judge = Callable[[str], object]

PROMPT = tuple(range(40, 52))
ROUNDS, EACH = 10, 20


def cases(compiler: ConstraintCompiler, random: Random) -> list[tuple[Constraint, Judge, str]]:
    """Constraints, each with what raises an error for a text that does not fit, and a description."""
    made: list[tuple[Constraint, Judge, str]] = []
    for index in range(EACH):
        if index % 10 < 7:
            wanted = schema(random)
            made.append((compiler.from_json_schema(wanted), judge_json(wanted), json.dumps(wanted)))
            continue
        regex, gbnf = pattern(random, 3)
        how = compiler.from_regex(regex) if index % 10 == 7 else compiler.from_gbnf(f"root ::= {gbnf}")
        made.append((how, judge_regex(regex), f"{regex}   {gbnf}"))
    return made


def judge_json(wanted: object) -> Judge:
    return lambda text: jsonschema.validate(json.loads(text), wanted)  # type: ignore[arg-type]


def judge_regex(regex: str) -> Judge:
    def judge(text: str) -> None:
        assert re.fullmatch(regex, text)

    return judge


@pytest.fixture(scope="module")
def engine(data: Path) -> Engine:
    return open_tiny(data / "qwen35-tiny.gguf", parallel=8)


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_an_answer_is_valid_at_stop_and_a_prefix_of_a_valid_one_at_length(engine: Engine, seed: int) -> None:
    random = Random(seed)
    constraints = cases(engine.constraints, random)
    wholes = [submit(engine, request(constraint, n)) for n, (constraint, _, _) in enumerate(constraints)]
    drain(engine)
    cuts: list[tuple[Inbox, Inbox]] = []
    for n, (whole, (constraint, judge, described)) in enumerate(zip(wholes, constraints, strict=True)):
        assert isinstance(whole.end, Finished), described
        assert whole.end.reason == "eos", described
        judge(whole.text)
        if len(whole.tokens) > 1:
            cuts.append((whole, submit(engine, request(constraint, n, random.randrange(1, len(whole.tokens))))))
    drain(engine)
    for whole, cut in cuts:
        assert isinstance(cut.end, Finished)
        assert cut.end.reason == "limit"
        assert cut.tokens == whole.tokens[: len(cut.tokens)]


def request(constraint: Constraint, seed: int, n: int | None = None) -> GenerationRequest:
    """Every third one greedy, the others hot."""
    sampling = SamplingParams(temperature=0.0 if seed % 3 == 0 else 1.5, seed=seed)
    return GenerationRequest(PROMPT, n, sampling, constraint=constraint)
