"""The fixture `kit`: a workspace with the scripted agent of the reflex rows."""

import pytest
from reflex_kit import Kit

from harness import Workspace


@pytest.fixture
def kit(bare: Workspace) -> Kit:
    return Kit(bare)
