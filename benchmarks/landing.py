"""Landing independent branches, over the git commands and gates that a person would type for the same."""

import os
import shutil
from collections.abc import Iterator

from benchmarks.bench import Bench, Workspace, repository
from benchmarks.measure import once
from benchmarks.verdict import Row

BRANCHES = 50
GATE = "true"
TASKS = """\
import sys
from rooda.git.command import run
from rooda.tasks.model import COMPLETED, Task
from rooda.tasks.store import Store, place_of
folder, count, gate = sys.argv[1], int(sys.argv[2]), sys.argv[3]
heads = run(["rev-parse", *(f"branch-{number}" for number in range(1, count + 1))], folder).out.decode().split()
makers = [lambda number, head=head: Task(number, "Branch", "Branch", "main", COMPLETED, gates=(gate,), head=head)
          for head in heads]
Store(place_of(folder)).add_all(lambda: makers)
"""
BY_HAND = f"""
set -e
git worktree add -q --detach ../by-hand main
for number in $(seq %d); do
    git -C ../by-hand rebase -q main branch-$number^0
    (cd ../by-hand && sh -c '{GATE}')
    git merge -q --ff-only "$(git -C ../by-hand rev-parse HEAD)"
done
"""


def rows(bench: Bench) -> Iterator[Row]:
    """The time of one `rooda tasks land` over that of the commands."""
    count = 10 if bench.quick else BRANCHES
    place = _place(bench, count)
    typed = os.path.join(os.path.dirname(place.path), "typed")
    shutil.copytree(place.path, typed, symlinks=True)
    mine = once([bench.rooda, "tasks", "land"], place.env, place.path)
    bare = once(["/bin/sh", "-c", BY_HAND % count], place.env, typed)
    for folder in (place.path, typed):
        once(["/bin/sh", "-c", f"test $(git rev-list --count main) = {count + 1}"], place.env, folder)
    yield Row(0, f"landing {count} independent branches over the bare git commands", mine.wall / bare.wall, 3)


def _place(bench: Bench, count: int) -> Workspace:
    """A repository with a completed task for each branch; each branch writes a file of its own."""
    place = bench.workspace("landing", loop="")
    repository(place, 20, ignored="home/\n")
    home = os.path.join(os.path.dirname(place.path), "home-landing")
    os.mkdir(home)
    place = place._replace(env={**place.env, "HOME": home, "ROODA_DATA_HOME": os.path.join(home, "data")})
    commands = "set -e; git branch -qM main\n"
    for number in range(1, count + 1):
        commands += f"git checkout -q -b branch-{number} main; echo {number} > made-{number}; git add made-{number}\n"
        commands += f"git commit -qm 'branch {number}'; git checkout -q main\n"
    once(["/bin/sh", "-c", commands], place.env, place.path)
    once([bench.python, "-c", TASKS, place.path, str(count), GATE], place.env, place.path)
    return place
