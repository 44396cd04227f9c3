"""A disk is full or read-only, from the start or the middle on: no traceback, a sentence, a state to continue from."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.kit.disks import Disk, may_mount
from tests.kit.four import KINDS, Four
from tests.kit.workspace import Ran, until

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs to mount")
PLACES: dict[str, Callable[[Four], str]] = {
    "workspace": lambda four: four.ws.path,
    "notes": lambda four: four.ws.file(".rooda"),
    "public": lambda four: four.ws.file(four.kind.public[0]),
    "git": lambda four: four.ws.file(".git"),
    "temporary": lambda four: four.ws.env["TMPDIR"],
    "personal": lambda four: four.ws.home,
}
DISKS = str(Path(__file__).resolve().parents[1])
TROUBLES = {"full": Disk.full, "read-only": Disk.read_only}
MOMENTS = ("start", "middle")
ALL = [
    (kind, place, trouble, moment)
    for kind in KINDS
    for place in PLACES
    for trouble in TROUBLES
    for moment in MOMENTS
    if place != "git" or kind == "flow"
]
SHORT = [
    ("ooda", "workspace", "full", "middle"),
    ("ooda", "public", "read-only", "middle"),
    ("reflex", "workspace", "full", "middle"),
    ("reflex", "public", "read-only", "middle"),
    ("reflex", "notes", "read-only", "start"),
    ("flow", "workspace", "full", "middle"),
    ("flow", "git", "read-only", "middle"),
    ("goal", "workspace", "full", "middle"),
    ("goal", "public", "read-only", "start"),
    ("goal", "personal", "read-only", "start"),
]


@pytest.fixture(autouse=True)
def mounts(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Who may not mount does it in a namespace, where he may."""
    if may_mount(str(tmp_path_factory.mktemp("may") / "mount")):
        return
    words = [sys.executable, "-m", "pytest", "-q", "-m", "long or not long", request.node.nodeid]
    ran = subprocess.run(["unshare", "-Urm", *words], cwd=request.config.rootpath, capture_output=True, text=True)
    if "unshare failed" in ran.stderr:
        pytest.skip("may not mount")
    assert ran.returncode == 0, ran.stdout
    pytest.skip("passed in a namespace of its own")


@pytest.fixture
def disk_of(tmp_path: Path) -> Iterator[Callable[[str, str], tuple[Four, Disk]]]:
    """A loop of this kind, and the disk that this place of it is on."""
    open_: list[Four | Disk] = []

    def make(kind: str, place: str) -> tuple[Four, Disk]:
        four = Four(KINDS[kind], str(tmp_path))
        open_.append(four)
        if kind == "flow":
            four.ws.write(".git/info/exclude", "/rooda.toml\nfill\n")
        fill = {"workspace": ".rooda/fill", "personal": "tmp/fill"}.get(place, "fill")
        disk = Disk(PLACES[place](four), fill)
        open_.append(disk)
        return four, disk

    yield make
    for each in reversed(open_):
        each.ws.close() if isinstance(each, Four) else each.close()


def trouble_of(four: Four, disk: Disk, trouble: str, moment: str) -> Ran:
    """A run that meets it."""
    if moment == "start":
        TROUBLES[trouble](disk)
        return four.run()
    now, go = os.path.join(four.held, "now"), os.path.join(four.held, "go")
    waits = f'touch "{now}"; until [ -e "{go}" ]; do sleep 0.02; done'
    four.first(f'[ "$(wc -l <"$HELD/calls")" != {four.kind.first} ] || {{ {waits}; }}')
    running = four.start()
    until(lambda: os.path.exists(now), what="the agent")
    TROUBLES[trouble](disk)
    Path(go).touch()
    return four.ended(running)


