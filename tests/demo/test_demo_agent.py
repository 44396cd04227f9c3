"""The demo agent, run as a process: in its two known projects and in an unknown one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rooda.demo.agent import FAULTS, MARK, PROGRAM, TESTS
from tests.kit.workspace import Workspace


def call(ws: Workspace, prompt: bytes = b"prompt\n", **env: str) -> subprocess.CompletedProcess[str]:
    """One call of the demo agent in the workspace."""
    command = [sys.executable, "-m", "rooda.demo.agent"]
    done = subprocess.run(command, cwd=ws.path, env=ws.env | env, input=prompt, capture_output=True, timeout=30)
    return subprocess.CompletedProcess(command, done.returncode, done.stdout.decode(), done.stderr.decode())


def gate(ws: Workspace, folder: str = "") -> int:
    """The demo project's gate."""
    command = ["sh", "-c", "python3 -m unittest -q"]
    return subprocess.run(command, cwd=ws.file(folder), env=ws.env, capture_output=True).returncode


def promised(run: subprocess.CompletedProcess[str], word: str) -> bool:
    """True if the tag is alone on the last line."""
    return run.stdout.splitlines()[-1] == f"<promise>{word}</promise>"


def listing(ws: Workspace) -> dict[str, bytes]:
    """Every file of the workspace and its content."""
    paths = (path for path in Path(ws.path).rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {str(path.relative_to(ws.path)): path.read_bytes() for path in paths}


def test_in_its_project_it_goes_red_red_green(bare: Workspace) -> None:
    """Three calls repair one function each; the gate passes after the third, which alone promises success."""
    bare.write("textkit.py", PROGRAM)
    bare.write("test_textkit.py", TESTS)
    assert gate(bare) == 1
    runs, gates = [], []
    for _ in range(3):
        runs.append(call(bare))
        gates.append(gate(bare))
    assert [run.returncode for run in runs] == [0, 0, 0]
    assert gates == [1, 1, 0]
    assert [promised(run, "SUCCESS") for run in runs] == [False, False, True]
    assert [fault.function in run.stdout for fault, run in zip(FAULTS, runs, strict=True)] == [True] * 3


def test_a_further_call_changes_nothing(bare: Workspace) -> None:
    """A further call reports that nothing is left to do, promises success and changes nothing."""
    bare.write("textkit.py", PROGRAM)
    for _ in FAULTS:
        call(bare)
    before = listing(bare)
    run = call(bare)
    assert "Nothing to do" in run.stdout
    assert promised(run, "SUCCESS")
    assert listing(bare) == before


def test_in_an_unknown_folder_it_builds_its_own_project(bare: Workspace) -> None:
    """In an unknown folder the first call makes rooda-demo/, the next three repair it; nothing else is touched."""
    bare.write("textkit.py", FAULTS[0].wrong)
    runs, gates = [], []
    for _ in range(4):
        runs.append(call(bare))
        gates.append(gate(bare, "rooda-demo"))
    assert gates == [1, 1, 1, 0]
    assert [promised(run, "SUCCESS") for run in runs] == [False, False, False, True]
    assert set(listing(bare)) == {"textkit.py", "rooda-demo/textkit.py", "rooda-demo/test_textkit.py"}
    assert bare.read("textkit.py") == FAULTS[0].wrong


@pytest.mark.parametrize(
    "files",
    [
        {"rooda-demo/notes.txt": "mine"},
        {"rooda-demo/textkit.py": FAULTS[0].wrong},
        {"textkit.py": MARK + "print('rewritten')\n"},
    ],
)
def test_files_of_the_user_stay_unchanged(bare: Workspace, files: dict[str, str]) -> None:
    """Files that differ from the demo's stay unchanged; the agent says that it can't help."""
    for name, text in files.items():
        bare.write(name, text)
    before = listing(bare)
    run = call(bare)
    assert run.returncode == 0
    assert promised(run, "FAILURE")
    assert listing(bare) == before


def test_a_partly_rewritten_project_is_not_called_done(bare: Workspace) -> None:
    """It repairs known mistakes, and does not promise success for a function it can't judge."""
    bare.write("textkit.py", PROGRAM.replace(FAULTS[1].wrong, "    return 0\n"))
    runs = [call(bare) for _ in range(2)]
    assert all(run.stdout.count("Fixed") == 1 for run in runs)
    assert promised(runs[1], "FAILURE")


def test_it_reads_the_whole_prompt(bare: Workspace) -> None:
    """A prompt larger than any pipe is read to its end, whatever bytes it contains."""
    run = call(bare, prompt=b"\xff" * 300_000)
    assert "Read a prompt of 300,000 bytes." in run.stdout


def test_a_call_of_an_unknown_kind_fails_with_a_sentence(bare: Workspace) -> None:
    """A call of an unknown kind gets one sentence and exit 1."""
    run = call(bare, ROODA_CALL="evaluate")
    assert run.returncode == 1
    assert "`evaluate` call" in run.stdout
    assert listing(bare) == {}


def test_a_folder_it_cannot_write_to_is_a_sentence(bare: Workspace) -> None:
    """A file in the place of its folder gives exit 1 and no traceback."""
    bare.write("rooda-demo", "a file")
    run = call(bare)
    assert run.returncode == 1
    assert "Could not continue:" in run.stdout
    assert run.stderr == ""


def test_it_imports_nothing_heavy(bare: Workspace) -> None:
    """The agent imports few modules, and only from the standard library."""
    program = "import sys, rooda.demo.agent; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], cwd=bare.path, env=bare.env, capture_output=True, text=True)
    loaded = set(done.stdout.split())
    assert not loaded & {"click", "asyncio", "json", "subprocess", "rooda.agents.records", "tiktoken"}, os.fsdecode(
        done.stderr
    )
