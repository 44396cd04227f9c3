"""Fixtures of the other kinds of loops, all in a repository: `kit` is a reflex loop, `flow` a flow, `g` a goal."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.flow import Flow
from tests.kit.goal import Goals
from tests.kit.reflex import Kit
from tests.kit.workspace import Workspace


@pytest.fixture
def kit(bare: Workspace) -> Kit:
    found = Kit(bare)
    _begin(bare)
    return found


@pytest.fixture
def flow(bare: Workspace) -> Flow:
    return Flow(bare)


@pytest.fixture
def g(tmp_path: Path) -> Iterator[Goals]:
    goals = Goals(str(tmp_path))
    _begin(goals)
    yield goals
    goals.close()


def _begin(ws: Workspace) -> None:
    ws.git("init", "-q")
    ws.git("add", "-A")
    ws.git("commit", "-q", "-m", "the beginning")
