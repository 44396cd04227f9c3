"""Makes sure that a resume uses only saved commands and prompts that this user signed, or accepts when asked."""

import os
from collections.abc import Iterator
from contextlib import suppress

from rooda.base.json import Json
from rooda.base.secrets import MARK, hide_references
from rooda.base.text import escape_line
from rooda.errors import Undecided
from rooda.loops import registry, remembered
from rooda.loops.trusting import refuse_tracked
from rooda.run import folder, history, questions
from rooda.run.history import SessionLog
from rooda.run.seal import Doubt

_accepted: set[str] = set()  # doubts that the user accepted in this process; needed if there is no key to sign with


def require(workspace: str, kind: str, name: str, begun: str = "") -> None:
    """Ask the user to accept unsigned commands and prompts that a resume would use; raise Undecided if refused.

    `begun`: ID of the session that started the run, if it is known.
    """
    refuse_tracked(workspace)
    found = [*doubts(workspace, kind, name, begun)]
    if not found:
        return
    shown = "\n".join(rows(found))
    ask = f"{shown}\nTrust this, and resume {name}? [y/N] "
    answer = questions.typed_answer(ask) if questions.at_terminal() else None
    if (answer or "").strip().lower() not in ("y", "yes"):
        hint = "If it is yours, sign it: rooda trust --state"
        raise Undecided(
            f"Saved commands or prompts of {name} are not signed by you; nothing was started.\n{shown}", hint
        )
    sign(found)


def sign_all(workspace: str) -> list[str]:
    """Sign everything that a resume in this workspace would use, all recorded orders (stop, pause) and all logs.

    Return what was signed, as lines of text.
    """
    refuse_tracked(workspace)
    lines = list[str]()
    for loop in registry.resumable(workspace):
        found = [*doubts(workspace, loop.kind, loop.name)]
        sign(found)
        lines += rows(found)
        for session in history.sessions(workspace, loop.name, loop.kind):
            lines += _signed_records(session, workspace, loop.kind)
    return lines


def _signed_records(session: SessionLog, workspace: str, kind: str) -> list[str]:
    """Sign a session's start, order and log, so that `rooda resume --all` accepts them; return lines that list them."""
    place, origin, found = session.folder, folder.origin_of(session.folder), list[str]()
    if origin and _doubt_about_start(session, origin, workspace, kind):
        folder.sign_origin(place, {**origin, "loop": kind, **folder.place_of(workspace)})
        found.append(f"{os.path.join(place, folder.ORIGIN_FILE)}: it contains nothing that would run")
    if order := folder.sign_order(place):
        found.append(f"{os.path.join(place, folder.ORDER_FILE)}: {order['order']} {order['reason']!r}")
    if session.ended and not history.is_signed(session.path):
        history.sign(session.path)
        found.append(f"{session.path}: ended, {session.ended.get('reason', '')}")
    return found


def rows(found: list[Doubt]) -> list[str]:
    """Format the unsigned commands and prompts as lines for the user, in full: anything cut off would run unseen."""
    return [line for each in found for line in (escape_line(each.why), *(f"  {escape_line(w)}" for w in each.words))]


def sign(found: list[Doubt]) -> None:
    """Sign commands and prompts that the user accepted. If a signature can't be written, rooda asks again next time."""
    for each in found:
        _accepted.add(each.why)
        with suppress(OSError):
            each.sign()


def doubts(workspace: str, kind: str, name: str, begun: str = "") -> Iterator[Doubt]:
    """Yield the saved commands and prompts that a resume of this loop would use and this user has not signed."""
    session = history.newest(workspace, name, kind, begun)
    found = [_of_start(session, workspace, kind) if session else None, registry.kind(kind).doubt(workspace, name)]
    return (each for each in found if each and each.why not in _accepted)


def _of_start(session: SessionLog, workspace: str, kind: str) -> Doubt | None:
    """Return a session's unsigned options and task; None if they are signed or a resume would use none of them."""
    place, origin = session.folder, folder.origin_of(session.folder)
    words = remembered.words_of(kind, origin) if origin else []
    if MARK in origin.get("task", ""):
        words.append(f"task: {hide_references(origin['task'])}")
    why = _doubt_about_start(session, origin, workspace, kind) if words else ""
    accepted = {**origin, "loop": kind, **folder.place_of(workspace)}
    return Doubt(why, words, lambda: folder.sign_origin(place, accepted)) if why else None


def _doubt_about_start(session: SessionLog, origin: Json, workspace: str, kind: str) -> str:
    is_ours = origin.get("signed") and origin["loop"] == kind
    why = folder.elsewhere(origin, workspace) if is_ours else folder.UNSIGNED
    return f"{os.path.join(session.folder, folder.ORIGIN_FILE)} is {why}" if why else ""


def believed(session: SessionLog, workspace: str, kind: str) -> Json:
    """Return the record of a session's start if this user signed or accepted it; else {}."""
    origin = folder.origin_of(session.folder)
    why = _doubt_about_start(session, origin, workspace, kind)
    return {} if why and why not in _accepted else origin


def why_not(workspace: str, kind: str, name: str, session: SessionLog) -> str:
    """Return why `rooda resume --all` must not resume this run; "" if this user signed all of it."""
    if why := _doubt_about_start(session, folder.origin_of(session.folder), workspace, kind):
        return why
    if session.ended and not history.is_signed(session.path):
        return f"{session.path} is {folder.UNSIGNED}"
    return next((each.why for each in doubts(workspace, kind, name)), "")
