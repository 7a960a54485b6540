"""Where our answers are meant to be other than llama-server's, each with the reason."""

from dataclasses import dataclass

_STRICT = "what is not known is refused, never ignored"
_CLEARER = "the same refusal with the status that says whose mistake it is"
_OTHER_VOCABULARY = "the two models have other token ids for the same text"


@dataclass(frozen=True)
class Allowed:
    """`kind` and `path` as in `compare.Difference`; `exchanges` and `path` are patterns as of file names."""

    exchanges: str
    kind: str
    path: str
    reason: str


ALLOWED: tuple[Allowed, ...] = (
    # The models differ.
    Allowed("completion-*", "value", "prompt", _OTHER_VOCABULARY),
    Allowed("completion-*", "value", "*generation_settings.logit_bias.token", _OTHER_VOCABULARY),
    # Refused rather than ignored.
    Allowed("*-unknown-field", "status", "", _STRICT),
    Allowed("completion-mirostat", "status", "", _STRICT),
    Allowed("completion-min-keep", "status", "", _STRICT),
    Allowed("completion-bad-grammar", "status", "", "a grammar that is a number is ignored by llama-server"),
    Allowed("completion-grammar-and-schema", "status", "", "llama-server ignores one of the two"),
    Allowed("completion-id-slot-unknown", "status", "", "llama-server takes any slot instead"),
    Allowed("completion-empty-prompt", "status", "", "there is nothing to go on from"),
    Allowed("openai-completion-suffix", "status", "", _STRICT),
    Allowed("openai-completion-best-of", "status", "", _STRICT),
    Allowed("chat-empty-messages", "status", "", "there is nothing to answer"),
    Allowed("template-empty", "status", "", "there is nothing to answer"),
    Allowed("chat-bad-template-kwargs", "status", "", "llama-server ignores what is no object"),
    Allowed("list-body-tokenize", "status", "", "a body that is no object is ignored by llama-server"),
    # The client's mistakes are 400 here.
    Allowed("chat-tools-bad", "status", "", _CLEARER),
    Allowed("chat-tools-not-a-list", "status", "", _CLEARER),
    Allowed("chat-image", "status", "", _CLEARER),
    Allowed("chat-no-role", "status", "", _CLEARER),
    Allowed("detokenize-unknown", "status", "", _CLEARER),
    Allowed("embeddings-too-long", "status", "", _CLEARER),
    Allowed("method-*", "status", "", "405 says that the path is right and the method is not"),
)
