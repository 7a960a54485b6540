"""The body of /v1/chat/completions and of /apply-template."""

from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from pascal_engine.engine import Engine
from pascal_engine.sampling.constraint import Constraint
from pascal_engine.sampling.params import SamplingParams
from pascal_engine.server.chat.messages import Message
from pascal_engine.server.errors import from_validation, not_supported
from pascal_engine.server.schemas import Body, GenerationBody

MOST_LOGPROBS = 20


class Function(BaseModel):
    """A function that the model may call; `parameters` is the JSON schema of its arguments."""

    model_config = ConfigDict(extra="allow", strict=True)

    name: Annotated[str, Field(min_length=1, max_length=256)]
    description: str | None = None
    parameters: dict[str, Any] | None = None

    @property
    def schema_of_arguments(self) -> dict[str, Any]:
        if self.parameters is None:
            return {"type": "object", "properties": {}, "additionalProperties": False}
        return {"type": "object", **self.parameters}


class Tool(BaseModel):
    model_config = ConfigDict(extra="allow", strict=True)

    type: Literal["function"] = "function"
    function: Function


def _checked_tool(tool: dict[str, Any]) -> dict[str, Any]:
    """The tool as it was given: templates show its keys in that order."""
    try:
        Tool.model_validate(tool)
    except ValidationError as error:
        raise ValueError(f"one of the 'tools' is wrong: {from_validation(error)}") from error
    return tool


