"""Where a goal keeps what it says in public: the folder `.loop`, and which of its files are its own."""

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
    """The goal of one workspace."""

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
        """What another terminal asks of a running loop."""
        return os.path.join(self.workspace, ".rooda", f"{NAME}.request")


def make_ready(place: Place) -> None:
    """The folder, with a .gitignore for what is ours in it; SHAPE.md belongs to the project."""
    files.make_folder(place.folder)
    for path in (place.state, place.run, place.journal):
        if os.path.isdir(path) and not os.path.islink(path):  # nothing of ours; a file can't take its place
            files.rename(path, f"{path}.agent", synced=False)
    path = place.file(".gitignore")
    if not os.path.lexists(path):
        files.replace_unsynced(path, IGNORED)


def delete_state(place: Place) -> None:
    """The state files go; what was found (evidence, summary) and SHAPE.md stay."""
    for path in (place.state, place.foreign, place.run, place.journal, place.seal):
        files.remove(path)
    tidy(place)


def tidy(place: Place) -> None:
    """What a replacing that was killed has left goes."""
    for name in files.list_folder(place.folder):
        if name.endswith(".tmp") and name.startswith(TEMPORARY):
            files.remove(place.file(name))


def reports(place: Place) -> dict[str, tuple[int, ...]]:
    """What an earlier goal tells of itself besides its state, and of each file what changes when it is written."""
    names = [*("summary.md", "precheck.md", "intent.md", "state.json.agent")]
    names += [os.path.join("evidence", name) for name in files.list_folder(place.file("evidence"))]
    return {path: mark for path in map(place.file, names) if (mark := files.fingerprint(path))}


def delete_unchanged(before: dict[str, tuple[int, ...]]) -> None:
    """A new goal has taken the place of an old one: of its reports goes what the new one has not written itself."""
    for path, mark in before.items():
        if files.fingerprint(path) == mark:
            files.remove(path)


# Proof that run.json is ours: the hashes of what was written last, kept where a goal's agent has no business.


class Seal:
    """Vouches for what is about to be written, and for what is there until then: a crash takes no proof away."""

    def __init__(self, path: str) -> None:
        self._path = path
        found = _read(path)
        self.hashes = found or []
        self.there = found is not None

    def vouch(self, data: bytes, there: Iterable[bytes]) -> None:
        """`there`: what is on the disk now. OSError where an old seal stays, by which `data` would not be ours."""
        proved = [files.sha256(each) for each in there]
        hashes = list(dict.fromkeys([files.sha256(data), *(sha for sha in proved if sha in self.hashes)]))
        try:
            make_home(os.path.dirname(self._path))
            files.replace(self._path, json.dumps({"ours": hashes}).encode())
        except OSError:
            if self.there:
                raise
            return  # where none can be kept nothing is proved; it is written all the same
        self.hashes, self.there = hashes, True

    def proves(self, data: bytes) -> bool:
        """True also where nothing is known: somebody may have moved the folder."""
        return not self.there or files.sha256(data) in self.hashes


def _read(path: str) -> list[str] | None:
    try:
        found = loads(files.read_ours(path))
    except (OSError, ValueError):
        return None
    hashes = found.get("ours") if isinstance(found, dict) else None
    return hashes if isinstance(hashes, list) else None
