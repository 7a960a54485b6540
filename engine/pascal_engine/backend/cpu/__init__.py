"""The CPU backend: C++ kernels behind the operations."""
