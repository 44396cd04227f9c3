"""What every process of one run stands on."""

from collections.abc import Mapping
from typing import NamedTuple

from rooda.world.process import Tick
from rooda.world.runfolder import RunFolder
from rooda.world.signals import Signals


class Ground(NamedTuple):
    """Where it works, with which environment; where its output goes; who is watching."""

    workspace: str
    env: Mapping[str, str]
    folder: RunFolder
    signals: Signals
    tick: Tick | None = None
    marked: bool = False  # what we start carries the run's mark from its first moment, and nothing can take it off
