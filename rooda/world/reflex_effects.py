"""What evaluating an artifact does to the world: its bytes are guarded, checks are run, patterns are searched."""

import os
from collections.abc import Callable, Sequence
from typing import NamedTuple

from rooda.model import Command, Ran
from rooda.world import files
from rooda.world import search as patterns

search = patterns.search
CAP = 1_048_576  # bytes kept of a check's output
SAID = 300  # characters of it that are told


class Guarded:
    """The artifact while others work: whoever changes it, it is as it was."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.bytes = files.ours_if_there(path)

    def intact(self) -> bool:
        try:
            return files.ours_if_there(self.path) == self.bytes
        except OSError:
            return False

    def restored(self) -> bool:
        """Put it back; True if that was necessary."""
        if self.intact():
            return False
        if self.bytes is None:
            files.remove(self.path)
        else:
            files.folder(os.path.dirname(self.path))
            files.replace(self.path, self.bytes)
        return True


class Outcome(NamedTuple):
    """What one command came to."""

    holds: bool
    details: str


Runner = Callable[[Sequence[Command], bool], list[Ran]]  # commands, at once or one after the other


def execute(commands: Sequence[Command], path: str, run: Runner, at_once: bool) -> list[Outcome]:
    """Exit code 0 holds. If the artifact was changed, all are run again alone, to find out by whom."""
    guard = Guarded(path)
    ran = run(commands, at_once)
    touched = [False] * len(ran)
    if guard.restored():
        ran, touched = [], []
        for command in commands:
            ran += run((command,), False)
            touched.append(guard.restored())
    known = set((guard.bytes or b"").splitlines())
    return [
        _outcome(command, each, changed, known) for command, each, changed in zip(commands, ran, touched, strict=True)
    ]


def _outcome(command: Command, ran: Ran, changed: bool, known: set[bytes]) -> Outcome:
    if changed:
        return Outcome(False, "the command changed the artifact; it was put back")
    if ran.ended == "timeout":
        return Outcome(False, f"timed out after {command.timeout:g} s")
    if ran.code == 0:
        return Outcome(True, "exit 0")
    said = _last_words(ran.output, known)
    return Outcome(False, f"exit {ran.code}: {said}" if said else f"exit {ran.code}")


def _last_words(path: str, known: set[bytes]) -> str:
    """The end of a check's output on one line; the artifact's own lines stay in the artifact."""
    try:
        lines = files.tail(path, 4096).splitlines()
    except OSError:
        return ""
    own = [line for line in lines if line.strip() and line not in known]
    text = " ".join(b" ".join(own).decode("utf-8", "replace").split())
    return text if len(text) <= SAID else "…" + text[-SAID:]
