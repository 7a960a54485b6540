"""Bodies of /v1/responses and /v1/responses/input_tokens."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from pascal_engine.server.errors import not_supported
from pascal_engine.server.schemas import IGNORED, REFUSED, Body, GenerationBody


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


class InputTokensBody(Body):
    """What makes a prompt."""

    refused: ClassVar[Mapping[str, tuple[object, ...]]] = {
        "background": (False,),
        "context_management": ([],),
        "conversation": (),
        "include": ([], ["reasoning.encrypted_content"]),
        "max_tool_calls": (),
        "moderation": (),
        "previous_response_id": ("",),
        "prompt": (),
        "store": (False,),
        "top_logprobs": (0,),
        "truncation": ("disabled",),
    }

    input: str | list[dict[str, Any]] = Field(
        description="A text of the user, or items: messages (text only), `function_call`, `function_call_output`,"
        " `reasoning`."
    )
    model: str | None = Field(None, description="Any name: there is one model.", json_schema_extra=IGNORED)
    instructions: str | None = Field(None, description="The system prompt, before all items.")
    tools: list[dict[str, Any]] = Field(
        default_factory=list, description="Functions that the model may call; no other types."
    )
    tool_choice: str | dict[str, Any] = Field(
        "auto", description="`none`, `auto`, `required`, or an object that names the one function to call."
    )
    parallel_tool_calls: bool = Field(True, description="Whether one answer may call several functions.")
    reasoning: Reasoning = Field(
        default_factory=Reasoning,
        description="`effort`: `none` sets `enable_thinking` to false; anything else is handed to the template.",
    )
    text: Text = Field(
        default_factory=Text,
        description="`format`: `text`, `json_object`, or `json_schema` with the schema that the answer follows.",
    )
    chat_template_kwargs: dict[str, Any] = Field(
        default_factory=dict, description="Variables of the model's chat template, such as `enable_thinking`."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.input:
            raise ValueError("'input' is empty; give a text or at least one item")
        return self


class ResponsesBody(GenerationBody, InputTokensBody):
    """/v1/responses."""

    refused: ClassVar[Mapping[str, tuple[object, ...]]] = {**REFUSED, **InputTokensBody.refused}

    max_output_tokens: Annotated[int, Field(ge=1, lt=2**31)] | None = Field(
        None, description="The same as `max_tokens`, which it goes before."
    )
    client_metadata: dict[str, Any] | None = Field(None, description="Changes nothing.", json_schema_extra=IGNORED)

    @model_validator(mode="after")
    def _check_response(self) -> Self:
        for name in ("store", "return_tokens"):
            if getattr(self, name):
                raise not_supported(f"'{name}'")
        return self
