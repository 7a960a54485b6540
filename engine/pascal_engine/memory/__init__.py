"""Pools of per-sequence state, addressed by row."""

from pascal_engine.memory.pools import KvPool, RecurrentPool, StatePools

__all__ = ["KvPool", "RecurrentPool", "StatePools"]
