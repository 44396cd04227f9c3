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


def test_S_25_without_a_sandbox_the_attempts_succeed(
    listening: dict[str, str], tmp_path: Path, users: Users, open_folder: str
) -> None:
    """The same commands outside: each shows that it attacks something, but those that only root can do anywhere.

    Prints the table: what succeeds outside and inside, for root and for a user without privileges.
    """
    names = ("outside", "inside", "user outside", "user inside")
    found = [set(succeeding(str(tmp_path / mode), mode, listening)) for mode in ("off", "workspace")]
    found += [as_a_user(users, open_folder, mode, listening) for mode in ("off", "workspace")]
    print("\n" + " " * 32 + "".join(f"{name:<14}" for name in names))
    for name in (each.name for each in ATTEMPTS):
        print(f"{name:<32}" + "".join(f"{'yes' if name in each else 'no':<14}" for each in found))
    outside, inside, user_outside, user_inside = found
    attempts = {each.name for each in ATTEMPTS}
    assert attempts - outside <= OF_ROOT and attempts - user_outside <= OF_ROOT
    assert inside == user_inside == WANTED


def as_a_user(users: Users, folder: str, mode: str, more: dict[str, str]) -> set[str]:
    """The attempts of a user without privileges that succeed."""
    place = os.path.join(folder, mode)
    os.mkdir(place)
    os.chown(place, ALICE, ALICE)
    code = f"from rooda.cli.attempts import *; print(*succeeding({place!r}, {mode!r}, {more!r}), sep='\\n')"
    env = {"PATH": os.defpath, "HOME": place, "ROODA_STATE_HOME": f"{place}/state"}
    ran = users.run(ALICE, (users.python, "-c", code), place, env)
    assert ran.code == 0, ran.both
    return set(ran.out.splitlines())


def test_S_25_doctor_sums_it_up(tmp_path: Path) -> None:
    """`rooda doctor` makes the attempts on this machine, and leaves nothing behind."""
    env = {**os.environ, "ROODA_STATE_HOME": str(tmp_path / "state"), "HOME": str(tmp_path / "home")}
    command = [sys.executable, "-m", "rooda", "doctor"]
    (tmp_path / "work").mkdir()
    ran = subprocess.run(
        command, cwd=tmp_path / "work", env=env, capture_output=True, text=True, timeout=60, check=False
    )
    number = sum(not each.wanted and not each.needs for each in ATTEMPTS)
    assert f"available; stops {number} of {number} attempts" in ran.stdout, ran.stdout + ran.stderr
    assert not [*(tmp_path / "state").glob("homes/*")]
