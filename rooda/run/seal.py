"""The seal of a loop's state: signed hashes of what rooda wrote, in a file of its own, for formats that are fixed."""

import json
import os
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from rooda.base import files, signing
from rooda.base.dirs import make_home
from rooda.base.json import Json, loads
from rooda.run import folder
from rooda.run.folder import place_of


class Doubt(NamedTuple):
    """Saved words that would run or reach an agent, and that this user has not signed."""

    why: str
    words: Sequence[str]
    sign: Callable[[], None]  # what was shown, not what is there by then


class Seal:
    """Hashes of the contents that rooda wrote, signed for one loop in one workspace.

    Covers what is about to be written and what is on disk until then, so that a crash leaves a valid seal.
    """

    def __init__(self, workspace: str, name: str) -> None:
        self._path, self._workspace = os.path.join(workspace, ".rooda", f"{name}.seal"), workspace
        self._what = f"seal {name}"
        self._data, self._said = _read(self._path)
        hashes = self._said.get("ours")
        self.exists = isinstance(hashes, list)
        self.hashes: list[str] = hashes if isinstance(hashes, list) else []

    @property
    def signed(self) -> bool:
        return signing.is_signed(self._what, self._data)

    def doubt(self) -> str:
        """Why this user should not believe what the seal covers; "" if the signature is valid and holds here."""
        return folder.elsewhere(self._said, self._workspace) if self.signed else folder.UNSIGNED

    def cover(self, data: bytes, before: Iterable[str] = ()) -> None:
        """Add `data` to those of the hashes `before` that are known. OSError if an old seal stays without it."""
        self.write([files.sha256(data), *(sha for sha in before if sha in self.hashes)])

    def write(self, hashes: Iterable[str]) -> None:
        """Replace the seal by one of these hashes."""
        wanted = list(dict.fromkeys(hashes))
        said = {"ours": wanted, **place_of(self._workspace)}
        data = signing.signed(self._what, json.dumps(said).encode()) + b"\n"
        try:
            make_home(os.path.dirname(self._path))
            files.replace(self._path, data)
        except OSError:
            if self.exists:
                raise
            return  # without a seal anywhere, save without one
        self._data, self._said, self.hashes, self.exists = data, said, wanted, True

    def covers(self, data: bytes) -> bool:
        """True if the seal names these bytes, or there is no seal."""
        return not self.exists or files.sha256(data) in self.hashes

    def remove(self) -> None:
        files.remove(self._path)


def _read(path: str) -> tuple[bytes, Json]:
    try:
        data = files.read_ours(path)
        found = loads(data)
    except (OSError, ValueError):
        return b"", {}
    return data, found if isinstance(found, dict) else {}
