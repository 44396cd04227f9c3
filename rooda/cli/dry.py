"""`--dry-run`: what would be done, and the whole prompt. Reads no state, writes nothing, starts no agent."""

import sys

import click

from rooda import settings
from rooda.cli.options import Asked
from rooda.cli.where import Where
from rooda.errors import OK, ConfigProblem
from rooda.terms import Procedure
from rooda.world import compose, files, tokens
from rooda.world.agents import command, preflight


def show(found: "settings.Settings", procedure: Procedure, where: Where, asked: Asked) -> int:
    """Exit 0 means: ready to run."""
    if procedure.agent is None:
        raise ConfigProblem(settings.resolve.no_agent_text(found))
    preflight.require(procedure.agent, where.workspace)
    text = compose.text(procedure, 1)
    preflight.check(procedure.agent, text)
    count, exact = tokens.count(text, procedure.token_encoding)
    about = "" if exact else "~"
    budget = f"{procedure.token_budget:,}" if procedure.token_budget else "unlimited"
    head = (
        f"[DRY RUN] Procedure: {procedure.name}\n"
        f"[DRY RUN] Would execute with: {command.describe(procedure.agent)}\n"
        f"[DRY RUN] Token count: {about}{count:,} / {budget} budget\n\n"
    )
    sys.stdout.buffer.write(head.encode("utf-8", "replace") + files.to_bytes(text))
    sys.stdout.flush()
    if 0 < procedure.token_budget < count:
        click.echo(f"WARNING: Prompt exceeds token budget: {about}{count} > {procedure.token_budget}", err=True)
    if asked.verbose:
        for key, value, origin in settings.decided(found, procedure.name, asked.flags):
            click.echo(f"{key}: {value} (from: {origin})", err=True)
    return OK
