"""Earlier artifacts: the history has their hashes, and the private notes of the runs their texts, if still there."""

import os
from typing import NamedTuple

from rooda.base import files
from rooda.base.json import Json
from rooda.errors import UsageProblem
from rooda.loops.reflex import files as reflex_files
from rooda.loops.reflex.files import Place
from rooda.run.folder import RUNS


class Version(NamedTuple):
    """The artifact that an iteration's evaluation was about."""

    iteration: int
    digest: str
    sections: Json


def versions(place: Place) -> list[Version]:
    """One for each iteration that was evaluated, oldest first."""
    found: dict[int, Version] = {}
    for event in reflex_files.look(place).history:
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
    """The text with this hash: the artifact itself, or an answer that is still in a run's folder."""
    now = reflex_files.read_artifact(place)
    if now is not None and files.sha256(now) == digest:
        return files.to_text(now)
    runs = os.path.join(place.workspace, RUNS)
    for run in sorted(files.entries(runs), reverse=True):
        if f"-{place.alias}-" not in run:
            continue
        for name in sorted(files.entries(os.path.join(runs, run))):
            if name.startswith("artifact-") and digest[:16] in name:
                data = _read(os.path.join(runs, run, name))
                if data is not None and files.sha256(data) == digest:
                    return files.to_text(data)
    return None


def _read(path: str) -> bytes | None:
    try:
        return files.read_ours(path)
    except OSError:
        return None
