"""State persistence is best effort: nothing that happens to `.rooda` ends a loop."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.workspace import Ran, Workspace, masked

# Root may write anywhere; without these two capabilities (CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH) it is held to the mode
# bits like anyone else. Without root there is nothing to give up.
HUMBLE = """\
import ctypes, os, sys
if os.geteuid() == 0:
    for capability in (1, 2):
        ctypes.CDLL(None).prctl(24, capability, 0, 0, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""


def humble(ws: Workspace, *arguments: str) -> Ran:
    """Run rooda as a user to whom mode bits apply."""
    argv = [sys.executable, "-c", HUMBLE, *ws.command(*arguments)]
    done = subprocess.run(
        argv, cwd=ws.path, env=ws.env, capture_output=True, text=True, timeout=30, stdin=subprocess.DEVNULL
    )
    return Ran(done.returncode, done.stdout, done.stderr)


def assert_stopped_by_mode_bits(ws: Workspace, folder: str) -> None:
    """The test's own footing: this folder really can't be written to by what `humble` starts."""
    probe = "import sys; open(sys.argv[1] + '/probe', 'w')"
    argv = [sys.executable, "-c", HUMBLE, sys.executable, "-c", probe, ws.file(folder)]
    done = subprocess.run(argv, capture_output=True, text=True)
    assert "PermissionError" in done.stderr, "mode bits do not hold here"


def whole_run(ran: Ran, count: int) -> bool:
    """Exit 0, and stdout is that of an undisturbed run."""
    middle = [line for n in range(1, count + 1) for line in (f"{n}/{count} starting...", f"{n}/{count} completed in D")]
    shown = [line.removeprefix("[T] Iteration ") for line in masked(ran.lines)[1:-1]]
    return ran.code == 0 and shown == middle and "Traceback" not in ran.err


def test_O_082_state_that_cannot_be_written_is_an_error_line(ws: Workspace) -> None:
    """`.rooda/state` is a regular file: failures to save are said, every call is made, the end is normal."""
    ws.write(".rooda/state", "in the way\n")
    ran = ws.rooda("build", "--max-iterations", "3")
    assert whole_run(ran, 3)
    assert len(ws.calls) == 3
    assert "ERROR: State could not be saved to " in ran.err
    assert ws.read(".rooda/state") == "in the way\n"


def test_O_114_an_agent_that_removes_the_folder_of_the_state(ws: Workspace) -> None:
    """The folder goes as soon as the agent is there: the next state is written again, and no word is lost about it."""
    ran = ws.rooda("build", "--max-iterations", "25", "--ai-cmd", "/bin/rm -rf .rooda/state")
    assert whole_run(ran, 25)
    assert ran.notes == ""


def test_O_082_an_interruption_says_that_nothing_was_saved(ws: Workspace) -> None:
    """Ctrl+C without a state on disk: the last line does not promise a resume."""
    ws.write(".rooda/state", "in the way\n")
    ws.signal_at(2)
    ran = ws.rooda("build", "--max-iterations", "3")
    assert ran.code == 130
    assert masked(ran.lines)[-1] == "[T] Interrupted. State could not be saved."
    assert ran.err.count("State could not be saved to ") == 3  # at the start, and once per iteration


@pytest.mark.parametrize("folder", [".", ".rooda", ".rooda/state", ".rooda/runs"])
def test_O_114_a_folder_that_may_not_be_written(ws: Workspace, folder: str) -> None:
    """Held to the mode bits of a read-only folder, the loop still makes every call and ends normally."""
    for name in (".rooda/state", ".rooda/runs"):
        if folder != ".":
            os.makedirs(ws.file(name), exist_ok=True)
    os.chmod(ws.file(folder), 0o555)
    try:
        assert_stopped_by_mode_bits(ws, folder)
        ran = humble(ws, "build", "--max-iterations", "2")
    finally:
        os.chmod(ws.file(folder), 0o755)
    assert whole_run(ran, 2), ran
    assert len(ws.calls) == 2
    assert "Permission denied" in ran.err
    said = [line for line in ran.err.splitlines() if "files of this run" in line]
    assert len(said) <= 2


def test_O_114_a_state_file_that_may_not_be_read(ws: Workspace) -> None:
    """A state file without the right to read it is put aside like a damaged one; nothing of it is lost."""
    ws.put_state(status="interrupted")
    before = ws.read(".rooda/state/build.json")
    os.chmod(ws.state_file(), 0)
    ran = humble(ws, "build", "--max-iterations", "1")
    assert whole_run(ran, 1), ran
    assert "Permission denied" in ran.err
    assert Path(ws.state_file() + ".corrupt").read_bytes() == before.encode()


def test_O_114_the_state_file_replaced_by_a_folder(ws: Workspace) -> None:
    """In mid-run the file becomes a folder that is not empty: errors are said, all calls are made, exit 0."""
    ws.side(1, "rm .rooda/state/build.json; mkdir -p .rooda/state/build.json/x")
    ran = ws.rooda("build", "--max-iterations", "3")
    assert whole_run(ran, 3), ran
    assert len(ws.calls) == 3
    assert "ERROR: State could not be saved to " in ran.err
    assert ws.exists(".rooda/state/build.json/x")


def test_O_114_a_file_in_place_of_the_rooda_folder(ws: Workspace) -> None:
    """`.rooda` is a regular file: prompts and transcripts go elsewhere, the file stays, the loop is whole."""
    ws.write(".rooda", "mine\n")
    ran = ws.rooda("build", "--max-iterations", "2")
    assert whole_run(ran, 2), ran
    assert [call.prompt for call in ws.calls] == [ws.calls[0].prompt] * 2
    assert b"## OBSERVE\nOBS" in ws.calls[0].prompt
    assert ws.read(".rooda") == "mine\n"
    assert len([line for line in ran.err.splitlines() if "files of this run" in line]) == 1


def test_O_114_everything_cleaned_away_in_mid_run(ws: Workspace) -> None:
    """An agent runs `git clean -fdx`: the loop continues, the state and its guard come back, and it can be resumed."""
    ws.damages_events = True
    ws.git("init", "-q")
    ws.git("add", "rooda.toml", "prompts")
    ws.git("commit", "-qm", "start")
    ws.side(1, 'git clean -fdxq; [ -e .rooda ] || : >"$FAKE/was-clean"')
    ws.copy_state_at(2)
    ws.side(2, f'cd {ws.path} && {sys.executable} -m rooda build >"$FAKE/second" 2>&1; echo $? >>"$FAKE/second"')
    ws.signal_at(3)
    ran = ws.rooda("build", "--max-iterations", "5")
    assert Path(ws.fake, "was-clean").exists()
    assert ran.code == 130 and "Traceback" not in ran.both
    assert ws.copies[2]["iteration"] == 1
    second = Path(ws.fake, "second").read_text()
    assert "is already running here" in second and second.endswith("\n3\n")
    assert ws.read(".rooda/.gitignore") == "*\n"
    assert ws.git("status", "--porcelain") == ""
    assert len(ws.events()) > 3
    again = ws.rooda("resume", "build")
    assert (again.code, len(ws.calls)) == (0, 5)
