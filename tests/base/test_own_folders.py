"""rooda's folders: for their owner alone, never a link, and of the workspace's owner when root runs rooda."""

import os
import stat
from pathlib import Path

import pytest

from tests.kit.snapshots import repository
from tests.kit.users import ALICE, EVE, AlicesWorkspace
from tests.kit.workspace import Workspace

CONFIRMED = ("--confirm-criteria", "--confirm-max-iterations", "4")
FOLDERS = ("", "runs", "state", "locks", "snapshots", "worktrees")


def open_to_others(top: str) -> list[str]:
    """Files and folders of rooda with bits for group or others; git's own index is not rooda's to write."""
    paths = [Path(top), *Path(top).rglob("*")]
    found = [path for path in paths if not path.is_symlink() and stat.S_IMODE(path.stat().st_mode) & 0o077]
    return [
        str(path.relative_to(top)) for path in found if path.name not in (".gitignore",) and path.suffix != ".index"
    ]


def test_S_09_rooda_keeps_its_folders_to_itself(ws: Workspace) -> None:
    """After a run with snapshots no file of `.rooda` has bits for others."""
    repository(ws, {"a": "1\n"})
    assert ws.rooda("build", "-n", "2").code == 0
    assert open_to_others(ws.file(".rooda")) == []


def test_S_09_older_folders_are_corrected(ws: Workspace) -> None:
    """A `.rooda` of an older rooda, 0755 with its children, is 0700 from the next start on."""
    repository(ws, {"a": "1\n"})
    for name in FOLDERS:
        os.makedirs(ws.file(f".rooda/{name}"), exist_ok=True)
        os.chmod(ws.file(f".rooda/{name}"), 0o755)
    assert ws.rooda("build", "-n", "1").code == 0
    assert {oct(os.stat(ws.file(f".rooda/{name}")).st_mode & 0o777) for name in FOLDERS} == {"0o700"}


@pytest.mark.parametrize("name", [".rooda", ".rooda/state", ".rooda/runs", ".rooda/snapshots"])
def test_S_09_a_link_in_the_place_of_a_folder(ws: Workspace, name: str) -> None:
    """A link that came with a checkout: exit 2 with its path, for starts and looks, and its target stays as it was."""
    repository(ws, {"a": "1\n"})
    victim = Path(ws.root, "victim")
    victim.mkdir()
    os.makedirs(os.path.dirname(ws.file(name)), exist_ok=True)
    os.symlink(victim, ws.file(name))
    for words in (("build", "-n", "1"), ("resume", "build"), ("resume",), ("status",), ("stop",)):
        ran = ws.rooda(*words)
        assert ran.code == 2 and f"{ws.file(name)} is a link" in ran.err and "Traceback" not in ran.both, (words, ran)
    assert not [*victim.iterdir()] and not ws.calls


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (".loop", ("goal", "run", "x", "--headless", "--yes")),
        (".ai-factory", ("reflex", "new", "a page", "--template", "docs", *CONFIRMED)),
    ],
)
def test_S_09_the_other_kinds_refuse_links_too(ws: Workspace, name: str, words: tuple[str, ...]) -> None:
    """`.loop` and `.ai-factory` that lead elsewhere."""
    victim = Path(ws.root, "victim")
    victim.mkdir()
    os.symlink(victim, ws.file(name))
    ran = ws.rooda(*words)
    assert ran.code == 2 and "is a link" in ran.err and not [*victim.iterdir()], ran.both


@pytest.mark.parametrize("name", [".rooda", ".rooda/state"])
@pytest.mark.parametrize("by", ["agent", "gate"])
def test_S_09_a_link_that_an_agent_makes(ws: Workspace, name: str, by: str) -> None:
    """While the loop runs, by an agent or by what a gate runs: exit 2, and nothing is written through it."""
    ws.damages_events = True
    victim = Path(ws.root, "victim")
    (victim / "state").mkdir(parents=True)
    attack = f"rm -rf {name}; ln -s {victim if name == '.rooda' else victim / 'state'} {name}"
    ws.procedure("build", gates={"tests": attack if by == "gate" else "true"})
    if by == "agent":
        ws.side(1, attack)
    ran = ws.rooda("build", "-n", "3")
    assert ran.code == 2 and "is a link" in ran.err and "Traceback" not in ran.both, ran.both
    assert len(ws.calls) == 1 and [path.name for path in victim.rglob("*")] == ["state"]


def test_S_09_one_workspace_with_a_link_disturbs_no_other(ws: Workspace) -> None:
    """`status --all` shows its row with the reason; `resume --all` says a line and goes on."""
    other = f"{ws.root}/other"
    os.makedirs(other)
    assert ws.rooda("build", "-n", "1").code == 0 and ws.rooda("build", "-n", "1", "-C", other, "--ai-cmd", "true")
    os.rename(f"{other}/.rooda", f"{ws.root}/moved")
    os.symlink(f"{ws.root}/moved", f"{other}/.rooda")
    ran = ws.rooda("status", "--all")
    assert ran.code == 0 and "is a link" in ran.out, ran.both
    ran = ws.rooda("resume", "--all")
    assert "is a link" in ran.err and "Traceback" not in ran.both, ran.both


def test_S_09_another_user_neither_reads_nor_holds_anything(alices: AlicesWorkspace) -> None:
    """A stranger can't read the transcript, and can't hold the lock by opening it; the loop is an ordinary user's."""
    hold = "import fcntl, sys; fcntl.flock(open(sys.argv[1]), fcntl.LOCK_EX)"
    ran = alices.rooda_as(ALICE, "build", "-n", "1")
    assert ran.code == 0, ran.err
    (run,) = Path(alices.path, ".rooda", "runs").iterdir()
    for attempt in (
        ("cat", str(run / "start")),
        ("ls", alices.file(".rooda")),
        (alices.users.python, "-c", hold, alices.file(".rooda/state/build.lock")),
    ):
        tried = alices.run_as(EVE, *attempt)
        assert tried.code and "ermission denied" in tried.err, attempt


def test_S_09_root_leaves_a_users_workspace_to_the_user(alices: AlicesWorkspace) -> None:
    """Root runs rooda over a checkout of another user, as in a container: what rooda makes is the user's."""
    ran = alices.rooda("build", "-n", "2", env={"ROODA_STATE_HOME": f"{alices.root}/roots", "SUDO_UID": str(ALICE)})
    assert ran.code == 0, ran.both
    made = [Path(alices.file(".rooda")), *Path(alices.file(".rooda")).rglob("*")]
    assert {(path.stat().st_uid, path.stat().st_gid) for path in made} == {(ALICE, ALICE)}
    again = alices.rooda_as(ALICE, "build", "-n", "1", "--fresh", "--ai-cmd", "true")
    assert again.code == 0 and "can't" not in again.err, again.err
