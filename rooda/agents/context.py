"""Context shared by all processes of a run."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from rooda.agents.records import Agent
from rooda.processes.signals import Signals
from rooda.processes.supervise import Periodic, Spec


class Folder(Protocol):
    """The folder for the files of a run."""

    def write(self, name: str, data: bytes) -> str:
        """Write a file and return its path."""

    def output(self, name: str) -> tuple[str, int]:
        """Create an output file for a process; return its path and descriptor, which is -1 if the disk is full."""


class Walls(Protocol):
    """The sandbox of a session."""

    def around(self, spec: Spec, agent: Agent | None = None, prompt: str = "") -> Spec:
        """Return the spec of a process, moved into the sandbox. `agent`: None for a command; `prompt`: its file."""

    def show(self, paths: Sequence[str]) -> None:
        """Make these output files of the run readable in the sandbox, instead of earlier ones."""


class CallContext(NamedTuple):
    """Workspace, environment, output folder and signals that the processes of a run share."""

    workspace: str
    env: Mapping[str, str]
    folder: Folder
    signals: Signals
    tick: Periodic | None = None
    marked: bool = False  # processes inherit the run's mark from rooda and can't drop it
    walls: Walls | None = None
