"""`rooda reflex diff [ALIAS]`: what changed from one iteration to another."""

import click

from rooda.errors import OK, UsageProblem
from rooda.loops.reflex.places import named, newest
from rooda.loops.reflex.reflex_sections import changed
from rooda.loops.reflex.status import tab_aliases
from rooda.loops.reflex.versions import Version, text_of, version, versions
from rooda.settings.where import where


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
