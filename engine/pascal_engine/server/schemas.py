"""Request bodies. What llama-server can do and this engine cannot is refused here, never ignored."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from pascal_engine.engine import Engine
from pascal_engine.sampling.constraint import Constraint
from pascal_engine.schedule.sequence import GenerationRequest
from pascal_engine.server.errors import not_supported
from pascal_engine.server.passed_over import FOREIGN, Foreign
from pascal_engine.server.sampling_fields import MOST_TEXTS, SamplingFields

REFUSED: Mapping[str, tuple[object, ...]] = {
    "adaptive_target": (-1,),
    "add_generation_prompt": (True,),
    "audio": (),
    "backend_sampling": (False,),
    "best_of": (1,),
    "chat_format": (0,),
    "chat_parser": ("",),
    "echo": (False,),
    "function_call": ("none", "auto"),
    "functions": ([],),
    "generation_prompt": ("",),
    "grammar_lazy": (False,),
    "grammar_triggers": ([],),
    "grammar_type": ("",),
    "image_data": ([],),
    "logprobs": (False, 0),
    "lora": ([],),
    "mirostat": (0,),
    "modalities": (["text"],),
    "n": (1,),
    "n_cmpl": (1,),
    "n_indent": (0,),
    "n_probs": (0,),
    "parallel_tool_calls": (True, False),
    "parse_tool_calls": (True, False),
    "post_sampling_probs": (False,),
    "preserved_tokens": ([],),
    "reasoning_budget_end_tag": ("",),
    "reasoning_budget_end_tags": ([],),
    "reasoning_budget_message": ("",),
    "reasoning_budget_start_tag": ("",),
    "reasoning_budget_tokens": (-1,),
    "reasoning_control": (False,),
    "reasoning_effort": ("none",),
    "reasoning_format": ("none", "auto"),
    "response_format": ({"type": "text"},),
    "return_progress": (False,),
    "sse_ping_interval": (-1,),
    "suffix": ("",),
    "timings_per_token": (False,),
    "tool_choice": ("none", "auto"),
    "tools": ([],),
    "top_logprobs": (0,),
    "verbose": (False,),
}
"""Fields of llama-server and OpenAI that a body without a field of that name refuses, and the values that ask for
nothing: these are accepted."""

Limit = Annotated[int, Field(ge=-1, lt=2**31)]
Texts = Annotated[list[str], Field(max_length=MOST_TEXTS)]
"""Texts that each token of the answer is held against."""

IGNORED: dict[str, Any] = {"x-ignored": True}
"""Marks a field that changes nothing, whatever its value."""


class Body(BaseModel):
    """A JSON object; a field set to null counts as absent, and so does one that llama-server does not know either:
    clients send such fields along for other servers."""

    model_config = ConfigDict(extra="ignore", strict=True, allow_inf_nan=False)

    refused: ClassVar[Mapping[str, tuple[object, ...]]] = REFUSED
    foreign: ClassVar[Mapping[str, Foreign]] = {}

    @model_validator(mode="before")
    @classmethod
    def _refuse_unsupported(cls, data: object) -> object:
        if not isinstance(data, dict):
            raise ValueError("the body must be a JSON object")
        given = {key: value for key, value in data.items() if value is not None}
        for key in sorted(given.keys() & cls.refused.keys() - cls.model_fields.keys()):
            if given.pop(key) not in cls.refused[key]:
                raise not_supported(f"'{key}'")
        for key in sorted(given.keys() & cls.foreign.keys() - cls.model_fields.keys()):
            cls.foreign[key].check(key, given.pop(key), given)
        return given


class StreamOptions(BaseModel):
    """Obfuscation pads streams against eavesdroppers, which is not done."""

    model_config = ConfigDict(extra="ignore", strict=True)

    include_usage: bool = False
    include_obfuscation: Literal[False] = False


class GenerationBody(SamplingFields, Body):
    """What all generating routes have in common; names and defaults are llama-server's."""

    foreign: ClassVar[Mapping[str, Foreign]] = FOREIGN

    model: str | None = Field(None, description="Any name: there is one model.", json_schema_extra=IGNORED)
    stream: bool = Field(False, description="The answer comes in parts, as server-sent events.")
    stream_options: StreamOptions = Field(
        default_factory=StreamOptions,
        description="`include_usage`: a last chunk tells the counts of tokens. `include_obfuscation` may be false.",
    )
    max_tokens: Limit | None = Field(None, description="The same as `n_predict`, which goes first.")
    max_completion_tokens: Limit | None = Field(
        None, description="The same as `n_predict`, which goes first; it goes before `max_tokens`."
    )
    n_predict: Limit | None = Field(
        None, description="The most tokens to generate; -1 for no limit but the context, 0 only computes the prompt."
    )
    stop: str | Texts = Field(default_factory=list, description="Texts that end the answer and are not part of it.")
    grammar: str = Field("", description="A grammar in GBNF that the answer follows.")
    json_schema: dict[str, Any] | bool | None = Field(
        None, description="A JSON schema that the answer follows; an empty object stands for any object."
    )
    t_max_predict_ms: Annotated[int, Field(ge=-1, lt=2**53)] = Field(
        0, description="The answer ends after so many milliseconds of decoding; 0 or -1 is off."
    )
    id_slot: Annotated[int, Field(ge=-1)] = Field(
        -1, description="The slot to use; the request waits while that one is at work. -1 is any."
    )
    cache_prompt: bool = Field(True, description="Computed state of an equal beginning may be used again.")
    return_tokens: bool = Field(False, description="The answer holds its token ids in `tokens`.")
    user: str = Field("", description="Changes nothing.", json_schema_extra=IGNORED)
    metadata: dict[str, Any] = Field(default_factory=dict, description="Changes nothing.", json_schema_extra=IGNORED)
    store: bool = Field(False, description="Nothing is ever stored.", json_schema_extra=IGNORED)
    service_tier: str = Field("", description="Changes nothing.", json_schema_extra=IGNORED)
    prompt_cache_key: str = Field("", description="Changes nothing.", json_schema_extra=IGNORED)
    prompt_cache_retention: str = Field("", description="Changes nothing.", json_schema_extra=IGNORED)
    safety_identifier: str = Field("", description="Changes nothing.", json_schema_extra=IGNORED)
    n_keep: int = Field(0, description="Contexts are never shifted.", json_schema_extra=IGNORED)
    n_discard: int = Field(0, description="Contexts are never shifted.", json_schema_extra=IGNORED)
    n_cache_reuse: int = Field(0, description="Only equal beginnings are reused.", json_schema_extra=IGNORED)
    mirostat_tau: float = Field(5.0, description="Of `mirostat`, which is refused.", json_schema_extra=IGNORED)
    mirostat_eta: float = Field(0.1, description="Of `mirostat`, which is refused.", json_schema_extra=IGNORED)
    adaptive_decay: float = Field(0.9, description="Of `adaptive_target`, which is refused.", json_schema_extra=IGNORED)

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        if self.grammar and self.json_schema is not None:
            raise ValueError("both 'grammar' and 'json_schema' are given; leave one of them out")
        return self

    def limit(self, engine: Engine) -> int | None:
        """The most tokens to generate, None for no limit but the context."""
        limits = (self.n_predict, self.max_completion_tokens, self.max_tokens)
        given = next((value for value in limits if value is not None), None)
        if given is None:
            return engine.defaults.max_tokens
        return None if given < 0 else given

    def stop_words(self) -> tuple[str, ...]:
        return tuple(word for word in ([self.stop] if isinstance(self.stop, str) else self.stop) if word)

    @property
    def holds_answer(self) -> bool:
        """Whether a grammar is to be compiled."""
        return bool(self.grammar) or self.json_schema is not None

    def constraint(self, engine: Engine) -> Constraint | None:
        """What `grammar` or `json_schema` holds the answer to. Raises `ConstraintError`."""
        if self.grammar:
            return engine.constraints.from_gbnf(self.grammar)
        if self.json_schema is not None:
            return engine.constraints.from_json_schema(
                {"type": "object"} if self.json_schema == {} else self.json_schema
            )
        return None

    def request(self, engine: Engine, tokens: list[int]) -> GenerationRequest:
        """The request for a prompt of `tokens`. Raises a 400 for what does not exist, `ConstraintError` for a bad
        grammar."""
        return GenerationRequest(
            tuple(tokens),
            self.limit(engine),
            self.sampling(engine),
            self.stop_words(),
            self.ignore_eos,
            reuse=self.cache_prompt,
            constraint=self.constraint(engine),
            slot=self.id_slot if self.id_slot >= 0 else None,
            time_limit_ms=self.t_max_predict_ms if self.t_max_predict_ms > 0 else None,
        )