class JsonSchemaFormat(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    name: str = ""
    description: str | None = None
    schema_: Annotated[Any, Field(alias="schema")] = Field(default_factory=dict)
    strict: bool | None = None


class ResponseFormat(BaseModel):
    """OpenAI's `response_format`; `schema` beside the type is llama-server's way to give one."""

    model_config = ConfigDict(extra="forbid", strict=True)

    type: Literal["text", "json_object", "json_schema"]
    json_schema: JsonSchemaFormat | None = None
    schema_: Annotated[Any, Field(alias="schema")] = None

    @model_validator(mode="after")
    def _has_schema(self) -> Self:
        if self.type == "json_schema" and self.json_schema is None and self.schema_ is None:
            raise ValueError("a response_format of type 'json_schema' must have 'json_schema' with a 'schema'")
        return self

    @property
    def wanted(self) -> object:
        """The schema that the answer must follow, None for any text."""
        if self.type == "text":
            return None
        if self.json_schema is not None:
            return self.json_schema.schema_
        return {"type": "object"} if self.schema_ is None else self.schema_


@dataclass(frozen=True)
class ToolChoice:
    """Whether functions may or must be called; `name` is set where only that one may."""

    mode: Literal["none", "auto", "required"]
    name: str | None = None


class PromptBody(Body):
    """What makes the prompt of a chat."""

    messages: Annotated[list[Message], Field(min_length=1)] = Field(
        description="The chat so far: messages of `system`, `developer`, `user`, `assistant` and `tool`, content as"
        " text or as parts of text. The answer goes on with a last one of the assistant."
    )
    tools: list[Annotated[dict[str, Any], AfterValidator(_checked_tool)]] = Field(
        default_factory=list, description="Functions that the model may call, in OpenAI's form."
    )
    tool_choice: str | dict[str, Any] = Field(
        "auto", description="`none`, `auto`, `required`, or an object that names the one function to call."
    )
    chat_template_kwargs: dict[str, Any] = Field(
        default_factory=dict, description="Variables of the model's chat template, such as `enable_thinking`."
    )
    reasoning_effort: str | None = Field(
        None, description="`none` sets `enable_thinking` to false; anything else is handed to the template."
    )
    add_generation_prompt: bool = Field(True, description="The prompt ends with the beginning of an answer.")
    continue_final_message: bool | None = Field(
        None, description="Whether the answer goes on with the last message; if not given, it does with an assistant's."
    )

    @model_validator(mode="after")
    def _check_prompt(self) -> Self:
        names = [function.name for function in self.functions]
        if len(set(names)) < len(names):
            raise ValueError("two of the 'tools' have the same name; give each its own")
        if self.choice.mode == "required" and not names:
            raise ValueError("'tool_choice' asks for a call, but there are no 'tools'; give at least one")
        if self.choice.name is not None and self.choice.name not in names:
            raise ValueError(f"'tool_choice' names '{self.choice.name}', which is not among the 'tools'")
        if self.continue_final_message and self.messages[-1].role != "assistant":
            raise ValueError("'continue_final_message' needs a last message of the assistant")
        if self.continues and self.messages[-1].tool_calls:
            raise ValueError("a last message of the assistant with tool calls cannot be continued; add their results")
        if not isinstance(self.template_variables.get("enable_thinking", True), bool):
            raise ValueError("'enable_thinking' in 'chat_template_kwargs' must be true or false")
        return self

    @property
    def functions(self) -> list[Function]:
        return [Tool.model_validate(tool).function for tool in self.tools]

    @property
    def choice(self) -> ToolChoice:
        match self.tool_choice:
            case "none" | "auto" | "required" as mode:
                return ToolChoice(mode)
            case {"type": "function", "function": {"name": str(name)}}:
                return ToolChoice("required", name)
            case {"type": str(kind)} if kind != "function":
                raise not_supported(f"'tool_choice' of type '{kind}'")
        raise ValueError("'tool_choice' must be 'none', 'auto', 'required' or name one of the tools")

    @property
    def continues(self) -> bool:
        """Whether the answer goes on with the last message, instead of being a new one."""
        if self.continue_final_message is not None:
            return self.continue_final_message
        return self.add_generation_prompt and len(self.messages) > 1 and self.messages[-1].role == "assistant"

    @property
    def template_variables(self) -> dict[str, Any]:
        """What the template is given beside messages and tools."""
        effort: dict[str, Any] = {}
        if self.reasoning_effort == "none":
            effort = {"enable_thinking": False}
        elif self.reasoning_effort is not None:
            effort = {"reasoning_effort": self.reasoning_effort}
        return effort | self.chat_template_kwargs


class TemplateBody(PromptBody):
    """/apply-template."""

    model: str | None = None


class ChatBody(GenerationBody, PromptBody):
    """/v1/chat/completions."""

    n: Annotated[int, Field(ge=1)] = Field(1, description="Answers to give; at most as many as there are slots.")
    parallel_tool_calls: bool = Field(True, description="Whether one answer may call several functions.")
    response_format: ResponseFormat | None = Field(
        None, description="`text`, `json_object`, or `json_schema` with the schema that the answer follows."
    )
    reasoning_format: Literal["none", "auto", "deepseek"] | None = Field(
        None, description="`none` leaves thoughts in the content; else they come as `reasoning_content`."
    )
    logprobs: bool = Field(False, description="Each token comes with the logarithm of its probability.")
    top_logprobs: Annotated[int, Field(ge=0, le=MOST_LOGPROBS)] | None = Field(
        None, description="With `logprobs`, how many of the likeliest tokens are told as well (default: 20)."
    )
    return_progress: bool = Field(False, description="A stream tells how far the prompt is, in `prompt_progress`.")
    timings_per_token: bool = Field(False, description="Each chunk of a stream holds `timings`.")

    @model_validator(mode="after")
    def _check_chat(self) -> Self:
        if self.top_logprobs is not None and not self.logprobs:
            raise ValueError("'top_logprobs' needs 'logprobs' to be true")
        if self.schema_wanted is not None and self.functions and self.choice.mode == "required":
            raise ValueError("'response_format' cannot hold where 'tool_choice' demands a call; leave one of them out")
        return self

    @property
    def schema_wanted(self) -> object:
        """The JSON schema that the answer must follow, None for any text."""
        if self.response_format is not None:
            return self.response_format.wanted
        return {"type": "object"} if self.json_schema == {} else self.json_schema

    @property
    def holds_answer(self) -> bool:
        return bool(self.grammar or self.functions) or self.schema_wanted is not None

    def constraint(self, engine: Engine) -> Constraint | None:
        # A schema holds behind the thought, which needs the prompt.
        return engine.constraints.from_gbnf(self.grammar) if self.grammar else None

    def sampling(self, engine: Engine) -> SamplingParams:
        most = MOST_LOGPROBS if self.top_logprobs is None else self.top_logprobs
        return replace(super().sampling(engine), n_probs=max(most, 1) if self.logprobs else 0)
