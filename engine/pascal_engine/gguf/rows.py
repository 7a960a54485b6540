"""Weight rows as they lie in the file: quantised, undecoded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from gguf import GGMLQuantizationType

from pascal_engine.gguf.quants import dequantize


@dataclass(frozen=True)
class Rows:
    """`data` uint8 [rows, bytes a row], or [experts, rows, bytes a row]; each row encodes `n_inputs` weights."""

    type: GGMLQuantizationType
    n_inputs: int
    data: npt.NDArray[np.uint8]

    @property
    def n_rows(self) -> int:
        """Rows of one matrix."""
        return int(self.data.shape[-2])

    def take(self, order: Sequence[int] | npt.NDArray[np.int64]) -> Rows:
        """The rows in another order, copied."""
        return replace(self, data=np.ascontiguousarray(self.data[..., np.asarray(order), :]))

    def decoded(self) -> npt.NDArray[np.float32]:
        """float32 [..., rows, n_inputs]."""
        return dequantize(self.data, self.type)
