"""A model that is only bookkeeping: its tokens depend on every bit of state that a real one would need."""

from collections.abc import Sequence
from functools import cache

import numpy as np
import numpy.typing as npt

from pascal_engine.backend.batch import BLOCK, Batch
from pascal_engine.backend.reference import ReferenceBackend
from pascal_engine.hybrid.params import DeltaNetParams, HyperParams
from pascal_engine.memory import KvPool, PrefixCache, RecurrentPool, StatePools
from pascal_engine.memory.checkpoints import Arrays
from pascal_engine.memory.prefix_cache import _Node
from pascal_engine.schedule.scheduler import Scheduler
from tests.engine.harness import tiny_tokenizer

VOCABULARY = 256
"""Tokens that it uses; they are the first of the tokenizer's."""
_PRIME = 65521
_DELTA_NET = DeltaNetParams(n_key_heads=1, n_value_heads=1, head_dim=2, conv_kernel=4, key_head=(0,))


class ScriptedBackend(ReferenceBackend):
    """Pools in NumPy arrays; the arithmetic is the model's own."""

    def __init__(self, *, uniform: bool) -> None:
        super().__init__()
        self.uniform = uniform  # type: ignore[misc]


class ScriptedModel:
    """Stands in for `Model`. A model that is not uniform computes other state in decode than in prefill."""

    def __init__(self, *, uniform: bool = True, recurrent: bool = True) -> None:
        self.backend = ScriptedBackend(uniform=uniform)
        self.recurrent = recurrent
        self.params = HyperParams("qwen35", 8, 4096, 1, 1, 2, 2, 1e4, 1e-6, 8, (recurrent, False), _DELTA_NET, None)
        self.chunks: list[int] = []
        """Tokens in each chunk of prefill so far."""

    def forward(self, batch: Batch, pools: StatePools) -> npt.NDArray[np.float32]:
        decode = batch.tokens.shape[1] == 1
        if not decode:
            self.chunks += batch.lengths.tolist()
        logits = np.zeros((len(batch.rows), tiny_tokenizer().n_vocab), np.float32)
        for index, row in enumerate(batch.rows):
            valid = batch.valid[index]
            tokens, positions = batch.tokens[index][valid], batch.positions[index][valid]
            for token, position in zip(tokens.tolist(), positions.tolist(), strict=True):
                self._advance(pools, row, token, position, decode)
            logits[index, self._next(pools, row, positions[-1])] = 1
        return logits

    def _advance(self, pools: StatePools, row: int, token: int, position: int, decode: bool) -> None:
        extra = 13 if decode and not self.backend.uniform else 0
        for pool in pools.layers:
            if isinstance(pool, KvPool):
                for array, value in ((pool.keys, token + 1 + extra), (pool.values, token * 3 + 1 + extra)):
                    assert not array[row, position // BLOCK, 0, position % BLOCK].any(), "written twice"
                    array[row, position // BLOCK, 0, position % BLOCK] = value
            else:
                history = int(pool.conv[row, :, 0] @ (1, 2, 3))
                pool.states[row] = (pool.states[row] * 31 + token + history + 1 + extra) % _PRIME
                pool.conv[row, :-1] = pool.conv[row, 1:]
                pool.conv[row, -1] = token

    def _next(self, pools: StatePools, row: int, position: int) -> int:
        total = 0
        for pool in pools.layers:
            if isinstance(pool, RecurrentPool):
                total += int(pool.states[row, 0, 1, 1])
                continue
            for array in (pool.keys, pool.values):
                stored = array[row, :, 0, :, 0].ravel().astype(np.int64)
                assert stored[: position + 1].all(), "a key is missing"
                assert not stored[position + 1 :].any(), "something stands behind the last key"
                total += int(stored @ np.arange(1, len(stored) + 1))
        return total * 7 % VOCABULARY


def scheduler_of(model: ScriptedModel, slots: int, cache_bytes: int, n_ctx: int = 1024) -> Scheduler:
    """A scheduler around the scripted model, its clock at rest."""
    pools = StatePools(model.backend, model.params, slots, n_ctx)
    tokenizer = tiny_tokenizer()
    return Scheduler(model, pools, tokenizer, lambda: 0.0, cache_bytes=cache_bytes)  # type: ignore[arg-type]


@cache
def continuation(prompt: tuple[int, ...], n: int, uniform: bool = True, recurrent: bool = True) -> Sequence[int]:
    """What follows `prompt` when it is computed alone, in one go and without a scheduler."""
    model = ScriptedModel(uniform=uniform, recurrent=recurrent)
    pools = StatePools(model.backend, model.params, 1, 1024)
    for start in range(0, len(prompt), BLOCK):
        logits = model.forward(Batch.prefill(list(prompt[start : start + BLOCK]), start, 0), pools)
    made = [int(logits[0].argmax())]
    while len(made) < n:
        logits = model.forward(Batch.decode(made[-1:], [len(prompt) + len(made) - 1], [0]), pools)
        made.append(int(logits[0].argmax()))
    return tuple(made)


def assert_sound(cache: PrefixCache) -> None:
    """The budget holds, and the count of bytes is that of the arrays really kept."""
    assert cache.used_bytes <= cache.budget_bytes
    n_bytes, n_checkpoints, nodes = 0, 0, [cache._root]
    while nodes:
        node: _Node = nodes.pop()
        nodes += node.children.values()
        assert node.parent is None or node.children or node.checkpoints, "a block that nothing needs"
        n_bytes += size(node.page) + sum(
            size(entry.page) + size(entry.recurrent) for entry in node.checkpoints.values()
        )
        n_bytes += 1024 * (len(node.checkpoints) + (node.parent is not None))
        n_checkpoints += len(node.checkpoints)
    assert (n_bytes, n_checkpoints) == (cache.used_bytes, len(cache))


def size(arrays: Arrays) -> int:
    assert all(array.base is None for array in arrays), "a view keeps more in memory than it counts"
    return sum(array.nbytes for array in arrays)
