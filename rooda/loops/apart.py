"""`--worktree`: the loop works in a git worktree of its own, and the person is told where and how to go on."""

import os
import shlex
from collections.abc import Callable

from rooda.git import worktrees
from rooda.git.repository import position
from rooda.loops import registry
from rooda.processes import detach
from rooda.settings import layers
from rooda.settings.where import Where
from rooda.views.lines import Line
from rooda.views.screen import Screen


def inside(where: Where, kind: str, name: str, screen: Screen, work: Callable[[Where], int]) -> int:
    """Do the work in a new worktree that is called by this name; its exit code."""
    there = _moved(where, name, screen)
    try:
        return work(there)
    finally:
        _say_end(there, kind, screen)


def _moved(where: Where, name: str, screen: Screen) -> Where:
    """A new worktree as the place to work in; the settings stay those of the place where the command was typed."""
    repo = worktrees.required(where.workspace)
    left = worktrees.uncommitted(repo)
    own = worktrees.make(repo, name)
    _say(screen, f"Worktree: {own.root} on the new branch {own.branch}")
    if left:
        _say(screen, f"It begins at the last commit; not in it: {left} uncommitted change{'s' * (left > 1)}")
    for text in detach.reached(own.workspace):
        _say(screen, text)
    config = where.config or layers.workspace_file(where.workspace)
    return Where(own.workspace, config if os.path.lexists(config) else None)


def _say_end(where: Where, kind: str, screen: Screen) -> None:
    """What to type next: nobody remembers paths in the morning."""
    repo = worktrees.required(where.workspace)
    branch = position(repo).branch or f"rooda/{os.path.basename(repo.top)}"
    there, config = shlex.quote(where.workspace), f" --config {shlex.quote(where.config)}" if where.config else ""
    _say(screen, f"What it committed: git log -p HEAD..{branch}; what it did not: git -C {there} status")
    _say(screen, f"Keep it: git merge {branch}. Once it is merged, rooda prune removes the worktree.")
    if waiting := registry.tenant(kind).resumable(where.workspace):
        _say(screen, f"It can go on: rooda -C {there}{config} resume {waiting[0]}")


def _say(screen: Screen, text: str) -> None:
    screen.line(Line("info", text, aside=True))
