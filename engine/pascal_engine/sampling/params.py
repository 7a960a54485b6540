"""How tokens are chosen: the fields of a request."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields

SAMPLERS = ("penalties", "dry", "top_n_sigma", "top_k", "typ_p", "top_p", "min_p", "xtc", "temperature")
"""The links of the chain in llama-server's order."""

_ALIASES = {name.replace("_", between): name for name in SAMPLERS for between in ("-", "")}
_ALIASES |= dict(zip(SAMPLERS, SAMPLERS, strict=True)) | {"nucleus": "top_p", "temp": "temperature", "typ": "typ_p"}
_LETTERS = {"d": "dry", "k": "top_k", "y": "typ_p", "p": "top_p", "s": "top_n_sigma", "m": "min_p", "t": "temperature"}
_LETTERS |= {"x": "xtc", "e": "penalties"}
_OFF = ("adaptive_p", "adaptive-p", "adaptivep")
"""Does nothing in llama-server's chain without `adaptive_target`, which is refused."""
_LONGEST_CHAIN = 64


class SamplingError(ValueError):
    """Fields of sampling that cannot be used: the message is one sentence that says why."""


def chain_of(names: str | Sequence[str]) -> tuple[str, ...]:
    """The chain that `names` describe: names of samplers in llama-server's spellings, or one letter for each.

    Raises `SamplingError` for what this engine does not have.
    """
    if len(names) > _LONGEST_CHAIN:
        raise SamplingError(f"'samplers' has more than {_LONGEST_CHAIN} entries")
    known = _LETTERS if isinstance(names, str) else _ALIASES
    names = names if isinstance(names, str) else [name for name in names if name.lower() not in _OFF]
    for name in names:
        if name.lower() not in known:
            raise SamplingError(f"the sampler '{name}' is not known to this engine; known are {', '.join(SAMPLERS)}")
    return tuple(known[name.lower()] for name in names)


@dataclass(frozen=True)
class SamplingParams:
    """Names, meanings and defaults are llama-server's; docs/sampling.md says what each does.

    Temperature 0 is greedy. Of `repeat_last_n` and `dry_penalty_last_n`, -1 stands for the context's length, 0 for off.
    `logit_bias` holds pairs of token and bias; -inf bans the token. No seed means a random one. `n_probs` likeliest
    tokens are told with each token: by the logits, or by what the chain left where `post_sampling_probs`.
    """

    temperature: float = 0.8
    dynatemp_range: float = 0.0
    dynatemp_exponent: float = 1.0
    top_k: int = 40
    top_p: float = 0.95
    min_p: float = 0.05
    typical_p: float = 1.0
    top_n_sigma: float = -1.0
    xtc_probability: float = 0.0
    xtc_threshold: float = 0.1
    min_keep: int = 0
    repeat_last_n: int = 64
    repeat_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    dry_multiplier: float = 0.0
    dry_base: float = 1.75
    dry_allowed_length: int = 2
    dry_penalty_last_n: int = 64
    dry_sequence_breakers: tuple[str, ...] = ("\n", ":", '"', "*")
    samplers: tuple[str, ...] = SAMPLERS
    seed: int | None = None
    logit_bias: tuple[tuple[int, float], ...] = ()
    n_probs: int = 0
    post_sampling_probs: bool = False

    def __post_init__(self) -> None:
        """Raises `SamplingError` where a field is out of its range."""
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, float) and not math.isfinite(value):
                raise SamplingError(f"'{field.name}' must be a finite number")
        object.__setattr__(self, "samplers", chain_of(self.samplers))
        if self.repeat_penalty <= 0 or not math.isfinite(1 / self.repeat_penalty):
            raise SamplingError("'repeat_penalty' must be greater than 0")
        if any(math.isnan(bias) or bias == math.inf for _, bias in self.logit_bias):
            raise SamplingError("each bias in 'logit_bias' must be a number, or false to ban the token")
        if self.seed is not None and self.seed < 0:
            raise SamplingError("'seed' must not be negative; -1 in a request stands for a random one")
        for name in ("min_keep", "n_probs", "dry_allowed_length"):
            if getattr(self, name) < 0:
                raise SamplingError(f"'{name}' must not be negative")


@dataclass(frozen=True)
class TokenProbs:
    """A chosen token with the natural logarithm of its probability, and `top`: pairs of token and logarithm, the
    likeliest first."""

    token: int
    logprob: float
    top: tuple[tuple[int, float], ...]
