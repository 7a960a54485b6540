"""Messages as the model's chat template wants them, and the prompt that it makes of them."""

from typing import Any

from pascal_engine.engine import Engine
from pascal_engine.server.chat.messages import Message, parsed_arguments
from pascal_engine.server.chat.schema import PromptBody
from pascal_engine.tokenizer.capabilities import Capabilities


def render_chat(engine: Engine, body: PromptBody) -> str:
    """The prompt's text. Raises `TemplateError` where the template refuses the messages."""
    capabilities = engine.template.capabilities
    messages = [_for_template(message, capabilities) for message in body.messages]
    return engine.template.render(
        messages,
        tools=[_with_parameters(tool) for tool in body.tools] or None,
        add_generation_prompt=body.add_generation_prompt and not body.continues,
        continue_final_message=body.continues,
        variables={**engine.defaults.template_variables, **body.template_variables},
    )


def _with_parameters(tool: dict[str, Any]) -> dict[str, Any]:
    """The tool with a schema of its arguments, which templates take for granted."""
    if tool["function"].get("parameters") is not None:
        return tool
    return {**tool, "function": {**tool["function"], "parameters": {"type": "object", "properties": {}}}}


def _for_template(message: Message, capabilities: Capabilities) -> dict[str, Any]:
    fields = message.as_given()
    if message.role == "developer" and not capabilities.knows_developer:
        fields["role"] = "system"
    elif message.role == "function":
        fields["role"] = "tool"
    fields["content"] = _content(message, capabilities)
    for call in fields.get("tool_calls") or ():
        if not capabilities.arguments_as_text:
            call["function"]["arguments"] = parsed_arguments(call["function"].get("arguments", {}))
    return fields


def _content(message: Message, capabilities: Capabilities) -> object:
    """Text where the template can take it; parts are kept apart only where it can take those as well."""
    if message.content is None and capabilities.needs_null_content:
        return None
    if isinstance(message.content, list) and capabilities.content_as_parts:
        return [part.model_dump(exclude_unset=True) for part in message.content]
    if not capabilities.content_as_text:
        return [{"type": "text", "text": message.text}]
    return message.text
