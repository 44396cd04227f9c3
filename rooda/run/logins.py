"""Copies an agent's login and settings into the HOME of its sandbox, and copies a renewed login back."""

import os
from collections.abc import Iterable

from rooda.base import files
from rooda.base.json import parse_object

LARGEST = 16_777_216  # bytes of such a file


class Logins:
    """The files of one agent in its HOME in the sandbox."""

    def __init__(self, home: str, private: str) -> None:
        self._home, self._private = home, private
        self._brought: dict[str, bytes] = {}  # content of each login as it was taken along

    def take_along(self, logins: Iterable[str], others: Iterable[str]) -> None:
        """Copy the files that exist in the user's HOME; the CLI may change its copies."""
        for name in logins:
            self._brought[name] = self._copy(name)
        for name in others:
            self._copy(name)

    def _copy(self, name: str) -> bytes:
        target = os.path.join(self._private, name)
        try:
            data = files.read(os.path.join(self._home, name), LARGEST)
            if _content(target) != data:
                files.make_real_folder(self._private, os.path.dirname(name), private=True)
                files.replace(target, data, 0o600, synced=False)
        except OSError:
            return b""
        return data

    def bring_back(self) -> None:
        """Save each login that the CLI has renewed, since the service may have revoked the old one.

        Only a JSON file replaces a JSON file, and only if the user's file has not changed since it was copied.
        """
        for name, before in self._brought.items():
            own, renewed = os.path.realpath(os.path.join(self._home, name)), _content(os.path.join(self._private, name))
            if before and renewed not in (b"", before) and _is_object(renewed) and _content(own) == before:
                files.replace(own, renewed, 0o600)
        self._brought.clear()


def _is_object(data: bytes) -> bool:
    try:
        parse_object(data)
    except ValueError:
        return False
    return True


def _content(path: str) -> bytes:
    try:
        return files.read_ours(path, LARGEST)
    except OSError:
        return b""
