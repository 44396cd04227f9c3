"""Other users of the machine, for tests that run as root: their folders, and the commands that they run."""

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from .workspace import FAKE_AI, Ran, Workspace

ALICE, EVE = 61001, 61002
CHECKOUT = Path(__file__).resolve().parents[2]
LIBRARIES = ("click", "psutil", "tomli_w", "yaml")  # without tiktoken rooda estimates the tokens


class Users:
    """rooda where every user can run it: a copy, because the checkout and its venv can be in root's home folder."""

    def __init__(self, python: str, folder: str) -> None:
        self.python, self._folder = python, folder
        self.agent = shutil.copy(FAKE_AI, folder)
        for source in (*(CHECKOUT / name for name in ("rooda", "prompts", "config")), *map(_library, LIBRARIES)):
            # Another worker may be writing byte code; its temporary files vanish.
            shutil.copytree(source, Path(folder, source.name), ignore=shutil.ignore_patterns("*.pyc.*"))
        subprocess.run(["chmod", "-R", "a+rX", folder], check=True)

    def run(self, uid: int, words: tuple[str, ...], cwd: str, env: Mapping[str, str]) -> Ran:
        """Run a command of this user to its end."""
        env = {**env, "PYTHONPATH": self._folder, "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(
            words, cwd=cwd, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
            timeout=60, umask=0o022, **_switched(uid),
        )  # type: ignore[call-overload]  # fmt: skip
        return Ran(done.returncode, done.stdout, done.stderr)

    def rooda(self, uid: int, words: tuple[str, ...], cwd: str, env: Mapping[str, str]) -> Ran:
        """Run a rooda command of this user to its end."""
        return self.run(uid, (self.python, "-m", "rooda", *words), cwd, env)


def _library(name: str) -> Path:
    spec = importlib.util.find_spec(name)
    assert spec and spec.origin, name
    return Path(spec.origin).parent


def _switched(uid: int) -> dict[str, object]:
    return {"user": uid, "group": uid, "extra_groups": ()} if uid else {}


def _python() -> str:
    """A Python that other users may run, of the version that the libraries are compiled for; "" if none."""
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    for path in (sys.executable, os.path.realpath(sys.executable), f"/usr/local/bin/{version}", f"/usr/bin/{version}"):
        try:
            subprocess.run((path, "-c", ""), cwd="/", check=True, capture_output=True, **_switched(ALICE))  # type: ignore[call-overload]
        except (OSError, subprocess.SubprocessError):
            continue
        return path
    return ""


@pytest.fixture(scope="session")
def users() -> Iterator[Users]:
    """Commands of other users; skipped if the tests do not run as root."""
    if os.geteuid():
        pytest.skip("only root can run commands of other users")
    if not (python := _python()):
        pytest.skip("no Python of this version that other users may run")
    with tempfile.TemporaryDirectory(prefix="rooda-users-", dir="/tmp") as folder:
        yield Users(python, folder)


@pytest.fixture
def open_folder(users: Users) -> Iterator[str]:
    """A folder that every user can read: a test's usual one is closed to them."""
    with tempfile.TemporaryDirectory(prefix="rooda-users-", dir="/tmp") as root:
        os.chmod(root, 0o755)
        yield root


class AlicesWorkspace(Workspace):
    """A workspace of Alice that others can read, as home folders often are, and the commands of all users in it."""

    def __init__(self, root: str, users: Users) -> None:
        super().__init__(root)
        self.users = users
        self.procedure("build", loop={"ai_cmd": users.agent})
        self.give(ALICE)

    def give(self, uid: int) -> None:
        """Make everything in the folder this user's."""
        for folder, _, names in os.walk(self.root):
            for path in (folder, *(os.path.join(folder, name) for name in names)):
                os.chown(path, uid, uid, follow_symlinks=False)

    def run_as(self, uid: int, *words: str) -> Ran:
        return self.users.run(uid, words, self.path, self.env)

    def rooda_as(self, uid: int, *words: str) -> Ran:
        return self.users.rooda(uid, words, self.path, self.env)


@pytest.fixture
def alices(open_folder: str, users: Users) -> Iterator[AlicesWorkspace]:
    """Alice's workspace with the procedure `build`."""
    workspace = AlicesWorkspace(open_folder, users)
    yield workspace
    workspace.close()


class Shared:
    """A folder that all users may write, like /tmp, and a home for each of them."""

    def __init__(self, root: str, users: Users) -> None:
        self.root, self._users = root, users
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
        env = {"PATH": os.defpath, "HOME": home, "TMPDIR": home, "GIT_CONFIG_NOSYSTEM": "1", "LANG": "C.UTF-8"}
        return self._users.rooda(uid, words, cwd, env | environ)


@pytest.fixture
def shared(open_folder: str, users: Users) -> Shared:
    return Shared(open_folder, users)
