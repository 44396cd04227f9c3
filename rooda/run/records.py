"""Records of a run of any kind of loop: commands, quality gates, its end."""

from collections.abc import Mapping
from typing import NamedTuple

from rooda.errors import Cause


class Gate(NamedTuple):
    """A quality gate: a shell command that must exit 0."""

    name: str
    command: str
    timeout: float = 0.0  # seconds, 0 = none


class Command(NamedTuple):
    """One shell command to run in the workspace."""

    command: str
    label: str  # names its output file
    timeout: float = 0.0  # seconds, 0 = none
    number: int = 1  # 1-indexed iteration
    env: Mapping[str, str] = {}


class CommandResult(NamedTuple):
    """The result of a shell command."""

    code: int  # as a shell reports it
    seconds: float
    ended: str  # exit | timeout | interrupted | not-started
    output: str  # path
    size: int = 0  # bytes it wrote, including those that were not kept


class GateResult(NamedTuple):
    """The result of one gate. `verdict` is "" if it passed, else e.g. "exit 1", "timeout 300s"."""

    name: str
    seconds: float
    verdict: str
    output: str = ""  # path


class Gates(NamedTuple):
    """All gates of one iteration."""

    results: tuple[GateResult, ...] = ()
    interrupted: bool = False

    @property
    def failed(self) -> tuple[GateResult, ...]:
        return tuple(result for result in self.results if result.verdict)

    @property
    def summary(self) -> str:
        return ", ".join(f"{' '.join(result.name.split())} ({result.verdict})" for result in self.failed)


class Ending(NamedTuple):
    """Why a loop ended. `kind` is max-iterations, success-signal, failures, prompt, agent, limit or signal."""

    kind: str
    code: int
    signal: int = 0
    note: str = ""  # for people; no code reads it
    cause: Cause | None = None
