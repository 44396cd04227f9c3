"""Detects that another version of rooda was installed during a loop, and keeps the loop from importing it."""

import os
import re
import sys

import rooda
from rooda.base import files
from rooda.errors import UNFINISHED, RoodaError

_VERSION = re.compile(r'^__version__ = "([^"\n]+)"', re.MULTILINE)
REMOVED = "none"
HINT = "No further agent is started. Resume with the installed version: rooda resume"


class Installed:
    """Compares the installed package with the version that this process runs."""

    def __init__(self, path: str, running: str) -> None:
        self._path, self._running = path, running
        self._mark = files.fingerprint(path)

    def other_version(self) -> str:
        """Return the installed version if it differs from the running one, REMOVED if none is installed, else ""."""
        mark = files.fingerprint(self._path)
        if mark and mark == self._mark:
            return ""
        try:
            found = _VERSION.search(files.text(self._path))
        except OSError:
            return REMOVED
        version = found.group(1) if found else REMOVED
        if version != self._running:
            return version
        self._mark = mark
        return ""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """Refuse to import a module of another version; called by Python before each import."""
        if name.startswith("rooda.") and (version := self.other_version()):
            raise RoodaError(f"{in_words(version)}; the loop stops here.", HINT, UNFINISHED)


_guards: list[Installed] = []  # one per process


def other_version() -> str:
    """Return the result of `Installed.other_version`; "" if `guard` was not called."""
    return _guards[0].other_version() if _guards else ""


def guard() -> None:
    """From now on, refuse to import modules of another version."""
    if not _guards and rooda.__file__:
        _guards.append(Installed(os.path.abspath(rooda.__file__), rooda.__version__))
        sys.meta_path.insert(0, _guards[0])


def in_words(version: str) -> str:
    now = "it is no longer installed" if version == REMOVED else f"version {version} is installed now"
    return f"This loop runs rooda {rooda.__version__}, and {now}"
