"""The requests sent to llama-server and to our engine, all written here."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

HI = [{"role": "user", "content": "Say hello."}]
PREFILL = [*HI, {"role": "assistant", "content": "Well,"}]
PARTS = [{"role": "user", "content": [{"type": "text", "text": part} for part in ("Say", "hi")]}]
CAPITAL = [{"role": "user", "content": "What is the capital of France?"}]
FOX = "The quick brown fox"
GREEDY = {"temperature": 0, "ignore_eos": True}
STREAM = {"stream": True}
USAGE = {"stream": True, "stream_options": {"include_usage": True}}
FUNCTION = {
    "name": "get_weather",
    "description": "The weather of a city.",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string", "enum": ["Rome"]}},
        "required": ["city"],
        "additionalProperties": False,
    },
}
TOOLS = [{"type": "function", "function": FUNCTION}]
CALL = {"id": "call1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city":"Rome"}'}}
CALLED = [
    {"role": "user", "content": "How is the weather in Rome?"},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "call1", "content": "sunny"},
]
# So many calls that the small model makes one more: llama-server lets a text stand before a call that is required.
EAGER = [*(CALLED[:2] * 3), CALLED[0]]
# One value fits, so that the answer is the same whatever the model.
SCHEMA = {
    "type": "object",
    "properties": {"color": {"enum": ["red"]}},
    "required": ["color"],
    "additionalProperties": False,
}
# The thinking template opens the thought, so the model only ends it.
THOUGHT = 'root ::= "Hm.</think>Yes"'
# Each of the two models says one of them.
STOPS = ["Paris", "def"]
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
CLAUDE = {"model": "any", "max_tokens": 6, "temperature": 0}
CLAUDE_TOOLS = [{"name": "get_weather", "description": "The weather.", "input_schema": FUNCTION["parameters"]}]
CLAUDE_CALLED = [
    CALLED[0],
    {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": "call1", "name": "get_weather", "input": {"city": "Rome"}}],
    },
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call1", "content": "sunny"}]},
]
CLAUDE_EAGER = [*(CLAUDE_CALLED[:2] * 3), CALLED[0]]
RESPONSE_CALLED = [
    CALLED[0],
    {"type": "function_call", "call_id": "call1", "name": "get_weather", "arguments": '{"city":"Rome"}'},
    {"type": "function_call_output", "call_id": "call1", "output": "sunny"},
]
RESPONSE_EAGER = [*(RESPONSE_CALLED[:2] * 3), CALLED[0]]
RESPONSE_TOOLS = [{"type": "function", **FUNCTION}]
SAMPLING = {
    "temperature": 0.5,
    "dynatemp_range": 0.25,
    "dynatemp_exponent": 1.5,
    "top_k": 20,
    "top_p": 0.75,
    "min_p": 0.125,
    "typical_p": 0.875,
    "top_n_sigma": 2.0,
    "xtc_probability": 0.25,
    "xtc_threshold": 0.125,
    "repeat_last_n": 32,
    "repeat_penalty": 1.25,
    "presence_penalty": 0.5,
    "frequency_penalty": 0.25,
    "dry_multiplier": 0.5,
    "dry_base": 1.5,
    "dry_allowed_length": 3,
    "dry_penalty_last_n": 64,
    "dry_sequence_breakers": ["\n", ":"],
    "seed": 42,
}


@dataclass(frozen=True)
class Exchange:
    """One request. `server` names the way the server is started (record.py), `before` the exchanges sent first."""

    name: str
    path: str
    body: object = None
    method: str = "POST"
    raw: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    server: str = "plain"
    before: tuple[str, ...] = ()

    def request(self) -> dict[str, Any]:
        """What is kept of it beside the answer."""
        kept = {"method": self.method, "path": self.path, "server": self.server, "headers": dict(self.headers)}
        return kept | {"body": self.body, "raw": self.raw, "before": list(self.before)}

    def content(self) -> dict[str, Any]:
        """What httpx needs."""
        if self.raw is not None:
            return {"content": self.raw, "headers": {"content-type": "application/json", **self.headers}}
        return {"headers": dict(self.headers)} | ({} if self.body is None else {"json": self.body})


def _native(name: str, prompt: object = FOX, **fields: object) -> Exchange:
    """A greedy /completion of 6 tokens, unless `fields` say otherwise."""
    return Exchange(f"completion-{name}", "/completion", {"prompt": prompt, "n_predict": 6, **GREEDY, **fields})


def _forced(name: str, grammar: str, **fields: object) -> Exchange:
    """A /completion whose text the grammar leaves no choice about."""
    body = {"prompt": FOX, "n_predict": 40, "temperature": 0, "grammar": grammar, **fields}
    return Exchange(f"completion-{name}", "/completion", body)


def _text(name: str, prompt: object = FOX, **fields: object) -> Exchange:
    body = {"model": "any", "prompt": prompt, "max_tokens": 6, **GREEDY, **fields}
    return Exchange(f"openai-completion-{name}", "/v1/completions", body)


def _chat(name: str, messages: object = HI, **fields: object) -> Exchange:
    body = {"model": "any", "messages": messages, "max_tokens": 6, **GREEDY, **fields}
    return Exchange(f"chat-{name}", "/v1/chat/completions", body)


def _tools(name: str, messages: object = HI, **fields: object) -> Exchange:
    return _chat(name, messages, tools=TOOLS, max_tokens=120, ignore_eos=False, **fields)


def _claude(name: str, messages: object = HI, **fields: object) -> Exchange:
    return Exchange(f"messages-{name}", "/v1/messages", {**CLAUDE, "messages": messages, **fields})


def _response(name: str, given: object = "Say hello.", **fields: object) -> Exchange:
    body = {"model": "any", "input": given, "max_output_tokens": 6, "temperature": 0, **fields}
    return Exchange(f"responses-{name}", "/v1/responses", body)


def _thinking(exchange: Exchange) -> Exchange:
    return replace(exchange, server="thinking")


def _slot(name: str, query: str, body: object = None, *before: str, slot: str = "0") -> Exchange:
    return Exchange(f"slots-{name}", f"/slots/{slot}{query}", body, before=before)


COMPLETION = (
    _native("text"),
    _native("tokens", [40, 41, 300, 301], return_tokens=True),
    _native("mix", [FOX, 40, 41, " jumps"]),
    _native("stream", **STREAM),
    _native("n-probs", n_probs=3),
    _native("n-probs-stream", n_probs=2, **STREAM),
    _native("post-sampling-probs", n_probs=2, post_sampling_probs=True),
    _native("post-sampling-probs-stream", n_probs=2, post_sampling_probs=True, **STREAM),
    _native("progress", return_progress=True, cache_prompt=False, **STREAM),
    _native("progress-whole", return_progress=True),
    _native("timings-per-token", timings_per_token=True, **STREAM),
    _native("response-fields", response_fields=["content", "generation_settings/n_predict", "stop_type", "no/such"]),
    _native("response-fields-stream", response_fields=["content", "stop"], **STREAM),
    _forced("stop-word", 'root ::= "Hello, world"', stop=["world"]),
    _forced("stop-word-stream", 'root ::= "Hello, world"', stop=["world"], **STREAM),
    _native("limit", n_predict=3),
    _forced("eos", 'root ::= "Yes"'),
    _forced("grammar-choice", 'root ::= "red" | "blue"'),
    _forced("utf8-stream", 'root ::= "né🎉!"', **STREAM),
    _native("json-schema", json_schema=SCHEMA, n_predict=60, ignore_eos=False),
    _native("broken-grammar", grammar="root ::= ("),
    _native("bad-json-schema", json_schema={"type": "no such type"}),
    _native("grammar-and-schema", grammar='root ::= "a"', json_schema=SCHEMA, ignore_eos=False),
    _native("logit-bias", logit_bias=[[300, 1000]], return_tokens=True),
    _native("logit-bias-object", logit_bias={"300": 1000}, return_tokens=True),
    _native("logit-bias-ban", logit_bias=[[300, 1000], [301, 2000], [301, False]], return_tokens=True),
    _native("sampling-fields", **{**SAMPLING, "ignore_eos": False}),
    _native("samplers", samplers=["top_k", "temperature"]),
    _native("samplers-letters", samplers="kt"),
    _native("n-predict-0", n_predict=0),
    _native("empty-prompt", ""),
    _native("empty-tokens", []),
    _native("too-long", [40] * 3000),
    _native("too-long-stream", [40] * 3000, **STREAM),
    _native("two-prompts", ["Hello", "World"]),
    _native("two-answers", n_cmpl=2),
    _native("unknown-token", [60000]),
    _native("negative-token", [-5]),
    _native("id-slot", id_slot=1),
    _native("id-slot-unknown", id_slot=9),
    _native("no-cache", cache_prompt=False),
    _native("time-limit", t_max_predict_ms=60000),
    _native("mirostat", mirostat=2),
    _native("min-keep", min_keep=2),
    _native("n-keep", n_keep=2),
    _native("null-fields", top_k=None, stop=None, seed=None),
    _native("unknown-field", no_such_field=1),
    Exchange("completion-no-prompt", "/completion", {"n_predict": 2}),
    Exchange("completions-alias", "/completions", {"prompt": FOX, "n_predict": 2, **GREEDY}),
    *(
        _native(f"bad-{name.replace('_', '-')}", **{name: value})
        for name, value in {
            "temperature": "hot",
            "n_predict": "5",
            "stream": "yes",
            "top_k": [1],
            "seed": "x",
            "n_probs": "many",
            "dry_sequence_breakers": [],
            "grammar": 5,
            "repeat_last_n": -5,
        }.items()
    ),
    _native("bad-prompt-number", 5),
    _native("bad-prompt-object", {"a": 1}),
    _native("bad-prompt-null", None),
)

OPENAI_COMPLETION = (
    _text("text"),
    _text("tokens", [40, 41, 300]),
    _text("stream", **STREAM),
    _text("stream-usage", **USAGE),
    _text("logprobs", logprobs=2),
    _text("logprobs-stream", logprobs=2, **STREAM),
    _text("max-tokens-1", max_tokens=1),
    _text("stop", grammar='root ::= "Hello, world"', ignore_eos=False, max_tokens=40, stop="world"),
    _text("eos-stream", grammar='root ::= "Yes"', ignore_eos=False, max_tokens=40, **STREAM),
    _text("two-prompts", ["Hello", "World"]),
    _text("two-answers", n=2),
    _text("echo", echo=True),
    _text("suffix", suffix="the end"),
    _text("best-of", best_of=2),
    _text("too-long", [40] * 3000),
    Exchange("openai-completion-no-prompt", "/v1/completions", {"max_tokens": 2}),
)

CHAT = (
    _chat("text"),
    _chat("stream", **STREAM),
    _chat("stream-usage", **USAGE),
    _chat("logprobs", logprobs=True, top_logprobs=2),
    _chat("logprobs-stream", logprobs=True, top_logprobs=2, **STREAM),
    _chat("logprobs-only", logprobs=True, max_tokens=1),
    _chat("top-logprobs-only", top_logprobs=2),
    _chat("max-tokens-1", max_tokens=1),
    _chat("max-completion-tokens", max_completion_tokens=3),
    _chat("stop", grammar='root ::= "Hello, world"', ignore_eos=False, max_tokens=40, stop=["world"]),
    _chat("eos-stream", grammar='root ::= "Yes"', ignore_eos=False, max_tokens=40, **STREAM),
    _tools("tools-auto", tool_choice="auto", logit_bias={"300": 1000}),
    _tools("tools-required", EAGER, tool_choice="required"),
    _tools("tools-required-stream", EAGER, tool_choice="required", **USAGE),
    _tools("tools-named", EAGER, tool_choice={"type": "function", "function": {"name": "get_weather"}}),
    _tools("tools-none", tool_choice="none", logit_bias={"300": 1000}),
    _tools("tools-history", CALLED, logit_bias={"300": 1000}),
    _tools("tools-with-grammar", grammar='root ::= "a"'),
    _tools("tools-bad-choice", tool_choice="sometimes"),
    _tools("tools-serial", EAGER, tool_choice="required", parallel_tool_calls=False),
    _chat("tools-bad", tools=[{"type": "function"}]),
    _chat("tools-not-a-list", tools="get_weather"),
    _chat("json-object", response_format={"type": "json_object"}, ignore_eos=False, max_tokens=4),
    _chat(
        "json-schema",
        response_format={"type": "json_schema", "json_schema": {"name": "color", "schema": SCHEMA}},
        ignore_eos=False,
        max_tokens=60,
    ),
    _chat(
        "json-schema-stream",
        response_format={"type": "json_schema", "json_schema": {"name": "color", "schema": SCHEMA}},
        ignore_eos=False,
        max_tokens=60,
        **STREAM,
    ),
    _chat("format-text", response_format={"type": "text"}),
    _chat("format-unknown", response_format={"type": "xml"}),
    _chat("text-parts", PARTS),
    _chat(
        "image",
        [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}]}],
    ),
    _chat("unknown-part", [{"role": "user", "content": [{"type": "smell", "smell": "rose"}]}]),
    _chat("system", [{"role": "system", "content": "Be brief."}, *HI]),
    _chat("bad-role", [{"role": "wizard", "content": "Hello"}]),
    _chat("no-role", [{"content": "Hello"}]),
    _chat("content-null", [{"role": "user", "content": None}]),
    _chat("content-number", [{"role": "user", "content": 5}]),
    _chat("prefill", PREFILL, grammar='root ::= " hello"', ignore_eos=False, max_tokens=40),
    _chat("prefill-stream", PREFILL, grammar='root ::= " hello"', ignore_eos=False, max_tokens=40, **STREAM),
    _chat("empty-messages", []),
    _chat("messages-text", "Hello"),
    Exchange("chat-no-messages", "/v1/chat/completions", {"max_tokens": 2}),
    Exchange("chat-alias", "/chat/completions", {"messages": HI, "max_tokens": 2, **GREEDY}),
    _chat("two-answers", n=2),
    _chat("unknown-field", no_such_field=1),
    _chat("bad-template-kwargs", chat_template_kwargs="thinking"),
    _chat("timings-per-token", timings_per_token=True, **STREAM),
    _chat("progress", return_progress=True, cache_prompt=False, **STREAM),
    _chat("stream-options-whole", stream_options={"include_usage": True}),
    _thinking(_chat("reasoning", grammar=THOUGHT, ignore_eos=False, max_tokens=60)),
    _thinking(_chat("reasoning-stream", grammar=THOUGHT, ignore_eos=False, max_tokens=60, **STREAM)),
    _thinking(_chat("reasoning-only")),
    _thinking(_chat("reasoning-in-content", grammar=THOUGHT, ignore_eos=False, max_tokens=60, reasoning_format="none")),
    _thinking(_chat("reasoning-off", chat_template_kwargs={"enable_thinking": False})),
    _chat("too-long", [{"role": "user", "content": "word " * 3000}]),
)

TEXT = (
    Exchange("tokenize", "/tokenize", {"content": "Hello world"}),
    Exchange("tokenize-pieces", "/tokenize", {"content": "a🎉", "with_pieces": True}),
    Exchange("tokenize-special", "/tokenize", {"content": "<|im_end|>", "add_special": True, "with_pieces": True}),
    Exchange("tokenize-unparsed", "/tokenize", {"content": "<|im_end|>", "parse_special": False}),
    Exchange("tokenize-mix", "/tokenize", {"content": [40, 41, "", 300]}),
    Exchange("tokenize-empty", "/tokenize", {"content": ""}),
    Exchange("tokenize-no-content", "/tokenize", {}),
    Exchange("tokenize-number", "/tokenize", {"content": 5}),
    Exchange("detokenize", "/detokenize", {"tokens": [40, 41, 300]}),
    Exchange("detokenize-empty", "/detokenize", {"tokens": []}),
    Exchange("detokenize-none", "/detokenize", {}),
    Exchange("detokenize-text", "/detokenize", {"tokens": "abc"}),
    Exchange("detokenize-unknown", "/detokenize", {"tokens": [60000]}),
    Exchange("template", "/apply-template", {"messages": HI}),
    Exchange("template-system", "/apply-template", {"messages": [{"role": "system", "content": "Be brief."}, *HI]}),
    Exchange("template-parts", "/apply-template", {"messages": PARTS}),
    Exchange("template-tools", "/apply-template", {"messages": CALLED, "tools": TOOLS}),
    Exchange("template-prefill", "/apply-template", {"messages": PREFILL}),
    Exchange("template-tools-special", "/apply-template", {"messages": HI, "tools": TOOLS, "tool_choice": "none"}),
    _thinking(Exchange("template-thinking", "/apply-template", {"messages": HI})),
    _thinking(
        Exchange(
            "template-kwargs", "/apply-template", {"messages": HI, "chat_template_kwargs": {"enable_thinking": False}}
        )
    ),
    Exchange("template-no-messages", "/apply-template", {}),
    Exchange("template-empty", "/apply-template", {"messages": []}),
)

STATUS = (
    Exchange("health", "/health", method="GET"),
    Exchange("health-v1", "/v1/health", method="GET"),
    Exchange("props", "/props", method="GET"),
    Exchange("props-change", "/props", {"chat_template": "none"}),
    Exchange("models", "/models", method="GET"),
    Exchange("models-v1", "/v1/models", method="GET"),
    Exchange("metrics", "/metrics", method="GET", before=("completion-text",)),
    Exchange("slots", "/slots", method="GET"),
    Exchange("slots-used", "/slots", method="GET", before=("completion-id-slot",)),
    Exchange("slots-free", "/slots?fail_on_no_slot=1", method="GET"),
    _slot("save", "?action=save", {"filename": "one.bin"}, "completion-slot-0"),
    _slot("restore", "?action=restore", {"filename": "one.bin"}, "completion-slot-0", "slots-save"),
    _slot("erase", "?action=erase", None, "completion-slot-0"),
    _slot("save-no-filename", "?action=save", {}),
    _slot("save-outside", "?action=save", {"filename": "../one.bin"}),
    _slot("save-number", "?action=save", {"filename": 5}),
    _slot("restore-missing", "?action=restore", {"filename": "none.bin"}),
    _slot("unknown-action", "?action=polish", {}),
    _slot("no-action", "", {}),
    _slot("unknown-slot", "?action=erase", None, slot="9"),
    _slot("slot-not-a-number", "?action=erase", None, slot="first"),
    Exchange("bare-metrics", "/metrics", method="GET", server="bare"),
    Exchange("bare-slots", "/slots", method="GET", server="bare"),
    Exchange("bare-slots-save", "/slots/0?action=save", {"filename": "one.bin"}, server="bare"),
)

EMBEDDINGS = (
    Exchange("embeddings-off", "/v1/embeddings", {"input": "Hello"}),
    *(
        Exchange(f"embeddings-{name}", "/v1/embeddings", body, server="embeddings")
        for name, body in {
            "text": {"model": "any", "input": "Hello"},
            "list": {"model": "any", "input": ["Hello", "The quick brown fox"]},
            "tokens": {"model": "any", "input": [40, 41, 300]},
            "lists-of-tokens": {"model": "any", "input": [[40, 41], [300]]},
            "base64": {"model": "any", "input": "Hello", "encoding_format": "base64"},
            "bad-format": {"model": "any", "input": "Hello", "encoding_format": "hex"},
            "empty-text": {"model": "any", "input": ""},
            "empty-list": {"model": "any", "input": []},
            "number": {"model": "any", "input": 5},
            "no-input": {"model": "any"},
            "too-long": {"model": "any", "input": [40] * 3000},
        }.items()
    ),
    Exchange("embeddings-native", "/embedding", {"content": "Hello"}, server="embeddings"),
    Exchange("embeddings-completion", "/completion", {"prompt": FOX, "n_predict": 2, **GREEDY}, server="embeddings"),
)

MESSAGES = (
    _claude("text"),
    _claude("stream", **STREAM),
    _claude("system", system="Be brief."),
    _claude("system-blocks", system=[{"type": "text", "text": "Be brief."}]),
    _claude("blocks", [{"role": "user", "content": [{"type": "text", "text": "Hello"}]}], max_tokens=2),
    _claude("stop", CAPITAL, max_tokens=40, stop_sequences=STOPS),
    _claude("stop-stream", CAPITAL, max_tokens=40, stop_sequences=STOPS, **STREAM),
    _claude("end", CAPITAL, max_tokens=80),
    _claude("end-stream", CAPITAL, max_tokens=80, **STREAM),
    _claude("tools-any", CLAUDE_EAGER, tools=CLAUDE_TOOLS, tool_choice={"type": "any"}, max_tokens=120),
    _claude(
        "tools-any-stream", CLAUDE_EAGER, tools=CLAUDE_TOOLS, tool_choice={"type": "any"}, max_tokens=120, **STREAM
    ),
    _claude("tools-auto", tools=CLAUDE_TOOLS, max_tokens=2),
    _claude("tool-result", CLAUDE_CALLED, tools=CLAUDE_TOOLS),
    _thinking(_claude("thinking")),
    _thinking(_claude("thinking-stream", **STREAM)),
    _claude("empty", []),
    _claude("bad-role", [{"role": "wizard", "content": "Hello"}]),
    _claude("messages-text", "Hello"),
    _claude("too-long", [{"role": "user", "content": "word " * 3000}]),
    _claude(
        "image",
        [
            {
                "role": "user",
                "content": [
                    {
                        "type": "image",
                        "source": {"type": "base64", "media_type": "image/png", "data": PNG},
                    }
                ],
            }
        ],
    ),
    Exchange(
        "messages-no-max-tokens",
        "/v1/messages",
        {"model": "any", "messages": CAPITAL, "temperature": 0},
    ),
    Exchange("messages-none", "/v1/messages", {"model": "any", "max_tokens": 5}),
    Exchange("messages-count", "/v1/messages/count_tokens", {"model": "any", "messages": HI}),
    Exchange("messages-count-tools", "/v1/messages/count_tokens", {"messages": HI, "tools": CLAUDE_TOOLS}),
    Exchange("messages-count-none", "/v1/messages/count_tokens", {"model": "any"}),
)

RESPONSES = (
    _response("text", logit_bias={"300": 1000}),
    _response("stream", logit_bias={"300": 1000}, **STREAM),
    _response("end", grammar='root ::= "Yes"', max_output_tokens=40),
    _response("end-stream", grammar='root ::= "Yes"', max_output_tokens=40, **STREAM),
    _response("items", [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"}]}]),
    _response("instructions", instructions="Be brief.", logit_bias={"300": 1000}),
    _response("tools", RESPONSE_EAGER, tools=RESPONSE_TOOLS, tool_choice="required", max_output_tokens=120),
    _response(
        "tools-stream", RESPONSE_EAGER, tools=RESPONSE_TOOLS, tool_choice="required", max_output_tokens=120, **STREAM
    ),
    _response("tool-result", RESPONSE_CALLED, tools=RESPONSE_TOOLS, logit_bias={"300": 1000}),
    _thinking(_response("reasoning", grammar=THOUGHT, max_output_tokens=60)),
    _thinking(_response("reasoning-stream", grammar=THOUGHT, max_output_tokens=60, **STREAM)),
    _response(
        "format",
        text={"format": {"type": "json_schema", "name": "color", "schema": SCHEMA}},
        max_output_tokens=60,
    ),
    _response("previous", previous_response_id="resp_1"),
    _response("bad-input", 5),
    _response("too-long", "word " * 3000),
    Exchange("responses-no-input", "/v1/responses", {"model": "any"}),
    Exchange("responses-alias", "/responses", {"input": "Hi", "grammar": 'root ::= "Yes"', "temperature": 0}),
)

REFUSALS = (
    Exchange("no-route", "/no/such/route", method="GET"),
    Exchange("no-route-post", "/no/such/route", {}),
    Exchange("method-get", "/completion", method="GET"),
    Exchange("method-post", "/health", {}),
    Exchange("method-delete", "/slots", method="DELETE"),
    Exchange("preflight", "/v1/chat/completions", method="OPTIONS", headers={"origin": "http://localhost:3000"}),
    *(
        Exchange(f"{name}-{path.strip('/').replace('/', '-')}", path, raw=raw)
        for path in ("/completion", "/v1/chat/completions", "/v1/messages", "/v1/responses", "/tokenize")
        for name, raw in {"half-json": '{"prompt": ', "no-body": "", "list-body": "[1]"}.items()
    ),
    Exchange("key-missing", "/completion", {"prompt": FOX, "n_predict": 1}, server="keyed"),
    Exchange(
        "key-wrong",
        "/v1/chat/completions",
        {"messages": HI},
        server="keyed",
        headers={"authorization": "Bearer wrong"},
    ),
    Exchange(
        "key-right",
        "/tokenize",
        {"content": "", "add_special": False},
        server="keyed",
        headers={"authorization": "Bearer secret"},
    ),
    Exchange("key-x-api-key", "/tokenize", {"content": ""}, server="keyed", headers={"x-api-key": "secret"}),
    Exchange("key-messages", "/v1/messages", {**CLAUDE, "messages": HI}, server="keyed"),
    Exchange("key-health", "/health", method="GET", server="keyed"),
    Exchange("key-models", "/v1/models", method="GET", server="keyed"),
    Exchange("key-props", "/props", method="GET", server="keyed"),
)

# Sent to fill slot 0 before it is saved or erased; its answer is kept as any other.
_FILL = Exchange(
    "completion-slot-0", "/completion", {"prompt": [40, 41, 300, 301], "n_predict": 1, "id_slot": 0, **GREEDY}
)

EXCHANGES: tuple[Exchange, ...] = (
    *COMPLETION,
    _FILL,
    *OPENAI_COMPLETION,
    *CHAT,
    *TEXT,
    *STATUS,
    *EMBEDDINGS,
    *MESSAGES,
    *RESPONSES,
    *REFUSALS,
)
BY_NAME = {exchange.name: exchange for exchange in EXCHANGES}
