"""The flags of the server: llama-server's names, as far as they mean something here."""

from pascal_engine.flags.settings import Settings, parse

__all__ = ["Settings", "parse"]
