"""Recombination of hand-written cases: each operation makes a prompt whose labels are true by construction."""

from __future__ import annotations

import random
import re
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from decomp_gauntlet.cases import Case
from decomp_gauntlet.pieces import Piece, compose, pieces_of, renamed
from decomp_gauntlet.surface import lowered, misspelt, without_accents, without_punctuation
from decomp_gauntlet.variants import chained
from decomp_router.plan import Clause, Role, Subtask

MACHINE_WORDS = (
    "agent", "card", "chat", "classif", "compaction", "extract", "few-shot", "frontend", "follow-ups", "json", "judge",
    "machine", "moderation", "never-split", "output-parser", "quer", "rag", "retriev", "rubric", "select", "system",
    "tags", "template", "title", "tool", "triage", "voice-assistant",
)  # fmt: skip
"""A tag that holds one of these may mark traffic of software, which is never joined with anything."""
LONGEST_PART = 600
QUESTION_WORDS = (
    "what", "why", "how", "who", "when", "where", "is ", "can ",
    "qué", "por qué", "cómo", "cuá", "quién", "dónde",
    "que ", "qu'est-ce", "pourquoi", "comment", "qui ", "quand", "où", "quel", "est-ce",
    "was ", "warum", "wie ", "wer ", "wann", "wo ", "welche", "gibt es",
    "o que", "por que", "como ", "quem", "quando", "onde", "qual", "quais", "quanto",
    "che cos", "cosa ", "perché", "come ", "chi ", "dove", "quale", "quali", "quanti", "c'è",
)  # fmt: skip


@dataclass(frozen=True)
class Parts:
    """Hand-written connecting text of one language (model/corpus/parts/LANG.toml)."""

    joiners: list[str]
    """Between two independent asks; one that starts with a capital or a line break opens a new sentence."""
    followups: list[str]
    """Asks that need the answer of the one before."""
    fan_ins: list[str]
    """Asks that need the answers of all before."""
    joint: list[str]
    each: list[str]
    personas: list[str]
    greetings: list[str]
    wrappers: list[str]
    """One ask about a pasted text, which stands at {}."""


def load_parts(folder: Path) -> dict[str, Parts]:
    """Connecting text by language."""
    return {path.stem: Parts(**tomllib.loads(path.read_text(encoding="utf-8"))) for path in folder.glob("*.toml")}


