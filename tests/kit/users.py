"""Other users for tests that run as root: a workspace of one user, which others can reach, and commands of each."""

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from .workspace import Workspace

OWNER, STRANGER = 4001, 4002
ROOT = str(Path(__file__).parents[2])
LIBRARIES = sysconfig.get_path("purelib")


def _python() -> str:
    """A Python that other users can run: that of the tests may be in root's home folder."""
    for path in (sys.executable, "/usr/bin/python3"):
        question = (path, "-c", "import sys; sys.exit(sys.version_info < (3, 11))")
        try:
            if subprocess.run(question, user=OWNER, group=OWNER, extra_groups=(), cwd="/").returncode == 0:
                return path
        except OSError:
            continue
    return ""


PYTHON = _python() if os.geteuid() == 0 else ""
as_root = pytest.mark.skipif(not PYTHON, reason="only root can start commands of other users")


def command(*arguments: str) -> list[str]:
    """The argv of a rooda command that another user can run."""
    return [PYTHON, "-m", "rooda", *arguments]


@contextmanager
def workspace_of(user: int) -> Iterator[Workspace]:
    """A workspace of this user in a folder that everybody may read, as home folders often are."""
    root = tempfile.mkdtemp(prefix="rooda-test-", dir="/tmp")
    os.chmod(root, 0o755)
    ws = Workspace(root)
    ws.procedure("build")
    try:
        give(root, user)
        yield ws
        ws.close()
    finally:
        shutil.rmtree(root, ignore_errors=True)


def give(root: str, user: int) -> None:
    """Make everything in the folder this user's."""
    for folder, _, names in os.walk(root):
        for path in (folder, *(os.path.join(folder, name) for name in names)):
            os.chown(path, user, user, follow_symlinks=False)


def run_as(user: int, ws: Workspace, *words: str) -> "subprocess.CompletedProcess[str]":
    """Run a command in the workspace as this user."""
    env = {**ws.env, "PYTHONPATH": f"{ROOT}{os.pathsep}{LIBRARIES}", "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        words, cwd=ws.path, env=env, user=user, group=user, extra_groups=(), umask=0o022,
        capture_output=True, text=True, errors="replace", timeout=60,
    )  # fmt: skip
