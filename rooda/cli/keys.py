"""What is stars in all that a command shows: keys of the environment, and those that the settings give to agents."""

import os

import click

from rooda.base import secrets
from rooda.errors import RoodaError
from rooda.settings.where import where


def keys() -> tuple[str, ...]:
    """Of the environment and the settings as they are now."""
    here = where(click.get_current_context())
    found = {key for environ in (dict(os.environ), *_of_agents()) for key in secrets.values(environ, (here.workspace,))}
    return tuple(sorted(found, key=len, reverse=True))


def _of_agents() -> list[dict[str, str]]:
    """Settings that can't be read give none."""
    from rooda.settings import layers

    here = where(click.get_current_context())
    try:
        agents = layers.load(here.workspace, here.config).table("agents")
    except RoodaError:
        return []
    tables = [table.get("env") for table in agents.values() if isinstance(table, dict)]
    return [{str(name): str(value) for name, value in env.items()} for env in tables if isinstance(env, dict)]
