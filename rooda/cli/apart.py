"""`--worktree`: the loop works in a git worktree of its own, and the person is told where and how to go on."""

import os
import shlex

from rooda.cli.where import Where
from rooda.report.lines import Line
from rooda.report.screen import Screen
from rooda.settings import sources
from rooda.world import worktree


def moved(where: Where, procedure: str, screen: Screen) -> Where:
    """A new worktree as the place to work in; the settings stay those of the place where the command was typed."""
    tree = worktree.around(where.workspace)
    left = worktree.uncommitted(tree)
    own = worktree.make(tree, procedure)
    _say(screen, f"Worktree: {own.root} on the new branch {own.branch}")
    if left:
        _say(screen, f"It begins at the last commit; not in it: {left} uncommitted change{'s' * (left > 1)}")
    config = where.config or sources.workspace_file(where.workspace)
    return Where(own.workspace, config if os.path.lexists(config) else None)


def say_end(where: Where, procedure: str, screen: Screen) -> None:
    """What to type next: nobody remembers paths in the morning."""
    tree = worktree.around(where.workspace)
    name = os.path.basename(tree.top)
    there, config = shlex.quote(where.workspace), f" --config {shlex.quote(where.config)}" if where.config else ""
    _say(screen, f"What it committed: git log -p HEAD..rooda/{name}; what it did not: git -C {there} status")
    _say(screen, f"Keep it: git merge rooda/{name}. Once it is merged, rooda prune removes the worktree.")
    if os.path.lexists(os.path.join(where.workspace, ".rooda", "state", f"{procedure}.json")):
        _say(screen, f"It can go on: rooda -C {there}{config} resume {procedure}")


def _say(screen: Screen, text: str) -> None:
    screen.line(Line("info", text, aside=True))
