"""Which settings files there are, strongest first."""

import os
from collections.abc import Mapping
from typing import NamedTuple

from rooda.base.dirs import shipped
from rooda.errors import ConfigProblem

FILE = "rooda.toml"
ENVIRONMENT, WORKSPACE, USER, BUILT_IN, FLAG = "environment", "workspace config", "user config", "built-in", "flag"


class Source(NamedTuple):
    tier: str
    path: str

    @property
    def exists(self) -> bool:
        return os.path.lexists(self.path)


def find(workspace: str, config: str | None, environ: Mapping[str, str]) -> list[Source]:
    """Every file that is read or would be, were it there."""
    near = Source(WORKSPACE, os.path.abspath(config) if config else workspace_file(workspace))
    if config and not near.exists:
        raise ConfigProblem(f"--config {config}: there is no such file")
    own = Source(USER, user_file(environ))
    written = [near] if near.path == own.path else [near, own]
    return written + [Source(BUILT_IN, shipped("config", name)) for name in (FILE, "procedures.toml")]


def workspace_file(workspace: str) -> str:
    """The nearest rooda.toml from the workspace up to its repository's root; else where it would be."""
    candidates = [os.path.join(folder, FILE) for folder in upward(workspace)]
    return next((path for path in candidates if os.path.lexists(path)), candidates[0])


def upward(workspace: str) -> list[str]:
    """The folders from the workspace up to its repository's root; the workspace alone where there is none."""
    folder = os.path.abspath(workspace)
    folders = [folder]
    while not os.path.lexists(os.path.join(folder, ".git")):
        parent = os.path.dirname(folder)
        if parent == folder:
            return folders[:1]
        folder = parent
        folders.append(folder)
    return folders


def user_file(environ: Mapping[str, str]) -> str:
    if environ.get("ROODA_CONFIG_HOME"):
        return os.path.join(os.path.abspath(environ["ROODA_CONFIG_HOME"]), FILE)
    home = environ.get("HOME") or os.path.expanduser("~")
    folder = environ.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")
    return os.path.join(os.path.abspath(folder), "rooda", FILE)
