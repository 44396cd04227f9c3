"""rooda/modelserver/gemini.py, by the name the tests know."""

from rooda.modelserver.gemini import STATUSES, error, offered, plain, stream, wanted

__all__ = ["STATUSES", "error", "offered", "plain", "stream", "wanted"]
