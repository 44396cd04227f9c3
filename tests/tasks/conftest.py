"""Fixture for tasks: a repository with one commit, the procedure `build` and the scripted agent."""

import pytest

from tests.kit.workspace import Workspace


@pytest.fixture
def repo(ws: Workspace) -> Workspace:
    """The workspace as a repository on the branch main, with everything committed."""
    ws.write("a.txt", "one\n")
    ws.git("init", "-q", "-b", "main")
    ws.git("add", "-A")
    ws.git("commit", "-qm", "first")
    return ws
