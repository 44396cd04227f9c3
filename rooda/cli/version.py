"""`rooda version`: what is installed."""

import platform

import click

from rooda.cli.words import version_text
from rooda.errors import OK


@click.command(short_help="The version of rooda and of what it stands on.")
def version() -> int:
    """The version of rooda, of Python and of the system, for a report of a problem."""
    click.echo(version_text() + f"Python {platform.python_version()}\n{platform.system()} {platform.release()}")
    return OK
