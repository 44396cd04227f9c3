"""The fixture `kit`: a workspace with the scripted agent of the reflex rows."""

import pytest

from kit.reflex import Kit
from kit.workspace import Workspace


@pytest.fixture
def kit(bare: Workspace) -> Kit:
    return Kit(bare)
