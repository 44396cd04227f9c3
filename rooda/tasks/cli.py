"""`rooda tasks`: the command group for a repository's list of tasks."""

import click

from rooda.errors import OK
from rooda.settings.where import where
from rooda.tasks import cli_add, cli_land, cli_list, cli_run


@cli_list.board_group("Work through a list of tasks, several at once.")
def tasks(ctx: click.Context, as_json: bool, watch: bool) -> int:
    """Work through a list of tasks, each in a separate clone, and land the results.

    Without a command, show the board: one line for each task.
    """
    return OK if ctx.invoked_subcommand else cli_list.board(where(ctx), as_json, watch)


for _each in (cli_add.add, cli_list.show, cli_list.edit):
    tasks.add_command(_each)
cli_run.register(tasks)
cli_land.register(tasks)
