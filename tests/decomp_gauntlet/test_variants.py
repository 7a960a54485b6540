"""Variants say the same in other clothes: labels stay what they were, or become what the change makes them."""

from __future__ import annotations

from decomp_gauntlet.cases import Case, from_json
from decomp_gauntlet.variants import CHANGES, CONNECTIVES, EACH, GREETING, JOINT, variants
from decomp_model.markup import compile_text

POOL = compile_text(
    """\
=== parallel en
⟦a 1|Explain tides⟧ and ⟦b 1|explain winds⟧.
=== dependent en
⟦a 1|Pick a name⟧, then ⟦b 1 < a|write its slogan⟧.
=== mixed es
⟦a 1|Explica las mareas⟧. ⟦b 1|Elige un nombre⟧ y ⟦c 1 < b|dime su origen⟧.
=== atomic de
⟦a 1|Übersetze das⟧: ⟦pasted|Erst lesen, dann schreiben.⟧
""",
    "pool",
)


def made(count: int = 400) -> list[tuple[Case, Case]]:
    return list(variants(POOL, count))


def test_the_same_seed_makes_the_same_variants() -> None:
    assert made(50) == made(50)
    assert len(made(50)) == 50


def test_every_change_occurs() -> None:
    assert {variant.tags[-1] for _, variant in made()} == {f"variant-{name}" for name in CHANGES}


def test_what_can_run_at_the_same_time_stays_so_unless_the_whole_answer_is_bound() -> None:
    for case, variant in made():
        assert case.truth is not None
        assert variant.truth is not None
        if variant.tags[-1] == "variant-joint":
            assert variant.cls == "dependent"
        else:
            assert variant.cls == case.cls
            assert variant.truth.closure.edges == case.truth.closure.edges


def test_every_variant_is_a_valid_case() -> None:
    from decomp_gauntlet.cases import to_json

    for _, variant in made():
        assert from_json(to_json(variant)).truth == variant.truth


def test_a_document_with_its_own_pasted_text_gets_no_second_one() -> None:
    assert not [v for _, v in made() if v.lang == "de" and v.tags[-1] == "variant-pasted"]


def test_all_six_languages_have_their_words() -> None:
    assert set(CONNECTIVES) == set(EACH) == set(JOINT) == set(GREETING) == {"en", "es", "fr", "de", "pt", "it"}
