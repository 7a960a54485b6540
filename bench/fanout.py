"""What fanning out can win on this machine: `python bench/fanout.py MODEL.gguf`, writes docs/results/fanout.json.

Same tokens in both arms, whatever the model would like to say: one linear answer of 360 tokens, and the prompt's three
branches, as the router builds them, of 120 tokens each at the same time. Time runs until the last token is there.
"""

from __future__ import annotations

import argparse
import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import Any

import httpx
from machine import machine
from rich.progress import track

from decomp_router.decompose.decomposer import load
from decomp_router.demo import CONSOLE, ENGINE_FLAGS, INDEPENDENT
from decomp_router.execute.branches import Branches
from decomp_router.proxy.engine import running_engine

TOKENS = 360


def request(**fields: object) -> dict[str, Any]:
    """A chat request of an exact number of tokens."""
    return {"messages": [{"role": "user", "content": INDEPENDENT}], "temperature": 0, "ignore_eos": True, **fields}


def seconds(url: str, bodies: list[bytes]) -> float:
    """How long these requests take when all are sent at once."""
    begun = time.perf_counter()
    with ThreadPoolExecutor(len(bodies)) as pool:
        for answer in pool.map(
            lambda body: httpx.post(f"{url}/v1/chat/completions", content=body, timeout=600), bodies
        ):
            answer.raise_for_status()
    return time.perf_counter() - begun


def main() -> None:
    """Arms interleaved, each first in turn."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path("docs/results/fanout.json"))
    arguments = parser.parse_args()
    plan = load().read(INDEPENDENT).plan
    branches = Branches(request(max_tokens=TOKENS // len(plan.subtasks)), plan)
    fanned = [branches.body(task, {}) for task in plan.subtasks]
    linear = [json.dumps(request(max_tokens=TOKENS)).encode()]
    pairs = []
    with running_engine(arguments.model, ENGINE_FLAGS, CONSOLE) as engine:
        for number in track(range(arguments.repeats), "rounds"):
            arms = {"linear": linear, "fanout": fanned}
            order = sorted(arms, reverse=bool(number % 2))
            pairs.append({name: seconds(engine, arms[name]) for name in order})
    ratios = [pair["linear"] / pair["fanout"] for pair in pairs]
    result = {
        "machine": machine(),
        "model": arguments.model.name,
        "width": plan.width,
        "tokens": TOKENS,
        "speedup": {"min": min(ratios), "median": median(ratios), "max": max(ratios)},
        "seconds": pairs,
    }
    arguments.out.write_text(json.dumps(result, indent=1) + "\n")
    CONSOLE.print(result["speedup"])


if __name__ == "__main__":
    main()
