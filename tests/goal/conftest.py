"""Fixtures for goals: `g`, a workspace with a scripted agent and a plan."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from kit import Goals


@pytest.fixture
def g(tmp_path: Path) -> Iterator[Goals]:
    """A workspace for one goal; nothing of it may be running when the test is over."""
    goals = Goals(str(tmp_path))
    yield goals
    goals.close()
