"""llama-server's flags that have no effect here: some ask for nothing, others for what this engine does not do."""

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Neutral:
    """Flags that are accepted since the answers are the same with them and without. `values` are those that ask for
    nothing, empty for any; a flag without a value has None."""

    names: tuple[str, ...]
    reason: str
    values: tuple[str, ...] | None = None


_PLACEMENT = "places work on cards; this build computes on the processor"
_LOG = "there is no log but of errors"
_SWITCH = ("on", "off", "auto", "1", "0", "true", "false", "enabled", "disabled")

NEUTRAL = (
    Neutral(("-ngl", "--gpu-layers", "--n-gpu-layers"), _PLACEMENT, ()),
    Neutral(("-sm", "--split-mode"), _PLACEMENT, ()),
    Neutral(("-mg", "--main-gpu"), _PLACEMENT, ()),
    Neutral(("-ts", "--tensor-split"), _PLACEMENT, ()),
    Neutral(("-ncmoe", "--n-cpu-moe"), _PLACEMENT, ()),
    Neutral(("-cmoe", "--cpu-moe", "-kvo", "--kv-offload", "-nkvo", "--no-kv-offload"), _PLACEMENT),
    Neutral(("--op-offload", "--no-op-offload", "--no-host", "--repack", "-nr", "--no-repack"), _PLACEMENT),
    Neutral(("-fa", "--flash-attn"), "there is one way to compute attention", _SWITCH),
    Neutral(("-tb", "--threads-batch"), "prompts are computed by the threads of -t", ()),
    Neutral(("-b", "--batch-size"), "prompts are computed in blocks of a fixed size", ()),
    Neutral(("-ub", "--ubatch-size"), "prompts are computed in blocks of a fixed size", ()),
    Neutral(("-cb", "--cont-batching"), "requests always share batches"),
    Neutral(("--no-context-shift", "--no-kv-unified", "-no-kvu"), "contexts are neither shifted nor shared"),
    Neutral(("--mlock", "--mmap", "--no-mmap"), "weights are always mapped into memory"),
    Neutral(("-lm", "--load-mode"), "weights are always mapped into memory", ()),
    Neutral(("--numa",), "threads are placed by the operating system", ()),
    Neutral(("--prio", "--prio-batch"), "threads are placed by the operating system", ()),
    Neutral(("--poll", "--poll-batch"), "threads wait without polling", ()),
    Neutral(("--swa-full",), "no model that runs here has sliding windows"),
    Neutral(("-ctxcp", "--ctx-checkpoints", "--swa-checkpoints"), "--cache-bytes bounds the checkpoints", ()),
    Neutral(("-cms", "--checkpoint-min-step"), "--cache-bytes bounds the checkpoints", ()),
    Neutral(("-sps", "--slot-prompt-similarity"), "all slots share the prefix cache", ()),
    Neutral(
        ("--cache-idle-slots", "--no-cache-idle-slots", "--cache-prompt"), "what slots held stays in the prefix cache"
    ),
    Neutral(("--cache-reuse",), "only equal beginnings are reused", ()),
    Neutral(("-dt", "--defrag-thold"), "the cache has no holes", ()),
    Neutral(("--keep",), "contexts are never shifted", ()),
    Neutral(("--warmup", "--no-warmup", "--perf", "--no-perf"), "it changes no answer"),
    Neutral(("-fit", "--fit"), "sizes are what the flags say", ("off",)),
    Neutral(("--jinja",), "chat templates are always Jinja"),
    Neutral(("--prefill-assistant",), "a last message of the assistant is always gone on with"),
    Neutral(("--no-webui", "--no-ui", "--no-ui-mcp-proxy", "--no-webui-mcp-proxy"), "there is no web page"),
    Neutral(("-no-ag", "--no-agent"), "the server has no tools of its own"),
    Neutral(("--no-mmproj", "--no-mmproj-auto", "--no-mmproj-offload"), "only text is understood"),
    Neutral(("-e", "--escape", "--no-escape", "--verbose-prompt"), "prompts come with requests"),
    Neutral(("--tags",), "nothing asks for them", ()),
    Neutral(("--threads-http",), "one event loop serves all connections", ()),
    Neutral(("-to", "--timeout"), "requests never time out", ()),
    Neutral(("--offline",), "nothing is ever downloaded"),
    Neutral(("--log-disable", "--log-prefix", "--log-timestamps", "-v", "--verbose", "--log-verbose"), _LOG),
    Neutral(("--no-log-prefix", "--no-log-timestamps", "--no-log-jsonl"), _LOG),
    Neutral(("--log-colors",), _LOG, ()),
    Neutral(("-lv", "--verbosity", "--log-verbosity"), _LOG, ()),
)