class Augmenter:
    """Draws random true recombinations from a pool of cases."""

    def __init__(self, cases: Sequence[Case], parts: dict[str, Parts], rng: random.Random) -> None:
        self._rng, self._parts = rng, parts
        self._cases = [case for case in cases if case.truth is not None]
        self._written: dict[str, list[Case]] = {}
        for case in self._cases:
            self._written.setdefault(case.lang, []).append(case)
        self._single = {lang: [case for case in self._cases if case.lang == lang and _joinable(case)] for lang in parts}
        self._mergeable = {lang: [case for case in self._written.get(lang, ()) if _mergeable(case)] for lang in parts}
        self._context = {lang: self._clauses(lang, "context", 20, 400) for lang in parts}
        self._documents = {lang: self._clauses(lang, "pasted", 60, 900) for lang in parts}
        self._free = {lang: [case for case in self._written.get(lang, ()) if _unbound(case)] for lang in parts}
        self._operations: list[tuple[Callable[[], Case], float]] = [
            (self._original, 10.0),
            (self._joined, 2.5),
            (self._followed, 2.5),
            (self._followed_and_joined, 1.0),
            (self._joined_with_fan_in, 1.0),
            (self._merged, 3.0),
            (self._jointly_bound, 2.0),
            (self._bound_each, 1.5),
            (self._pasted, 2.0),
        ]

    def _clauses(self, lang: str, role: Role, shortest: int, longest: int) -> list[str]:
        return [
            case.truth.text(clause)
            for case in self._cases
            if case.lang == lang and case.truth is not None
            for clause in case.truth.clauses
            if clause.role == role and shortest < clause.end - clause.start < longest
        ]

    def draw(self) -> Case:
        """One case: an operation, then surroundings and surface noise now and then."""
        operation = self._rng.choices(*zip(*self._operations, strict=True))[0]
        case: Case = operation()
        if self._rng.random() < 0.25:
            case = self._surrounded(case)
        return self._noisy(case) if self._rng.random() < 0.35 else case

    def retyped(self, case: Case) -> Case:
        """The same prompt as a hastier hand would type it; its labels stay."""
        return self._noisy(case)

    def _language(self) -> str:
        return self._rng.choices(list(self._single), [len(found) ** 0.5 for found in self._single.values()])[0]

    def _original(self) -> Case:
        """A case as written; languages by the root of their number, so that small ones are heard."""
        lang = self._rng.choices(list(self._written), [len(found) ** 0.5 for found in self._written.values()])[0]
        return self._rng.choice(self._written[lang])

    def _pick(self, lang: str, count: int) -> list[Case]:
        return self._rng.sample(self._single[lang], count)

    def _joined(self) -> Case:
        """Independent asks side by side: parallel."""
        lang = self._language()
        count = self._rng.choice((2, 2, 2, 3, 3, 4))
        return self._side_by_side([pieces_of(case) for case in self._pick(lang, count)], lang)

    def _side_by_side(self, parts: list[list[Piece]], lang: str) -> Case:
        bare = [_without_frame(part, keep_constraints=i < len(parts) - 1) for i, part in enumerate(parts)]
        unique = [renamed(part, f"p{i}") for i, part in enumerate(bare)]
        if self._rng.random() < 0.25:
            pieces = self._listed(unique)
        else:
            pieces = list(unique[0])
            for part in unique[1:]:
                pieces = self._join(pieces, part, self._rng.choice(self._parts[lang].joiners))
        return compose(pieces, Case("augmented", lang, "", False, None))

    def _listed(self, parts: list[list[Piece]]) -> list[Piece]:
        style = self._rng.choice(("{}. ", "{}) ", "- ", "* ", "({}) ", "• "))
        gap = self._rng.choice(("\n", "\n", "\n\n", " "))
        pieces: list[Piece] = []
        for number, part in enumerate(parts, 1):
            pieces += [Piece((gap if number > 1 else "") + style.format(number)), *part]
        return pieces

    def _join(self, before: list[Piece], after: list[Piece], joiner: str) -> list[Piece]:
        opens_sentence = joiner.lstrip(" ")[:1].isupper() or joiner.startswith("\n")
        if opens_sentence:
            if before[-1].text[-1:].isalnum() and self._rng.random() < 0.8:
                before = [*before, Piece("?" if _asks(before) else ".")]
        else:
            before = _without_full_stop(before)
        if not opens_sentence or joiner.rstrip(" ")[-1:] not in (".", ":", "\n", "?", "!", ""):
            after = [replace(after[0], text=_lower_first(after[0].text)), *after[1:]]
        return [*before, Piece(joiner), *after]

    def _followed(self) -> Case:
        """An ask and one that works on its answer: a chain."""
        lang = self._language()
        case = self._pick(lang, 1)[0]
        return compose(self._with_followups(case, lang), case)

    def _with_followups(self, case: Case, lang: str) -> list[Piece]:
        pieces = _without_frame(pieces_of(case), keep_constraints=True)
        parent = next(piece.label.id for piece in pieces if isinstance(piece.label, Subtask))
        for text in self._rng.sample(self._parts[lang].followups, self._rng.choice((1, 1, 2))):
            child = f"f{parent}"
            pieces = self._append_ask(pieces, text, Subtask(child, 0, 1, (parent,), 1))
            parent = child
        return pieces

    def _append_ask(self, pieces: list[Piece], text: str, label: Subtask) -> list[Piece]:
        """`text` is `connective|ask`: what stands before the bar is outside the sub-task."""
        connective, _, ask = text.rpartition("|")
        return self._join(pieces, [Piece(ask, label)], connective or " ")

    def _followed_and_joined(self) -> Case:
        """A chain beside an unrelated ask: mixed."""
        lang = self._language()
        first, second = self._pick(lang, 2)
        parts = [self._with_followups(first, lang), pieces_of(second)]
        self._rng.shuffle(parts)
        return self._side_by_side(parts, lang)

    def _merged(self) -> Case:
        """Two whole requests of one person side by side, whatever their classes: their graphs, side by side."""
        lang = self._language()
        first, second = self._rng.choice(self._mergeable[lang]), self._rng.choice(self._mergeable[lang])
        if first is second or not _stands_alone(second):
            return self._joined()
        return self._side_by_side([pieces_of(first), pieces_of(second)], lang)

    def _joined_with_fan_in(self) -> Case:
        """Independent asks, then one that needs all their answers: mixed."""
        case = self._joined()
        assert case.truth is not None
        label = Subtask("fan", 0, 1, tuple(task.id for task in case.truth.subtasks), 1)
        return compose(self._append_ask(pieces_of(case), self._rng.choice(self._parts[case.lang].fan_ins), label), case)

    def _parallel(self) -> Case:
        lang = self._language()
        written = self._free.get(lang)
        return self._rng.choice(written) if written and self._rng.random() < 0.6 else self._joined()

    def _jointly_bound(self) -> Case:
        """A constraint on the whole answer ties independent parts: dependent."""
        case = self._parallel()
        clause = Clause(0, 1, "constraint", "joint")
        pieces = self._constrained(chained(pieces_of(case)), self._rng.choice(self._parts[case.lang].joint), clause)
        return compose(pieces, case)

    def _bound_each(self) -> Case:
        """A constraint on each part ties nothing."""
        case = self._parallel()
        clause = Clause(0, 1, "constraint", "each")
        pieces = self._constrained(pieces_of(case), self._rng.choice(self._parts[case.lang].each), clause)
        return compose(pieces, case)

    def _constrained(self, pieces: list[Piece], text: str, clause: Clause) -> list[Piece]:
        constraint = Piece(text, clause)
        if self._rng.random() < 0.2:
            return [constraint, Piece(" " if text[-1] in ".:!" else ": "), *pieces]
        if text[:1].isupper():
            end = "" if pieces[-1].text.rstrip()[-1:] in ".?!:" else "."
            return [*pieces, Piece(end + self._rng.choice((" ", "\n", "\n\n"))), constraint]
        return [*_without_full_stop(pieces), Piece(self._rng.choice((", ", " - ", "; "))), constraint]

    def _pasted(self) -> Case:
        """Whole prompts as the material of one ask: atomic, whatever they order."""
        lang = self._language()
        wrapper = self._rng.choice(self._parts[lang].wrappers)
        inner = self._rng.choice(self._cases).prompt
        if self._rng.random() < 0.3:
            inner += "\n" + self._rng.choice(self._cases).prompt
        before, _, after = wrapper.partition("{}")
        asked, pasted = Subtask("a", 0, 1, (), 1), Clause(0, 1, "pasted")
        before_asks = len(before.strip()) >= len(after.strip())
        labels: tuple[Subtask | Clause | None, ...] = (asked, pasted, None) if before_asks else (None, pasted, asked)
        pieces: list[Piece] = []
        for text, label in zip((before, inner, after), labels, strict=True):
            bare = text.strip()
            lead, tail = text[: text.find(bare)], text[text.find(bare) + len(bare) :]
            pieces += [Piece(lead), Piece(bare, label), Piece(tail)] if bare else [Piece(text)]
        return compose([piece for piece in pieces if piece.text], Case("augmented", lang, "", False, None))

    def _surrounded(self, case: Case) -> Case:
        """A greeting, a persona or background from elsewhere in front, or a document behind; it changes nothing."""
        if case.lang not in self._parts:
            return case
        parts, roll = self._parts[case.lang], self._rng.random()
        if roll < 0.2 and self._documents[case.lang] and not _holds_pasted(case):
            document = Piece(self._rng.choice(self._documents[case.lang]), Clause(0, 1, "pasted"))
            return compose([*pieces_of(case), Piece(self._rng.choice(("\n", "\n\n", "\n---\n"))), document], case)
        if roll < 0.45:
            piece = Piece(self._rng.choice(parts.greetings), Clause(0, 1, "greeting"))
        elif roll < 0.65 or not self._context[case.lang]:
            piece = Piece(self._rng.choice(parts.personas), Clause(0, 1, "persona"))
        else:
            piece = Piece(self._rng.choice(self._context[case.lang]), Clause(0, 1, "context"))
        return compose([piece, Piece(self._rng.choice((" ", "\n", "\n\n"))), *pieces_of(case)], case)

    def _noisy(self, case: Case) -> Case:
        """The same words typed in haste."""
        changes = (lowered, without_accents, without_punctuation, partial(misspelt, rng=self._rng), str.upper)
        change = self._rng.choices(changes, (3, 2, 3, 3, 1))[0]
        pieces = [replace(piece, text=change(piece.text)) for piece in pieces_of(case)]
        return case if any(not piece.text.strip() and piece.label for piece in pieces) else compose(pieces, case)


