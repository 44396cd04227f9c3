"""Records the workspaces in which this user ran loops, for `rooda status --all` and `rooda resume --all`.

Each has its own small file, so that no lock is needed. A failure to record a workspace does not stop a loop.
"""

import json
import os

from rooda.base import dirs, files


def record(workspace: str) -> None:
    """Record a workspace. The first call writes its file; later calls only check that the file exists."""
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
    """Return the recorded workspaces that still exist; remove the records of those that don't."""
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
    """Read a workspace's path from its record; "" if the record is invalid."""
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
