"""A decision to branch requests, and their answers to one merged answer."""
