"""Names the paths of a goal's files in `.loop` and `.rooda`, and prepares and deletes those files."""

import os
import re
from typing import NamedTuple

from rooda.base import files, signing
from rooda.run.seal import Seal

IGNORED = b"""/.gitignore
/state.json*
/run.json*
/iterations.jsonl*
/summary.md*
/precheck.md
/intent.md
/evidence/
"""
NAME = "goal"
FOREIGN = "foreign"  # ending of the copy of a file that rooda did not write
TEMPORARY_END = re.compile(r"\.\d+\.tmp$")
TEMPORARY = ("state.json.", "run.json.", "iterations.jsonl.", "summary.md.", ".gitignore.")


class Place(NamedTuple):
    """Paths of the goal's files in a workspace."""

    workspace: str

    @property
    def folder(self) -> str:
        return os.path.join(self.workspace, ".loop")

    def file(self, name: str) -> str:
        return os.path.join(self.folder, name)

    @property
    def state(self) -> str:
        return self.file("state.json")

    @property
    def foreign(self) -> str:
        return self.file("state.json.agent")

    @property
    def run(self) -> str:
        return self.file("run.json")

    @property
    def journal(self) -> str:
        return self.file("iterations.jsonl")

    @property
    def summary(self) -> str:
        return self.file("summary.md")

    @property
    def shape(self) -> str:
        return self.file(os.path.join("shape", "SHAPE.md"))

    @property
    def lock(self) -> str:
        return os.path.join(self.workspace, ".rooda", "locks", f"{NAME}-{NAME}.lock")

    @property
    def seal(self) -> Seal:
        return Seal(self.workspace, NAME)

    @property
    def request(self) -> str:
        """The file in which another terminal writes a request to a running goal."""
        return os.path.join(self.workspace, ".rooda", f"{NAME}.request")


REQUESTS = ("pause", "cancel")


def write_request(place: Place, word: str) -> None:
    """Write a signed request, which the loop reads after the current iteration."""
    files.write(place.request, signing.signed(what_is_requested(place.workspace), requested(word)) + b"\n")


def requested(word: str) -> bytes:
    """Return the content of a request without its signature."""
    return b'{"request": "%s"}' % word.encode()


def what_is_requested(workspace: str) -> str:
    """Return the context that a request's signature covers besides its content."""
    return f"request {os.path.realpath(workspace)}"


def make_ready(place: Place) -> None:
    """Create `.loop` with a .gitignore for rooda's files, but not for SHAPE.md, which belongs to the project."""
    files.make_real_folder(place.workspace, os.path.basename(place.folder))
    path = place.file(".gitignore")
    if not os.path.lexists(path):
        files.replace_unsynced(path, IGNORED)


def move_folders(place: Place) -> None:
    """Rename any folder at the path of a state file: rooda did not create it, and a file can't replace a folder."""
    for path in (place.state, place.run, place.journal):
        if os.path.isdir(path) and not os.path.islink(path):
            files.set_aside(path, "agent")


def delete_state(place: Place) -> None:
    """Delete the state files; keep evidence, summary and SHAPE.md."""
    for path in (place.state, place.foreign, place.run, place.journal):
        files.remove(path)
    place.seal.remove()
    tidy(place)


def tidy(place: Place) -> None:
    """Delete temporary files left by interrupted writes."""
    for name in files.list_if_readable(place.folder):
        if name.startswith(TEMPORARY) and TEMPORARY_END.search(name):
            files.remove(place.file(name))


def reports(place: Place) -> dict[str, tuple[int, ...]]:
    """Return an earlier goal's report files, each with a fingerprint that changes if the file is written."""
    names = [*("summary.md", "precheck.md", "intent.md", "state.json.agent")]
    names += [os.path.join("evidence", name) for name in files.list_folder(place.file("evidence"))]
    return {path: mark for path in map(place.file, names) if (mark := files.fingerprint(path))}


def delete_unchanged(before: dict[str, tuple[int, ...]]) -> None:
    """Delete an earlier goal's reports that the new goal has not replaced."""
    for path, mark in before.items():
        if files.fingerprint(path) == mark:
            files.remove(path)
