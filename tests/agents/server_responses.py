"""rooda/modelserver/responses.py, by the name the tests know."""

from rooda.modelserver.responses import TYPES, error, offered, plain, stream, wanted

__all__ = ["TYPES", "error", "offered", "plain", "stream", "wanted"]
