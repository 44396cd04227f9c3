"""`rooda reflex diff [ALIAS]`: what changed from one iteration to another."""

import json
import os
from typing import Any, NamedTuple

import click

from rooda.base import files as base_files
from rooda.base.json import Json
from rooda.base.text import escape_line
from rooda.errors import OK, RoodaError, UsageProblem
from rooda.loops.reflex import files
from rooda.loops.reflex import files as reflex_files
from rooda.loops.reflex.files import Place, meant, named, newest, none_active, without_history
from rooda.loops.reflex.rules import changed, is_number
from rooda.loops.reflex.scoring import hundredths
from rooda.loops.reflex.status import tab_aliases
from rooda.run.folder import RUNS
from rooda.settings.where import where

# `rooda reflex history [ALIAS]`: every event of a loop.


@click.command(short_help="Every event of a loop.")
@click.argument("alias", required=False, shell_complete=tab_aliases)
@click.option("--json", "as_json", is_flag=True, help="The events as they are on disk.")
@click.pass_context
def history(ctx: click.Context, alias: str | None, as_json: bool) -> int:
    """The events of the active loop, or of ALIAS, in order."""
    workspace = where(ctx).workspace
    place = meant(workspace, alias)
    if place is None:
        raise none_active(workspace)
    found = files.look(place)
    if found.no_history:
        raise without_history(place, found)
    for event in found.history:
        click.echo(json.dumps(event, ensure_ascii=False) if as_json else escape_line(line(event)))
    return OK


def line(event: Json) -> str:
    cells = (event.get(key, "?") for key in ("ts", "iteration", "phase", "step", "event"))
    when, iteration, phase, step, name = map(str, cells)
    status = "" if event.get("status") == "ok" else f"  {event.get('status')}"
    return f"{when}  {iteration:>2}  {phase}  {step:<15}  {name:<18}{status}{_more(event)}".rstrip()


def _ids(entries: list[Any]) -> list[Any]:
    return [entry.get("id") for entry in entries if isinstance(entry, dict)]


def _more(event: Json) -> str:
    payload, name = event.get("payload"), event.get("event")
    if not isinstance(payload, dict):
        return ""
    if name == "evaluation_done" and is_number(payload.get("score")):
        entries = payload.get("failed")
        failed = ", ".join(str(entry) for entry in _ids(entries if isinstance(entries, list) else []))
        return f"  {hundredths(payload['score'])} {'PASS' if payload.get('passed') else 'FAIL'} {failed}"
    if name in ("stopped", "failed"):
        return f"  {payload.get('status')}: {payload.get('detail') or payload.get('reason')}"
    return f"  {payload.get('error')}" if name == "phase_error" else ""


# `rooda reflex show [ALIAS]`: the artifact in full, of now or of an earlier iteration.


@click.command(short_help="The artifact in full.")
@click.argument("alias", required=False, shell_complete=tab_aliases)
@click.option("--iteration", type=click.IntRange(min=1), metavar="N", help="As it was evaluated in iteration N.")
@click.pass_context
def show(ctx: click.Context, alias: str | None, iteration: int | None) -> int:
    """The artifact of the active loop, else of the latest; or of ALIAS."""
    workspace = where(ctx).workspace
    place = named(workspace, alias) if alias else newest(workspace)
    if place is None:
        raise UsageProblem("There are no loops here.", "Start one with: rooda reflex new TASK")
    if iteration is None:
        data = reflex_files.artifact_if_readable(place)
        if data is None:
            raise RoodaError(f"The loop '{place.alias}' has no artifact yet.")
        click.echo(base_files.to_text(data), nl=False)
        return OK
    wanted = version(place, iteration)
    text = text_of(place, wanted.digest)
    if text is None:
        rows = "\n".join(f"  {digest}  {name}" for name, digest in wanted.sections.items())
        raise RoodaError(
            f"The text of iteration {iteration} is not on this machine any more; its sections were:\n{rows}"
        )
    click.echo(text, nl=False)
    return OK


# Earlier artifacts: the history has their hashes, and the private notes of the runs their texts, if still there.


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
    now = reflex_files.artifact_if_readable(place)
    if now is not None and base_files.sha256(now) == digest:
        return base_files.to_text(now)
    runs = os.path.join(place.workspace, RUNS)
    for run in sorted(base_files.list_folder(runs), reverse=True):
        if f"-{place.alias}-" not in run:
            continue
        for name in sorted(base_files.list_folder(os.path.join(runs, run))):
            if name.startswith("artifact-") and digest[:16] in name:
                data = _read(os.path.join(runs, run, name))
                if data is not None and base_files.sha256(data) == digest:
                    return base_files.to_text(data)
    return None


def _read(path: str) -> bytes | None:
    try:
        return base_files.read_ours(path)
    except OSError:
        return None


@click.command(short_help="What changed between iterations.")
@click.argument("alias", required=False, shell_complete=tab_aliases)
@click.option("--from", "start", type=click.IntRange(min=1), metavar="N", help="The older iteration.")
@click.option("--to", "end", type=click.IntRange(min=1), metavar="N", help="The newer one.")
@click.pass_context
def diff(ctx: click.Context, alias: str | None, start: int | None, end: int | None) -> int:
    """The artifact's changes between two evaluated iterations; without numbers between the latest two."""
    workspace = where(ctx).workspace
    place = named(workspace, alias) if alias else newest(workspace)
    if place is None:
        raise UsageProblem("There are no loops here.", "Start one with: rooda reflex new TASK")
    known = versions(place)
    if len(known) < 2 and None in (start, end):
        click.echo(f"'{place.alias}' has {len(known)} evaluated iterations; there is nothing to compare.")
        return OK
    new = version(place, end) if end else known[-1]
    earlier = [version(place, start)] if start else [each for each in known if each.iteration < new.iteration]
    if not earlier:
        click.echo(f"No iteration of '{place.alias}' before {new.iteration} was evaluated: nothing to compare.")
        return OK
    old = earlier[-1]
    texts = text_of(place, old.digest), text_of(place, new.digest)
    rows = _lines(texts[0], texts[1], old, new) if None not in texts else _sections(old, new)
    click.echo("\n".join(rows))
    return OK


def _lines(before: str | None, after: str | None, old: Version, new: Version) -> list[str]:
    import difflib

    names = (f"iteration {old.iteration} ({old.digest[:8]})", f"iteration {new.iteration} ({new.digest[:8]})")
    rows = difflib.unified_diff((before or "").splitlines(), (after or "").splitlines(), *names, lineterm="")
    return list(rows) or ["Nothing changed."]


def _sections(old: Version, new: Version) -> list[str]:
    """The texts are gone; the history has the sections' hashes."""
    head = f"Sections changed from iteration {old.iteration} to {new.iteration} (the texts are not here any more):"
    return [head, *(f"  {name}" for name in changed(old.sections, new.sections) or ["none"])]
