"""rooda/modelserver/chat.py, by the name the tests know."""

from rooda.modelserver.chat import offered, plain, stream, wanted

__all__ = ["offered", "plain", "stream", "wanted"]
