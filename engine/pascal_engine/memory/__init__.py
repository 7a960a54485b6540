"""Pools of per-sequence state, addressed by row, and the prefix cache in host memory."""

from pascal_engine.memory.pools import KvPool, RecurrentPool, StatePools
from pascal_engine.memory.prefix_cache import PrefixCache

__all__ = ["KvPool", "PrefixCache", "RecurrentPool", "StatePools"]
