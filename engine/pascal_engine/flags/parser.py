"""The parser of the command line, and the environment variables that stand for flags."""

import argparse
from collections.abc import Mapping
from typing import Any

from pascal_engine import __version__
from pascal_engine.engine import EngineOptions
from pascal_engine.flags import values
from pascal_engine.flags.peer import NEUTRAL
from pascal_engine.sampling.params import SamplingParams
from pascal_engine.server.hygiene import PREFIX_HYGIENE

KV_TYPES = ("f32", "f16", "q8_0", "q4_0")

SAMPLING: tuple[tuple[str, str, Any], ...] = (
    ("temperature", "--temp --temperature", values.number),
    ("dynatemp_range", "--dynatemp-range", values.number),
    ("dynatemp_exponent", "--dynatemp-exp", values.number),
    ("top_k", "--top-k", values.whole_number(-1)),
    ("top_p", "--top-p", values.number),
    ("min_p", "--min-p", values.number),
    ("typical_p", "--typical --typical-p", values.number),
    ("top_n_sigma", "--top-nsigma --top-n-sigma", values.number),
    ("xtc_probability", "--xtc-probability", values.number),
    ("xtc_threshold", "--xtc-threshold", values.number),
    ("repeat_last_n", "--repeat-last-n", values.whole_number(-1)),
    ("repeat_penalty", "--repeat-penalty", values.number),
    ("presence_penalty", "--presence-penalty", values.number),
    ("frequency_penalty", "--frequency-penalty", values.number),
    ("dry_multiplier", "--dry-multiplier", values.number),
    ("dry_base", "--dry-base", values.number),
    ("dry_allowed_length", "--dry-allowed-length", values.whole_number(0)),
    ("dry_penalty_last_n", "--dry-penalty-last-n", values.whole_number(-1)),
    ("seed", "-s --seed", values.whole_number(-1, 2**63 - 1)),
)
"""Fields of requests whose defaults are flags."""

ENVIRONMENT: dict[str, str] = {
    "LLAMA_ARG_MODEL": "--model",
    "LLAMA_ARG_ALIAS": "--alias",
    "LLAMA_ARG_CTX_SIZE": "--ctx-size",
    "LLAMA_ARG_N_PARALLEL": "--parallel",
    "LLAMA_ARG_THREADS": "--threads",
    "LLAMA_ARG_CACHE_TYPE_K": "--cache-type-k",
    "LLAMA_ARG_CACHE_TYPE_V": "--cache-type-v",
    "LLAMA_ARG_CACHE_RAM": "--cache-ram",
    "LLAMA_ARG_HOST": "--host",
    "LLAMA_ARG_PORT": "--port",
    "LLAMA_API_KEY": "--api-key",
    "LLAMA_ARG_API_KEY_FILE": "--api-key-file",
    "LLAMA_ARG_CORS_ORIGINS": "--cors-origins",
    "LLAMA_ARG_CHAT_TEMPLATE": "--chat-template",
    "LLAMA_ARG_CHAT_TEMPLATE_FILE": "--chat-template-file",
    "LLAMA_ARG_CHAT_TEMPLATE_KWARGS": "--chat-template-kwargs",
    "LLAMA_ARG_THINK": "--reasoning-format",
    "LLAMA_ARG_REASONING": "--reasoning",
    "LLAMA_ARG_POOLING": "--pooling",
    "LLAMA_ARG_N_PREDICT": "--predict",
    "LLAMA_ARG_TEMPERATURE": "--temp",
    "LLAMA_ARG_TOP_K": "--top-k",
    "LLAMA_ARG_TOP_P": "--top-p",
    "LLAMA_ARG_MIN_P": "--min-p",
    "LLAMA_ARG_REPEAT_PENALTY": "--repeat-penalty",
    "LLAMA_ARG_PRESENCE_PENALTY": "--presence-penalty",
    "LLAMA_ARG_FREQUENCY_PENALTY": "--frequency-penalty",
}
SWITCHES: dict[str, str] = {
    "LLAMA_ARG_ENDPOINT_SLOTS": "slots",
    "LLAMA_ARG_ENDPOINT_METRICS": "metrics",
    "LLAMA_ARG_ENDPOINT_PROPS": "props",
    "LLAMA_ARG_EMBEDDINGS": "embeddings",
}