def one_trouble(four: Four, disk: Disk, trouble: str, moment: str) -> None:
    """The run ends as if nothing were, or says what is the matter; afterwards the loop can be brought to its end."""
    ran = trouble_of(four, disk, trouble, moment)
    assert "Traceback" not in ran.both, ran.both
    assert ran.code in (0, 1, 2, 3, 4), ran.both
    assert ran.code == 0 or "Error: " in ran.err or "WARNING: " in ran.both or "Resume with: " in ran.out, ran.both
    assert four.doubled() == []
    disk.well()
    if ran.code == 0 and four.done():
        return
    again = brought_to_its_end(four, ran)
    assert again.code == 0, ran.both + again.both
    assert four.done(), ran.both + again.both
    assert "Traceback" not in again.both


def brought_to_its_end(four: Four, ran: Ran) -> Ran:
    """By the command that the run has named, else by what resumes anything, else by a start."""
    found = re.search(r"Resume with: rooda (.*)", ran.both)
    again = four.ended(four.ws.start(*(shlex.split(found[1]) if found else ["resume"])))
    return four.run() if "Nothing to resume" in again.err else again


@pytest.mark.parametrize(("kind", "place", "trouble", "moment"), SHORT)
def test_a_disk_in_trouble(
    disk_of: Callable[[str, str], tuple[Four, Disk]], kind: str, place: str, trouble: str, moment: str
) -> None:
    """A selection."""
    one_trouble(*disk_of(kind, place), trouble, moment)


@pytest.mark.long
@pytest.mark.parametrize(("kind", "place", "trouble", "moment"), ALL)
def test_every_disk_in_trouble(
    disk_of: Callable[[str, str], tuple[Four, Disk]], kind: str, place: str, trouble: str, moment: str
) -> None:
    """Every place of every kind, full and read-only, at the start and in the middle."""
    one_trouble(*disk_of(kind, place), trouble, moment)


ONE_DISK = """
mount -t tmpfs none /mnt
mkdir /mnt/disk /mnt/code
mount -t tmpfs -o size=3000000 none /mnt/disk
for path in $CODE; do mkdir -p "/mnt/code$path"; mount --bind "$path" "/mnt/code$path"; done
mount --bind /mnt/disk /tmp
mount --bind /mnt/disk /var/tmp
for path in $CODE; do mkdir -p "$path"; mount --bind "/mnt/code$path" "$path"; done
mkdir -p "$HOME"
cd /tmp
echo '[loop]' >rooda.toml
echo 'ai_cmd = "sh agent.sh"' >>rooda.toml
printf '[procedures.p]\nobserve = "a"\norient = "b"\ndecide = "c"\nact = "d"\n' >>rooda.toml
echo 'cat >/dev/null; dd if=/dev/zero of=fill bs=4k; echo done >>fill; exit 0' >agent.sh
exec "$PYTHON" -m rooda p -n 3 --verbose
"""


def test_a_machine_whose_one_disk_is_full(tmp_path: Path) -> None:
    """Workspace, home and all temporary folders on one disk, which the agent fills: the loop continues, in memory."""
    code = sorted({os.path.realpath(path) for path in (sys.prefix, sys.base_prefix, os.path.dirname(DISKS))})
    env = {"PATH": os.environ["PATH"], "HOME": "/tmp/home", "PYTHON": sys.executable, "CODE": " ".join(code)}
    words = ["unshare", "-m", "sh", "-euc", ONE_DISK]
    ran = subprocess.run(words, env=env, cwd=tmp_path, capture_output=True, text=True)
    if ran.stderr.startswith("unshare: "):
        pytest.skip("may have no mounts of its own here, in a chroot for one")
    moved = re.search(r"writing files of this run to (/dev/shm/rooda-\S+)", ran.stdout + ran.stderr)
    assert moved, ran.stdout + ran.stderr
    shutil.rmtree(moved[1])
    assert ran.returncode == 0 and "Traceback" not in ran.stderr
    assert re.search(r"Reached max iterations: 3 \(total: ", ran.stdout), ran.stdout
