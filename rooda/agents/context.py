"""Defines the context that all processes of a run share."""

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

    def take_back(self, path: str) -> None:
        """Keep an output file for another process if the file is still empty."""

    def make_spares(self, after: str) -> None:
        """Create files in advance while a process works; `after` is the kind of the process."""


class Walls(Protocol):
    """The sandbox of a session."""

    def around(self, spec: Spec, agent: Agent | None = None, prompt: str = "") -> Spec:
        """Return a process's spec, changed so that it runs in the sandbox.

        `agent`: None if the process is not an agent; `prompt`: the path of the prompt.
        """

    def show(self, paths: Sequence[str]) -> None:
        """Make these output files of the run readable in the sandbox, instead of those of an earlier call to `show`."""


class Tracing(Protocol):
    """The telemetry of a session, to which agents can add their own."""

    def environment(self, agent: Agent, transcript: str, env: Mapping[str, str]) -> Mapping[str, str]:
        """Return the variables that an agent gets for a call, in addition to `env`."""

    def options(self, agent: Agent) -> Sequence[str]:
        """Return the options that switch on the agent's own telemetry."""


class CallContext(NamedTuple):
    """Workspace, environment, output folder and signals that the processes of a run share."""

    workspace: str
    env: Mapping[str, str]
    folder: Folder
    signals: Signals
    tick: Periodic | None = None
    marked: bool = False  # processes inherit the run's mark from rooda and can't drop it
    walls: Walls | None = None
    tracing: Tracing | None = None  # None: telemetry is off
