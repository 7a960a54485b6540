"""What the engine tells about itself: /props, /slots, /v1/models."""

from typing import Any

from pascal_engine import __version__
from pascal_engine.engine import Engine
from pascal_engine.schedule.scheduler import Slot
from pascal_engine.server.native.settings import generation_settings, sampling_settings
from pascal_engine.server.options import ServerOptions

_BYTE_PAIRS = 2
"""llama.cpp's number for vocabularies of byte pairs."""


def props(engine: Engine, options: ServerOptions) -> dict[str, Any]:
    """llama-server's /props."""
    n_ctx, defaults = engine.scheduler.n_ctx, engine.defaults
    return {
        "default_generation_settings": {
            "params": sampling_settings(defaults.sampling, defaults.max_tokens),
            "n_ctx": n_ctx,
        },
        "total_slots": len(engine.scheduler.slots),
        "model_alias": engine.info.name,
        "model_path": engine.info.path,
        "modalities": {"vision": False, "video": False, "audio": False},
        "endpoint_slots": options.slots,
        "endpoint_props": options.props,
        "endpoint_metrics": options.metrics,
        "ui": False,
        "chat_template": engine.template.source,
        "bos_token": engine.tokenizer.bos_text,
        "eos_token": engine.tokenizer.eos_text,
        "build_info": f"pascal-engine {__version__}",
        "is_sleeping": False,
    }


def slots(engine: Engine) -> list[dict[str, Any]]:
    """llama-server's /slots."""
    return [_slot(slot, engine.scheduler.n_ctx) for slot in engine.scheduler.slots]


def _slot(slot: Slot, n_ctx: int) -> dict[str, Any]:
    # Read while the engine's thread works: one look at the sequence, so that the fields agree.
    sequence = slot.sequence
    state = {"id": slot.row, "n_ctx": n_ctx, "speculative": False, "is_processing": sequence is not None}
    if sequence is None:
        return {**state, "id_task": -1}
    request, n_decoded = sequence.request, len(sequence.generated)
    n_remain = -1 if request.max_tokens is None else request.max_tokens - n_decoded
    next_token = {"has_next_token": not sequence.finished, "n_remain": n_remain, "n_decoded": n_decoded}
    return {
        **state,
        "id_task": sequence.task,
        "n_prompt_tokens": len(request.tokens),
        "n_prompt_tokens_processed": sequence.n_prefilled,
        "n_prompt_tokens_cache": min(sequence.n_computed, len(request.tokens)) - sequence.n_prefilled,
        "params": generation_settings(request),
        "next_token": [next_token],
    }


def models(engine: Engine, created: int) -> dict[str, Any]:
    """/v1/models, in the words of OpenAI (`data`) and of Ollama (`models`); `created` is the time of loading, in
    seconds since 1970."""
    info = engine.info
    meta = {
        "vocab_type": _BYTE_PAIRS,
        "n_vocab": info.n_vocab,
        "n_ctx": engine.scheduler.n_ctx,
        "n_ctx_train": info.params.context_length,
        "n_embd": info.params.hidden,
        "n_params": info.n_parameters,
        "size": info.size_bytes,
    }
    model = {
        "id": info.name,
        "aliases": [],
        "tags": [],
        "object": "model",
        "created": created,
        "owned_by": "pascal-engine",
        "meta": meta,
    }
    return {"models": [_ollama(info.name)], "object": "list", "data": [model]}


def _ollama(name: str) -> dict[str, Any]:
    """An entry in Ollama's shape; what only a store of models would know is empty."""
    details = {
        "parent_model": "",
        "format": "gguf",
        "family": "",
        "families": [""],
        "parameter_size": "",
        "quantization_level": "",
    }
    return {
        "name": name,
        "model": name,
        "modified_at": "",
        "size": "",
        "digest": "",
        "type": "model",
        "description": "",
        "tags": [""],
        "capabilities": ["completion"],
        "parameters": "",
        "details": details,
    }
