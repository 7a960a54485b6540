"""What the engine tells about itself: /props, /slots, /v1/models."""

from typing import Any

from pascal_engine import __version__
from pascal_engine.engine import Engine
from pascal_engine.schedule.scheduler import Slot
from pascal_engine.schedule.sequence import Sequence
from pascal_engine.server.chat.detect import dialect_of
from pascal_engine.server.native.settings import sampling_settings
from pascal_engine.server.options import ServerOptions
from pascal_engine.tokenizer import ChatTemplate

_BYTE_PAIRS = 2
"""llama.cpp's number for vocabularies of byte pairs."""


def props(engine: Engine, options: ServerOptions) -> dict[str, Any]:
    """llama-server's /props."""
    n_ctx, defaults = engine.scheduler.n_ctx, engine.defaults
    return {
        "default_generation_settings": {
            "params": {**sampling_settings(engine, defaults.sampling, defaults.max_tokens), "reasoning_format": "none"},
            "n_ctx": n_ctx,
        },
        "total_slots": len(engine.scheduler.slots),
        "model_alias": engine.info.name,
        "model_ftype": engine.info.file_type,
        "model_path": engine.info.path,
        "modalities": {"vision": False, "video": False, "audio": False},
        "media_marker": "",
        "endpoint_slots": options.slots,
        "endpoint_props": options.props,
        "endpoint_metrics": options.metrics,
        "ui": False,
        "chat_template": engine.template.source,
        "chat_template_caps": _capabilities(engine.template),
        "bos_token": engine.tokenizer.bos_text,
        "eos_token": engine.tokenizer.eos_text,
        "build_info": f"pascal-engine {__version__}",
        "is_sleeping": False,
        "ui_settings": {},
        "cors_proxy_enabled": False,
    }


def _capabilities(template: ChatTemplate) -> dict[str, bool]:
    """What a chat template can show: found by trying, or by what it names."""
    tools, shapes = dialect_of(template).tools is not None, template.capabilities
    return {
        "supports_object_arguments": tools,
        "supports_parallel_tool_calls": tools,
        "supports_preserve_reasoning": "reasoning_content" in template.source,
        "supports_reasoning_effort": "reasoning_effort" in template.source,
        "supports_string_content": shapes.content_as_text,
        "supports_system_role": "system" in template.source or "message.role" in template.source,
        "supports_tool_calls": tools,
        "supports_tools": tools,
        "supports_typed_content": shapes.content_as_parts,
    }


def slots(engine: Engine) -> list[dict[str, Any]]:
    """llama-server's /slots."""
    return [_slot(engine, slot) for slot in engine.scheduler.slots]


def _slot(engine: Engine, slot: Slot) -> dict[str, Any]:
    # Read while the engine's thread works: one look at the sequence, so that the fields agree.
    sequence = slot.sequence or slot.last
    n_ctx = engine.scheduler.n_ctx
    state = {"id": slot.row, "n_ctx": n_ctx, "speculative": False, "is_processing": slot.is_processing}
    return state if sequence is None else {**state, **_task(engine, sequence)}


def _task(engine: Engine, sequence: Sequence) -> dict[str, Any]:
    """The request that a slot serves, or served last."""
    request, generated = sequence.request, list(sequence.generated)
    limit = request.max_tokens
    next_token = {
        "has_next_token": not (sequence.finished or sequence.cancelled),
        "has_new_line": "\n" in engine.tokenizer.decode(generated),
        "n_remain": -1 if limit is None else limit - len(generated),
        "n_decoded": len(generated),
    }
    return {
        "id_task": sequence.task,
        "n_prompt_tokens": len(request.tokens),
        "n_prompt_tokens_processed": sequence.n_prefilled,
        "n_prompt_tokens_cache": min(sequence.n_computed, len(request.tokens)) - sequence.n_prefilled,
        "params": sampling_settings(engine, request.sampling, limit),
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
        "ftype": info.file_type,
    }
    model = {
        "id": info.name,
        "aliases": [info.name],
        "tags": [],
        "object": "model",
        "architecture": {"input_modalities": ["text"], "output_modalities": ["text"]},
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
