"""Fixtures for goals: `g`, a workspace with a scripted agent and a plan."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.goal import Goals


@pytest.fixture
def g(tmp_path: Path) -> Iterator[Goals]:
    """A workspace for one goal; nothing of it may be running when the test is over."""
    goals = Goals(str(tmp_path))
    yield goals
    goals.close()
