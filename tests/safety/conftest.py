"""The fixtures of the other kinds of loops: `kit` is a reflex loop, `flow` a flow, `g` a goal; all in a repository."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.extend(os.path.join(os.path.dirname(os.path.dirname(__file__)), each) for each in ("reflex", "flow", "goal"))

from flow_kit import Flow
from kit import Goals
from reflex_kit import Kit

from harness import Workspace


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
