"""Damaged model files: each must be refused with a clear error or load, in little time and memory.

By hand: python -m tests.engine.mutate 1000 [SEED]
"""

import collections
import resource
import struct
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from pascal_engine.engine import Engine, EngineOptions
from pascal_engine.errors import ModelError
from tests.engine.harness import DATA

Mutation = Callable[[bytearray, int, np.random.Generator], None]
"""Changes the content of a file, whose header has so many bytes, in place."""

NUMBERS = (0, 1, 2, 3, 9, 0xFF, 1 << 16, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 40, (1 << 63) - 1, (1 << 64) - 1)
ADDRESS_SPACE = 3 << 30


def flip_header_bytes(content: bytearray, header: int, rng: np.random.Generator) -> None:
    for at in rng.integers(4, header, rng.integers(1, 9)):
        content[at] = rng.integers(256)


def flip_any_bytes(content: bytearray, header: int, rng: np.random.Generator) -> None:
    for at in rng.integers(0, len(content), rng.integers(1, 65)):
        content[at] = rng.integers(256)


def flip_a_bit_near_the_top(content: bytearray, header: int, rng: np.random.Generator) -> None:
    content[rng.integers(0, 1200)] ^= 1 << rng.integers(8)


def truncate(content: bytearray, header: int, rng: np.random.Generator) -> None:
    del content[rng.integers(0, header if rng.random() < 0.5 else len(content)) :]


def wrong_counts(content: bytearray, header: int, rng: np.random.Generator) -> None:
    """Numbers of tensors or keys."""
    at = 8 + 8 * rng.integers(2)
    count = int.from_bytes(content[at : at + 8], "little")
    wrong = [*NUMBERS, count - 1, count + 1, 2 * count]
    content[at : at + 8] = struct.pack("<Q", wrong[rng.integers(len(wrong))])


def wrong_numbers(content: bytearray, header: int, rng: np.random.Generator) -> None:
    """Lengths, types, sizes, offsets: eight bytes somewhere in the header."""
    at = rng.integers(8, header - 8)
    content[at : at + 8] = struct.pack("<Q", NUMBERS[rng.integers(len(NUMBERS))])


def wrong_key_values(content: bytearray, header: int, rng: np.random.Generator) -> None:
    """Another number for a hyper-parameter."""
    places = [at for at in range(24, 1200) if content[at : at + 4] == b"\4\0\0\0"]
    at = places[rng.integers(len(places))] + 4
    content[at : at + 4] = struct.pack("<I", NUMBERS[rng.integers(len(NUMBERS))] & 0xFFFFFFFF)


def nested_arrays(content: bytearray, header: int, rng: np.random.Generator) -> None:
    """A first key that is an array of arrays of arrays, of one element each or of many."""
    depth, count = rng.integers(1, 2000), NUMBERS[rng.integers(1, 6)]
    key = struct.pack("<Q", 1) + b"a" + struct.pack("<I", 9) + struct.pack("<IQ", 9, count) * depth
    content[24:24] = key + struct.pack("<IQ", 0, 0)
    content[16:24] = struct.pack("<Q", int.from_bytes(content[16:24], "little") + 1)


def insert_or_delete(content: bytearray, header: int, rng: np.random.Generator) -> None:
    at, count = rng.integers(4, header), rng.integers(1, 40)
    content[at : at + count * rng.integers(2)] = rng.bytes(count * rng.integers(2))


MUTATIONS: tuple[Mutation, ...] = (
    flip_header_bytes,
    flip_any_bytes,
    flip_a_bit_near_the_top,
    truncate,
    wrong_counts,
    wrong_numbers,
    wrong_key_values,
    nested_arrays,
    insert_or_delete,
)


def mutated(count: int, seed: int = 0) -> Iterator[tuple[str, bytes]]:
    """`count` damaged files and what was done to them, the same ones each time."""
    originals = [path.read_bytes() for path in sorted(DATA.glob("*.gguf"))]
    headers = [content.index(b"output_norm.weight") for content in originals]
    for index in range(count):
        rng = np.random.default_rng([seed, index])
        mutation, which = MUTATIONS[index % len(MUTATIONS)], index // len(MUTATIONS) % len(originals)
        content = bytearray(originals[which])
        mutation(content, headers[which], rng)
        yield f"{mutation.__name__} {index}", bytes(content)


def check(path: Path) -> str:
    """`loaded`, or `refused` with an error as a person should see it; anything else is raised."""
    try:
        Engine.open(path, EngineOptions(128))
    except ModelError as error:
        message = str(error)
        assert message.endswith("."), ascii(message)
        assert message.isprintable(), ascii(message)
        assert len(message) < 1000, ascii(message)
        return "refused"
    return "loaded"


def _peak_kib() -> int:
    """Largest resident size of this program. Not `ru_maxrss`, which begins with that of the process that forked it."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0])


def main() -> int:
    """Takes the number of files and a seed. Prints counts and the costliest file; exit code 1 if a file did anything
    but load or be refused."""
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    counts: collections.Counter[str] = collections.Counter()
    slowest = (0.0, "")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mutated.gguf"
        for name, content in mutated(*map(int, sys.argv[1:])):
            path.unlink(missing_ok=True)  # the last one may still be mapped
            path.write_bytes(content)
            began = time.perf_counter()
            try:
                counts[check(path)] += 1
            except Exception as error:
                counts["failed"] += 1
                print(f"{name}: {type(error).__name__}: {error}")
            slowest = max(slowest, (time.perf_counter() - began, name))
    peak = _peak_kib() >> 10
    print(f"{dict(sorted(counts.items()))}, slowest {slowest[0]:.2f} s ({slowest[1]}), peak {peak} MiB")
    return int(counts["failed"] > 0)


if __name__ == "__main__":
    sys.exit(main())
