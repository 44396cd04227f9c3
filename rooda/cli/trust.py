"""`rooda trust --state`: sign what loops saved in this workspace, so that a resume believes it."""

import click

from rooda.base import signing
from rooda.base.text import escape_line
from rooda.errors import OK, RoodaError, UsageProblem
from rooda.loops import signed
from rooda.settings.where import Where, where


@click.command(short_help="Sign what loops saved here.")
@click.option("--state", is_flag=True, help="Show and sign the saved words that this user has not signed.")
@click.pass_context
def trust(ctx: click.Context, state: bool) -> int:
    """Make rooda believe what is in this workspace: read what it prints, it will run."""
    if not state:
        raise UsageProblem("rooda trust needs --state.")
    return sign_state(where(ctx))


def sign_state(here: Where) -> int:
    """Run `rooda trust --state`."""
    if problem := signing.problem():
        if not signing.has_key():
            raise RoodaError(problem)
        click.echo(problem, err=True)
    rows = signed.sign_all(here.workspace)
    click.echo("\n".join([*map(escape_line, rows), "Signed."]) if rows else "Nothing to sign here.")
    return OK
