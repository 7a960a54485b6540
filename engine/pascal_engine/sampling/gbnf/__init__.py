"""llama.cpp's grammar notation, for llguidance."""

from pascal_engine.sampling.gbnf.lark import to_lark
from pascal_engine.sampling.gbnf.parser import GbnfError

__all__ = ["GbnfError", "to_lark"]
