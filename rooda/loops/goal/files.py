"""Paths of a goal's files in the folder `.loop`."""

import os
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
TEMPORARY = ("state.json.", "run.json.", "iterations.jsonl.", "summary.md.", ".gitignore.")


class Place(NamedTuple):
    """Paths of the goal in a workspace."""

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
        """The file in which another terminal leaves a request for a running goal."""
        return os.path.join(self.workspace, ".rooda", f"{NAME}.request")


REQUESTS = ("pause", "cancel")


def write_request(place: Place, word: str) -> None:
    """Leave a signed request, which the loop reads after its iteration."""
    files.write(place.request, signing.signed(what_is_requested(place.workspace), requested(word)) + b"\n")


def requested(word: str) -> bytes:
    """The content of a request, before it is signed."""
    return b'{"request": "%s"}' % word.encode()


def what_is_requested(workspace: str) -> str:
    """What the signature of a request covers besides its content."""
    return f"request {os.path.realpath(workspace)}"


def make_ready(place: Place) -> None:
    """Make the folder, with a .gitignore for rooda's files in it. SHAPE.md belongs to the project."""
    files.make_real_folder(place.workspace, os.path.basename(place.folder))
    for path in (place.state, place.run, place.journal):
        if os.path.isdir(path) and not os.path.islink(path):  # not made by rooda, and a file can't replace it
            files.rename(path, f"{path}.agent", synced=False)
    path = place.file(".gitignore")
    if not os.path.lexists(path):
        files.replace_unsynced(path, IGNORED)


def delete_state(place: Place) -> None:
    """Delete the state files. Evidence, summary and SHAPE.md stay."""
    for path in (place.state, place.foreign, place.run, place.journal):
        files.remove(path)
    place.seal.remove()
    tidy(place)


def tidy(place: Place) -> None:
    """Delete temporary files of interrupted writes."""
    for name in files.list_folder(place.folder):
        if name.endswith(".tmp") and name.startswith(TEMPORARY):
            files.remove(place.file(name))


def reports(place: Place) -> dict[str, tuple[int, ...]]:
    """Report files of an earlier goal, each with a fingerprint that changes when it is written."""
    names = [*("summary.md", "precheck.md", "intent.md", "state.json.agent")]
    names += [os.path.join("evidence", name) for name in files.list_folder(place.file("evidence"))]
    return {path: mark for path in map(place.file, names) if (mark := files.fingerprint(path))}


def delete_unchanged(before: dict[str, tuple[int, ...]]) -> None:
    """Delete the reports of an earlier goal that the new goal has not replaced."""
    for path, mark in before.items():
        if files.fingerprint(path) == mark:
            files.remove(path)
