"""What an open run has not committed, kept in git's folder while another run has the work tree.

Such a state belongs to the tip of its run's branch: once that has moved, the branch knows better.
"""

import os
from collections.abc import Iterator
from typing import NamedTuple

from rooda.base import files
from rooda.git.repository import Repo
from rooda.loops.flow.flow_labels import RUN_ID, run_folder


class Aside(NamedTuple):
    """One run's files, below `root` as they lay below the project."""

    run: str
    tip: str
    root: str

    @property
    def files(self) -> str:
        return os.path.join(self.root, run_folder(self.run))


def all_of(repo: Repo) -> Iterator[Aside]:
    top = _top(repo)
    for name in sorted(os.listdir(top)) if os.path.isdir(top) else ():
        run, _, tip = name.partition("-")
        found = Aside(run, tip, os.path.join(top, name))
        if RUN_ID.fullmatch(run) and os.path.isdir(found.files):
            yield found


def put(repo: Repo, run: str, branch: str) -> None:
    """In one step; the work tree has the files as they were committed then, or none."""
    tip = tip_of(repo, branch)
    aside = Aside(run, tip, os.path.join(_top(repo), f"{run}-{tip}"))
    files.remove_tree(aside.files)
    files.folder(os.path.dirname(aside.files))
    files.rename(os.path.join(repo.workspace, run_folder(run)), aside.files)
    repo.ask("restore", "--staged", "--worktree", "--source=HEAD", "--", repo.inside(run_folder(run)))


def bring_back(repo: Repo, aside: Aside) -> None:
    """On the run's branch. Cut off anywhere, it is done again."""
    place = os.path.join(repo.workspace, run_folder(aside.run))
    files.remove_tree(place)
    files.folder(os.path.dirname(place))
    files.rename(aside.files, place)
    files.remove_tree(aside.root)


def tip_of(repo: Repo, branch: str) -> str:
    return files.to_text(repo.ask("rev-parse", "-q", "--verify", f"refs/heads/{branch}").out).strip()


def _top(repo: Repo) -> str:
    return os.path.join(repo.common, "rooda", "aside")
