"""The prefix cache: checkpoints of all sequences in a tree of blocks, within a budget of bytes."""

from collections import OrderedDict
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from pascal_engine.backend.batch import BLOCK
from pascal_engine.memory.checkpoints import Arrays, Snapshot, StateSource

Tokens = npt.NDArray[np.int32]

_TOKEN_BYTES = 4
_BLOCK_BYTES = BLOCK * _TOKEN_BYTES
_OVERHEAD = 1024  # what the bookkeeping of a node or a checkpoint takes, its tokens included


@dataclass(eq=False)
class _Node:
    """A block of 64 tokens behind those of its parents, and the page that they fill. The root holds no block."""

    parent: "_Node | None" = None
    block: bytes = b""
    page: Arrays = ()
    children: dict[bytes, "_Node"] = field(default_factory=dict)
    checkpoints: dict[bytes, "_Checkpoint"] = field(default_factory=dict)


@dataclass(eq=False)
class _Checkpoint:
    """The recurrent state after the tokens of `node` and of `tail`, less than a block, whose page is `page`."""

    node: _Node
    tail: bytes
    page: Arrays
    recurrent: Arrays


class PrefixCache:
    """Finds the longest beginning of a prompt whose state is known.

    The tree's edges are the tokens themselves, so two prefixes meet only where they are equal. Entries that share
    blocks share their pages. What was used least recently goes first when bytes run short; `used_bytes` never exceeds
    `budget_bytes`, and with a budget of 0 nothing is ever kept. Not thread-safe.
    """

    def __init__(self, page_bytes: int, recurrent_bytes: int, budget_bytes: int) -> None:
        self.budget_bytes = budget_bytes
        self.used_bytes = 0
        self._page_bytes, self._recurrent_bytes = page_bytes, recurrent_bytes
        self._root = _Node()
        self._by_use: OrderedDict[_Checkpoint, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._by_use)

    def put(self, tokens: Tokens, source: StateSource) -> bool:
        """Keeps the state that `source` holds after exactly `tokens`; False if it is larger than the budget."""
        blocks, tail = _split(tokens)
        path = self._path(blocks)
        if len(path) > len(blocks) and tail in path[-1].checkpoints:
            self._by_use.move_to_end(path[-1].checkpoints[tail])
            return True
        if self._cost(len(blocks), tail) > self.budget_bytes:
            return False
        while self.used_bytes + self._cost(len(blocks) + 1 - len(path), tail) > self.budget_bytes:
            self._drop(next(iter(self._by_use)))
            path = self._path(blocks)
        first = len(path) - 1
        pages = source.pages(first, len(blocks) + bool(tail))
        checkpoint = _Checkpoint(path[-1], tail, pages.pop() if tail else (), source.recurrent())
        for block, page in zip(blocks[first:], pages, strict=True):
            parent = checkpoint.node
            checkpoint.node = parent.children[block] = _Node(parent, block, page)
        checkpoint.node.checkpoints[tail] = checkpoint
        self._by_use[checkpoint] = None
        self.used_bytes += self._cost(len(blocks) - first, tail)
        return True

    def longest(self, tokens: Tokens) -> Snapshot | None:
        """The state after the longest known beginning of `tokens`, which counts as used by this."""
        found = self._longest(tokens)
        if found is None:
            return None
        self._by_use.move_to_end(found)
        pages = [found.page] if found.tail else []
        n_tokens, node = len(found.tail) // _TOKEN_BYTES, found.node
        while node.parent is not None:
            pages.append(node.page)
            n_tokens += BLOCK
            node = node.parent
        return Snapshot(n_tokens, tuple(reversed(pages)), found.recurrent)

    def has_near(self, tokens: Tokens, distance: int) -> bool:
        """Whether there is state for all of `tokens` but fewer than `distance` at their end."""
        found = self._longest(tokens)
        return len(tokens) - (_depth(found) if found else 0) < distance

    def shared(self, tokens: Tokens) -> int:
        """How many of the first `tokens` some entry shares, whether or not there is a checkpoint at their end."""
        blocks, tail = _split(tokens)
        path = self._path(blocks)
        n_blocks = len(path) - 1
        rest = blocks[n_blocks] if n_blocks < len(blocks) else tail
        others = [*path[-1].children, *path[-1].checkpoints]
        return n_blocks * BLOCK + max((_common(rest, other) for other in others), default=0)

    def forget(self, tokens: Tokens) -> None:
        """Drops the checkpoints at all beginnings of `tokens`, down to the first that another entry shares."""
        blocks, tail = _split(tokens)
        path = self._path(blocks)
        for depth in reversed(range(len(path))):
            node, rest = path[depth], blocks[depth] if depth < len(blocks) else tail
            for end in sorted(filter(rest.startswith, node.checkpoints), key=len, reverse=True):
                if node.children or any(other.startswith(end) and other != end for other in node.checkpoints):
                    return
                self._drop(node.checkpoints[end])
            if node.children or node.checkpoints:
                return

    def _longest(self, tokens: Tokens) -> _Checkpoint | None:
        blocks, tail = _split(tokens)
        path = self._path(blocks)
        for depth in reversed(range(len(path))):
            rest = blocks[depth] if depth < len(blocks) else tail
            end = max(filter(rest.startswith, path[depth].checkpoints), key=len, default=None)
            if end is not None:
                return path[depth].checkpoints[end]
        return None

    def _path(self, blocks: list[bytes]) -> list[_Node]:
        """The root and the nodes of as many blocks as are known."""
        path = [self._root]
        for block in blocks:
            child = path[-1].children.get(block)
            if child is None:
                break
            path.append(child)
        return path

    def _cost(self, n_new_blocks: int, tail: bytes) -> int:
        n_new_pages = n_new_blocks + bool(tail)
        return n_new_pages * self._page_bytes + self._recurrent_bytes + (n_new_blocks + 1) * _OVERHEAD

    def _drop(self, checkpoint: _Checkpoint) -> None:
        """Takes out a checkpoint, and the blocks that nothing needs any more."""
        del self._by_use[checkpoint]
        node = checkpoint.node
        del node.checkpoints[checkpoint.tail]
        self.used_bytes -= self._cost(0, checkpoint.tail)
        while node.parent is not None and not node.children and not node.checkpoints:
            del node.parent.children[node.block]
            self.used_bytes -= self._page_bytes + _OVERHEAD
            node = node.parent


def _split(tokens: Tokens) -> tuple[list[bytes], bytes]:
    """The bytes of the full blocks, and of the tokens behind them."""
    raw = np.asarray(tokens, np.int32).tobytes()
    full = len(raw) // _BLOCK_BYTES * _BLOCK_BYTES
    return [raw[at : at + _BLOCK_BYTES] for at in range(0, full, _BLOCK_BYTES)], raw[full:]


def _depth(checkpoint: _Checkpoint) -> int:
    n_tokens, node = len(checkpoint.tail) // _TOKEN_BYTES, checkpoint.node
    while node.parent is not None:
        n_tokens, node = n_tokens + BLOCK, node.parent
    return n_tokens


def _common(one: bytes, other: bytes) -> int:
    """Tokens that two runs of tokens begin with in common."""
    shortest = min(len(one), len(other))
    first, second = (np.frombuffer(run[:shortest], np.int32) for run in (one, other))
    return common_length(first, second)


def common_length(one: Tokens, other: Tokens) -> int:
    """Tokens that two sequences begin with in common."""
    shortest = min(len(one), len(other))
    differs = one[:shortest] != other[:shortest]
    return int(differs.argmax()) if differs.any() else shortest
