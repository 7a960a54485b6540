"""Cases as tensors: tags where the labels are, and pairs that never let a mistake of the tagger run apart."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="torch comes with the extra `train`")

from decomp_model.dataset import FORWARD, INDEPENDENT, collate, encode
from decomp_model.markup import compile_text
from decomp_router.decompose.labels import TAG_INDEX
from decomp_router.decompose.tokens import PromptTokenizer

TOKENIZER = PromptTokenizer(Path(__file__).parents[2] / "decomp_router/decompose/artefact/tokenizer.json")
MIXED = compile_text(
    """\
=== mixed en
⟦context|My house is old, of stone.⟧ ⟦a 1|Explain heat pumps⟧, ⟦b 2|explain gas boilers⟧ and ⟦c 1 < a,b|pick one⟧.
""",
    "mixed",
)[0]


def test_every_pair_has_its_relation() -> None:
    example = encode(MIXED, TOKENIZER)
    assert example is not None
    assert [relation for *_, relation in example.pairs] == [INDEPENDENT, FORWARD, FORWARD]
    assert example.lengths == [1, 2, 1]
    assert example.fans_out


def test_tags_stand_on_their_tokens() -> None:
    example = encode(MIXED, TOKENIZER)
    assert example is not None
    assert example.tags.count(TAG_INDEX["task-begin"]) == 3
    assert example.tags[1] == TAG_INDEX["context"]
    assert all(example.tags[first] == TAG_INDEX["task-begin"] for first, _ in example.tasks)


def test_what_a_tagger_could_mistake_is_never_independent() -> None:
    extra = 0
    for seed in range(40):
        example = encode(MIXED, TOKENIZER, random.Random(seed))
        assert example is not None
        mistaken = example.pairs[example.labelled_pairs :]
        assert all(relation == FORWARD and first < second for first, second, relation in mistaken)
        extra += len(mistaken)
    assert extra > 10


def test_a_batch_knows_which_pairs_are_labelled() -> None:
    examples = [encode(MIXED, TOKENIZER, random.Random(seed)) for seed in range(4)]
    batch = collate([example for example in examples if example is not None])
    assert int(batch.labelled.sum()) == 12
    assert len(batch.labelled) == len(batch.relations)
