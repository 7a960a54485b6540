"""What ran a benchmark."""

from __future__ import annotations

import os
import platform
from pathlib import Path


def machine() -> dict[str, object]:
    """Processor, cores, whether it has the 8-bit dot products that int8 networks like, and Python."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    flags = next((line for line in lines if line.startswith("flags")), "")
    cpu = names[0] if names else platform.processor()
    return {"cpu": cpu, "cores": os.cpu_count(), "vnni": "vnni" in flags, "python": platform.python_version()}
