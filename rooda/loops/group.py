"""What the groups of commands have in common."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from rooda.settings.where import Where, relocated, where

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

DASH_H = {"help_option_names": ["-h", "--help"]}  # the settings of every command that has commands, or words, below it


class InOrder(click.Group):
    """Its commands are listed in the order of their use, not by their letters."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


def place_of_tab(ctx: click.Context) -> Where:
    """Return where a command line that is still being typed would work."""
    return relocated(where(ctx), ctx.params)


def items(offered: Iterable[tuple[str, str]], incomplete: str) -> "list[CompletionItem]":
    """Return the names that begin with what was typed, each with what it is, for TAB."""
    from click.shell_completion import CompletionItem

    return [CompletionItem(name, help=about) for name, about in dict(offered).items() if name.startswith(incomplete)]
