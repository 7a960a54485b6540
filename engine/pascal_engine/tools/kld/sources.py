"""Where logits come from: a model that computes them, chunk by chunk of a text."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np
import numpy.typing as npt

from pascal_engine.backend.batch import BLOCK, Batch
from pascal_engine.engine import Engine
from pascal_engine.errors import ModelError
from pascal_engine.tokenizer import Tokenizer

F32 = npt.NDArray[np.float32]
I32 = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Chunks:
    """A text's `tokens` int32 [chunks, tokens a chunk]. Each chunk is computed by itself, and scored in its second half
    alone: its positions from the middle to the last but one, whose next token is known."""

    tokens: I32

    @classmethod
    def of(cls, tokens: list[int], n_ctx: int, most: int | None) -> "Chunks":
        """The first `most` whole chunks of `n_ctx` tokens; a text too short for one is a `ModelError`."""
        n_chunks = len(tokens) // n_ctx
        if n_chunks == 0:
            raise ModelError(f"the text has {len(tokens)} tokens; give one of {n_ctx} or more, or a smaller -c.")
        n_chunks = min(n_chunks, most or n_chunks)
        return cls(np.array(tokens[: n_chunks * n_ctx], np.int32).reshape(n_chunks, n_ctx))

    @property
    def n_ctx(self) -> int:
        return int(self.tokens.shape[1])

    @property
    def first(self) -> int:
        """The first position of a chunk that is scored."""
        return self.n_ctx // 2

    @property
    def n_scored(self) -> int:
        """Positions of a chunk that are scored."""
        return self.n_ctx - 1 - self.first

    def pieces(self) -> list[slice]:
        """The scored positions of a chunk, cut at multiples of the engine's block, as slices of them."""
        cuts = [self.first, *range(-(-(self.first + 1) // BLOCK) * BLOCK, self.n_ctx - 1, BLOCK), self.n_ctx - 1]
        return [slice(begin - self.first, end - self.first) for begin, end in pairwise(cuts)]


class Source(Protocol):
    """Logits of the scored positions of some chunks."""

    @property
    def chunks(self) -> Chunks: ...

    @property
    def n_vocab(self) -> int: ...

    @property
    def reach(self) -> float:
        """How far below the best logit the others reach; infinite where nothing was cut off."""

    def logits(self, chunk: int) -> Iterator[F32]:
        """float32 [positions, vocabulary] for each of `chunks.pieces()`."""


@dataclass(frozen=True)
class ModelSource:
    """Computes them; a chunk begins with the begin token in place of its own first where the model wants one."""

    engine: Engine
    chunks: Chunks

    reach = float("inf")

    @property
    def n_vocab(self) -> int:
        return self.engine.info.n_vocab

    def logits(self, chunk: int) -> Iterator[F32]:
        model, pools, chunks = self.engine.model, self.engine.pools, self.chunks
        tokens = chunks.tokens[chunk].tolist()
        tokens[:1] = self.engine.tokenizer.encode("", add_special=True) or tokens[:1]
        pools.clear(0, chunks.n_ctx)
        for start in range(0, chunks.n_ctx - 1, BLOCK):
            batch = Batch.prefill(tokens[start : min(start + BLOCK, chunks.n_ctx - 1)], start, 0)
            if batch.starts[0] + batch.ends[0] <= chunks.first:
                model.forward(batch, pools)
            else:
                yield model.forward_all(batch, pools)[max(chunks.first - start, 0) :]


def tokens_of(text: str, tokenizer: Tokenizer) -> list[int]:
    """The text's tokens, as they are cut into chunks."""
    return tokenizer.encode(text, add_special=True)
