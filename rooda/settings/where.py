"""The workspace and settings file of a command, from -C and --config."""

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


def with_typed(here: Where, typed: "Mapping[str, Any]") -> Where:
    """Apply -C and --config that were typed after the command."""
    directory, config = typed.get("directory"), typed.get("config")
    return Where(
        os.path.abspath(directory) if directory else here.workspace, os.path.abspath(config) if config else here.config
    )


def valid_name(word: str) -> str:
    """Validate a procedure's name, since it becomes part of a path."""
    import re

    from rooda.errors import UsageProblem

    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", word):
        raise UsageProblem(f"{word!r} is not the name of a procedure.", "See the names with: rooda list")
    return word


def parent_hint(workspace: str) -> str:
    """A hint for a user in a subfolder of the workspace; "" if loops have run here, or in no folder above."""
    import shlex

    from rooda.base.workspace_files import upward
    from rooda.run import folder as run_folder

    used = [folder for folder in upward(workspace) if os.path.isdir(os.path.join(folder, run_folder.RUNS))]
    here = not used or used[0] == os.path.abspath(workspace)
    return "" if here else f"Loops have run in a folder above: cd {shlex.quote(used[0])}"
