"""Completed tasks without a loop: each has a commit of its own in the repository, as a loop would have left it."""

import os
import subprocess
from collections.abc import Mapping

from rooda.tasks.model import COMPLETED, Task
from rooda.tasks.store import Store, place_of

from .workspace import Workspace


def complete(
    repo: Workspace, files: Mapping[str, str], base: str = "main", target: str = "", gate: str = "true"
) -> int:
    """Add a task whose branch writes these files on top of `base`; return its id."""
    words = ("--target", target) if target else ()
    added = repo.rooda("tasks", "add", f"Write {' '.join(files)}", "--gate", gate, *words)
    assert added.code == 0, added
    number = int(added.out.split()[2].rstrip(":"))
    settle(repo, number, commit_of(repo, files, base))
    return number


def settle(repo: Workspace, number: int, head: str) -> None:
    """Let a task be completed with this commit."""

    def settled(task: Task) -> Task:
        return task._replace(state=COMPLETED, head=head, branch=f"rooda/{number}-task", started_at=task.created_at)

    Store(place_of(repo.path)).change(number, settled, "ended")
    repo.git("update-ref", f"refs/rooda/task/{number}", head)
    repo.git("update-ref", f"refs/heads/rooda/{number}-task", head)


def commit_of(repo: Workspace, files: Mapping[str, str], base: str, *parents: str) -> str:
    """Make a commit on top of `base` with these files changed ("" deletes one), without touching the checkout."""
    index = {"GIT_INDEX_FILE": os.path.join(repo.root, "scratch.index")}

    def git(*words: str, stdin: str = "") -> str:
        done = subprocess.run(
            ["git", *words],
            cwd=repo.path,
            env=repo.env | index,
            input=stdin,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    git("read-tree", base)
    for name, text in files.items():
        if text:
            git(
                "update-index",
                "--add",
                "--cacheinfo",
                f"100644,{git('hash-object', '-w', '--stdin', stdin=text)},{name}",
            )
        else:
            git("update-index", "--force-remove", name)
    more = (word for parent in parents for word in ("-p", parent))
    return git("commit-tree", git("write-tree"), "-p", base, *more, "-m", f"write {' '.join(files)}")