class Parser(argparse.ArgumentParser):
    """Reads flags without abbreviations."""

    def __init__(self, description: str, epilog: str) -> None:
        super().__init__(
            prog="pascal-engine",
            allow_abbrev=False,
            description=description,
            epilog=epilog,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        self.add_argument("--version", action="version", version=f"pascal-engine {__version__}")
        _add_model(self.add_argument_group("model and memory"))
        _add_server(self.add_argument_group("server"))
        _add_requests(self.add_argument_group("defaults of requests"))
        _add_neutral(self.add_argument_group("accepted since they change no answer"))


def from_environment(environment: Mapping[str, str]) -> list[str]:
    """The flags that environment variables stand for; put them before those of the command line, which win."""
    flags = [f"{flag}={environment[name]}" for name, flag in ENVIRONMENT.items() if environment.get(name)]
    for name, switch in SWITCHES.items():
        if environment.get(name):
            flags.append(f"--{switch}" if values.boolean(environment[name]) else f"--no-{switch}")
    return flags


def _add_model(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    n = values.whole_number
    add("-m", "--model", required=True, metavar="FILE", help="the GGUF file to serve")
    add("-a", "--alias", default="", metavar="NAME", help="the name that the model goes by (default: the file's own)")
    help_ = "tokens of context, shared evenly by all slots (default: 0, the model's context length)"
    add("-c", "--ctx-size", type=n(0), default=0, metavar="N", help=help_)
    help_ = "slots: requests served at once (default: 1)"
    add("-np", "--parallel", type=n(1), default=1, metavar="N", help=help_)
    for short, what in (("k", "keys"), ("v", "values")):
        help_ = f"number format of cached {what} (default: f16)"
        add(f"-ct{short}", f"--cache-type-{short}", choices=KV_TYPES, default="f16", help=help_)
    help_ = (
        "memory for the prefix cache, as 512MiB or 8GiB; 0 keeps nothing (default: 2GiB). It holds the state at the"
        " ends of messages and answers, so that the next turn of a chat computes only what is new; what was used least"
        " recently makes room. A checkpoint of a hybrid model takes some 63 MiB (35B-A3B) or 150 MiB (27B)"
    )
    add("--cache-bytes", type=values.size, default=EngineOptions.cache_bytes, metavar="SIZE", help=help_)
    help_ = "the same in MiB; -1 is no limit"
    add("-cram", "--cache-ram", dest="cache_bytes", type=values.mebibytes, metavar="N", help=help_)
    help_ = "what computes: compiled kernels, or slow NumPy to compare them with (default: cpu)"
    add("--backend", choices=("cpu", "reference"), default="cpu", help=help_)
    help_ = "threads that compute (default: 0, the number of physical cores)"
    add("-t", "--threads", type=n(-1, 1024), default=0, metavar="N", help=help_)


def _add_server(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    switch = argparse.BooleanOptionalAction
    add("--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1)")
    help_ = "port to listen on, 0 for any (default: 8080)"
    add("--port", type=values.whole_number(0, 65535), default=8080, metavar="N", help=help_)
    help_ = "every request must bring one of these keys, but for /health"
    add("--api-key", type=values.keys, default=[], metavar="KEY[,KEY]", help=help_)
    help_ = "keys, one a line; # begins a comment"
    add("--api-key-file", type=values.keys_in_file, default=[], metavar="FILE", help=help_)
    help_ = "which pages in browsers may call: * any, localhost those of this machine, or one origin (default: *)"
    add("--cors-origins", default="*", metavar="ORIGIN", help=help_)
    help_ = "a folder that slots may be saved to (default: none)"
    add("--slot-save-path", type=values.folder, metavar="FOLDER", help=help_)
    add("--slots", action=switch, default=True, help="GET /slots tells what slots do (default: on)")
    add("--metrics", action=switch, default=False, help="GET /metrics for Prometheus (default: off)")
    add("--props", action=switch, default=False, help="POST /props is answered (default: off)")
    help_ = "the routes of embeddings are served (default: off)"
    add("--embeddings", "--embedding", action=switch, default=False, help=help_)
    help_ = "what makes an embedding: the mean of all tokens, or the last (default: mean)"
    add("--pooling", choices=("mean", "last"), default="mean", help=help_)
    help_ = "where header lines that change with each request are dropped from system prompts (default: anthropic)"
    add("--prefix-hygiene", choices=PREFIX_HYGIENE, default="anthropic", help=help_)


def _add_requests(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    help_ = "the most tokens of an answer; -1 for no limit but the context (default: -1)"
    add("-n", "--predict", "--n-predict", type=values.whole_number(-1), default=-1, metavar="N", help=help_)
    defaults = SamplingParams()
    for name, flags, kind in SAMPLING:
        value = -1 if name == "seed" else getattr(defaults, name)
        add(*flags.split(), dest=f"field_{name}", type=kind, metavar="N", help=f"{name} (default: {value})")
    help_ = f"the chain of samplers (default: {';'.join(defaults.samplers)})"
    add("--samplers", dest="field_samplers", type=values.names, metavar="NAME;NAME", help=help_)
    help_ = "the same by one letter each"
    add("--sampler-seq", "--sampling-seq", dest="field_samplers", metavar="LETTERS", help=help_)
    help_ = "a text across which no repetition is seen; may be given again"
    add("--dry-sequence-breaker", dest="field_dry_sequence_breakers", action="append", metavar="TEXT", help=help_)
    help_ = "a Jinja template, or 'chatml' (default: the model's own)"
    add("--chat-template", type=values.jinja, metavar="JINJA", help=help_)
    add("--chat-template-file", dest="chat_template", type=values.text_file, metavar="FILE", help="the same in a file")
    help_ = "variables for the chat template, an object in JSON"
    add("--chat-template-kwargs", type=values.json_object, default={}, metavar="JSON", help=help_)
    help_ = "where the thoughts of thinking models go (default: auto, into reasoning_content)"
    formats = ("auto", "none", "deepseek", "deepseek-legacy")
    add("--reasoning-format", choices=formats, default="auto", help=help_)
    help_ = "whether the chat template asks for thoughts (default: auto, what the template does)"
    add("-rea", "--reasoning", choices=("on", "off", "auto"), default="auto", help=help_)


def _add_neutral(group: argparse._ArgumentGroup) -> None:
    for flag in NEUTRAL:
        if flag.values is None:
            group.add_argument(*flag.names, action="store_true", dest=argparse.SUPPRESS, help=flag.reason)
        else:
            choices = flag.values or None
            group.add_argument(*flag.names, dest=argparse.SUPPRESS, choices=choices, metavar="X", help=flag.reason)
