"""The workspaces in which this user ran loops: one small file each, so that nobody needs a lock to add or forget one.

It serves `rooda status --all` and `rooda resume --all`. Best effort: a workspace that can't be noted hinders no loop.
"""

import json
import os

from rooda.base import dirs, files


def note(workspace: str) -> None:
    """A loop begins there. Written once; afterwards it is one look whether the file is there."""
    real = os.path.realpath(workspace)
    path = _path(real)
    if not path or os.path.exists(path):
        return
    try:
        files.make_folder(os.path.dirname(path))
        files.replace(path, json.dumps({"workspace": real}).encode() + b"\n", 0o600)
    except OSError:
        pass


def known() -> list[str]:
    """All that still exist; those that are gone are forgotten."""
    home = dirs.state("workspaces")
    found = []
    for name in files.list_folder(home) if home else ():
        path = os.path.join(home, name)
        workspace = _read(path) if name.endswith(".json") else ""
        if workspace and os.path.isdir(workspace):
            found.append(workspace)
        elif workspace:
            _forget(path)
    return sorted(found)


def _read(path: str) -> str:
    """ "" for what is none of ours."""
    try:
        workspace = json.loads(files.read_ours(path))["workspace"]
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return ""
    return workspace if isinstance(workspace, str) and os.path.isabs(workspace) else ""


def _forget(path: str) -> None:
    try:
        files.remove(path)
    except OSError:
        pass


def _path(workspace: str) -> str:
    return dirs.state("workspaces", f"{files.sha256(files.to_bytes(workspace))[:24]}.json")
