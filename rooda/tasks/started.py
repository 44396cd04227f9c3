"""Records that `rooda tasks run` is active, so that `rooda resume --all` starts it again after a crash or a shutdown.

rooda signs the record with the user's key. The record is deleted when the run ends by itself or the user stops the run,
but not after SIGTERM or SIGHUP, which mean a shutdown or a closed terminal; so `rooda tasks stop` deletes it first.
"""

import os
from json import dumps

from rooda.base import files, json, signing
from rooda.base.json import Json
from rooda.processes import lock
from rooda.settings.where import Where
from rooda.tasks.store import Place, Store

FILE = "run.json"
ORDERS = (2, 3)  # SIGINT and SIGQUIT come from the user


def write(store: Store, here: Where, words: list[str]) -> None:
    """Record the options with which the run can be started again."""
    record = dumps({"workspace": here.workspace, "config": here.config or "", "words": words}).encode()
    files.replace(_path(store.place), signing.signed(_purpose(store.place), record) + b"\n", 0o600)


def ended(store: Store, number: int = 0) -> None:
    """Delete the record, unless the run was ended by a signal (`number`) that means a shutdown."""
    if not number or number in ORDERS:
        files.remove(_path(store.place))


def cut_off(place: Place) -> Json:
    """Return the record of a run that was cut off; {} if there is none, or if the run is still active."""
    try:
        data = files.read_ours(_path(place))
        found = json.parse_object(data)
    except (OSError, ValueError):
        return {}
    is_ours = signing.is_signed(_purpose(place), data) and isinstance(found.get("words"), list)
    return found if is_ours and not lock.is_held(place.runner) else {}


def _path(place: Place) -> str:
    return os.path.join(place.folder, FILE)


def _purpose(place: Place) -> str:
    return f"tasks run {os.path.realpath(place.folder)}"
