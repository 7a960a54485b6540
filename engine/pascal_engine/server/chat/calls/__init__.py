"""Readers of one call of a function, in each of the formats that models write."""

from pascal_engine.server.chat.calls.hermes import HermesCall
from pascal_engine.server.chat.calls.reader import CallReader
from pascal_engine.server.chat.calls.xml import XmlCall

__all__ = ["CallReader", "HermesCall", "XmlCall"]
