"""The settings: `load` reads all tiers, `resolve` makes a procedure of them, `origins` tells where each came from."""

from rooda.settings import resolve
from rooda.settings.schema import RESERVED
from rooda.settings.shown import decided, origins
from rooda.settings.tiers import Settings, load

__all__ = ["RESERVED", "Settings", "decided", "load", "origins", "resolve"]
