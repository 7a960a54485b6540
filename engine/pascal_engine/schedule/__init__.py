"""Sequences, slots and continuous batching."""
