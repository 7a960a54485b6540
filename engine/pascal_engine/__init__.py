"""The bundled engine: a GGUF file in, tokens out, behind llama-server's HTTP API."""

__version__ = "0.1.0"
