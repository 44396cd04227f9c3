"""Prepares the process in which `rooda tasks run` runs the loop of one task."""

from rooda.errors import RoodaError
from rooda.loops import configuration
from rooda.processes import children
from rooda.settings.setup import new_worktree
from rooda.settings.where import Where
from rooda.tasks import outcome, work
from rooda.tasks.store import Store, place_of
from rooda.views.say import say


def prepare(workspace: str, config: str, number: str, parent: str) -> list[str]:
    """Prepare the clone of a task and return the command line of its loop.

    From then on, this process gets SIGTERM when `parent` dies.
    """
    here = Where(workspace, config)
    store = Store(place_of(here.workspace))
    try:
        found = configuration.load(here.workspace, here.config)
        work.check(found, store.get(int(number)), here.workspace)
    except RoodaError as problem:
        problem.code = outcome.GENERAL
        raise
    words = work.prepare(store, found, new_worktree(found), here, int(number), say)
    children.end_with(int(parent))
    return words
