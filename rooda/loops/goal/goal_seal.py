"""Proof that run.json is ours: the hashes of what was written last, kept where a goal's agent has no business."""

import json
import os
from collections.abc import Iterable

from rooda.base import files
from rooda.base.dirs import make_home
from rooda.base.json import loads


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
