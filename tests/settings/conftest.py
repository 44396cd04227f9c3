"""A fixture for every test of the settings: `tiers`, the files and variables that settings are read from."""

from pathlib import Path

import pytest

from tests.kit.tiers import Tiers


@pytest.fixture
def tiers(tmp_path: Path) -> Tiers:
    """A workspace and a home without any settings file."""
    return Tiers(tmp_path)
