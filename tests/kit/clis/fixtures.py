"""Fixtures for the real agent CLIs and the model server that is in for theirs."""

import os
from collections.abc import Callable, Iterator

import pytest

from rooda.agentkit.server.server import ModelServer
from tests.kit.clis import install


@pytest.fixture
def cli() -> Callable[[str], str]:
    """Gives the folder of a CLI's command. Not installed: skipped, but a failure in CI for those that run there."""

    def folder(name: str) -> str:
        if place := install.commands(name):
            return place
        reason = f"{name} {install.version(name)} is not installed: python -m tests.kit.clis.install {name}"
        if name in install.CI and os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)

    return folder


@pytest.fixture
def server() -> Iterator[ModelServer]:
    """A model server without a scenario; `server.play` gives it one."""
    with ModelServer() as running:
        yield running
