"""`rooda completion SHELL`: the script that makes TAB work."""

import click

from rooda.errors import OK

_SHELLS = ("bash", "zsh", "fish")


@click.command(short_help="Shell completion for bash, zsh or fish.")
@click.argument("shell", type=click.Choice(_SHELLS))
def completion(shell: str) -> int:
    """Print the completion script of SHELL. For bash: rooda completion bash > ~/.rooda-complete.bash; source that."""
    from click.shell_completion import get_completion_class

    from rooda.cli.app import app

    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(app, {}, "rooda", "_ROODA_COMPLETE").source())
    return OK
