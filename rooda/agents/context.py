"""Context shared by all processes of a run."""

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from rooda.processes.signals import Signals
from rooda.processes.supervise import Periodic


class Folder(Protocol):
    """The folder for the files of a run."""

    def write(self, name: str, data: bytes) -> str:
        """Write a file and return its path."""

    def output(self, name: str) -> tuple[str, int]:
        """Create an output file for a process; return its path and descriptor, which is -1 if the disk is full."""


class CallContext(NamedTuple):
    """Workspace, environment, output folder and signals that the processes of a run share."""

    workspace: str
    env: Mapping[str, str]
    folder: Folder
    signals: Signals
    tick: Periodic | None = None
    marked: bool = False  # processes inherit the run's mark from rooda and can't drop it
