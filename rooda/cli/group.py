"""What the groups of commands have in common."""

import click

DASH_H = {"help_option_names": ["-h", "--help"]}  # the settings of every command that has commands, or words, below it


class InOrder(click.Group):
    """Its commands are listed in the order of their use, not by their letters."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)