_DOWNLOAD = "nothing is downloaded; fetch the GGUF file first and give it with -m"
_DRAFT = "there is no speculative decoding; leave it out"
_CONTEXT = "contexts cannot be stretched beyond the model's own length; leave it out"
_ADAPTERS = "adapters are not applied at run time; merge them into the model's file"
_MEDIA = "only text is understood; leave it out"
_REQUEST = "there is no default for it; send it with each request"
_WEB = "there is no web page and no tool of the server's own; leave it out"
_ONE = "one server serves one model; start one for each"
_CPU = "this build computes on the processor, with threads placed by the operating system; leave it out"

_REFUSED = {
    _DOWNLOAD: "-hf -hfr --hf-repo -hff --hf-file -hft --hf-token -mu --model-url -dr --docker-repo",
    _DRAFT: "-md --model-draft --spec-draft-model -hfd -hfrd --hf-repo-draft --draft --draft-n --draft-max --draft-min"
    " --draft-n-min --draft-p-min --draft-p-split -td --threads-draft -tbd --threads-batch-draft -ngld"
    " --gpu-layers-draft --n-gpu-layers-draft -devd --device-draft -ctkd --cache-type-k-draft -ctvd"
    " --cache-type-v-draft --spec-type --spec-default -lcs --lookup-cache-static -lcd --lookup-cache-dynamic",
    _CONTEXT: "--rope-scaling --rope-scale --rope-freq-base --rope-freq-scale --yarn-orig-ctx --yarn-ext-factor"
    " --yarn-attn-factor --yarn-beta-slow --yarn-beta-fast -gan --grp-attn-n -gaw --grp-attn-w",
    _ADAPTERS: "--lora --lora-scaled --lora-init-without-apply --control-vector --control-vector-scaled"
    " --control-vector-layer-range",
    _MEDIA: "-mm --mmproj -mmu --mmproj-url --mmproj-auto --mmproj-offload --image-min-tokens --image-max-tokens"
    " --media-path -mv --model-vocoder",
    _REQUEST: "--grammar --grammar-file -j --json-schema -jf --json-schema-file -l --logit-bias --ignore-eos -r"
    " --reverse-prompt --no-cache-prompt",
    _WEB: "--webui --ui --path --api-prefix --ui-config --webui-config --ui-config-file --webui-config-file"
    " --ui-mcp-proxy --webui-mcp-proxy --tools --tools-runtime --mcp-servers-config --mcp-servers-json -ag --agent",
    "sizes are what the flags say; leave it out": "-fitt --fit-target -fitc --fit-ctx -fitp --fit-print",
    "thoughts have no budget of their own; --reasoning off asks for none": "--reasoning-budget"
    " --reasoning-budget-message",
    "it is a variable of the chat template; set it with --chat-template-kwargs": "--reasoning-effort"
    " --reasoning-preserve --no-reasoning-preserve",
    "streams are sent without pings; leave it out": "--sse-ping-interval",
    _ONE: "--models-dir --models-preset --models-max --models-autoload --no-models-autoload",
    _CPU: "-dev --device --list-devices -ot --override-tensor --rpc -C --cpu-mask -Cr --cpu-range --cpu-strict -Cb"
    " --cpu-mask-batch -Crb --cpu-range-batch --cpu-strict-batch",
    "mirostat and adaptive sampling are not done; use the other samplers": "--mirostat --mirostat-lr --mirostat-ent"
    " --adaptive-target --adaptive-decay -bs --backend-sampling",
    "encryption is not done; put a reverse proxy in front": "--ssl-key-file --ssl-cert-file",
    "browsers may use the methods and headers that the routes take; leave it out": "--cors-methods --cors-headers"
    " --cors-credentials",
    "there is no reranking; leave it out": "--rerank --reranking",
    "contexts are never shifted: a full one ends the answer; leave it out": "--context-shift",
    "each slot has its own share of the context; give -c the sum": "-kvu --kv-unified",
    "requests always share batches; give -np 1 to serve one at a time": "-nocb --no-cont-batching",
    "chat templates are always Jinja; leave it out": "--no-jinja --skip-chat-parsing",
    "a last message of the assistant is always gone on with; leave it out": "--no-prefill-assistant",
    "the metadata are what the file says; convert the model anew": "--override-kv --check-tensors",
    "errors go to standard error; redirect that": "--log-file --log-jsonl --log-prompts-dir",
    "models stay loaded; leave it out": "--sleep-idle-seconds",
    "control tokens are never part of an answer; leave it out": "-sp --special",
}

REFUSED = {name: reason for reason, names in _REFUSED.items() for name in names.split()}
"""What each flag asks for and this engine does not do, with a way out."""


def refusals(arguments: list[str]) -> Iterator[str]:
    """A sentence for each of the arguments that is a refused flag."""
    for argument in arguments:
        name = argument.partition("=")[0]
        drafts = name.startswith(("--spec-", "--draft-")) or (name.startswith("--") and name.endswith("-draft"))
        reason = REFUSED.get(name, _DRAFT if drafts else None)
        if reason is not None:
            yield f"{name} is not supported: {reason}"
