"""rooda/modelserver/anthropic.py, by the name the tests know."""

from rooda.modelserver.anthropic import TYPES, error, offered, plain, stream, wanted

__all__ = ["TYPES", "error", "offered", "plain", "stream", "wanted"]
