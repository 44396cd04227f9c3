"""Finds the workspace and settings file of a command, from -C and --config."""

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
    """Return the workspace and settings file after applying -C and --config given after the command."""
    directory, config = typed.get("directory"), typed.get("config")
    return Where(
        os.path.abspath(directory) if directory else here.workspace, os.path.abspath(config) if config else here.config
    )


def valid_name(word: str) -> str:
    """Return a valid procedure name, which becomes part of a path; UsageProblem if it is invalid."""
    import re

    from rooda.errors import UsageProblem

    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", word):
        raise UsageProblem(f"{word!r} is not a valid procedure name.", "See the names with: rooda list")
    return word


def parent_hint(workspace: str) -> str:
    """Return a hint if loops have run in a folder above the workspace but not in the workspace; "" otherwise."""
    import shlex

    from rooda.base.workspace_files import upward
    from rooda.run import folder as run_folder

    used = [folder for folder in upward(workspace) if os.path.isdir(os.path.join(folder, run_folder.RUNS))]
    here = not used or used[0] == os.path.abspath(workspace)
    return "" if here else f"Loops have run in a folder above: cd {shlex.quote(used[0])}"
