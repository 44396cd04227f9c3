"""`rooda trust`: records, shows or revokes the user's trust in what a workspace's files would start."""

import os

import click

from rooda.base import signing
from rooda.base.text import escape_line
from rooda.errors import OK, RoodaError, Undecided, UsageProblem
from rooda.loops import configuration, signed, trust_question
from rooda.loops.options import DASH_H
from rooda.settings import trust as settings_trust
from rooda.settings import trust_record
from rooda.settings.trust_doubts import Doubts
from rooda.settings.trust_record import Record
from rooda.settings.trust_search import FILES, Seen, look
from rooda.settings.where import Where, where


@click.command(context_settings=DASH_H, short_help="Trust what the settings of a workspace would start.")
@click.option("--show", is_flag=True, help="Show what its files would start and what is trusted; change nothing.")
@click.option(
    "--hash",
    "as_hash",
    is_flag=True,
    help=f"Print the value of {trust_question.VARIABLE} that trusts exactly what --show lists.",
)
@click.option("--revoke", is_flag=True, help="Revoke the trust: rooda asks again for everything here.")
@click.option("--state", is_flag=True, help="Show and sign what loops saved here, so that a resume accepts it.")
@click.option("--list", "as_list", is_flag=True, help="List the folders that you trust, or no longer trust.")
@click.pass_context
def trust(ctx: click.Context, show: bool, as_hash: bool, revoke: bool, state: bool, as_list: bool) -> int:
    """Trust the commands, agents, hooks and addresses that the files of this workspace name.

    rooda asks before it starts what came by git or changed while a loop ran, but not for what you wrote here yourself.
    """
    if sum((show, as_hash, revoke, state, as_list)) > 1:
        raise UsageProblem("--show, --hash, --revoke, --state and --list are mutually exclusive.")
    if as_list:
        return _list()
    if state:
        _refuse_inside_a_loop()
        return sign_state(where(ctx))
    seen = _seen(where(ctx))
    if as_hash:
        click.echo(seen.hash)
        return OK
    if show:
        return _show(seen)
    _refuse_inside_a_loop()
    return _revoke(seen) if revoke else _trust(seen)


def _refuse_inside_a_loop() -> None:
    if "ROODA_RUN" in os.environ:
        what = "Trust can't be changed from inside a loop: only the user may grant it."
        raise Undecided(what, "Run this command in your own terminal.")


def _seen(place: Where) -> Seen:
    return look(configuration.load(place.workspace, place.config))


def _list() -> int:
    found = [*trust_record.folders()]
    for folder, trusted in found:
        click.echo(f"{'trusted' if trusted else 'revoked':<8} {escape_line(folder)}")
    if not found:
        click.echo("You have not trusted or revoked any folder.")
    return OK


def _show(seen: Seen) -> int:
    record = Record(seen.top)
    asked = {fact.identity for fact in settings_trust.judge(seen, record).added}
    shown = [fact for fact in seen.facts if not fact.harmless]
    for fact in shown:
        click.echo(f"{'ASKED' if fact.identity in asked else 'ok   '}  {trust_question.fact_line(fact, whole=True)}")
    pending = Record(seen.top, FILES).pending()
    for fact in pending:
        click.echo(f"ASKED  {trust_question.fact_line(fact, whole=True)}")
    if not shown and not pending:
        click.echo("Nothing in the files of this workspace would start a program.")
    return OK


def _revoke(seen: Seen) -> int:
    record = Record(seen.top)
    if problem := record.settle(seen, {}, revoked=True):
        raise UsageProblem(f"Can't revoke trust: {problem}.")
    further = Record(seen.top, FILES)
    further.settle(Seen(seen.top, (), {}, part=FILES), {}, revoked=True)
    click.echo(f"Revoked: rooda asks before it starts anything from {escape_line(seen.top)}.")
    return OK


def _trust(seen: Seen) -> int:
    record = Record(seen.top)
    shown = [fact for fact in seen.facts if not fact.harmless]
    for fact in shown:
        click.echo(f"  {trust_question.fact_line(fact, whole=True)}")
    versions = settings_trust.judge(seen, record).versions
    if problem := record.settle(seen, versions):
        raise UsageProblem(f"Can't record trust: {problem}.")
    Doubts(seen).forget()
    further = Record(seen.top, FILES)
    for fact in further.pending():
        click.echo(f"  {trust_question.fact_line(fact, whole=True)}")
        shown.append(fact)
    further.accept_pending()
    Doubts(seen._replace(part=FILES)).forget()
    what = "It may run" if shown else "There is nothing to trust"
    click.echo(f"{what} in {escape_line(seen.top)}. Revoke this with: rooda trust --revoke")
    return OK


def sign_state(here: Where) -> int:
    """Show and sign the saved state of this workspace's loops that this user has not signed yet."""
    if problem := signing.problem():
        if not signing.has_key():
            raise RoodaError(problem)
        click.echo(problem, err=True)
    rows = signed.sign_all(here.workspace)
    click.echo("\n".join([*map(escape_line, rows), "Signed."]) if rows else "Nothing to sign here.")
    return OK
