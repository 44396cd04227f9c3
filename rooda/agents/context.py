"""What every process of one run stands on."""

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from rooda.processes.signals import Signals
from rooda.processes.supervise import Periodic


class Folder(Protocol):
    """Takes the files of a run."""

    def write(self, name: str, data: bytes) -> str:
        """Write a file and return its path."""

    def output(self, name: str) -> tuple[str, int]:
        """Path and descriptor of an empty file for a process to write to; -1: no disk took it."""


class CallContext(NamedTuple):
    """Where it works, with which environment; where its output goes; who is watching."""

    workspace: str
    env: Mapping[str, str]
    folder: Folder
    signals: Signals
    tick: Periodic | None = None
    marked: bool = False  # what we start carries the run's mark from its first moment, and nothing can take it off
