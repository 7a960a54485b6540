"""Metamorphic variants: the same request in other clothes, with labels that are true by construction."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from decomp_gauntlet.cases import Case
from decomp_gauntlet.pieces import Piece, compose, pieces_of
from decomp_gauntlet.surface import lowered, misspelt, without_accents, without_punctuation
from decomp_router.plan import Clause, Subtask

CONNECTIVES: dict[str, tuple[tuple[str, ...], ...]] = {
    "en": ((" and ", " and also ", ", plus ", " & "), (", then ", " and then ", ", after that ")),
    "es": ((" y ", " y también ", ", además ", " y de paso "), (" y luego ", " y después ", ", y a continuación ")),
    "fr": ((" et ", " et aussi ", " ainsi que "), (" puis ", " et ensuite ", ", après quoi ")),
    "de": ((" und ", " und auch ", " sowie "), (", dann ", " und dann ", " und danach ")),
    "pt": ((" e ", " e também ", " e ainda "), (" e depois ", ", em seguida ", " e então ")),
    "it": ((" e ", " e anche ", " e pure "), (" e poi ", ", quindi ", " e dopo ")),
}
"""Words between two sub-tasks that may stand for each other."""
EACH = {
    "en": "Keep each answer under 120 words.",
    "es": "Cada respuesta, en menos de 120 palabras.",
    "fr": "Chaque réponse en moins de 120 mots.",
    "de": "Jede Antwort in höchstens 120 Wörtern.",
    "pt": "Cada resposta com no máximo 120 palavras.",
    "it": "Ogni risposta in meno di 120 parole.",
}
JOINT = {
    "en": "The whole reply must not exceed 150 words.",
    "es": "La respuesta completa no debe pasar de 150 palabras.",
    "fr": "La réponse entière ne doit pas dépasser 150 mots.",
    "de": "Die gesamte Antwort darf 150 Wörter nicht überschreiten.",
    "pt": "A resposta inteira não pode passar de 150 palavras.",
    "it": "L'intera risposta non deve superare le 150 parole.",
}
GREETING = {"en": "Hello!", "es": "¡Hola!", "fr": "Bonjour,", "de": "Guten Tag,", "pt": "Olá!", "it": "Buongiorno,"}
PASTED = (
    "> Minutes of 4 March: the roof leaks again. Call two firms, then pick the cheaper. Send us a summary.",
    "-----\nFrom: office@example.org\nPlease sign the form and send it back by Friday. Also book the room.\n-----",
    "```\n# TODO: parse the file, then validate it\ndef load(path):\n    return open(path).read()\n```",
    "id;name;city\n17;Ferreira;Braga\n18;Lindqvist;Lund\n19;Okafor;Enugu",
)

Change = Callable[[Case, random.Random], Case | None]


def variants(cases: Sequence[Case], count: int, seed: int = 0) -> Iterator[tuple[Case, Case]]:
    """`count` pairs (case, variant), the same for the same seed; changes are drawn alike where they apply."""
    rng = random.Random(seed)
    labelled = [case for case in cases if case.truth is not None]
    made = 0
    while labelled and made < count:
        case, (name, change) = rng.choice(labelled), rng.choice(list(CHANGES.items()))
        if (changed := change(case, rng)) is not None and changed.prompt != case.prompt:
            made += 1
            yield case, replace(changed, id=f"{case.id}~{name}", tags=(*case.tags, f"variant-{name}"))


def _each_text(change: Callable[[str], str]) -> Change:
    def of(case: Case, _: random.Random) -> Case | None:
        pieces = [replace(piece, text=change(piece.text)) for piece in pieces_of(case)]
        return None if any(piece.label and not piece.text.strip() for piece in pieces) else compose(pieces, case)

    return of


def _typos(case: Case, rng: random.Random) -> Case | None:
    return _each_text(lambda text: misspelt(text, rng))(case, rng)


def _connective(case: Case, rng: random.Random) -> Case | None:
    """One connective between two sub-tasks swapped for another of its kind."""
    pieces = pieces_of(case)
    for i in range(1, len(pieces) - 1):
        between = isinstance(pieces[i - 1].label, Subtask) and isinstance(pieces[i + 1].label, Subtask)
        for family in CONNECTIVES.get(case.lang, ()):
            if between and pieces[i].label is None and pieces[i].text in family:
                other = rng.choice([word for word in family if word != pieces[i].text])
                return compose([*pieces[:i], Piece(other), *pieces[i + 1 :]], case)
    return None


def _line_breaks(case: Case, _: random.Random) -> Case | None:
    """Sentences between labelled parts begin new lines."""
    pieces = [
        replace(piece, text=re.sub(r"(?<=[.?!]) +", "\n", piece.text)) if piece.label is None else piece
        for piece in pieces_of(case)
    ]
    return compose(pieces, case)


def _added(texts: dict[str, str], label: Clause) -> Change:
    """A constraint at the end; a joint one chains what was independent."""

    def of(case: Case, _: random.Random) -> Case | None:
        last = case.truth.spans[-1] if case.truth else None
        pasted = isinstance(last, Clause) and last.role == "pasted"
        if case.lang not in texts or case.cls == "atomic" or pasted or case.prompt.rstrip()[-1:] not in ".?!":
            return None
        pieces = [*pieces_of(case), Piece(" "), Piece(texts[case.lang], label)]
        return compose(chained(pieces) if label.target == "joint" else pieces, case)

    return of


def _greeted(case: Case, _: random.Random) -> Case | None:
    if case.lang not in GREETING:
        return None
    return compose([Piece(GREETING[case.lang], Clause(0, 1, "greeting")), Piece(" "), *pieces_of(case)], case)


def _with_pasted(case: Case, rng: random.Random) -> Case | None:
    """A pasted text that nothing refers to, with orders of its own, after the request."""
    if case.truth is None or any(clause.role == "pasted" for clause in case.truth.clauses):
        return None
    return compose([*pieces_of(case), Piece("\n\n"), Piece(rng.choice(PASTED), Clause(0, 1, "pasted"))], case)


def chained(pieces: Sequence[Piece]) -> list[Piece]:
    """Each sub-task waits for the one before."""
    found, previous = [], ""
    for piece in pieces:
        if isinstance(piece.label, Subtask):
            deps = (previous,) if previous else ()
            previous = piece.label.id
            piece = replace(piece, label=replace(piece.label, deps=deps))
        found.append(piece)
    return found


CHANGES: dict[str, Change] = {
    "lower-case": _each_text(lowered),
    "upper-case": _each_text(str.upper),
    "no-punctuation": _each_text(without_punctuation),
    "no-accents": _each_text(without_accents),
    "typos": _typos,
    "connective": _connective,
    "line-breaks": _line_breaks,
    "each": _added(EACH, Clause(0, 1, "constraint", "each")),
    "joint": _added(JOINT, Clause(0, 1, "constraint", "joint")),
    "greeting": _greeted,
    "pasted": _with_pasted,
}
