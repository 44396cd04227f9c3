"""`rooda answer NAME TEXT`: answers the question that the agent of a task or a loop asked."""

import os

import click

from rooda.base import secrets, signing
from rooda.cli.common import loop_of, require_known
from rooda.errors import OK, RoodaError, UsageProblem
from rooda.loops import registry
from rooda.run import asked, messages
from rooda.run import folder as run_folder
from rooda.settings.where import Where, where


@click.command(short_help="Answer the question of an agent.")
@click.argument("name")
@click.argument("text")
@click.pass_context
def answer(ctx: click.Context, name: str, text: str) -> int:
    """Answer what an agent asked: NAME is the id of a task, or the name of a loop.

    The agent's next prompt contains question and answer. A task continues with `rooda tasks run`, a loop with:
    rooda resume NAME
    """
    here, said = where(ctx), run_folder.readable(text).strip()
    if not said or len(said) > messages.LONGEST // 2:
        what = "empty" if not said else f"longer than {messages.LONGEST // 2:,} characters"
        raise UsageProblem(f"The answer is {what}.", 'For example: rooda answer build "Use SQLite."')
    if os.environ.get("ROODA_RUN"):
        raise UsageProblem("An agent can't answer the question of the run that it works for.")
    said = secrets.hide(said, secrets.forms(os.environ, (here.workspace,)))
    return _of_task(here, int(name), said) if name.isascii() and name.isdecimal() else _of_loop(here, name, said)


def _of_task(here: Where, number: int, text: str) -> int:
    from rooda.processes import lock
    from rooda.tasks import orders
    from rooda.tasks.store import Store, place_of

    store = Store(place_of(here.workspace))
    orders.answer(store, number, text)
    runs = lock.is_held(store.place.runner)
    click.echo(f"Task {number} goes on{'.' if runs else ' with the next run. To start one: rooda tasks run'}")
    return OK


def _of_loop(here: Where, name: str, text: str) -> int:
    wanted = loop_of(here, name)
    loop = next((each for each in registry.resumable(here.workspace) if each.name == wanted), None)
    if loop is None:
        require_known(here, name)
        raise UsageProblem(f"'{name}' has no open question.", "See: rooda status")
    if not signing.has_key():
        raise RoodaError(
            "The answer was not sent: rooda can't sign it, and loops ignore unsigned messages.", signing.problem()
        )
    asked.answer(here.workspace, loop.name, loop.kind, text)
    click.echo(f"Go on: {registry.KINDS[loop.kind].resume.format(name=loop.name)}")
    return OK
