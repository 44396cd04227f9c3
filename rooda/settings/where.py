"""Finds the workspace and settings file of a command: from -C and --config, else from the nearest rooda.toml."""

import os
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import click

FILE = "rooda.toml"
HERE = "here"  # the value of [loop] workspace that keeps the current directory


class Where(NamedTuple):
    """The workspace, and the file given with --config, which replaces the workspace's settings file."""

    workspace: str
    config: str | None = None
    current: str = ""  # the current directory, if the workspace is a folder above it
    note: str = ""  # a line for the user, if the workspace may not be the expected one


def nearest(current: str, config: str | None, is_used: "Callable[[str], bool]") -> Where:
    """Return the folder of the nearest rooda.toml as the workspace; without one, the current directory.

    `is_used`: returns True for a folder with an unfinished run. If the current directory has one, it is the workspace.
    """
    if os.path.lexists(os.path.join(current, FILE)):
        return Where(current, config)
    from rooda.base.workspace_files import upward

    above = [folder for folder in upward(current) if os.path.lexists(os.path.join(folder, FILE))]
    if not above or _keeps_current(above[0]):
        return Where(current, config)
    if is_used(current):
        return Where(
            current, config, note=f"Workspace: {current}, which has an unfinished run; {FILE} is in {above[0]}"
        )
    return Where(above[0], config, current, f"Workspace: {above[0]}, the folder of the nearest {FILE}")


def _keeps_current(folder: str) -> bool:
    from rooda.settings import layers

    return layers.workspace_word(folder, os.environ) == HERE


def where(ctx: "click.Context") -> Where:
    return ctx.find_object(Where) or Where(os.getcwd())


def with_typed(here: Where, typed: "Mapping[str, Any]") -> Where:
    """Return the workspace and settings file after applying -C and --config given after the command."""
    directory, config = typed.get("directory"), typed.get("config")
    there = in_folder(here, directory) if directory else here
    return there._replace(config=os.path.abspath(config)) if config else there


def in_folder(here: Where, directory: str) -> Where:
    """Return the folder named by -C as the workspace, even if a folder above it has the nearest rooda.toml."""
    return Where(os.path.abspath(directory), here.config)


def valid_name(word: str) -> str:
    """Return `word` if it is a valid procedure name, which becomes part of a path; else raise UsageProblem."""
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
