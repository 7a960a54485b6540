"""Text to tokens, tokens to text, messages to prompts, all from the model file."""

from pascal_engine.tokenizer.template import ChatTemplate, TemplateError
from pascal_engine.tokenizer.tokenizer import Detokenizer, Tokenizer

__all__ = ["ChatTemplate", "Detokenizer", "TemplateError", "Tokenizer"]
