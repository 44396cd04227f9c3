"""Fixtures: a Temporal server for the run, a desk, and a repository key of each test's own."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit import temporal
from tests.kit.hands import BEAT, Crew


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[temporal.Server]:
    """The dev server that all tests of this run share."""
    own = tmp_path_factory.getbasetemp()
    with temporal.shared(own.parent if os.environ.get("PYTEST_XDIST_WORKER") else own) as found:
        yield found


@pytest.fixture
def key() -> str:
    """A repository key that no other test has; the tests use it as the name of their pool, too."""
    return os.urandom(6).hex()


@pytest.fixture
def engine(server: temporal.Server) -> Iterator["object"]:
    """A desk."""
    from rooda.fleet.engine import Engine
    from rooda.fleet.port import parse_address

    found = Engine(parse_address(server.address), BEAT)
    yield found
    found.close()


@pytest.fixture
def crew(server: temporal.Server, key: str, tmp_path: Path) -> Iterator[Crew]:
    """Worker processes, which end with the test."""
    found = Crew(str(tmp_path), server.address, key)
    yield found
    found.end()
