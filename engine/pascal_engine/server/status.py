"""What the engine tells about itself: /props, /slots, /v1/models."""

from dataclasses import asdict

from pascal_engine import __version__
from pascal_engine.engine import Engine
from pascal_engine.sampling.params import SamplingParams
from pascal_engine.schedule.scheduler import Slot


def props(engine: Engine) -> dict[str, object]:
    """llama-server's /props."""
    settings = {
        "id": 0,
        "id_task": -1,
        "n_ctx": engine.scheduler.n_ctx,
        "speculative": False,
        "is_processing": False,
        "params": asdict(SamplingParams()) | {"n_predict": -1, "stop": []},
    }
    return {
        "default_generation_settings": settings,
        "total_slots": len(engine.scheduler.slots),
        "model_alias": engine.info.name,
        "model_path": engine.info.path,
        "modalities": {"vision": False, "audio": False},
        "chat_template": engine.template.source,
        "bos_token": engine.tokenizer.bos_text,
        "eos_token": engine.tokenizer.eos_text,
        "build_info": f"pascal-engine {__version__}",
    }


def slots(engine: Engine) -> list[dict[str, object]]:
    """llama-server's /slots."""
    return [_slot(slot, engine.scheduler.n_ctx) for slot in engine.scheduler.slots]


def _slot(slot: Slot, n_ctx: int) -> dict[str, object]:
    # Read while the engine's thread works: one look at the sequence, so that the fields agree.
    sequence = slot.sequence
    state: dict[str, object] = {
        "id": slot.row,
        "id_task": -1 if sequence is None else sequence.task,
        "n_ctx": n_ctx,
        "speculative": False,
        "is_processing": sequence is not None,
    }
    if sequence is None:
        return state
    n_decoded, limit = len(sequence.generated), sequence.request.max_tokens
    remaining = -1 if limit is None else limit - n_decoded
    next_token = {"has_next_token": not sequence.finished, "n_remain": remaining, "n_decoded": n_decoded}
    return state | {"n_prompt_tokens": len(sequence.request.tokens), "next_token": [next_token]}


def models(engine: Engine, created: int) -> dict[str, object]:
    """/v1/models; `created` is the time of loading, in seconds since 1970."""
    info = engine.info
    meta = {
        "n_vocab": info.n_vocab,
        "n_ctx_train": info.params.context_length,
        "n_ctx": engine.scheduler.n_ctx,
        "n_embd": info.params.hidden,
        "n_params": info.n_parameters,
        "size": info.size_bytes,
    }
    model = {"id": info.name, "object": "model", "created": created, "owned_by": "pascal-engine", "meta": meta}
    return {"object": "list", "data": [model]}
