"""The lock of the flow that works in a work tree, and whose it is."""

import os

from rooda.processes import lock
from rooda.run import folder


def path_in(git_folder: str) -> str:
    """Inside the work tree's git folder: one flow moves its branch."""
    return os.path.join(git_folder, "rooda", "locks", "flow.lock")


def running_name(path: str) -> str:
    """The run that the holder of the lock works at."""
    run = lock.owner(path).get("run")
    return folder.loop_of(run) if isinstance(run, str) else ""
