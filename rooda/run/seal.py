"""Signs state files whose format has no place for a signature: a seal file holds signed hashes of what rooda wrote."""

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
    """Saved text that would be run or sent to an agent, but that this user has not signed."""

    why: str
    words: Sequence[str]
    sign: Callable[[], None]  # signs the content that the user was shown, even if the file has changed since


class Seal:
    """Hashes of the contents that rooda wrote, signed for one loop in one workspace.

    While a file is replaced, the seal covers its old and its new content, so that it stays valid after a crash.
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
        """Return why the seal is not valid for this user in this workspace; "" if it is valid."""
        return folder.elsewhere(self._said, self._workspace) if self.signed else folder.UNSIGNED

    def cover(self, data: bytes, before: Iterable[str] = ()) -> None:
        """Seal `data`. Hashes in `before` remain sealed if the seal already has them.

        Raises OSError if an existing seal can't be replaced.
        """
        self.write([files.sha256(data), *(sha for sha in before if sha in self.hashes)])

    def write(self, hashes: Iterable[str]) -> None:
        """Write a new seal with these hashes."""
        wanted = list(dict.fromkeys(hashes))
        said = {"ours": wanted, **place_of(self._workspace)}
        data = signing.signed(self._what, json.dumps(said).encode()) + b"\n"
        try:
            make_home(os.path.dirname(self._path))
            files.replace(self._path, data)
        except OSError:
            if self.exists:
                raise
            return  # there was no seal before: the state is saved without one
        self._data, self._said, self.hashes, self.exists = data, said, wanted, True

    def covers(self, data: bytes) -> bool:
        """True if the seal covers this content, or there is no seal."""
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
