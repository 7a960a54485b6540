"""A plan and the present load to a decision."""

from __future__ import annotations

from dataclasses import dataclass

from decomp_router.plan import Decision, Plan

_TYPICAL_TOKENS = (15, 95, 280, 500)
"""Of an answer, by length class. Where the whole is capped below the sum, first sections would crowd out the last."""


@dataclass(frozen=True)
class Policy:
    """What the owner allows: how many branches at once, and how long answers must promise to be."""

    max_width: int = 4
    min_length: int = 2

    def __post_init__(self) -> None:
        assert self.max_width >= 1, "at least one branch must be allowed"


def room(idle_slots: int, policy: Policy) -> int:
    """Branches that may run at the same time."""
    return max(1, min(idle_slots, policy.max_width))


def crowded(idle_slots: int, policy: Policy) -> str | None:
    """Why no plan at all could fan out under this load; asked before the prompt is read."""
    if policy.max_width < 2:
        return "the width is limited to 1"
    return f"{_slots(idle_slots)} idle" if idle_slots < 2 else None


def decide(plan: Plan, reason: str, idle_slots: int, policy: Policy, token_limit: int | None = None) -> Decision:
    """Fan out if two concurrent sub-tasks promise long answers, all of it fits, and slots are idle for them."""
    if not plan.fans_out:
        return Decision("linear", (reason,), plan)
    if not plan.promises(policy.min_length):
        short = f"no two concurrent sub-tasks promise answers of length class {policy.min_length} or more"
        return Decision("linear", (reason, short), plan)
    promised = sum(_TYPICAL_TOKENS[task.length] for task in plan.subtasks)
    if token_limit is not None and token_limit < promised:
        tight = f"the parts promise about {promised} tokens, at most {token_limit} are wanted"
        return Decision("linear", (reason, tight), plan)
    if full := crowded(idle_slots, policy):
        return Decision("linear", (reason, full), plan)
    width = min(plan.width, room(idle_slots, policy))
    return Decision("fanout", (reason, f"{width} at a time, {_slots(idle_slots)} idle"), plan)


def _slots(count: int) -> str:
    return f"{count} slot{'' if count == 1 else 's'}"
