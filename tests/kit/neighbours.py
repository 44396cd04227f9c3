"""Other users of the machine, for tests that run as root: folders that belong to them, commands that they type."""

import functools
import os
import shutil
import site
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from .workspace import Ran

ALICE, EVE = 61001, 61002
ROOT = str(Path(__file__).resolve().parents[2])
CODE = "import sys; from rooda.startup import main; sys.exit(main(sys.argv[1:]))"
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="makes files of several users, so it needs root")


def switched(uid: int) -> dict[str, object]:
    return {"user": uid, "group": uid, "extra_groups": []} if uid else {}


@functools.cache
def interpreter() -> str:
    """A Python that every user may start: that of the tests can be in a home folder."""
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    for path in (sys.executable, shutil.which(version, path="/usr/bin:/usr/local/bin"), "/usr/bin/python3"):
        try:
            words = [path or "", "-c", "import sys; print(*sys.version_info[:2], sep='.')"]
            said = subprocess.run(words, **switched(ALICE), capture_output=True, text=True, check=True).stdout  # type: ignore[call-overload]
        except (OSError, subprocess.SubprocessError):
            continue
        if version == f"python{said.strip()}":
            return path or ""
    pytest.skip(f"no {version} that other users may start")


class Shared:
    """A folder that all users may write, like /tmp, and a home for each of them."""

    def __init__(self, root: str) -> None:
        self.root = root
        os.chmod(root, 0o1777)

    def folder(self, name: str, uid: int, mode: int = 0o755) -> str:
        path = os.path.join(self.root, name)
        os.makedirs(path, exist_ok=True)
        os.chown(path, uid, uid)
        os.chmod(path, mode)
        return path

    def file(self, name: str, uid: int, text: str = "") -> str:
        path = os.path.join(self.root, name)
        Path(path).write_text(text)
        os.chown(path, uid, uid)
        return path

    def home(self, uid: int) -> str:
        return self.folder(f"home-{uid}", uid)

    def rooda(self, uid: int, cwd: str, *words: str, **environ: str) -> Ran:
        """A rooda command of this user."""
        home = self.home(uid)
        path = os.pathsep.join([ROOT, *site.getsitepackages()])
        env = {"PATH": os.defpath, "HOME": home, "TMPDIR": home, "GIT_CONFIG_NOSYSTEM": "1", "PYTHONPATH": path}
        env |= {"LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"} | environ
        done = subprocess.run(
            [interpreter(), "-c", CODE, *words], cwd=cwd, env=env, capture_output=True, text=True, check=False,
            timeout=30, stdin=subprocess.DEVNULL, **switched(uid),
        )  # type: ignore[call-overload]  # fmt: skip
        return Ran(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def shared() -> Iterator[Shared]:
    """Below /tmp: a test's usual folder is closed to other users."""
    root = tempfile.mkdtemp(prefix="rooda-users-", dir="/tmp")
    yield Shared(root)
    shutil.rmtree(root)
