"""The fixture `kit`: a workspace with the scripted agent of the reflex rows."""

import pytest

from tests.kit.reflex import Kit
from tests.kit.workspace import Workspace


@pytest.fixture
def kit(bare: Workspace) -> Kit:
    return Kit(bare)
