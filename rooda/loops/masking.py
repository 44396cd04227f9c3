"""Finds the secrets to mask in the output of commands and on the page."""

import os

from rooda.base import secrets
from rooda.errors import RoodaError
from rooda.settings.where import Where


def keys(here: Where) -> tuple[str, ...]:
    """Return the secrets in the environment and in the agents' settings, longest first."""
    found = {
        key for environ in (dict(os.environ), *_of_agents(here)) for key in secrets.forms(environ, (here.workspace,))
    }
    return tuple(sorted(found, key=len, reverse=True))


def _of_agents(here: Where) -> list[dict[str, str]]:
    from rooda.loops import configuration

    try:
        agents = configuration.load(here.workspace, here.config).table("agents")
    except RoodaError:
        return []
    tables = [table.get("env") for table in agents.values() if isinstance(table, dict)]
    return [{str(name): str(value) for name, value in env.items()} for env in tables if isinstance(env, dict)]
