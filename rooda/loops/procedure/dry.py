"""`--dry-run`: what would be done, and the whole prompt. Reads no state, writes nothing, starts no agent."""

import sys

import click

from rooda.agents import command, preflight
from rooda.base import files
from rooda.errors import OK, ConfigProblem
from rooda.loops.options import Asked
from rooda.loops.procedure import effects
from rooda.loops.procedure.model import Procedure
from rooda.run import tokens
from rooda.settings import agents, layers, lookup
from rooda.settings.where import Where


def show(found: "layers.Settings", procedure: Procedure, where: Where, asked: Asked) -> int:
    """Exit 0 means: ready to run. A prompt that is too long is shown, and then refused."""
    setup = procedure.setup
    if setup.agent is None:
        raise ConfigProblem(agents.no_agent_text(found))
    preflight.require(setup.agent, where.workspace)
    text = effects.text(procedure, 1)
    preflight.check(setup.agent, "")
    count, exact = tokens.count(text, setup.token_encoding)
    about = "" if exact else "~"
    budget = f"{setup.token_budget:,}" if setup.token_budget else "unlimited"
    head = (
        f"[DRY RUN] Procedure: {procedure.name}\n"
        f"[DRY RUN] Would execute with: {command.describe(setup.agent)}\n"
        f"[DRY RUN] Token count: {about}{count:,} / {budget} budget\n\n"
    )
    sys.stdout.buffer.write(head.encode("utf-8", "replace") + files.to_bytes(text))
    sys.stdout.flush()
    if 0 < setup.token_budget < count:
        click.echo(f"WARNING: Prompt exceeds token budget: {about}{count} > {setup.token_budget}", err=True)
    preflight.fits(setup.agent, text)  # refused like a start, but seen
    if asked.verbose:
        for key, value, origin in lookup.decided(found, procedure.name, asked.flags):
            click.echo(f"{key}: {value} (from: {origin})", err=True)
    return OK
