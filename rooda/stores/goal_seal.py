"""Proof that run.json is ours: the hashes of what was written last, kept where a goal's agent has no business."""

import json
import os

from rooda.kernel.loads import loads
from rooda.model import Json
from rooda.world import files
from rooda.world.runfolder import make_home


class Seal:
    """Written before what it vouches for, so that a crash in between leaves the earlier hash valid."""

    def __init__(self, path: str) -> None:
        self._path = path
        found = _read(path)
        self.runs: list[str] = found.get("run", [])[:2]
        self.journal: str = found.get("journal", "")
        self.there = bool(found)

    def vouch(self, run: bytes, journaled: bool) -> None:
        sha = files.sha256(run)
        self.runs = [sha, *self.runs[:1]]
        self.journal = sha if journaled else self.journal
        try:
            make_home(os.path.dirname(self._path))
            files.replace(self._path, json.dumps({"run": self.runs, "journal": self.journal}).encode())
        except OSError:
            pass  # where it can't be kept, run.json is no longer proved; it is written all the same

    def proves(self, run: bytes) -> bool:
        """True also where nothing is known: somebody may have moved the folder."""
        return not self.there or files.sha256(run) in (*self.runs, self.journal)


def _read(path: str) -> Json:
    try:
        found = loads(files.read_ours(path))
    except (OSError, ValueError):
        return {}
    good = isinstance(found, dict) and isinstance(found.get("run"), list) and isinstance(found.get("journal"), str)
    return found if good else {}
