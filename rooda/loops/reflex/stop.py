"""`rooda reflex stop [REASON]`: the active loop is over."""

import click

from rooda.base import files
from rooda.errors import OK
from rooda.loops.reflex import files as reflex_files
from rooda.loops.reflex import store as reflex_store
from rooda.loops.reflex import view
from rooda.loops.reflex.files import Place
from rooda.loops.reflex.state import RUNNING, State, stopped
from rooda.loops.reflex.summary import ended
from rooda.processes import lock
from rooda.run import folder
from rooda.settings.where import where


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
    data = reflex_files.read_artifact(place)
    if data is not None:
        click.echo(f"Artifact in full:\n{files.to_text(data)}", nl=False)
    return OK
