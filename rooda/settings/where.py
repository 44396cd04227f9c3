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


def relocated(here: Where, typed: "Mapping[str, Any]") -> Where:
    """-C and --config may stand after the command word as well."""
    directory, config = typed.get("directory"), typed.get("config")
    return Where(
        os.path.abspath(directory) if directory else here.workspace, os.path.abspath(config) if config else here.config
    )


def a_name(word: str) -> str:
    """A procedure's name as typed; UsageProblem for what can't be one, since it will be part of a path."""
    import re

    from rooda.errors import UsageProblem

    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", word):
        raise UsageProblem(f"{word!r} is not the name of a procedure.", "See the names with: rooda list")
    return word


def above(workspace: str) -> str:
    """What to do for who stands inside the workspace that is meant; "" if loops have run here, or none above."""
    import shlex

    from rooda.run import folder as run_folder
    from rooda.settings.layers import upward

    used = [folder for folder in upward(workspace) if os.path.isdir(os.path.join(folder, run_folder.RUNS))]
    here = not used or used[0] == os.path.abspath(workspace)
    return "" if here else f"Loops have run in a folder above: cd {shlex.quote(used[0])}"
