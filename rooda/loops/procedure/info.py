"""`rooda info P`: what a procedure is made of."""

import click

from rooda.errors import OK
from rooda.loops.options import tab_procedures
from rooda.loops.procedure import resolve
from rooda.loops.procedure.model import PHASES, Procedure
from rooda.settings import layers, procedures
from rooda.settings.where import warned, where

_SHOWN_ABOVE = ("display", "summary", "description", *PHASES)


@click.command(short_help="What one procedure is made of.")
@click.argument("procedure", shell_complete=tab_procedures)
@click.pass_context
def info(ctx: click.Context, procedure: str) -> int:
    """What PROCEDURE is for, the prompt fragments of its four phases, and its own settings."""
    here = where(ctx)
    found = warned(layers.load(here.workspace, here.config))
    resolved = resolve.procedure(found, procedure, {})
    own = procedures.own(found, procedure)
    click.echo("\n".join([*_about(resolved), "", *_phases(resolved), "", *_configuration(own)]))
    return OK


def _about(procedure: Procedure) -> list[str]:
    rows = [f"Procedure: {procedure.name}", f"Display Name: {procedure.display or procedure.name}"]
    if procedure.summary:
        rows.append(f"Summary: {procedure.summary}")
    if procedure.description:
        rows += ["Description:", *(f"  {line}" for line in procedure.description.splitlines())]
    return rows


def _phases(procedure: Procedure) -> list[str]:
    rows = ["OODA Phases:"]
    for phase in procedure.phases:
        count = len(phase.fragments)
        rows.append(f"  {phase.name.capitalize() + ':':<8} {count} fragment{'' if count == 1 else 's'}")
        rows += [f"    {fragment.shown or 'text'}" for fragment in phase.fragments]
    return rows


def _configuration(own: dict[str, object]) -> list[str]:
    rows = [f"  {key} = {value}" for key, value in own.items() if key not in _SHOWN_ABOVE]
    return ["Configuration:", *(rows or ["  (uses global defaults)"])]
