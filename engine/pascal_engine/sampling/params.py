"""How tokens are chosen: the fields of a request."""

from dataclasses import dataclass

SAMPLERS = ("penalties", "dry", "top_n_sigma", "top_k", "typ_p", "top_p", "min_p", "xtc", "temperature")
"""The links of the chain in llama-server's order."""


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


@dataclass(frozen=True)
class TokenProbs:
    """A chosen token with the natural logarithm of its probability, and `top`: pairs of token and logarithm, the
    likeliest first."""

    token: int
    logprob: float
    top: tuple[tuple[int, float], ...]
