"""The links of the chain that cut off unlikely tokens, and the temperature. Semantics are llama.cpp's
(src/llama-sampler.cpp)."""

from collections.abc import Callable, Mapping
from random import Random
from typing import TypeAlias

import numpy as np

from pascal_engine.sampling.candidates import Candidates, leading
from pascal_engine.sampling.params import SamplingParams

Filter: TypeAlias = Callable[[SamplingParams, Candidates, Random], None]
"""Changes the candidates; at least one with a finite score is left. The generator is that of the position."""

_LEAST_TEMPERATURE = 1e-30


def top_k(params: SamplingParams, candidates: Candidates, draws: Random) -> None:
    """The `top_k` best."""
    if params.top_k > 0:
        candidates.keep_ordered(candidates.best(params.top_k))


def top_p(params: SamplingParams, candidates: Candidates, draws: Random) -> None:
    """The best, until their probabilities add up to `top_p`."""
    if params.top_p < 1:
        order = leading(candidates.scores, candidates.probabilities(), params.top_p, params.min_keep)
        candidates.keep_ordered(order)


def min_p(params: SamplingParams, candidates: Candidates, draws: Random) -> None:
    """Those at least `min_p` times as probable as the best."""
    if params.min_p <= 0:
        return
    likely = candidates.scores >= candidates.scores.max() + np.log(params.min_p)
    if np.count_nonzero(likely) >= params.min_keep:
        candidates.keep(likely)
    else:
        candidates.keep_ordered(candidates.best(params.min_keep))


def typical(params: SamplingParams, candidates: Candidates, draws: Random) -> None:
    """Those whose surprise is nearest to the expected one, until their probabilities add up to more than `typical_p`
    (locally typical sampling, Meister et al. 2022)."""
    if params.typical_p >= 1:
        return
    probabilities = candidates.probabilities()
    surprises = -np.log(np.maximum(probabilities, np.finfo(np.float64).tiny))
    distances = np.abs(surprises - (probabilities * surprises).sum())
    more_than = np.nextafter(params.typical_p, 1)
    candidates.keep(np.sort(leading(-distances, probabilities, more_than, params.min_keep)))


def top_n_sigma(params: SamplingParams, candidates: Candidates, draws: Random) -> None:
    """Those within `top_n_sigma` standard deviations of the best logit."""
    if params.top_n_sigma > 0:
        scores = candidates.scores
        spread = scores[scores > -np.inf].std(dtype=np.float64)
        candidates.keep(candidates.scores >= candidates.scores.max() - params.top_n_sigma * spread)


def xtc(params: SamplingParams, candidates: Candidates, draws: Random) -> None:
    """With `xtc_probability`, drops all but the least of those whose probability reaches `xtc_threshold`."""
    chance = draws.random()
    if params.xtc_probability <= 0 or params.xtc_threshold > 0.5 or chance > params.xtc_probability:
        return
    likely = np.flatnonzero(candidates.probabilities() >= max(params.xtc_threshold, np.finfo(np.float64).tiny))
    if len(likely) < 2 or len(candidates) - len(likely) + 1 < params.min_keep:
        return
    order = likely[np.argsort(-candidates.scores[likely], kind="stable")]
    dropped = np.zeros(len(candidates), np.bool_)
    dropped[order[:-1]] = True
    candidates.keep(~dropped)


def temperature(params: SamplingParams, candidates: Candidates, draws: Random) -> None:
    """Divides by the temperature; with `dynatemp_range` it rises with the entropy. 0 leaves the best only."""
    value = _dynamic(params, candidates) if params.dynatemp_range > 0 and len(candidates) > 1 else params.temperature
    if value < _LEAST_TEMPERATURE:
        candidates.keep_ordered(candidates.best(1))
        return
    # Scores below the best may divide to -inf at tiny temperatures, which is weight 0; the best stays 0.
    with np.errstate(over="ignore"):
        candidates.scores = (candidates.scores - candidates.scores.max()) / value


def _dynamic(params: SamplingParams, candidates: Candidates) -> float:
    lowest = max(0.0, params.temperature - params.dynatemp_range)
    highest = params.temperature + params.dynatemp_range
    probabilities = candidates.probabilities()
    surprises = -np.log(np.maximum(probabilities, np.finfo(np.float64).tiny))
    share = np.clip((probabilities * surprises).sum() / np.log(len(candidates)), 1e-9, 1)
    with np.errstate(over="ignore"):
        return float(lowest + (highest - lowest) * share**params.dynatemp_exponent)


FILTERS: Mapping[str, Filter] = {
    "top_n_sigma": top_n_sigma,
    "top_k": top_k,
    "typ_p": typical,
    "top_p": top_p,
    "min_p": min_p,
    "xtc": xtc,
    "temperature": temperature,
}
"""By their names in `samplers`."""
