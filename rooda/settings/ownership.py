"""Refuses files of another user that could control a loop, by the same rule as git (safe.directory).

rooda accepts files of the effective user and of root; as root, also those of the user who called sudo.
"""

import os
import stat
from collections.abc import Iterator, Mapping
from typing import Any

from rooda.base.workspace_files import upward
from rooda.errors import ConfigProblem

WATCHED = (".rooda", "AGENTS.md")  # in the workspace; above it, only .git is checked
VARIABLE = "ROODA_TRUST"


def foreign(workspace: str, settings: str, environ: Mapping[str, str]) -> tuple[str, int] | None:
    """Return the first path that another user owns and that could control a loop, and the owner's UID; None if none.

    `settings`: the path of the settings file.
    """
    accepted = _accepted(environ)
    for path in _paths(workspace, settings):
        for uid in _owners(path):
            if uid not in accepted:
                return path, uid
    return None


def is_foreign(path: str, environ: Mapping[str, str]) -> bool:
    """True if another user owns the file, its folder or, if the file is a link, its target."""
    accepted = _accepted(environ)
    return any(uid not in accepted for each in (path, os.path.dirname(path)) for uid in _owners(each))


def _owners(path: str) -> Iterator[int]:
    """Yield the owner of a path and, if it is a link, of its target."""
    try:
        facts = os.lstat(path)
        yield facts.st_uid
        if stat.S_ISLNK(facts.st_mode):
            yield os.stat(path).st_uid
    except (OSError, ValueError):  # missing, or a broken link
        return


def _paths(workspace: str, settings: str) -> Iterator[str]:
    for folder in upward(workspace):
        yield folder
        yield os.path.join(folder, ".git")
    yield settings
    for name in WATCHED:
        yield os.path.join(workspace, name)


def _accepted(environ: Mapping[str, str]) -> set[int]:
    own = {os.geteuid(), 0}
    caller = environ.get("SUDO_UID", "")
    return own | {int(caller)} if 0 in own and os.geteuid() == 0 and caller.isdecimal() else own


def require_own(workspace: str, settings: str, environ: Mapping[str, str], user: Mapping[str, Any]) -> None:
    """Raise ConfigProblem, worded as in git, if files of another user could control a loop and aren't accepted.

    `user`: the user's own settings, where [trust] folders can accept them.
    """
    found = foreign(workspace, settings, environ)
    if found is None or trusted_folder(workspace, environ, user) or _is_safe(workspace):
        return
    (path, uid), top = found, upward(workspace)[-1]
    kind = "repository" if os.path.lexists(os.path.join(top, ".git")) else "workspace"
    who = f"belongs to user {uid}, and rooda runs as user {os.geteuid()}"
    raise ConfigProblem(
        f"detected dubious ownership in {kind} at '{top}': {path} {who}",
        f"To accept it, as git does: git config --global --add safe.directory {_quoted(top)}",
    )


def trusted_folder(path: str, environ: Mapping[str, str], user: Mapping[str, Any]) -> bool:
    """True if the user accepts everything in this folder: by ROODA_TRUST=all, or `[trust] folders` in `user`.

    A pattern covers the folders that it matches and everything below them, so "/" covers everything.
    """
    if environ.get(VARIABLE) == "all":
        return True
    table = user.get("trust", {})
    patterns = table.get("folders", ()) if isinstance(table, Mapping) else ()
    listed = [patterns] if isinstance(patterns, str) else [each for each in patterns if isinstance(each, str)]
    return any(_matches(os.path.realpath(path), os.path.expanduser(pattern)) for pattern in listed)


def _matches(path: str, pattern: str) -> bool:
    import fnmatch

    if not os.path.isabs(pattern):
        return False
    pattern = pattern.rstrip("/") or "/"
    while not fnmatch.fnmatchcase(path, pattern):
        parent = os.path.dirname(path)
        if parent == path:
            return False
        path = parent
    return True


def _is_safe(workspace: str) -> bool:
    """True if safe.directory in the system's or the user's git configuration lists the workspace or its repository."""
    from rooda.git import command

    done = command.run(["config", "--show-scope", "--type=path", "-z", "--get-all", "safe.directory"], "/")
    words = os.fsdecode(done.out).split("\0")
    listed: list[str] = []
    for scope, value in zip(words[::2], words[1::2], strict=False):
        if scope in ("system", "global", "command"):
            listed = [*listed, value] if value else []  # an empty value clears the list
    places = {os.path.realpath(folder) for folder in (workspace, upward(workspace)[-1])}
    return any(value == "*" or _names(value, places) for value in listed)


def _names(value: str, places: set[str]) -> bool:
    if value.endswith("/*"):
        return any(place.startswith(os.path.join(os.path.realpath(value[:-2]), "")) for place in places)
    return os.path.isabs(value) and os.path.realpath(value) in places


def _quoted(path: str) -> str:
    import shlex

    return shlex.quote(path)
