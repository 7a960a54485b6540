"""Records what a llama-server on llama-tiny.gguf leaves of the first token's candidates, for each link of the chain.

llama-server -m tests/data/engine/llama-tiny.gguf -c 1024 -np 1 -ctk f32 -ctv f32 --port 18080
python -m tests.engine.make_sampling http://127.0.0.1:18080
"""

import json
import sys
from typing import Any

import httpx

from tests.engine.harness import DATA

REPEATING = [70, 71, 72, 73, 74, 70, 71, 72, 73, 75, 70, 71, 72]
PROMPTS = [REPEATING, [*REPEATING, 25, *REPEATING[:9]]]
OPEN = {"top_k": 0, "top_p": 1, "min_p": 0}
FIELDS: list[dict[str, Any]] = [
    {},
    {"top_k": 5},
    OPEN | {"top_p": 0.6},
    OPEN | {"min_p": 0.3},
    OPEN | {"typical_p": 0.4},
    {"typical_p": 0.7},
    OPEN | {"top_n_sigma": 1.5},
    {"top_n_sigma": 0.7},
    {"dynatemp_range": 0.5, "dynatemp_exponent": 1.3},
    {"temperature": 1.7},
    OPEN | {"xtc_probability": 1, "xtc_threshold": 0.01},
    OPEN | {"repeat_penalty": 1.4},
    OPEN | {"repeat_penalty": 1.4, "frequency_penalty": 0.3, "presence_penalty": 0.7, "repeat_last_n": 6},
    OPEN | {"dry_multiplier": 0.8},
    OPEN | {"dry_multiplier": 2, "dry_base": 1.3, "dry_allowed_length": 1, "dry_penalty_last_n": 8},
    OPEN | {"dry_multiplier": 2, "dry_sequence_breakers": ["!", ":", "X"]},
    {"min_keep": 6, "top_p": 0.01},
    {"min_keep": 6, "min_p": 0.9},
    {"samplers": ["temperature", "top_k"], "temperature": 0.3, "top_k": 9},
    {"samplers": ["min_p", "top_k"], "min_p": 0.2, "top_k": 7},
    OPEN | {"logit_bias": [[77, 4.5], [40, -3]]},
    {"temperature": 0, "repeat_penalty": 1.3},
]
TOLD = 10


def main(url: str) -> None:
    recorded = [
        {"prompt": prompt, "fields": fields} | left(url, prompt, fields) for prompt in PROMPTS for fields in FIELDS
    ]
    lines = ",\n".join(json.dumps(entry) for entry in recorded)
    (DATA / "llama-tiny-sampling.json").write_text(f"[\n{lines}\n]\n")


def left(url: str, prompt: list[int], fields: dict[str, Any]) -> dict[str, Any]:
    """How many candidates the chain left, and the likeliest of them with their probabilities."""
    asked = {"prompt": prompt, "n_predict": 1, "n_probs": 512, "post_sampling_probs": True, "cache_prompt": False}
    told: list[dict[str, Any]] = []
    for seed in range(20):  # an answer that is half a character tells nothing
        answer = httpx.post(f"{url}/completion", json=asked | {"seed": seed} | fields).raise_for_status().json()
        told = told or answer.get("completion_probabilities", [{"top_probs": []}])[0]["top_probs"]
    assert told, fields
    pairs = sorted(((entry["id"], entry["prob"]) for entry in told), key=lambda pair: -pair[1])
    return {"left": len(pairs), "top": [[token, round(prob, 6)] for token, prob in pairs[:TOLD]]}


if __name__ == "__main__":
    main(sys.argv[1])
