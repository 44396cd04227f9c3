"""Settings with the tables of every kind of loop."""

import os
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

from rooda.errors import RoodaError
from rooda.loops import registry
from rooda.settings import layers
from rooda.settings.layers import Settings
from rooda.settings.where import Where

if TYPE_CHECKING:
    from rooda.agents.prices import Prices


def load(workspace: str, config: str | None = None, environ: Mapping[str, str] | None = None) -> Settings:
    """Read every tier; one ConfigProblem lists all errors."""
    return layers.load(workspace, config, environ, registry.own_keys())


def refuse_reserved(workspace: str, config: str | None = None) -> None:
    """ConfigProblem if a procedure has the name of a command. Other errors wait until the settings are needed."""
    if layers.has_reserved(workspace, config):
        load(workspace, config)


def require_own(here: Where) -> None:
    """ConfigProblem if another user's files could decide what a command does in this workspace."""
    layers.require_own(os.path.abspath(here.workspace), here.config, os.environ, registry.own_keys())


@cache
def prices(where: Where) -> "Prices":
    """Prices in force in a workspace; {} if its settings are invalid, so that usage can be shown anyway."""
    from rooda.settings import setup

    try:
        return setup.prices_of(load(where.workspace, where.config))
    except RoodaError:
        return {}