def _unbound(case: Case) -> bool:
    """Independent asks that no constraint binds each of."""
    return (
        case.cls == "parallel"
        and case.truth is not None
        and not any(clause.target == "each" for clause in case.truth.clauses)
    )


def _mergeable(case: Case) -> bool:
    """A person's request, of any class, that nothing after it could be drawn into."""
    assert case.truth is not None
    bound = any(c.role in ("meta", "persona") or c.target in ("each", "joint") for c in case.truth.clauses)
    machine = any(word in tag for tag in case.tags for word in MACHINE_WORDS)
    return not (bound or machine or case.context or _ends_pasted(case)) and len(case.prompt) <= LONGEST_PART


def _stands_alone(case: Case) -> bool:
    """Nothing in it could take an earlier, unrelated ask for its parent: no fan-in, no long chain."""
    assert case.truth is not None
    return len(case.truth.graph.edges) <= 1


def _joinable(case: Case) -> bool:
    """One person's single ask that stands on its own."""
    return (
        case.cls == "atomic"
        and not case.context
        and len(case.prompt) <= LONGEST_PART
        and not any(word in tag for tag in case.tags for word in MACHINE_WORDS)
        and not _ends_pasted(case)
        and case.truth is not None
        and not any(clause.role == "meta" for clause in case.truth.clauses)
    )


