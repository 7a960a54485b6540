"""From logits to the next token."""

import numpy as np
import numpy.typing as npt

from pascal_engine.sampling.params import SamplingParams

F32 = npt.NDArray[np.float32]
F64 = npt.NDArray[np.float64]


class Sampler:
    """Draws tokens for one request: its own generator, hence its own luck, whatever runs beside it."""

    def __init__(self, params: SamplingParams) -> None:
        self._params = params
        self._rng = np.random.default_rng(params.seed)

    def sample(self, logits: F32) -> int:
        """A token id from logits [vocabulary]; the filters apply before the temperature, as in llama.cpp."""
        params = self._params
        if params.temperature <= 0:
            return int(logits.argmax())
        tokens = _most_likely(logits, params.top_k)
        scores = logits[tokens].astype(np.float64)
        probabilities = _softmax(scores)
        before = np.cumsum(probabilities) - probabilities
        kept = (before < params.top_p) & (probabilities >= params.min_p * probabilities[0])
        kept[0] = True
        # Scores below the best may divide to -inf at tiny temperatures, which is weight 0; the best stays 0.
        with np.errstate(over="ignore"):
            scaled = (scores[kept] - scores[0]) / params.temperature
        cumulative = np.cumsum(_softmax(scaled))
        drawn = np.searchsorted(cumulative, self._rng.random() * cumulative[-1], side="right")
        return int(tokens[kept][min(int(drawn), len(cumulative) - 1)])


def _most_likely(logits: F32, top_k: int) -> npt.NDArray[np.intp]:
    """Token ids by falling logit; all of them where top_k is 0 or less."""
    if not 0 < top_k < len(logits):
        return np.argsort(-logits, kind="stable")
    best = np.sort(np.argpartition(-logits, top_k - 1)[:top_k])
    return best[np.argsort(-logits[best], kind="stable")]


def _softmax(scores: F64) -> F64:
    weights = np.exp(scores - scores.max())
    probabilities: F64 = weights / weights.sum()
    return probabilities
