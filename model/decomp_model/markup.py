"""Writing aid: cases as prompts with marks in them, compiled to the gauntlet's JSONL.

    === parallel en constraints,voice
    ⟦greeting|Hi!⟧ ⟦a 2|Explain how a heat pump works⟧ and ⟦b 1|list three makers⟧. ⟦constraint each|Keep both short.⟧

`⟦ID LENGTH < PARENT,PARENT|text⟧` marks a sub-task, `⟦ROLE|text⟧` any other clause and
`⟦constraint TARGET|text⟧` a constraint. Lines `@user ...` / `@assistant ...` / `@system ...` right
after the header are earlier messages (`\\n` in them is a line break). Everything else is the prompt, verbatim.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from decomp_gauntlet.cases import Case, CaseError, dump, from_json
from decomp_router.plan import ROLES

_MARK = re.compile(r"⟦([^|⟧]*)\|([^⟦⟧]*)⟧")
_TASK = re.compile(r"^(\w+)\s+([0-3])(?:\s*<\s*(\w+(?:\s*,\s*\w+)*))?$")
_CONTEXT = re.compile(r"^@(user|assistant|system) (.*)$")


def compile_text(text: str, prefix: str) -> list[Case]:
    """All cases of a marked-up text; ids are PREFIX-0001 and up. Raises CaseError naming the block's line."""
    cases: list[Case] = []
    lines = text.split("\n")
    heads = [i for i, line in enumerate(lines) if line.startswith("=== ")]
    for head, end in zip(heads, [*heads[1:], len(lines)], strict=True):
        try:
            cases.append(_case(lines[head], lines[head + 1 : end], f"{prefix}-{len(cases) + 1:04d}"))
        except (CaseError, AssertionError, ValueError) as error:
            raise CaseError(f"line {head + 1}: {error}") from error
    return cases


def _case(head: str, body: list[str], case_id: str) -> Case:
    fields = head[4:].split()
    if len(fields) not in (2, 3):
        raise CaseError("a header reads '=== CLASS LANG TAG,TAG'")
    context: list[dict[str, str]] = []
    while body and (match := _CONTEXT.match(body[0])):
        context.append({"role": match[1], "content": match[2].replace("\\n", "\n")})
        body = body[1:]
    prompt, subtasks, clauses = _parse("\n".join(body).strip("\n"))
    return from_json(
        {
            "id": case_id,
            "class": fields[0],
            "lang": fields[1],
            "tags": fields[2].split(",") if len(fields) == 3 else [],
            "context": context,
            "prompt": prompt,
            "subtasks": subtasks,
            "clauses": clauses,
        }
    )


def _parse(marked: str) -> tuple[str, list[dict[str, object]], list[dict[str, object]]]:
    subtasks: list[dict[str, object]] = []
    clauses: list[dict[str, object]] = []
    prompt, position = "", 0
    for match in _MARK.finditer(marked):
        prompt += marked[position : match.start()]
        span: dict[str, object] = {"start": len(prompt), "end": len(prompt) + len(match[2])}
        head = match[1].strip()
        if task := _TASK.match(head):
            deps = [dep.strip() for dep in task[3].split(",")] if task[3] else []
            subtasks.append(span | {"id": task[1], "length": int(task[2]), "deps": deps})
        else:
            clauses.append(span | _clause(head))
        prompt += match[2]
        position = match.end()
    prompt += marked[position:]
    if "⟦" in prompt or "⟧" in prompt:
        raise CaseError("a mark is not closed, or marks are nested")
    if not subtasks:
        raise CaseError("no sub-task is marked")
    return prompt, subtasks, clauses


def _clause(head: str) -> dict[str, object]:
    role, _, target = head.partition(" ")
    if role not in ROLES or role == "task":
        raise CaseError(f"mark {head!r} is neither 'ID LENGTH' nor one of {', '.join(ROLES[1:])}")
    if (role == "constraint") != bool(target):
        raise CaseError(f"mark {head!r}: a constraint, and only a constraint, has a target")
    return {"role": role, **({"target": target.strip()} if target else {})}


def main() -> int:
    """`python -m decomp_model.markup IN.txt OUT.jsonl`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path, help="marked-up text")
    parser.add_argument("target", type=Path, help="JSONL to write; its name is the prefix of the ids")
    arguments = parser.parse_args()
    try:
        cases = compile_text(arguments.source.read_text(encoding="utf-8"), arguments.target.stem)
    except (CaseError, OSError) as error:
        print(f"{arguments.source}: {error}", file=sys.stderr)
        return 2
    dump(cases, arguments.target)
    counts = {cls: sum(case.cls == cls for case in cases) for cls in ("atomic", "parallel", "dependent", "mixed")}
    print(f"{len(cases)} cases: {counts}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
