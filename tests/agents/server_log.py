"""rooda/modelserver/log.py, by the name the tests know."""

from rooda.modelserver.log import SECRET, Log, shown

__all__ = ["SECRET", "Log", "shown"]
