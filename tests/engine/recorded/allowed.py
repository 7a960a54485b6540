"""Where our answers are meant to be other than llama-server's, each with the reason."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Allowed:
    """`kind` and `path` as in `compare.Difference`; `exchanges` and `path` are patterns as of file names."""

    exchanges: str
    kind: str
    path: str
    reason: str


_STRICT = "what is not known is refused, never ignored"
_CLEARER = "the same refusal with the status that says whose mistake it is"
_OTHER_VOCABULARY = "the two models have other token ids for the same text"
_ANTHROPIC = "a field of Anthropic's that its SDK reads and llama-server leaves out"
_ANTHROPIC_ERROR = "errors have Anthropic's shape, which its SDK reads"
_OPENAI = "a field of OpenAI's that its SDK reads and llama-server leaves out"

_MODELS = (
    Allowed("completion*", "value", "prompt", _OTHER_VOCABULARY),
    Allowed("*completion*", "value", "*generation_settings.logit_bias.token", _OTHER_VOCABULARY),
)

_STRICTER = (
    Allowed("completion-mirostat", "status", "", _STRICT),
    Allowed("openai-completion-suffix", "status", "", _STRICT),
    Allowed("openai-completion-best-of", "status", "", _STRICT),
    Allowed("completion-bad-grammar", "status", "", "a grammar that is a number is ignored by llama-server"),
    Allowed("completion-grammar-and-schema", "status", "", "llama-server ignores one of the two"),
    Allowed("completion-id-slot-unknown", "status", "", "llama-server takes any slot instead"),
    Allowed("slots-unknown-slot", "status", "", "llama-server takes any slot instead"),
    Allowed("completion-empty-prompt", "status", "", "there is nothing to go on from"),
    Allowed("chat-empty-messages", "status", "", "there is nothing to answer"),
    Allowed("template-empty", "status", "", "there is nothing to answer"),
    Allowed("messages-empty", "status", "", "there is nothing to answer"),
    Allowed("messages-bad-role", "status", "", "Anthropic's API has two roles"),
    Allowed("messages-messages-text", "status", "", "llama-server ignores what is no list"),
    Allowed("chat-bad-template-kwargs", "status", "", "llama-server ignores what is no object"),
    Allowed("list-body-tokenize", "status", "", "llama-server ignores what is no object"),
)

_OTHER_STATUS = (
    Allowed("chat-tools-bad", "status", "", _CLEARER),
    Allowed("chat-tools-not-a-list", "status", "", _CLEARER),
    Allowed("chat-image", "status", "", _CLEARER),
    Allowed("chat-no-role", "status", "", _CLEARER),
    Allowed("detokenize-unknown", "status", "", _CLEARER),
    Allowed("embeddings-too-long", "status", "", _CLEARER),
    Allowed("messages-image", "status", "", _CLEARER),
    Allowed("messages-none", "status", "", _CLEARER),
    Allowed("messages-count-none", "status", "", _CLEARER),
    Allowed("list-body-v1-messages", "status", "", _CLEARER),
    Allowed("method-*", "status", "", "405 says that the path is right and the method is not"),
    Allowed("*", "value", "error.type", "not_supported_error tells what this engine has not from what is wrong"),
)

_NATIVE = (
    Allowed("completion-progress", "length", "<progress>.tokens", "llama-server names a token 0 that nobody made"),
    Allowed("*", "value", "generation_settings.grammar", "a schema is not turned into llama.cpp's notation"),
    Allowed("completion-logit-bias-ban", "type", "generation_settings.logit_bias.bias", "one bias for each token"),
    Allowed(
        "completion-stop-word-stream", "missing", "<text>.timings", "llama-server puts them on the chunk before the end"
    ),
)

_TEXT_LOGPROBS = ("tokens", "token_logprobs", "top_logprobs", "text_offset")

_OPENAI_COMPLETIONS = tuple(
    Allowed("openai-completion-logprobs*", "extra", f"*choices.logprobs.{field}", _OPENAI) for field in _TEXT_LOGPROBS
)

_CHAT = (
    Allowed("chat-*", "extra", "*choices.logprobs.refusal", _OPENAI),
    Allowed("chat-*", "extra", "*choices.logprobs", _OPENAI),
)

_MESSAGES = (
    Allowed("messages-*", "extra", "*usage.cache_creation_input_tokens", _ANTHROPIC),
    Allowed("messages-*", "extra", "<message_delta>.usage.*input_tokens", _ANTHROPIC),
    Allowed("messages-*", "extra", "<content_block_start:tool_use>.content_block.input", _ANTHROPIC),
    Allowed("messages-*", "extra", "<content_block_start:thinking>.content_block.signature", _ANTHROPIC),
    Allowed("messages-*", "extra", "<ping>", "an event of Anthropic's that llama-server leaves out"),
    Allowed("messages-stop*", "value", "*stop_reason", "stop_sequence, as Anthropic's API says it"),
    Allowed("*messages*", "extra", "type", _ANTHROPIC_ERROR),
    Allowed("*messages*", "missing", "error.*", _ANTHROPIC_ERROR),
)

_CUT_OFF = "an answer that was cut off is incomplete, as in OpenAI's API"
_ITEM_ENDS = "an item ends before the next begins, as in OpenAI's API"

# What a response of OpenAI's tells of the request that it answers, and of its own end.
_RESPONSE_FIELDS = (
    "background", "completed_at", "created_at", "error", "incomplete_details", "instructions", "max_output_tokens",
    "metadata", "model", "output", "parallel_tool_calls", "previous_response_id", "reasoning", "store", "temperature",
    "text", "tool_choice", "tools", "top_p", "truncation", "usage", "usage.output_tokens_details", "user",
)  # fmt: skip

_RESPONSES = (
    *(Allowed("responses-*", "extra", f"<response.*>.response.{field}", _OPENAI) for field in _RESPONSE_FIELDS),
    *(
        Allowed("responses-*", "extra", field, _OPENAI)
        for field in _RESPONSE_FIELDS
        if field
        not in ("completed_at", "created_at", "model", "output", "usage")  # llama-server's whole answer has them
    ),
    *(
        Allowed("responses-*", "extra", f"<response.*>.{field}", _OPENAI)
        for field in ("sequence_number", "output_index", "content_index")
    ),
    Allowed("responses-*", "extra", "<response.function_call_arguments.done>", _OPENAI),
    Allowed("responses-*", "extra", "<response.*>.part.annotations", _OPENAI),
    Allowed("responses-*", "extra", "<response.*>.part.logprobs", _OPENAI),
    Allowed("responses-*", "extra", "<response.output_text.*>.logprobs", _OPENAI),
    Allowed("responses-*", "extra", "<response.completed>.response.output.status", _OPENAI),
    Allowed("responses-*", "extra", "<response.content_part.added:reasoning_text>", _OPENAI),
    Allowed("responses-*", "extra", "<response.content_part.done:reasoning_text>", _OPENAI),
    Allowed("responses-*", "extra", "<response.reasoning_text.done>", _OPENAI),
    # llama-server ends all items at the very end.
    Allowed("responses-reasoning-stream", "extra", "<response.output_item.done:reasoning>", _ITEM_ENDS),
    Allowed("responses-reasoning-stream", "missing", "<response.output_item.done:reasoning>", _ITEM_ENDS),
    *(
        entry
        for name in ("text", "instructions", "tool-result", "items")
        for entry in (
            Allowed(f"responses-{name}", "value", "*status", _CUT_OFF),
            Allowed(f"responses-{name}", "type", "completed_at", _CUT_OFF),
        )
    ),
    Allowed("responses-stream", "value", "<response.output_item.done:message>.item.status", _CUT_OFF),
    Allowed("responses-stream", "missing", "<response.completed>", _CUT_OFF),
    Allowed("responses-stream", "extra", "<response.incomplete>", _CUT_OFF),
)

ALLOWED: tuple[Allowed, ...] = (
    *_MODELS,
    *_STRICTER,
    *_OTHER_STATUS,
    *_NATIVE,
    *_OPENAI_COMPLETIONS,
    *_CHAT,
    *_MESSAGES,
    *_RESPONSES,
)
