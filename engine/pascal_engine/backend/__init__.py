"""Backends: the arithmetic behind the forward pass."""
