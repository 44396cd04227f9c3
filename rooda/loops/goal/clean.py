"""`rooda goal clean`: deletes the files of a goal that has ended."""

import os

from rooda.base import files
from rooda.base.json import Json
from rooda.errors import OK, StateDamaged, Undecided
from rooda.loops.goal import files as goal_files
from rooda.loops.goal import foreign
from rooda.loops.goal.files import Place
from rooda.loops.goal.store import unfinished
from rooda.processes import lock
from rooda.run import questions
from rooda.settings.where import Where
from rooda.views.say import say


def clean(where: Where, typed: Json) -> int:
    place = Place(where.workspace)
    _require_ended(place)
    reports = goal_files.reports(place)
    kept = [path for path in (place.state, place.run, place.journal) if os.path.lexists(path)]
    if not foreign.is_ours(place):
        foreign.refuse(place)
        reports = {}
    if not (reports or kept):
        say("Nothing to remove.")
        return OK
    if not typed["yes"]:
        answer = questions.typed_answer("Remove the last goal's files from .loop, including its evidence? [y/N] ")
        if (answer or "").strip().lower() not in ("y", "yes"):
            raise Undecided("Not confirmed; nothing was removed.", "Confirm with: --yes")
    if aside := foreign.keep_state(place):
        say(f"Kept, because another program may have written it: {os.path.relpath(aside, place.workspace)}")
    for path in reports:
        files.remove(path)
    goal_files.delete_state(place)
    say("Removed the files of the last goal. Its run is kept. See: rooda logs goal")
    return OK


def _require_ended(place: Place) -> None:
    """Raise Undecided if a goal runs or can be resumed."""
    try:
        is_open = lock.is_held(place.lock) or unfinished(place) is not None
    except StateDamaged:
        is_open = False
    if is_open:
        raise Undecided("The goal has not ended; its files were not removed.", "End it first: rooda goal cancel")
