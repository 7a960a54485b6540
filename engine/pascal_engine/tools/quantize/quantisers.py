"""Float weights to number formats: the `gguf` package's quantisers, and `libgguf`'s for the formats it has none for."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from gguf import GGMLQuantizationType as Type
from gguf import quants

from pascal_engine.errors import ModelError

F32 = npt.NDArray[np.float32]
U8 = npt.NDArray[np.uint8]

_PLAIN = (Type.F32, Type.F16, Type.BF16, Type.Q4_0, Type.Q4_1, Type.Q5_0, Type.Q5_1, Type.Q8_0)
# IQ2_XXS and IQ2_XS are not among them: they are no use without measured importances of the inputs.
_K = (Type.Q2_K, Type.Q3_K, Type.Q4_K, Type.Q5_K, Type.Q6_K)
_SEARCHED = (*_K, Type.IQ4_NL, Type.IQ4_XS, Type.IQ3_XXS, Type.IQ3_S, Type.IQ2_S)
TARGETS = (*_PLAIN, *_SEARCHED)
"""The formats that weights can be brought to."""

_LARGEST_HALF = 65504
"""Scales are float16, so no weight may be larger, but in formats that have a float32's range."""


def quantiser(kind: Type) -> Callable[[F32], U8]:
    """What makes uint8 [rows, bytes a row] of float32 [rows, weights a row]; whole blocks only. It may run in several
    threads at once. Weights it cannot hold, or that are no numbers, are a ValueError; a `ModelError` here and now says
    that the library for this format is not installed."""
    quantise: Callable[[F32, Type], Any] = _plain if kind in _PLAIN else _library().quantize_rows
    quantise(np.zeros((1, 256), np.float32), kind)  # tables are made at the first call, which one thread must do
    largest = np.finfo(np.float32).max if kind in (Type.F32, Type.BF16) else _LARGEST_HALF

    def checked(values: F32) -> U8:
        if not (abs(values) <= largest).all():  # which a NaN is not either
            raise ValueError(f"it has weights that {kind.name} cannot hold")
        made: U8 = quantise(values, kind)
        return made

    return checked


def _plain(values: F32, kind: Type) -> U8:
    return np.ascontiguousarray(quants.quantize(values, kind)).view(np.uint8)


def _library() -> Any:  # noqa: ANN401
    try:
        import libgguf
    except ImportError as error:
        names = ", ".join(kind.name for kind in _SEARCHED)
        raise ModelError(
            f"the quantisers of {names} are not installed; install them with 'pip install decomp-router[quantize]'."
        ) from error
    return libgguf
