"""Counts what a run changed in the work tree, compared with HEAD and the uncommitted files at its start. Read-only."""

import os

from rooda.base import files
from rooda.base.json import Json
from rooda.errors import Interrupted
from rooda.git import command
from rooda.git.traces import head_commit

TIMEOUT = 10.0  # seconds; if git takes longer, nothing is counted
MOST_DIRTY = 1_000  # uncommitted files at the start; if there are more, nothing is counted
LARGEST = 1_048_576  # bytes of a new file whose lines are counted
_OWN = (".rooda/", ".loop/", ".ai-factory/", ".ai-loop/")  # files of loops


def beginning(workspace: str) -> Json:
    """Return the commit of HEAD as `head`, and the size and modification time of each uncommitted file as `dirty`.

    Return {} if there is no git repository, if it has no commit, or if there are too many uncommitted files.
    """
    head = head_commit(workspace)
    status = _git(workspace, "status", "--porcelain", "-z", "--no-renames", "--untracked-files=all") if head else None
    if status is None:
        return {}
    paths = [row[3:] for row in status.split("\0") if row]
    return {"head": head, "dirty": {path: _mark(workspace, path) for path in paths}} if len(paths) < MOST_DIRTY else {}


def since(began: Json, workspace: str) -> Json:
    """Count commits, changed files and changed lines since `began`, a result of `beginning`; {} if git fails."""
    head, dirty = str(began.get("head", "")), began.get("dirty", {})
    changed = _git(workspace, "diff", "--numstat", "-z", "--no-renames", "--no-ext-diff", "--no-textconv", head, "--")
    new = _git(workspace, "ls-files", "-z", "-o", "--exclude-standard", "--full-name", ":/")
    if not head or changed is None or new is None:
        return {}
    rows = [row.split("\t", 2) for row in changed.split("\0") if row.count("\t") >= 2]
    counts = {path: (_number(added), _number(removed)) for added, removed, path in rows}
    counts |= {path: (_lines(workspace, path), 0) for path in new.split("\0") if path}
    for path in [path for path in counts if path.startswith(_OWN) or dirty.get(path) == _mark(workspace, path)]:
        del counts[path]
    commits = _git(workspace, "rev-list", "--count", f"{head}..HEAD") if head_commit(workspace) != head else "0"
    return {
        "files": len(counts),
        "added": sum(added for added, _ in counts.values()),
        "removed": sum(removed for _, removed in counts.values()),
        "commits": _number((commits or "").strip()),
    }


def _git(workspace: str, *args: str) -> str | None:
    """Return git's output for the whole work tree; None if it fails."""
    try:
        env = {**os.environ, "GIT_OPTIONAL_LOCKS": "0"}  # the user's index stays untouched
        done = command.run([*args], workspace, env=env, timeout=TIMEOUT, literal=False)
    except (Interrupted, OSError):
        return None
    return None if done.code else files.to_text(done.out)


def _number(text: str) -> int:
    return int(text) if text.isdecimal() else 0


def _place(workspace: str, path: str) -> str:
    """Return the absolute path of a file that git names relative to the top of the repository."""
    from rooda.base.workspace_files import upward

    return os.path.join(upward(os.path.realpath(workspace))[-1], path)


def _mark(workspace: str, path: str) -> list[int]:
    try:
        facts = os.lstat(_place(workspace, path))
    except OSError:
        return []
    return [facts.st_size, facts.st_mtime_ns]


def _lines(workspace: str, path: str) -> int:
    """Return the number of lines of a new file; 0 for a large or binary one."""
    try:
        place = _place(workspace, path)
        data = b"" if os.path.islink(place) else files.read(place, LARGEST)
    except OSError:
        return 0
    return 0 if b"\0" in data else data.count(b"\n") + (not data.endswith(b"\n") and bool(data))
