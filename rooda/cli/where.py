"""Where a command works: what -C and --config said."""

import os
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    import click


class Where(NamedTuple):
    """The workspace, and the settings file that replaces its own, if any."""

    workspace: str
    config: str | None = None


def where(ctx: "click.Context") -> Where:
    return ctx.find_object(Where) or Where(os.getcwd())


def relocated(where: Where, typed: dict[str, Any]) -> Where:
    """The same, unless -C or --config stand after the command's name; takes them out of `typed`."""
    directory, config = typed.pop("directory", None), typed.pop("config", None)
    return Where(
        os.path.abspath(directory) if directory else where.workspace,
        os.path.abspath(config) if config else where.config,
    )
