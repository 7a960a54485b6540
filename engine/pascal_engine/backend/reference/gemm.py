"""Matrix products whose rows do not depend on what else is in the batch.

BLAS chooses its kernels by the shape of the product, so a row's last bits change with the number of rows. Here the
number of rows is pinned: `TILE` when the batch is one token wide, the block when it is a prefill chunk. In a chunk a
token's place in the tile is its position modulo the block, hence its own affair. In decode any sequence may take any
place, so all places of a tile must compute the same bits: that is probed once for each shape of weight, on the machine
at hand, and a shape that fails is computed one row at a time.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

F32 = npt.NDArray[np.float32]

TILE = 8


class PinnedGemm:
    """x @ w.T in tiles of a pinned number of rows."""

    def __init__(self, tiles_agree: Callable[[F32], bool] | None = None) -> None:
        self._tiles_agree = tiles_agree or places_agree
        self._tile_of: dict[tuple[int, ...], int] = {}

    def register(self, weight: F32) -> None:
        """Decides the tile for weights of this shape; call once for each weight before the first product."""
        shape = weight.shape[-2:]
        if shape not in self._tile_of:
            self._tile_of[shape] = TILE if self._tiles_agree(weight.reshape(-1, *shape)[0]) else 1

    def rows(self, x: F32, weight: F32) -> F32:
        """[m, inputs] to [m, outputs], in tiles where every place computes the same bits."""
        return _in_tiles(x, weight, self._tile_of[weight.shape])

    def blocks(self, x: F32, weight: F32) -> F32:
        """[n, T, inputs] to [n, T, outputs]: one product of T rows for each of the n chunks."""
        return _in_tiles(x.reshape(-1, x.shape[-1]), weight, x.shape[1]).reshape(*x.shape[:2], -1)


def _in_tiles(x: F32, weight: F32, tile: int) -> F32:
    n_rows, n_inputs = x.shape
    n_tiles = -(-n_rows // tile)
    padded = np.zeros((n_tiles * tile, n_inputs), np.float32)
    padded[:n_rows] = x
    # weight @ x.T keeps the file's layout, and is the fastest of the layouts at few rows.
    columns = np.ascontiguousarray(padded.reshape(n_tiles, tile, n_inputs).transpose(0, 2, 1))
    products: F32 = np.matmul(weight, columns)
    return np.ascontiguousarray(products.transpose(0, 2, 1)).reshape(n_tiles * tile, -1)[:n_rows]


def places_agree(weight: F32) -> bool:
    """Whether one row gives the same bits at all places of a tile, among neighbours that differ."""
    rng = np.random.default_rng(0)
    row, *others = rng.standard_normal((TILE + 1, weight.shape[1])).astype(np.float32)
    results = []
    for place in range(TILE):
        tile = np.stack(others)
        tile[place] = row
        results.append(_in_tiles(tile, weight, TILE)[place])
    return all(np.array_equal(result, results[0]) for result in results)
