"""Starts the loop of one task in a separate process. click is not loaded, so that the loop starts sooner."""

import os

from rooda.errors import OK, RoodaError
from rooda.loops import configuration
from rooda.settings.setup import new_worktree
from rooda.settings.where import Where
from rooda.tasks import outcome, work
from rooda.tasks.store import Store, place_of
from rooda.views.say import say


def main(workspace: str, config: str, number: str, parent: str) -> int:
    """Prepare the clone of a task and replace this process by its loop."""
    here = Where(workspace, config)
    store = Store(place_of(here.workspace))
    try:
        found = configuration.load(here.workspace, here.config)
        work.check(found, store.get(int(number)), here.workspace)
    except RoodaError as problem:
        problem.code = outcome.GENERAL
        raise
    work.work(store, found, new_worktree(found), here, int(number), os.environ, int(parent), say)
    return OK
