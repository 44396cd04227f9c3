"""Finds private files, which snapshots leave out because other users could read them in git's objects."""

import os
import re
import stat
from collections.abc import Collection, Iterable

from rooda.base import files
from rooda.git.repository import Repo

_SECRET = (
    r"(?i)\.env.*|id_[^.]+|.*\.(?:pem|key|p12|pfx|ppk|jks|keystore|kdbx)|credentials(?:\.\w+)?"
    r"|\.(?:netrc|pgpass|npmrc|pypirc|htpasswd|git-credentials)"
)


def has_secret_name(path: str) -> bool:
    return re.fullmatch(_SECRET, os.path.basename(path)) is not None


class PrivateFiles:
    """Untracked files that only their owner may access, and that are older than the run or have a secret's name.

    `kept`: keep saving files that are already in rooda's own index, since an earlier session of the run saved them.
    `before`: the private files that existed before the run; if None, the first `find` determines them.
    """

    def __init__(self, repo: Repo, kept: bool, before: Collection[str] | None = None) -> None:
        self._repo, self._kept, self._before = repo, kept, None if before is None else frozenset(before)

    def find(self, index: str) -> list[str]:
        """Return the private files to leave out of the next snapshot; `index` is rooda's own index."""
        if not files.usual_mode() & 0o077:
            return []  # the user's umask makes all files private
        untracked = self._untracked(index)
        if self._before is None:
            found = self._unsaved(filter(self._is_private, untracked), index)
            self._before = frozenset(found)
            return found
        known = self._before
        secret = (path for path in untracked if path not in known and has_secret_name(path) and self._is_private(path))
        return sorted([*filter(self._is_private, known.intersection(untracked)), *self._unsaved(secret, index)])

    def _untracked(self, index: str) -> list[str]:
        """Return untracked files that git does not ignore; if the user's index is damaged, rooda's index decides."""
        for each in ("", index, f"{index}.none"):
            listed = self._repo.run("ls-files", "-z", "-o", "--exclude-standard", index=each)
            if listed.code == 0:
                return files.to_text(listed.out).split("\0")[:-1]
        return []

    def _unsaved(self, found: Iterable[str], index: str) -> list[str]:
        paths = sorted(found)
        if not paths or not self._kept:
            return paths
        saved = self._repo.run("ls-files", "-z", "-c", index=index)
        return sorted({*paths}.difference(files.to_text(saved.out).split("\0")))

    def _is_private(self, path: str) -> bool:
        try:
            mode = os.lstat(os.path.join(self._repo.top, path)).st_mode
        except OSError:
            return False
        return stat.S_ISREG(mode) and not mode & 0o077
