"""Lists everything that rooda keeps outside of workspaces, for `rooda doctor --paths`.

A test compares the tables with the code that uses these folders.
"""

import glob
import os
import shlex
import sys
from collections.abc import Iterator
from typing import NamedTuple

from rooda.base import dirs, files, signing
from rooda.cli import completion, service
from rooda.errors import RoodaError
from rooda.run.folder import MEMORY
from rooda.settings import layers

STATE = {
    "agents-tested": "which agents `rooda agents test` passed",
    "commits": "which commits existed before agents in a sandbox started, for each repository",
    "counts": "ended and failed iterations, for `rooda metrics`",
    "empty": "an empty file, which a sandbox mounts over files that it hides",
    "homes": "HOME of agents and gates in a sandbox, for each project; `rooda prune` deletes those of deleted projects",
    "key": "the key that signs what a resume relies on; without it, a resume asks first: `rooda trust --state`",
    "ledger": "what each call cost; without it, budgets over all runs begin at zero",
    "limits": "how long the usage limit of each account lasts",
    "locks": "a second lock of each loop; delete it only while no loop runs",
    "page": "the file with which a running `rooda page` opens a browser",
    "trust": "what you trust, and when loops ran; without it, rooda asks again",
    "workspaces": "your workspaces, for `rooda status --all` and `rooda resume --all`",
}
CACHE = {"tokens": "token counts of prompts", "versions": "versions of the agent CLIs"}
DATA = {
    "fleet": "mirrors and clones of `rooda worker` and `rooda tasks --fleet`; delete it only while no worker runs",
    "tasks": "clones of tasks; work that has not landed may be nowhere else, and `rooda tasks clean` keeps it",
}
UNKNOWN = "not written by this version of rooda"
TEMPORARY = "rooda-*"  # names of temporary files and folders; those of killed processes stay


class Kept(NamedTuple):
    """A file or folder outside of workspaces. `remove`: commands that remove it."""

    path: str
    what: str
    remove: str
    exists: bool
    bytes: int


def kept() -> list[Kept]:
    """Return all places outside of workspaces, including those that do not exist on this machine."""
    rows = [*_settings(), *_folders(), *_shells(), *_service(), *_temporary()]
    return [_row(*row) for row in {row[0]: row for row in rows}.values()]


def _row(path: str, what: str, remove: str) -> Kept:
    found = [each for each in glob.glob(path) if _is_ours(each)] if path.endswith(TEMPORARY) else [path]
    return Kept(path, what, remove, any(map(os.path.lexists, found)), sum(map(_size, found)))


def _settings() -> Iterator[tuple[str, str, str]]:
    for path, what in (
        (layers.user_file(os.environ), "your settings"),
        (service.environment_file(), "variables for the service, such as keys of agents"),
    ):
        yield path, what, _delete(path)


def _folders() -> Iterator[tuple[str, str, str]]:
    """Yield what the folders of state, cache and data hold, including files that this version does not know."""
    others = {completion.place_of(shell).path for shell in completion.SHELLS}
    for place, known in ((dirs.state(), STATE), (dirs.cache(), CACHE), (dirs.data(), DATA)):
        names = {**known, **dict.fromkeys(files.list_if_readable(place), UNKNOWN), **known} if place else {}
        for name, what in names.items():
            path = signing.path() if (place, name) == (dirs.state(), "key") else os.path.join(place, name)
            if path not in others:
                yield path, what, _delete(path)


def _shells() -> Iterator[tuple[str, str, str]]:
    for shell in completion.SHELLS:
        place = completion.place_of(shell)
        line = f", and a line in {place.start_up}" if place.start_up else ""
        yield place.path, f"completion for {shell}{line}", f"rooda completion uninstall {shell}"


def _service() -> Iterator[tuple[str, str, str]]:
    try:
        manager = service.manager_here()
    except RoodaError:
        return
    yield manager.path, "the service that resumes loops", "rooda service uninstall"
    if sys.platform == "darwin":
        log = service.log_file()
        yield log, "output of the service", _delete(log)


def _temporary() -> Iterator[tuple[str, str, str]]:
    import tempfile

    what = "temporary files, such as those of a run whose disk is full; delete them only while no rooda runs"
    for folder in dict.fromkeys((tempfile.gettempdir(), MEMORY)):
        path = os.path.join(folder, TEMPORARY)
        yield path, what, f"rm -rf {shlex.quote(folder)}/{TEMPORARY}"


def _is_ours(path: str) -> bool:
    try:
        return os.lstat(path).st_uid == os.geteuid()
    except OSError:
        return False


def _delete(path: str) -> str:
    return f"rm -rf {shlex.quote(path)}"


def _size(path: str) -> int:
    """Return the bytes that a file or folder takes on disk; a file with several names counts once."""
    seen: dict[tuple[int, int], int] = {}
    for folder, inner, names in os.walk(path):
        for each in (folder, *(os.path.join(folder, name) for name in (*inner, *names))):
            _add(each, seen)
    _add(path, seen)
    return sum(seen.values())


def _add(path: str, seen: dict[tuple[int, int], int]) -> None:
    try:
        facts = os.lstat(path)
    except OSError:
        return
    seen[facts.st_dev, facts.st_ino] = facts.st_blocks * 512


def in_words(rows: list[Kept]) -> Iterator[str]:
    """Yield the lines for the screen: size, path and meaning of each place that exists here."""
    here = [row for row in rows if row.exists]
    for row in here:
        yield f"{_amount(row.bytes):>8}  {row.path}"
        yield f"{'':8}  {row.what}"
        yield f"{'':8}  remove: {row.remove}"
    yield f"{_amount(sum(row.bytes for row in here)):>8}  in {len(here)} of {len(rows)} places; --json lists all."
    yield "Each workspace's .rooda and git folder hold the rest; rooda status --all lists the workspaces."


def _amount(size: int) -> str:
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= factor:
            return f"{size / factor:.1f} {unit}"
    return f"{size} B"
