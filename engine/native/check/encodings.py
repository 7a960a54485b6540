"""Looks for instructions that a processor may meet without having them: encodings.py OBJECT...

Every instruction with an AVX or AVX-512 encoding must stand in a function of those kernels, which are reached only by
the choice made at run time. Weak symbols count as anybody's: the linker may take them from any object.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

VECTOR_UNITS = {"linear_avx2.cpp.o": "avx2", "linear_avx512.cpp.o": "avx512"}
SETS = {"c4": "avx2", "c5": "avx2", "62": "avx512"}  # VEX and EVEX begin with these bytes
ALLOWED = {"portable": set[str](), "avx2": {"avx2"}, "avx512": {"avx2", "avx512"}}


def run(*command: str) -> list[str]:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()


def set_of(path: Path, function: str) -> str:
    """The instruction set for which a function was compiled."""
    if path.name in VECTOR_UNITS:
        return VECTOR_UNITS[path.name]
    return next((name for name in ("avx512", "avx2") if f"{name}::" in function), "portable")


def trespassers(path: Path) -> Iterator[str]:
    """Functions with instructions of a set that is not theirs, and weak functions with any."""
    weak = {line.split(maxsplit=2)[2] for line in run("nm", "-C", str(path)) if re.match(r"\w{16} [WVu] ", line)}
    function, seen = "", set[tuple[str, str]]()
    for line in run("objdump", "-dC", "-w", str(path)):
        if match := re.fullmatch(r"\w{16} <(.*)>:", line):
            function = match[1]
        elif (match := re.match(r"\s*\w+:\t(\w\w) ", line)) and match[1] in SETS:
            seen.add((function, SETS[match[1]]))
    for function, name in sorted(seen):
        if function in weak or name not in ALLOWED[set_of(path, function)]:
            yield f"{path.name}: {name} in {function}"


def main() -> None:
    found = [line for path in map(Path, sys.argv[1:]) for line in trespassers(path)]
    print("\n".join(found) or "none")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
