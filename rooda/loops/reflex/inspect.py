"""Shows a loop's history and earlier artifacts. The history has each artifact's hash; run folders may have its text."""

import json
import os
from typing import Any, NamedTuple

from rooda.base import files as base_files
from rooda.base.json import Json
from rooda.errors import RoodaError, UsageProblem
from rooda.loops.reflex import files as reflex_files
from rooda.loops.reflex.files import Place
from rooda.loops.reflex.history import DONE
from rooda.loops.reflex.rules import changed, is_number
from rooda.loops.reflex.scoring import hundredths
from rooda.run.folder import RUNS

KNOWN = (*DONE, "run_started", "phase_switched", "iteration_advanced", "stopped", "failed", "phase_error")
WIDEST = 200  # characters of a payload that rooda does not know


class Version(NamedTuple):
    """An evaluated artifact: its iteration, its hash, and the hashes of its sections."""

    iteration: int
    digest: str
    sections: Json


def event_line(event: Json) -> str:
    cells = (event.get(key, "?") for key in ("ts", "iteration", "phase", "step", "event"))
    when, iteration, phase, step, name = map(str, cells)
    status = "" if event.get("status") == "ok" else f"  {event.get('status')}"
    return f"{when}  {iteration:>2}  {phase}  {step:<15}  {name:<18}{status}{_details(event)}".rstrip()


def versions(place: Place) -> list[Version]:
    """Return one version per evaluated iteration, oldest first."""
    found: dict[int, Version] = {}
    for event in reflex_files.load(place).history:
        payload = event.get("payload", {})
        if event["event"] == "evaluation_done" and isinstance(payload.get("sections"), dict):
            number = event["iteration"]
            found[number] = Version(number, str(payload.get("artifact_hash")), payload["sections"])
    return [found[number] for number in sorted(found)]


def version(place: Place, iteration: int) -> Version:
    known = versions(place)
    for each in known:
        if each.iteration == iteration:
            return each
    numbers = ", ".join(str(each.iteration) for each in known) or "none"
    raise UsageProblem(f"Iteration {iteration} of '{place.alias}' was not evaluated.", f"Evaluated so far: {numbers}")


def text_of(place: Place, digest: str) -> str | None:
    """Return the artifact with this hash from the current file or a run folder's copy; None if neither has it."""
    now = reflex_files.artifact_if_readable(place)
    if now is not None and base_files.sha256(now) == digest:
        return base_files.to_text(now)
    runs = os.path.join(place.workspace, RUNS)
    for run in sorted(base_files.list_if_readable(runs), reverse=True):
        if f"-{place.alias}-" not in run:
            continue
        for name in sorted(base_files.list_if_readable(os.path.join(runs, run))):
            if name.startswith("artifact-") and digest[:16] in name:
                data = _read(os.path.join(runs, run, name))
                if data is not None and base_files.sha256(data) == digest:
                    return base_files.to_text(data)
    return None


def artifact_text(place: Place, iteration: int | None) -> str:
    """Return the current artifact, or the one that an iteration evaluated; raise RoodaError if it no longer exists."""
    if iteration is None:
        data = reflex_files.artifact_if_readable(place)
        if data is None:
            raise RoodaError(f"The loop '{place.alias}' has no artifact yet.")
        return base_files.to_text(data)
    wanted = version(place, iteration)
    text = text_of(place, wanted.digest)
    if text is None:
        rows = "\n".join(f"  {digest}  {name}" for name, digest in wanted.sections.items())
        raise RoodaError(
            f"The text of iteration {iteration} no longer exists on this machine; its sections were:\n{rows}"
        )
    return text


def diff(place: Place, start: int | None, end: int | None) -> list[str]:
    """Return the differences between two evaluated iterations; without numbers, between the latest two."""
    known = versions(place)
    if len(known) < 2 and None in (start, end):
        return [f"Evaluated iterations of '{place.alias}': {len(known)}; there is nothing to compare."]
    new = version(place, end) if end else known[-1]
    earlier = [version(place, start)] if start else [each for each in known if each.iteration < new.iteration]
    if not earlier:
        return [f"No iteration of '{place.alias}' before {new.iteration} was evaluated: nothing to compare."]
    old = earlier[-1]
    before, after = text_of(place, old.digest), text_of(place, new.digest)
    return _sections(old, new) if before is None or after is None else _lines(before, after, old, new)


def _details(event: Json) -> str:
    payload, name = event.get("payload"), event.get("event")
    if not isinstance(payload, dict) or name not in KNOWN:
        return _raw(payload)
    if name == "evaluation_done" and is_number(payload.get("score")):
        entries = payload.get("failed")
        failed = ", ".join(str(entry) for entry in _ids(entries if isinstance(entries, list) else []))
        return f"  {hundredths(payload['score'])} {'PASS' if payload.get('passed') else 'FAIL'} {failed}"
    if name in ("stopped", "failed"):
        return f"  {payload.get('status')}: {payload.get('detail') or payload.get('reason')}"
    if name == "phase_error":
        return f"  {payload.get('error')}"
    return _raw(payload) if name == "evaluation_done" else ""


def _raw(payload: object) -> str:
    text = json.dumps(payload, ensure_ascii=False)
    return f"  {text[:WIDEST]}{'…' * (len(text) > WIDEST)}" if payload else ""


def _ids(entries: list[Any]) -> list[Any]:
    return [entry.get("id") for entry in entries if isinstance(entry, dict)]


def _read(path: str) -> bytes | None:
    try:
        return base_files.read_ours(path)
    except OSError:
        return None


def _lines(before: str, after: str, old: Version, new: Version) -> list[str]:
    import difflib

    names = (f"iteration {old.iteration} ({old.digest[:8]})", f"iteration {new.iteration} ({new.digest[:8]})")
    rows = difflib.unified_diff(before.splitlines(), after.splitlines(), *names, lineterm="")
    return list(rows) or ["Nothing changed."]


def _sections(old: Version, new: Version) -> list[str]:
    """List the sections whose hashes in the history differ. Used if the text of an artifact is gone."""
    head = f"Sections changed from iteration {old.iteration} to {new.iteration} (their texts no longer exist):"
    return [head, *(f"  {name}" for name in changed(old.sections, new.sections) or ["none"])]
