"""All parts of the engine around one model file."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pascal_engine.backend.cpu import CpuBackend, physical_cores
from pascal_engine.backend.protocol import Backend, KvKind
from pascal_engine.backend.reference import ReferenceBackend
from pascal_engine.errors import ModelError
from pascal_engine.gguf import ModelFile
from pascal_engine.gguf.file_type import file_type_name
from pascal_engine.hybrid.model import Model
from pascal_engine.hybrid.params import HyperParams, read_params
from pascal_engine.memory import StatePools
from pascal_engine.memory.state_file import fingerprint_of
from pascal_engine.sampling.constraint import ConstraintCompiler
from pascal_engine.sampling.params import SamplingParams
from pascal_engine.schedule.scheduler import Scheduler
from pascal_engine.schedule.slot_states import SlotStates
from pascal_engine.schedule.worker import Worker
from pascal_engine.tokenizer import ChatTemplate, TemplateError, Tokenizer

BackendName = Literal["cpu", "reference"]


@dataclass(frozen=True)
class RequestDefaults:
    """What holds for a request that does not say otherwise; `max_tokens` None means until the context is full."""

    sampling: SamplingParams = field(default_factory=SamplingParams)
    max_tokens: int | None = None
    reasoning_format: str = "auto"
    template_variables: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class EngineOptions:
    """`ctx_size` tokens of context are shared evenly by `parallel` slots; 0 stands for the model's context length,
    which is also the most that a slot gets. `cache_bytes` of host memory bound the prefix cache; 0 switches it off.
    `threads` compute where the backend is the CPU one; 0 stands for the number of physical cores. `alias` is the name
    that the model goes by, and `chat_template` the Jinja source to use, instead of what the file says."""

    ctx_size: int = 0
    parallel: int = 1
    key_type: KvKind = "f16"
    value_type: KvKind = "f16"
    cache_bytes: int = 2 << 30
    backend: BackendName = "cpu"
    threads: int = 0
    alias: str = ""
    chat_template: str | None = None
    defaults: RequestDefaults = field(default_factory=RequestDefaults)


@dataclass(frozen=True)
class ModelInfo:
    """What the routes tell about the model."""

    path: str
    name: str
    n_parameters: int
    size_bytes: int
    n_vocab: int
    params: HyperParams
    file_type: str


@dataclass(frozen=True)
class Engine:
    """A model ready to serve; `worker.start()` begins, `worker.stop()` ends."""

    info: ModelInfo
    tokenizer: Tokenizer
    template: ChatTemplate
    constraints: ConstraintCompiler
    model: Model
    pools: StatePools
    scheduler: Scheduler
    worker: Worker
    slot_states: SlotStates
    defaults: RequestDefaults

    @classmethod
    def open(
        cls,
        path: Path,
        options: EngineOptions,
        progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> "Engine":
        """Loads the model at `path`; whatever is wrong with it is a `ModelError`."""
        file = ModelFile(path)
        params = read_params(file)
        tokenizer = Tokenizer.from_file(file)
        template = _read_template(file, tokenizer, options.chat_template)
        n_ctx = min((options.ctx_size or params.context_length) // options.parallel, params.context_length)
        if n_ctx < 1:
            raise ModelError(f"--ctx-size {options.ctx_size} leaves no context for {options.parallel} slots.")
        backend = _backend(options)
        try:
            model = Model.load(file, backend, tokenizer.n_vocab, n_ctx, progress)
            pools = StatePools(backend, params, options.parallel, n_ctx, options.key_type, options.value_type)
        except MemoryError as error:
            raise ModelError(f"{path}: there is no memory for it; choose a smaller --ctx-size or model.") from error
        scheduler = Scheduler(model, pools, tokenizer, time.perf_counter, cache_bytes=options.cache_bytes)
        info = ModelInfo(
            str(path),
            options.alias or file.name,
            file.n_parameters,
            file.size_bytes,
            tokenizer.n_vocab,
            params,
            file_type_name(file.get("general.file_type", int)),
        )
        fingerprint = fingerprint_of(path, options.key_type, options.value_type, type(backend).__name__)
        slot_states = SlotStates(scheduler, pools, fingerprint)
        constraints = ConstraintCompiler(tokenizer)
        worker = Worker(scheduler)
        return cls(
            info, tokenizer, template, constraints, model, pools, scheduler, worker, slot_states, options.defaults
        )


def _backend(options: EngineOptions) -> Backend:
    if options.backend == "reference":
        return ReferenceBackend()
    return CpuBackend(options.threads or physical_cores())


def _read_template(file: ModelFile, tokenizer: Tokenizer, given: str | None) -> ChatTemplate:
    source = file.get("tokenizer.chat_template", str) if given is None else given
    try:
        return ChatTemplate(source, tokenizer.bos_text, tokenizer.eos_text)
    except TemplateError as error:
        where = file.path if given is None else "--chat-template"
        raise ModelError(f"{where}: {error}.") from error
