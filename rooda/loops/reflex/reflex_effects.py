"""What evaluating an artifact does to the world: its bytes are guarded, checks are run, patterns are searched."""

import os
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from rooda.base import files
from rooda.processes import regex as patterns
from rooda.run.records import Command, Ran

search = patterns.search
CAP = 1_048_576  # bytes kept of a check's output
SAID = 300  # characters of it that are told
PART = 12  # bytes of the artifact that nothing else says by chance
_BEFORE = re.compile(rb"(?:[^\s:]*:)?(?:\d+[:-])*[ \t<>+|-]*")  # what grep and diff put before a line


class Guarded:
    """The artifact while others work: whoever changes it, it is as it was."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.bytes = files.ours_if_there(path)

    def intact(self) -> bool:
        try:
            return files.ours_if_there(self.path) == self.bytes and not os.path.isdir(self.path)
        except OSError:
            return False

    def restored(self) -> bool:
        """Put it back; True if that was necessary."""
        if self.intact():
            return False
        files.make_way(self.path)
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
    text = guard.bytes or b""
    return [
        _outcome(command, each, changed, text) for command, each, changed in zip(commands, ran, touched, strict=True)
    ]


def _outcome(command: Command, ran: Ran, changed: bool, artifact: bytes) -> Outcome:
    if changed:
        return Outcome(False, "the command changed the artifact; it was put back")
    if ran.ended == "timeout":
        return Outcome(False, f"timed out after {command.timeout:g} s")
    if ran.code == 0:
        return Outcome(True, "exit 0")
    said = _last_words(ran.output, artifact)
    return Outcome(False, f"exit {ran.code}: {said}" if said else f"exit {ran.code}")


def _last_words(path: str, artifact: bytes) -> str:
    """The end of a check's output on one line; the artifact's own words stay in the artifact."""
    try:
        lines = files.tail(path, 4096).splitlines()
    except OSError:
        return ""
    known = {line.strip() for line in artifact.splitlines()}
    long = sorted((line for line in known if len(line) >= PART), key=len, reverse=True)
    own = [_own(line.strip(), artifact, known, long) for line in lines]
    text = " ".join(b" ".join(own).decode("utf-8", "replace").split())
    return text if len(text) <= SAID else "…" + text[-SAID:]


def _own(line: bytes, artifact: bytes, known: set[bytes], long: Sequence[bytes]) -> bytes:
    """What a check says itself in this line: nothing if it only shows a line of the artifact, or a part of one."""
    shown = line[_BEFORE.match(line).end() :]  # type: ignore[union-attr]  # it matches nothing, too
    if any(each in known or (len(each) >= PART and each in artifact) for each in (line, shown)):
        return b""
    for each in long:
        line = line.replace(each, "…".encode())
    return line
