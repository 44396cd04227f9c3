"""`rooda reflex clean [ALIAS|--all]`: the files of loops that are over."""

import os

import click

from rooda.base import files as base_files
from rooda.errors import OK, Undecided, UsageProblem
from rooda.loops.reflex import files, store, view
from rooda.loops.reflex import files as reflex_files
from rooda.loops.reflex import store as reflex_store
from rooda.loops.reflex.files import Place, named
from rooda.loops.reflex.state import RUNNING, State, stopped
from rooda.loops.reflex.status import ended, tab_aliases
from rooda.processes import lock
from rooda.run import folder, questions
from rooda.settings.where import where


@click.command(short_help="Remove the files of a loop that is over.")
@click.argument("alias", required=False, shell_complete=tab_aliases)
@click.option("--all", "every", is_flag=True, help="All loops that are not running.")
@click.option("--yes", is_flag=True, help="I confirm.")
@click.pass_context
def clean(ctx: click.Context, alias: str | None, every: bool, yes: bool) -> int:
    """Remove the files of ALIAS, or of all loops that are not running. Asks first; a running loop is refused."""
    workspace = where(ctx).workspace
    if (alias is not None) == every:
        if every or not questions.at_terminal():
            raise UsageProblem("Name one loop, or say --all.", "See the names with: rooda reflex list")
        alias = _chosen(workspace)
    all_ = [Place(workspace, each) for each in files.aliases(workspace)]
    places = all_ if every else [named(workspace, alias or "")]
    kept = [place for place in places if _lives(place)]
    gone = [place for place in places if place not in kept]
    for place in kept:
        if not every:
            raise Undecided(f"The loop '{place.alias}' is running; its files stay.", "End it first: rooda reflex stop")
        click.echo(f"The loop '{place.alias}' is running; its files stay.", err=True)
    if not gone:
        click.echo("Nothing to remove.")
        return OK
    _confirm([place.alias for place in gone], yes)
    for place in gone:
        linked = os.path.realpath(place.folder) if os.path.islink(place.folder) else ""
        left = store.removed(place)
        if linked:
            click.echo(f"Removed the link to the loop '{place.alias}'; its files stay in {linked}.")
            continue
        also = f" {', '.join(left)} in {place.folder} is not rooda's and stays." if left else ""
        click.echo(f"Removed the loop '{place.alias}'.{also}")
    return OK


def _chosen(workspace: str) -> str:
    names = files.aliases(workspace)
    rows = "\n".join(f"  {name}" for name in names)
    if not names:
        raise UsageProblem("There are no loops here.")
    answer = questions.typed_answer(f"Which loop?\n{rows}\nName: ")
    return (answer or "").strip()


def _lives(place: Place) -> bool:
    state = files.look(place).state
    return lock.is_held(place.lock) or (state is not None and state.status == RUNNING)


def _confirm(aliases: list[str], yes: bool) -> None:
    if yes:
        return
    click.echo(f"Remove all files of {', '.join(aliases)}? [y/N] ", nl=False)
    answer = questions.typed_answer("")
    if not questions.at_terminal():
        click.echo(answer or "")
    if answer is None or answer.strip().lower() not in ("y", "yes"):
        raise Undecided("Not confirmed; nothing was removed.")


# `rooda reflex stop [REASON]`: the active loop is over.


@click.command(short_help="End the active loop for good.")
@click.argument("reason", nargs=-1)
@click.pass_context
def stop(ctx: click.Context, reason: tuple[str, ...]) -> int:
    """End the active loop; REASON goes on record. A process at work on it ends at its next phase boundary."""
    workspace = where(ctx).workspace
    alias = reflex_files.active(workspace)
    if alias is None:
        running = reflex_files.running(workspace)
        also = f" Marked running: {', '.join(running)}; name one: rooda reflex resume ALIAS" if running else ""
        click.echo(f"There is no active loop here; nothing to stop.{also}")
        return OK
    return end(Place(workspace, alias), folder.readable(" ".join(reason)).strip())


def close(place: Place, reason: str) -> State | None:
    """The loop is over, and `stop.reason` says why; None if it was over before."""
    found = reflex_files.look(place)
    if found.state is None or found.state.status != RUNNING:
        return None
    store = (
        reflex_store.ReflexStore(place, found.state) if lock.is_held(place.lock) else reflex_store.opened(place, found)
    )
    return store.save(stopped(found.state, reason), by_person=True)


def end(place: Place, reason: str) -> int:
    state = close(place, reason)
    if state is None:
        click.echo(f"The loop '{place.alias}' has ended meanwhile; nothing to stop.")
        return OK
    click.echo("\n".join(view.summary(ended(place, state).facts)))
    data = reflex_files.artifact_if_readable(place)
    if data is not None:
        click.echo(f"Artifact in full:\n{base_files.to_text(data)}", nl=False)
    return OK
