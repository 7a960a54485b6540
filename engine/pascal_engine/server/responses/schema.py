"""Bodies of /v1/responses and /v1/responses/input_tokens."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from pascal_engine.server.errors import not_supported
from pascal_engine.server.schemas import Body

# Fields that this engine does not implement, with the values that ask for nothing.
_REFUSED: Mapping[str, tuple[object, ...]] = {
    "background": (False,),
    "conversation": (),
    "context_management": ([],),
    "include": ([], ["reasoning.encrypted_content"]),
    "max_tool_calls": (),
    "moderation": (),
    "previous_response_id": ("",),
    "prompt": (),
    "store": (False,),
    "top_logprobs": (0,),
    "truncation": ("disabled",),
}


class Reasoning(BaseModel):
    """There are no summaries: `summary` may be "auto", which leaves the choice to the model."""

    model_config = ConfigDict(extra="forbid", strict=True)

    effort: str | None = None
    summary: Literal["auto"] | None = None


class Text(BaseModel):
    """`format` is that of a chat's `response_format`, its schema one level higher."""

    model_config = ConfigDict(extra="forbid", strict=True)

    format: dict[str, Any] = Field(default_factory=lambda: {"type": "text"})
    verbosity: Literal["medium"] | None = None


class StreamOptions(BaseModel):
    """Obfuscation pads a stream against eavesdroppers; this engine never does."""

    model_config = ConfigDict(extra="forbid", strict=True)

    include_obfuscation: Literal[False] = False


class InputTokensBody(Body):
    """What makes a prompt."""

    input: str | list[dict[str, Any]]
    model: str | None = None
    instructions: str | None = None
    tools: list[dict[str, Any]] = Field(default_factory=list)
    tool_choice: str | dict[str, Any] = "auto"
    parallel_tool_calls: bool = True
    reasoning: Reasoning = Field(default_factory=Reasoning)
    text: Text = Field(default_factory=Text)
    chat_template_kwargs: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _refuse(cls, data: object) -> object:
        if not isinstance(data, dict):
            return data
        for name, neutral in _REFUSED.items():
            if data.get(name) is not None and data[name] not in neutral:
                raise not_supported(f"'{name}'")
        return {name: value for name, value in data.items() if name not in _REFUSED}

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.input:
            raise ValueError("'input' is empty; give a text or at least one item")
        return self


class ResponsesBody(InputTokensBody):
    """/v1/responses."""

    max_output_tokens: Annotated[int, Field(ge=1)] | None = None
    stream: bool = False
    stream_options: StreamOptions = Field(default_factory=StreamOptions)
    temperature: Annotated[float, Field(ge=0)] | None = None
    top_p: Annotated[float, Field(ge=0, le=1)] | None = None
    # These change nothing in what is generated.
    metadata: dict[str, Any] = Field(default_factory=dict)
    prompt_cache_key: str | None = None
    prompt_cache_retention: str | None = None
    safety_identifier: str | None = None
    service_tier: str | None = None
    user: str | None = None
    client_metadata: dict[str, Any] = Field(default_factory=dict)
