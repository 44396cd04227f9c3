"""Reports a landing to the task's source (`add --sync`): ticks the task's box in a file, or closes its issue.

A box in a tracked file is ticked in the commit that lands. After the landing, boxes in untracked files are ticked and
issues are closed; if that fails, the next landing tries again.
"""

import os
from collections.abc import Callable, Mapping

from rooda.base import files
from rooda.errors import RoodaError
from rooda.git.repository import Repo
from rooda.tasks import forge_issues, model, sources
from rooda.tasks.model import Task
from rooda.tasks.sources import FILE, FORGES
from rooda.tasks.store import Store


def tick(clone: Repo, task: Task, commit: str) -> str:
    """Tick the task's box in the commit that lands, which the clone has checked out; return the new commit."""
    place = task.source.place
    path = os.path.join(clone.top, place)
    if not _has_box(task) or not _tracks(clone, "HEAD", place) or os.path.islink(path) or not _ticked(path, task):
        return commit
    clone.run_checked("add", "--", place)
    clone.run_checked("commit", "-q", "--amend", "--no-edit", "--no-verify", "--allow-empty-message")
    return clone.text("rev-parse", "HEAD")


def carry_back(store: Store, env: Mapping[str, str], say: Callable[[str], None]) -> None:
    """Tick boxes in untracked files and close issues for all tasks that have landed but are not synced yet."""
    for task in store.all().values():
        source = task.source
        if task.state != model.LANDED or not source.sync or source.synced:
            continue
        try:
            _carry_back(store.place.repo, task, env)
        except (OSError, RoodaError) as problem:
            say(f"Task {task.id} has landed, but {source.place} was not changed: {str(problem).splitlines()[0]}")
            continue
        store.change(task.id, lambda now: now._replace(source=now.source._replace(synced=True)), "synced")


def _carry_back(repo: Repo, task: Task, env: Mapping[str, str]) -> None:
    source = task.source
    if source.kind in FORGES:
        forge_issues.close(source.kind, source.place, f"Landed on {task.target}.", repo.workspace, env)
    elif _has_box(task) and not _tracks(repo, task.target, source.place):
        _ticked(os.path.join(repo.top, source.place), task)


def _has_box(task: Task) -> bool:
    return task.source.sync and task.source.kind == FILE


def _tracks(repo: Repo, commit: str, place: str) -> bool:
    """True if a commit contains the file. A file outside of the repository has an absolute path."""
    return not os.path.isabs(place) and bool(repo.run("ls-tree", "--name-only", commit, "--", place).out)


def _ticked(path: str, task: Task) -> bool:
    """Tick the task's box in a file; return False if the box is ticked already, or the box or file is missing."""
    from rooda.base import workspace_files

    folder = os.path.dirname(path)
    try:
        before = workspace_files.text(folder, path)
    except FileNotFoundError:
        return False
    after = sources.ticked(before, task.source)
    if after != before:
        files.replace(os.path.realpath(path), files.to_bytes(after), os.stat(path).st_mode & 0o777)
    return after != before
