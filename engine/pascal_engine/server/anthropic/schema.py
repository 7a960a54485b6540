"""Bodies of /v1/messages and /v1/messages/count_tokens."""

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from pascal_engine.server.errors import not_supported
from pascal_engine.server.schemas import Body

Blocks = str | list[dict[str, Any]]
"""Text, or content blocks, which `translate.py` checks one by one."""

_KEEPS_ALL_THINKING = {"type": "clear_thinking_20251015", "keep": "all"}


class Turn(BaseModel):
    """One message; one of the system stands where the template allows it."""

    model_config = ConfigDict(extra="forbid", strict=True)

    role: Literal["user", "assistant", "system"]
    content: Blocks


class Thinking(BaseModel):
    """`budget_tokens` and `display` change nothing: all thinking counts towards `max_tokens`, and all is shown."""

    model_config = ConfigDict(extra="forbid", strict=True)

    type: Literal["enabled", "disabled", "adaptive"]
    budget_tokens: int | None = None
    display: str | None = None


class ToolChoice(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    type: Literal["auto", "any", "tool", "none"]
    name: str | None = None
    disable_parallel_tool_use: bool = False

    @model_validator(mode="after")
    def _has_name(self) -> Self:
        if (self.type == "tool") != (self.name is not None):
            raise ValueError("'tool_choice' must have a 'name' if its type is 'tool', and only then")
        return self


class OutputConfig(BaseModel):
    """`format` holds the answer to a JSON schema."""

    model_config = ConfigDict(extra="forbid", strict=True)

    effort: str | None = None
    format: dict[str, Any] | None = None


class CountTokensBody(Body):
    """What makes a prompt."""

    messages: Annotated[list[Turn], Field(min_length=1)]
    model: str | None = None
    system: Blocks = ""
    tools: list[dict[str, Any]] = Field(default_factory=list)
    tool_choice: ToolChoice | None = None
    thinking: Thinking | None = None
    output_config: OutputConfig = Field(default_factory=OutputConfig)
    context_management: dict[str, Any] = Field(default_factory=dict)
    chat_template_kwargs: dict[str, Any] = Field(default_factory=dict)
    cache_control: dict[str, Any] | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if any(edit != _KEEPS_ALL_THINKING for edit in self.context_management.get("edits") or ()):
            raise not_supported("'context_management' that edits the messages")
        return self


class MessagesBody(CountTokensBody):
    """/v1/messages."""

    max_tokens: Annotated[int, Field(ge=1)]
    stream: bool = False
    stop_sequences: list[str] = Field(default_factory=list)
    temperature: Annotated[float, Field(ge=0)] | None = None
    top_p: Annotated[float, Field(ge=0, le=1)] | None = None
    top_k: Annotated[int, Field(ge=0)] | None = None
    # These change nothing in what is generated.
    metadata: dict[str, Any] = Field(default_factory=dict)
    service_tier: str = ""
