"""`rooda init --demo`: the project it makes, and a loop on it."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.kit.workspace import Workspace, masked

FILES = {"textkit.py", "test_textkit.py", "rooda.toml", "AGENTS.md", ".gitignore"}


def scaffold(ws: Workspace, folder: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Make a demo project as the command does."""
    command = [sys.executable, "-m", "rooda", "init", "--demo", folder]
    return subprocess.run(command, cwd=ws.path, env=ws.env | env, capture_output=True, text=True)


def test_every_printed_file_exists(bare: Workspace) -> None:
    """Every file of the project exists and is in the output, which ends with the next command."""
    run = scaffold(bare, "my demo")
    assert run.returncode == 0, run.stderr
    assert {path.name for path in Path(bare.path, "my demo").iterdir()} == {*FILES, ".git"}
    assert all(name in run.stdout for name in FILES)
    assert run.stdout.splitlines()[-1] == "Next: cd 'my demo' && rooda build"


def test_its_settings_are_the_demo_agent_snapshots_and_one_gate(bare: Workspace) -> None:
    """rooda.toml selects the demo agent, snapshots, and the tests as the only gate."""
    scaffold(bare, "demo")
    settings = tomllib.loads(bare.read("demo/rooda.toml"))
    gate = {"name": "tests", "command": "python3 -m unittest -q"}
    assert settings == {"loop": {"agent": "demo", "safety": "snapshot", "quality_gates": [gate]}}


def test_it_is_committed_without_a_git_identity(bare: Workspace) -> None:
    """The first commit works without a user name and address in git's settings."""
    os.unlink(os.path.join(bare.home, ".gitconfig"))
    run = scaffold(bare, "demo")
    assert "first git commit" in run.stdout
    assert bare.git("-C", "demo", "log", "--format=%an <%ae>") == "demo <demo@example.invalid>\n"
    assert bare.git("-C", "demo", "status", "--porcelain") == ""


def test_the_project_is_made_without_git(bare: Workspace) -> None:
    """Without git the project is made, and the output says that git is missing."""
    run = scaffold(bare, "demo", PATH=bare.home)
    assert run.returncode == 0, run.stderr
    assert "Without git" in run.stdout
    assert {path.name for path in Path(bare.path, "demo").iterdir()} == FILES


def test_an_empty_folder_will_do(bare: Workspace) -> None:
    """The current folder is used if it is empty; the output has no `cd` then."""
    run = scaffold(bare, ".")
    assert run.stdout.splitlines()[-1] == "Next: rooda build"
    assert bare.exists("textkit.py")


@pytest.mark.parametrize("taken", ["demo", "demo/mine.txt"])
def test_existing_files_are_not_overwritten(bare: Workspace, taken: str) -> None:
    """A folder that is not empty, or a file, is a usage error; nothing is written."""
    bare.write(taken, "mine")
    run = scaffold(bare, "demo")
    assert run.returncode == 2
    assert run.stderr.startswith("Error: demo already exists and is not an empty folder.")
    assert [str(path.relative_to(bare.path)) for path in Path(bare.path).rglob("*") if path.is_file()] == [taken]


def test_a_folder_that_cannot_be_made_is_a_sentence(bare: Workspace) -> None:
    """A path through a file is a usage error with the reason."""
    bare.write("file", "")
    run = scaffold(bare, "file/demo")
    assert run.stderr.startswith("Error: Can't create the demo project in file/demo: Not a directory.")


def test_the_demo_fails_twice_and_succeeds(bare: Workspace) -> None:
    """`rooda init --demo` and `rooda build`: two failed gates, then success and exit 0, with no process left."""
    made = bare.rooda("init", "--demo", "demo")
    assert made.code == 0, made.both
    run = bare.rooda("build", "-C", "demo", "--agent", "demo")
    assert run.code == 0, run.both
    warnings = [line for line in masked(run.lines) if "WARNING" in line]
    assert warnings == [
        f"[T] WARNING: Quality gates failed: tests (exit 1), consecutive failures: {n}/3" for n in (1, 2)
    ]
    assert "AI signaled SUCCESS: completed after 3 iterations" in run.lines[-1]
    assert bare.git("-C", "demo", "status", "--porcelain") == " M textkit.py\n"
    assert not bare.exists("demo/.rooda/state/build.json")


def test_diff_and_undo_work_in_the_demo(bare: Workspace) -> None:
    """`rooda diff 2` and `rooda undo` work in the demo as the README says, without further settings."""
    bare.rooda("init", "--demo", "demo")
    assert bare.rooda("build", "-C", "demo").code == 0
    assert "+    return len(text.split())\n" in bare.rooda("diff", "2", "-C", "demo").out
    assert bare.rooda("undo", "1", "--yes", "-C", "demo").code == 0
    assert bare.git("-C", "demo", "status", "--porcelain") == ""