def _holds_pasted(case: Case) -> bool:
    return case.truth is not None and any(clause.role == "pasted" for clause in case.truth.clauses)


def _ends_pasted(case: Case) -> bool:
    """What would follow a pasted text directly could be read as part of it."""
    last = case.truth.spans[-1] if case.truth else None
    return isinstance(last, Clause) and last.role == "pasted"


def _without_frame(pieces: Sequence[Piece], keep_constraints: bool) -> list[Piece]:
    """Without greetings, personas and constraints that could bind more than their own part: those in front of it
    and, unless asked to keep them, those behind."""
    tasks = [piece.label.id for piece in pieces if isinstance(piece.label, Subtask)]
    kept: list[Piece] = []
    for piece in pieces:
        label = piece.label
        if isinstance(label, Clause):
            leads = not any(isinstance(earlier.label, Subtask) for earlier in kept)
            bound = label.role == "constraint" and (leads or not keep_constraints)
            if label.role in ("greeting", "persona") or bound:
                continue
            if label.target in ("each", "joint"):
                piece = replace(piece, label=replace(label, target=tasks[-1]))
        kept.append(piece)
    text = [piece for piece in kept if piece.text]
    while text and not text[0].label and not re.search(r"\w", text[0].text):
        text = text[1:]
    while text and not text[-1].label and not re.search(r"\w", text[-1].text) and "?" not in text[-1].text:
        text = text[:-1]
    return text


def _asks(pieces: Sequence[Piece]) -> bool:
    return pieces[-1].text.lstrip("¿ ").lower().startswith(QUESTION_WORDS)


def _without_full_stop(pieces: Sequence[Piece]) -> list[Piece]:
    last = pieces[-1]
    text = last.text.rstrip()
    text = text[:-1] if text.endswith(".") and not text.endswith("..") else text
    return [*pieces[:-1], replace(last, text=text)] if text else list(pieces[:-1])


def _lower_first(text: str) -> str:
    return text if text[:2].isupper() or text[:2] == "I " else text[:1].lower() + text[1:]
