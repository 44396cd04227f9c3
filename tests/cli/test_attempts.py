"""The attempts of a hostile agent, with and without a sandbox, as a table: `pytest -s tests/cli/test_attempts.py`."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rooda.cli.attempts import ATTEMPTS, succeeding
from tests.kit.users import ALICE, Users
from tests.kit.walled import BWRAP

pytestmark = BWRAP
WANTED = {each.name for each in ATTEMPTS if each.wanted}
LOOPBACK = {"a service on loopback", "an abstract socket"}
OF_ROOT = {
    *("mount", "umount what hides HOME", "remount read-only paths", "mknod"),
    *("write /etc", "write settings of the kernel"),
}
EXPECTED = {("workspace", "agent"): WANTED, ("workspace", "off"): WANTED, ("workspace", "on"): WANTED | LOOPBACK}
EXPECTED |= {("read-only", "agent"): {"write TMPDIR"}}


@pytest.fixture(scope="module")
def listening() -> Iterator[dict[str, str]]:
    """A service on loopback and one on an abstract socket."""
    name = f"rooda-test-{os.getpid()}"
    with socket.socket() as service, socket.socket(socket.AF_UNIX) as abstract:
        service.bind(("127.0.0.1", 0))
        service.listen()
        abstract.bind(f"\0{name}")
        abstract.listen()
        yield {"PORT": str(service.getsockname()[1]), "SOCKET": name}


@pytest.mark.parametrize(("mode", "network"), EXPECTED)
def test_S_25_what_the_sandbox_stops(mode: str, network: str, listening: dict[str, str], tmp_path: Path) -> None:
    """Inside, only an agent's work succeeds; with `network = "on"` also what listens on this machine."""
    assert set(succeeding(str(tmp_path), mode, listening, network)) == EXPECTED[mode, network]


def test_S_25_without_a_sandbox_the_attempts_succeed(listening: dict[str, str], tmp_path: Path) -> None:
    """The same commands outside: each shows that it attacks something, but those that only root can do anywhere."""
    found = set(succeeding(str(tmp_path), "off", listening))
    for name, is_inside in ((each.name, each.wanted) for each in ATTEMPTS):
        print(f"{name:<32} outside: {'yes' if name in found else 'no':<4} inside: {'yes' if is_inside else 'no'}")
    assert {each.name for each in ATTEMPTS} - found <= OF_ROOT


def test_S_25_an_ordinary_user_is_stopped_as_well(users: Users, open_folder: str) -> None:
    """The table of a user without privileges."""
    os.chown(open_folder, ALICE, ALICE)
    code = f"from rooda.cli.attempts import *; print(*succeeding({open_folder!r}, 'workspace', {{}}), sep='\\n')"
    env = {"PATH": os.defpath, "HOME": open_folder, "ROODA_STATE_HOME": f"{open_folder}/state"}
    ran = users.run(ALICE, (users.python, "-c", code), open_folder, env)
    assert set(ran.out.splitlines()) == WANTED, ran.both


def test_S_25_doctor_sums_it_up(tmp_path: Path) -> None:
    """`rooda doctor` makes the attempts on this machine, and leaves nothing behind."""
    env = {**os.environ, "ROODA_STATE_HOME": str(tmp_path / "state"), "HOME": str(tmp_path / "home")}
    command = [sys.executable, "-m", "rooda", "doctor"]
    (tmp_path / "work").mkdir()
    ran = subprocess.run(
        command, cwd=tmp_path / "work", env=env, capture_output=True, text=True, timeout=60, check=False
    )
    number = sum(not each.wanted and not each.needs for each in ATTEMPTS)
    assert f"can be had; stops {number} of {number} attempts" in ran.stdout, ran.stdout + ran.stderr
    assert not [*(tmp_path / "state").glob("homes/*")]
