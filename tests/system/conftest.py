"""`four`: one loop of each kind, each in a workspace of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.four import KINDS, Four


@pytest.fixture(params=KINDS)
def four(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Four]:
    """A loop of each kind; nothing of it may be running when the test is over."""
    made = Four(KINDS[request.param], str(tmp_path))
    yield made
    made.ws.close()
