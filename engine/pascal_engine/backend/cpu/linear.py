"""Products with weights that stay as they lie in the file."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from gguf import quants

from pascal_engine.backend.cpu import _native
from pascal_engine.gguf.rows import Rows

F32 = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]


class Matrices:
    """The weight operations of the CPU backend; activations are formatted as `backend.protocol` says."""

    def matrix(self, parts: Sequence[Rows]) -> _native.Matrix:
        """A weight of row-wise parts, stacks of experts where `data` has three axes; nothing is copied."""
        stacks = [part.data.reshape(-1, *part.data.shape[-2:]) for part in parts]
        return _native.Matrix(parts[0].n_inputs, [int(part.type) for part in parts], stacks)

    def rows_of(self, table: _native.Matrix, tokens: Ints) -> F32:
        """Rows of `table` [vocabulary, hidden] for tokens of any shape [...]: [..., hidden]."""
        out = np.empty((tokens.size, table.n_inputs), np.float32)
        _native.embed(table, np.ascontiguousarray(tokens.ravel(), np.int64), out)
        return out.reshape(*tokens.shape, table.n_inputs)

    def linear(self, x: F32, matrix: _native.Matrix) -> F32:
        """x @ matrix.T: [n, T, inputs] to [n, T, outputs]."""
        columns = _columns(x)
        out = np.empty((len(columns), matrix.n_outputs), np.float32)
        _native.linear(columns, matrix, out)
        return out.reshape(*x.shape[:-1], matrix.n_outputs)

    def experts(
        self, x: F32, router: _native.Matrix, gate_up: _native.Matrix, down: _native.Matrix, n_used: int
    ) -> F32:
        """The mixture of each token's `n_used` experts for x [n, T, hidden]."""
        columns = _columns(x)
        out = np.empty_like(columns)
        _native.experts(columns, router, gate_up, down, n_used, out)
        return out.reshape(x.shape)


def _columns(x: F32) -> F32:
    """x [..., inputs] as contiguous [tokens, inputs]."""
    return np.ascontiguousarray(x.reshape(-1, x.shape[-1]))


def _tables() -> list[npt.NDArray[np.uint8]]:
    """The grids, signs and levels of the IQ types, in the order in which the kernels want them."""
    types = (quants.IQ2_XXS, quants.IQ2_XS, quants.IQ2_S, quants.IQ3_XXS, quants.IQ3_S)
    for kind in types:
        kind.init_grid()
    grids = [kind.grid.astype(np.uint8).ravel() for kind in types]
    signs = np.frombuffer(quants.IQ2_XXS.ksigns, np.uint8)
    return [*grids, signs, np.array(quants.IQ4_NL.kvalues, np.int8).view(np.uint8)]


_native.set_tables(_tables())
