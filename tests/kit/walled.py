"""A workspace whose loop is in the sandbox, with the scripted agent's own files opened."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from .needed import needs
from .workspace import Workspace

BWRAP = needs("bwrap")


def wall(
    ws: Workspace, mode: str = "workspace", keys: str = "", loop: dict[str, Any] | None = None, **more: Any
) -> None:
    """Write settings with this sandbox; `keys`: further lines of [sandbox]."""
    opened = f'environment = ["FAKE*", "HARNESS_MARK"]\nwrite = [{json.dumps(ws.fake)}]\n'
    ws.procedure("build", loop={"sandbox": mode, **(loop or {})}, **more)
    ws.config(f"{ws.read('rooda.toml')}\n[sandbox]\n{opened}{keys}\n")


@pytest.fixture
def walled(ws: Workspace) -> Iterator[Workspace]:
    """A git repository with a commit, and `sandbox = "workspace"`."""
    ws.write(".gitignore", ".rooda/\n")
    wall(ws)
    ws.git("init", "-q")
    ws.git("add", "-A")
    ws.git("commit", "-qm", "begin")
    yield ws
