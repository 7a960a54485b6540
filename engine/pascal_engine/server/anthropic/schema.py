"""Bodies of /v1/messages and /v1/messages/count_tokens."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from pascal_engine.server.schemas import IGNORED, Body, Texts

Blocks = str | list[dict[str, Any]]
"""Text, or content blocks, which `translate.py` checks one by one."""

# What coding agents send: all thinking is kept anyway.
_KEEP_THINKING = {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}


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

    refused: ClassVar[Mapping[str, tuple[object, ...]]] = {
        "container": (),
        "context_management": ({}, {"edits": []}, _KEEP_THINKING),
        "inference_geo": (),
        "mcp_servers": ([],),
        "speed": ("standard",),
    }

    messages: Annotated[list[Turn], Field(min_length=1)] = Field(
        description="The chat so far: turns of `user`, `assistant` and `system`, content as text or as blocks of types"
        " `text`, `thinking`, `tool_use` and `tool_result`. The answer goes on with a last one of the assistant."
    )
    model: str | None = Field(None, description="Any name: there is one model.", json_schema_extra=IGNORED)
    system: Blocks = Field("", description="The system prompt, as text or as blocks of type `text`.")
    tools: list[dict[str, Any]] = Field(
        default_factory=list, description="Tools that the model may call, with `name`, `description`, `input_schema`."
    )
    tool_choice: ToolChoice | None = Field(
        None, description="Type `auto`, `any`, `none`, or `tool` with a `name`; `disable_parallel_tool_use`."
    )
    thinking: Thinking | None = Field(
        None, description="Type `enabled` or `adaptive` sets `enable_thinking` to true, `disabled` to false."
    )
    output_config: OutputConfig = Field(
        default_factory=OutputConfig,
        description="`format`: a JSON schema that the answer follows; `effort` is handed to the template.",
    )
    chat_template_kwargs: dict[str, Any] = Field(
        default_factory=dict, description="Variables of the model's chat template, such as `enable_thinking`."
    )
    cache_control: dict[str, Any] | None = Field(
        None, description="Every prefix is cached, without asking.", json_schema_extra=IGNORED
    )


class MessagesBody(CountTokensBody):
    """/v1/messages."""

    max_tokens: Annotated[int, Field(ge=1, lt=2**31)] = Field(
        4096, description="The most tokens to generate, thinking included."
    )
    stream: bool = Field(False, description="The answer comes in parts, as server-sent events.")
    stop_sequences: Texts = Field(default_factory=list, description="Texts that end the answer and are not part of it.")
    temperature: Annotated[float, Field(ge=0)] | None = Field(
        None, description="As on the other routes; the default is the server's."
    )
    top_p: Annotated[float, Field(ge=0, le=1)] | None = Field(
        None, description="As on the other routes; the default is the server's."
    )
    top_k: Annotated[int, Field(ge=0, lt=2**31)] | None = Field(
        None, description="As on the other routes; the default is the server's."
    )
    metadata: dict[str, Any] = Field(default_factory=dict, description="Changes nothing.", json_schema_extra=IGNORED)
    service_tier: str = Field("", description="Changes nothing.", json_schema_extra=IGNORED)
