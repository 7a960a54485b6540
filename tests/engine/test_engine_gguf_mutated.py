"""Damaged files cost little time and memory and end in a clear error."""

import re
import subprocess
import sys
from pathlib import Path


def test_damaged_files_are_refused_or_load_in_little_time_and_memory() -> None:
    command = [sys.executable, "-m", "tests.engine.mutate", "300"]
    # In a process of its own, whose address space is limited.
    done = subprocess.run(
        command, cwd=Path(__file__).parents[2], stdout=subprocess.PIPE, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout
    figures = re.search(r"'refused': (\d+)}, slowest ([\d.]+) s .* peak (\d+) MiB", done.stdout)
    assert figures is not None
    assert int(figures[1]) > 200
    assert float(figures[2]) < 5
    assert int(figures[3]) < 500
