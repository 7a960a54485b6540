"""The HTTP face, shaped as llama-server's."""

from pascal_engine.server.app import create_app

__all__ = ["create_app"]
