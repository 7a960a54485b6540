"""The CPU backend: C++ kernels behind the operations."""

from pascal_engine.backend.cpu.backend import CpuBackend, physical_cores

__all__ = ["CpuBackend", "physical_cores"]
