"""Loads the settings, including the tables that only one kind of loop has."""

import os
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

from rooda.errors import ConfigProblem, RoodaError
from rooda.loops import registry
from rooda.settings import layers
from rooda.settings.layers import Settings
from rooda.settings.where import Where

if TYPE_CHECKING:
    from rooda.agents.prices import Prices


def load(workspace: str, config: str | None = None, environ: Mapping[str, str] | None = None) -> Settings:
    """Load the settings from the environment and all settings files; raise one ConfigProblem that lists all errors."""
    return layers.load(workspace, config, environ, registry.own_keys())


def load_for_start(where: Where, warn_unknown: bool = False) -> Settings:
    """Load the settings for a run. Raises ConfigProblem for errors and, unless `warn_unknown`, for misspelled keys."""
    return refuse_misspelt(load(where.workspace, where.config), warn_unknown)


def refuse_misspelt(found: Settings, warn_unknown: bool = False) -> Settings:
    """Return the settings. Raises ConfigProblem if a key is misspelled, unless the user wants only warnings."""
    if found.misspelt and not warn_unknown:
        raise ConfigProblem("\n".join(found.misspelt), "Correct the spelling, or remove the line.")
    return found


def refuse_reserved(workspace: str, config: str | None = None) -> None:
    """Raise ConfigProblem if a procedure has the name of a command. Other errors are not reported here."""
    if layers.has_reserved(workspace, config):
        load(workspace, config)


def require_own(here: Where) -> None:
    """Raise ConfigProblem if files that belong to another user could control a loop in this workspace."""
    layers.require_own(os.path.abspath(here.workspace), here.config, os.environ, registry.own_keys())


@cache
def prices(where: Where) -> "Prices":
    """Return the model prices for a workspace; {} if its settings are invalid, so that usage can still be shown."""
    from rooda.settings import setup

    try:
        return setup.prices_of(load(where.workspace, where.config))
    except RoodaError:
        return {}
