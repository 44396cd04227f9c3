"""Folders that come and go while rooda looks at them."""

import os
import signal
import sys

from tests.kit.goal import SPEC, Goals
from tests.kit.processes import Running, until

MANY = 1000  # files in a folder: looking at all of them takes longer than moving it away
MOVING = """\
import os, sys, time
end = time.monotonic() + float(sys.argv[1])
pairs = list(zip(sys.argv[2::2], sys.argv[3::2]))
while time.monotonic() < end:
    for there, here in pairs:
        os.rename(there, here)
    for there, here in pairs:
        os.rename(here, there)
"""


def full_folders(g: Goals, count: int) -> list[str]:
    """Pairs of places: a folder full of files that no one counts, and where in the workspace it comes and goes."""
    pairs = []
    for number in range(count):
        folder = f"{g.fake}/full-{number}"
        os.mkdir(folder)
        for each in range(MANY):
            open(f"{folder}/{each}.tmp", "w").close()
        pairs += [folder, g.file(f"full-{number}")]
    return pairs


def test_C_093_folders_that_vanish_while_edits_are_counted(g: Goals) -> None:
    """An agent moves a folder in and out all the time: its edits are counted and the goal comes to its end."""
    g.succeeds()
    script = g.write("moving.py", MOVING)
    g.side("step-1", f"{sys.executable} {script} 2 {' '.join(full_folders(g, 2))}")
    ran = g.run()
    assert ran.code == 0 and "<loop-complete>" in ran.lines, ran.both


def test_folders_that_vanish_while_a_crashed_goal_continues(g: Goals) -> None:
    """What the dead call had changed is searched for among folders that somebody moves: continue comes to its end."""
    folders = full_folders(g, 3)
    g.succeeds()
    g.side("step-2", '[ -e "$FAKE/once" ] || { touch "$FAKE/once" left.txt; kill -9 $PPID; sleep 60 & wait; }')
    g.start("goal", "run", SPEC).finish()
    until(lambda: not g.leftovers(), what="nobody left")
    command = [sys.executable, "-c", MOVING, "60", *folders]
    moving = Running(command, g.env, g.path, f"{g.root}/moving", None)
    g.running.append(moving)
    until(lambda: g.exists("full-0"), what="the first move")
    ran = g.go_on()
    moving.signal(signal.SIGKILL)
    moving.finish()
    assert ran.code == 0 and "it had changed: left.txt" in g.calls[3].prompt.decode(), ran.both
