"""Unpacks the events in a task's ref, so that commands that read runs work on any machine."""

import os

from rooda.base import dirs, files
from rooda.errors import UsageProblem
from rooda.fleet import chain, restore
from rooda.fleet.desk import Desk


def unpacked(desk: Desk, number: int) -> str:
    """Return a folder with a task's events up to its last published iteration. Raises UsageProblem before the first."""
    mirror, remote = desk.git()
    tip = mirror.fetch(number)
    entries = remote.entries(tip) if tip else ()
    if chain.last_turn(entries) is None:
        raise UsageProblem(f"Task {number} has no published events yet.", f"See it: rooda tasks show {number} --fleet")
    folder = os.path.join(dirs.data("fleet"), "read", f"{desk.key}-{number}", tip)
    if not os.path.isdir(folder):
        files.remove_tree(os.path.dirname(folder))
        files.make_folder(os.path.dirname(folder))
        restore.unpack_events(mirror, entries, folder)
    return folder
