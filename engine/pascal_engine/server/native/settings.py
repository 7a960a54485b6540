"""The fields of a request as llama-server shows them: `generation_settings` and `params`."""

import math
from dataclasses import asdict
from typing import Any

from pascal_engine.engine import Engine
from pascal_engine.sampling.params import SamplingParams
from pascal_engine.schedule.sequence import GenerationRequest
from pascal_engine.server.sampling_fields import RANDOM_SEED


def generation_settings(engine: Engine, request: GenerationRequest, **shown: object) -> dict[str, Any]:
    """Everything that decides how `request` is answered; `shown` are fields that the engine itself knows nothing of,
    such as `stream`."""
    sampling = request.sampling
    bans = engine.tokenizer.end_of_generation if request.ignore_eos else ()
    biases = [*sampling.logit_bias, *((token, -math.inf) for token in sorted(bans))]
    return {
        **sampling_settings(engine, sampling, request.max_tokens),
        "ignore_eos": request.ignore_eos,
        "dry_sequence_breakers": list(sampling.dry_sequence_breakers),
        "stop": list(request.stop),
        "logit_bias": [{"token": token, "bias": _finite(bias)} for token, bias in biases],
        "grammar": "",
        "grammar_lazy": False,
        "grammar_triggers": [],
        "preserved_tokens": [],
        **shown,
    }


def sampling_settings(engine: Engine, sampling: SamplingParams, max_tokens: int | None) -> dict[str, Any]:
    """What /props and /slots tell: the same without texts and lists of tokens."""
    limit = -1 if max_tokens is None else max_tokens
    form = engine.defaults.reasoning_format
    settings = asdict(sampling)
    for name in ("dry_sequence_breakers", "logit_bias"):
        del settings[name]
    return {
        **settings,
        "seed": RANDOM_SEED if sampling.seed is None else sampling.seed,
        "max_tokens": limit,
        "n_predict": limit,
        "n_keep": 0,
        "n_discard": 0,
        "ignore_eos": False,
        "stream": False,
        "mirostat": 0,
        "mirostat_tau": 5.0,
        "mirostat_eta": 0.1,
        "adaptive_target": -1.0,
        "adaptive_decay": 0.9,
        "chat_format": "Content-only",
        "reasoning_format": "deepseek" if form == "auto" else form,
        "reasoning_in_content": False,
        "generation_prompt": "",
        "speculative.types": "none",
        "timings_per_token": False,
        "backend_sampling": False,
        "lora": [],
    }


def _finite(bias: float) -> float | None:
    """JSON has no infinity: llama-server shows a ban as null."""
    return None if bias == -math.inf else bias
