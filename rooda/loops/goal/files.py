"""Paths of a goal's files in the folder `.loop`, and the seal of run.json."""

import json
import os
from collections.abc import Iterable
from typing import NamedTuple

from rooda.base import files
from rooda.base.dirs import make_home
from rooda.base.json import loads

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
    def seal(self) -> str:
        return os.path.join(self.workspace, ".rooda", f"{NAME}.seal")

    @property
    def request(self) -> str:
        """The file in which another terminal leaves a request for a running goal."""
        return os.path.join(self.workspace, ".rooda", f"{NAME}.request")


def make_ready(place: Place) -> None:
    """Make the folder, with a .gitignore for rooda's files in it. SHAPE.md belongs to the project."""
    files.make_folder(place.folder)
    for path in (place.state, place.run, place.journal):
        if os.path.isdir(path) and not os.path.islink(path):  # not made by rooda, and a file can't replace it
            files.rename(path, f"{path}.agent", synced=False)
    path = place.file(".gitignore")
    if not os.path.lexists(path):
        files.replace_unsynced(path, IGNORED)


def delete_state(place: Place) -> None:
    """Delete the state files. Evidence, summary and SHAPE.md stay."""
    for path in (place.state, place.foreign, place.run, place.journal, place.seal):
        files.remove(path)
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


class Seal:
    """Hashes of the contents of run.json that rooda wrote, kept outside of `.loop`.

    Covers what is about to be written and what is on disk until then, so that a crash leaves a valid seal.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        found = _read(path)
        self.hashes = found or []
        self.exists = found is not None

    def cover(self, data: bytes, on_disk: Iterable[bytes]) -> None:
        """Add `data`. Raises OSError if an old seal stays, which does not cover it."""
        proved = [files.sha256(each) for each in on_disk]
        hashes = list(dict.fromkeys([files.sha256(data), *(sha for sha in proved if sha in self.hashes)]))
        try:
            make_home(os.path.dirname(self._path))
            files.replace(self._path, json.dumps({"ours": hashes}).encode())
        except OSError:
            if self.exists:
                raise
            return  # without a seal anywhere, save without one
        self.hashes, self.exists = hashes, True

    def covers(self, data: bytes) -> bool:
        """True if rooda wrote these bytes, or there is no seal, as in a moved folder."""
        return not self.exists or files.sha256(data) in self.hashes


def _read(path: str) -> list[str] | None:
    try:
        found = loads(files.read_ours(path))
    except (OSError, ValueError):
        return None
    hashes = found.get("ours") if isinstance(found, dict) else None
    return hashes if isinstance(hashes, list) else None
