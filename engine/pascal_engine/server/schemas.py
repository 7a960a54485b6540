"""Request bodies. What this engine cannot do is refused here, never ignored."""

from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from pascal_engine.sampling.params import SamplingParams
from pascal_engine.schedule.sequence import GenerationRequest
from pascal_engine.server.errors import not_supported

# Fields of llama-server and OpenAI that this engine does not implement, with the values that ask for nothing.
_NEUTRAL: Mapping[str, tuple[object, ...]] = {
    "n": (1,),
    "best_of": (1,),
    "n_probs": (0,),
    "logprobs": (False, 0),
    "top_logprobs": (0,),
    "echo": (False,),
    "suffix": ("",),
    "tools": ([],),
    "functions": ([],),
    "tool_choice": ("none", "auto"),
    "function_call": ("none", "auto"),
    "parallel_tool_calls": (True, False),
    "response_format": ({"type": "text"},),
    "grammar": ("",),
    "json_schema": (),
    "logit_bias": ({}, []),
    "frequency_penalty": (0,),
    "presence_penalty": (0,),
    "repeat_penalty": (1,),
    "typical_p": (1,),
    "mirostat": (0,),
    "dry_multiplier": (0,),
    "xtc_probability": (0,),
    "dynatemp_range": (0,),
    "id_slot": (-1,),
    "samplers": (),
    "lora": ([],),
    "image_data": ([],),
    "modalities": (["text"],),
    "audio": (),
    "return_progress": (False,),
    "timings_per_token": (False,),
    "reasoning_format": ("none", "auto"),
    "reasoning_effort": ("none",),
    "n_keep": (0,),
    "n_cmpl": (1,),
    "t_max_predict_ms": (0, -1),
    "post_sampling_probs": (False,),
    "add_generation_prompt": (True,),
}

Fraction = Annotated[float, Field(ge=0, le=1)]


class Body(BaseModel):
    """A JSON object; a field set to null counts as absent."""

    model_config = ConfigDict(extra="forbid", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _refuse_unsupported(cls, data: object) -> object:
        if not isinstance(data, dict):
            raise ValueError("the body must be a JSON object")
        given = {key: value for key, value in data.items() if value is not None}
        for key in sorted(given.keys() & _NEUTRAL.keys() - cls.model_fields.keys()):
            if given.pop(key) not in _NEUTRAL[key]:
                raise not_supported(f"'{key}'")
        return given


class StreamOptions(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    include_usage: bool = False


class GenerationBody(Body):
    """What the three generating routes have in common; defaults are llama-server's."""

    model: str | None = None
    stream: bool = False
    stream_options: StreamOptions = Field(default_factory=StreamOptions)
    max_tokens: int | None = None
    n_predict: int | None = None
    temperature: Annotated[float, Field(ge=0, le=1e6)] = 0.8
    top_k: int = 40
    top_p: Fraction = 0.95
    min_p: Fraction = 0.05
    seed: int = -1
    stop: str | list[str] = Field(default_factory=list)
    ignore_eos: bool = False
    return_tokens: bool = False
    # These change nothing in what is generated.
    cache_prompt: bool = True
    user: str = ""
    metadata: dict[str, Any] = Field(default_factory=dict)
    store: bool = False
    service_tier: str = ""

    @property
    def limit(self) -> int | None:
        """The most tokens to generate, None for no limit but the context."""
        given = [value for value in (self.max_tokens, self.n_predict) if value is not None]
        return min((value for value in given if value >= 0), default=None)

    def request(self, tokens: list[int]) -> GenerationRequest:
        """The request for a prompt of `tokens`."""
        stop = (self.stop,) if isinstance(self.stop, str) else tuple(self.stop)
        seed = None if self.seed < 0 else self.seed
        sampling = SamplingParams(
            temperature=self.temperature, top_k=self.top_k, top_p=self.top_p, min_p=self.min_p, seed=seed
        )
        return GenerationRequest(tuple(tokens), self.limit, sampling, stop, self.ignore_eos, reuse=self.cache_prompt)


class CompletionBody(GenerationBody):
    """/completion and /v1/completions: the prompt is text or token ids."""

    prompt: str | list[int]

    @model_validator(mode="before")
    @classmethod
    def _one_prompt(cls, data: object) -> object:
        prompt = data.get("prompt") if isinstance(data, dict) else None
        if isinstance(prompt, list) and any(isinstance(part, str | list) for part in prompt):
            raise not_supported("more than one prompt in a request")
        return data


class Message(BaseModel):
    """One turn; content given as parts is joined, parts other than text are refused."""

    model_config = ConfigDict(extra="allow", strict=True)

    role: str
    content: str = ""

    @model_validator(mode="before")
    @classmethod
    def _text_only(cls, data: object) -> object:
        if not isinstance(data, dict):
            raise ValueError("a message must be an object with 'role' and 'content'")
        if data.get("tool_calls") or data.get("role") in ("tool", "function"):
            raise not_supported("a message with tool calls or tool results")
        content = data.get("content")
        if isinstance(content, list):
            return {**data, "content": "".join(_part_text(part) for part in content)}
        if content is None:
            raise ValueError("a message must have 'content'")
        return data


class ChatBody(GenerationBody):
    """/v1/chat/completions."""

    messages: Annotated[list[Message], Field(min_length=1)]
    max_completion_tokens: int | None = None
    chat_template_kwargs: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _one_limit(self) -> Self:
        if self.max_completion_tokens is not None:
            self.max_tokens = self.max_completion_tokens
        return self


class TokenizeBody(Body):
    content: str
    add_special: bool = False
    parse_special: bool = True
    with_pieces: bool = False


class DetokenizeBody(Body):
    tokens: list[int]


class TemplateBody(Body):
    model: str | None = None
    messages: Annotated[list[Message], Field(min_length=1)]
    chat_template_kwargs: dict[str, Any] = Field(default_factory=dict)


def _part_text(part: object) -> str:
    if not isinstance(part, dict) or part.get("type") != "text":
        raise not_supported("message content other than text")
    text = part.get("text")
    if not isinstance(text, str):
        raise ValueError("a text part must have a string in 'text'")
    return text
