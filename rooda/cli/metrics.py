"""`rooda metrics`: prints the metrics of all loops of this user, for Prometheus."""

import os

import click

from rooda.base import files
from rooda.errors import OK, RoodaError, UsageProblem
from rooda.settings.where import where


@click.command(short_help="Print metrics of all your loops, for Prometheus.")
@click.option("-o", "--output", metavar="FILE", help="Write to FILE instead, replacing it in one step.")
@click.pass_context
def metrics(ctx: click.Context, output: str | None) -> int:
    """Print the metrics of all workspaces in which you ran loops, in the text format of Prometheus.

    They have no names of projects or loops. For the textfile collector of node_exporter, from cron or a timer:

        rooda metrics -o /var/lib/node_exporter/rooda.prom
    """
    from rooda.loops.metrics import Metrics

    text = Metrics(where(ctx)).text()
    if output is None:
        click.echo(text, nl=False)
        return OK
    try:
        if os.path.lexists(output) and not os.path.isfile(output):
            raise UsageProblem(f"{output} is not a regular file.", "Name a file that rooda may replace.")
        files.replace(output, text.encode())
    except OSError as problem:
        raise RoodaError(f"{output} can't be written: {problem.strerror}.", "Name another file with -o.") from None
    return OK
