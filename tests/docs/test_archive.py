"""The archived shell loop still runs, and stays outside the package."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.kit.workspace import FAKE_AI, Workspace

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "archive" / "rooda.sh"
PHASES = ("observe", "orient", "decide", "act")
PROMPT = b"# OODA Loop Iteration\n\n## OBSERVE\nOBS\n\n## ORIENT\nORI\n\n## DECIDE\nDEC\n\n## ACT\nACT\n"


def loop(ws: Workspace, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the script in the workspace."""
    command = ["bash", str(SCRIPT), *arguments]
    return subprocess.run(command, cwd=ws.path, env=ws.env, capture_output=True, text=True, timeout=30)


def test_O_121_the_shell_loop_is_archived_outside_the_package() -> None:
    """archive/ holds a runnable script and a note, and the wheel's file list names neither."""
    assert os.access(SCRIPT, os.X_OK)
    assert (ROOT / "archive" / "README.md").stat().st_size > 1000
    assert not (ROOT / "rooda" / "archive").exists()
    wheel = (
        (ROOT / "pyproject.toml")
        .read_text()
        .partition("[tool.hatch.build.targets.wheel]")[2]
        .partition("targets.sdist")[0]
    )
    assert "rooda" in wheel
    assert "archive" not in wheel


def test_three_iterations_get_the_exact_prompt(ws: Workspace) -> None:
    """Each of three calls is a process of its own and reads the same bytes; newlines at the ends of files are cut."""
    ws.write("prompts/decide_build.md", "DEC\n\n\n")
    ws.write("prompts/act_build.md", "ACT")
    run = loop(ws, "build", "--max-iterations", "3", "--ai-cmd", f"'{FAKE_AI}' --flag")
    assert run.returncode == 0, run.stderr
    assert [call.prompt for call in ws.calls] == [PROMPT] * 3
    assert [call.argv for call in ws.calls] == [["--flag"]] * 3
    assert len({call.pid for call in ws.calls}) == 3
    assert run.stdout.splitlines() == [*(f"=== Iteration {n} ===" for n in (1, 2, 3)), "Reached max iterations: 3"]


def test_prompts_are_read_again_and_failures_ignored(ws: Workspace) -> None:
    """A file that the agent changes is in the next prompt; exit codes change nothing, v1 has no error handling."""
    ws.exits(1, 1, 1, 1)
    ws.side(1, "echo NEW >> prompts/observe_build.md")
    run = loop(ws, "build", "--max-iterations", "4", "--ai-cmd", FAKE_AI)
    assert run.returncode == 0
    assert [b"NEW" in call.prompt for call in ws.calls] == [False, True, True, True]


def test_phase_files_can_be_given_one_by_one(ws: Workspace) -> None:
    """Four phase flags need no procedure; one flag replaces one phase of a procedure."""
    flags = [word for phase in PHASES for word in (f"--{phase}", f"prompts/{phase}_build.md")]
    assert loop(ws, *flags, "--max-iterations", "1", "--ai-cmd", FAKE_AI).returncode == 0
    ws.write("other file.md", "OTHER $HOME `id`")
    loop(ws, "build", "--orient", "other file.md", "--max-iterations", "1", "--ai-cmd", FAKE_AI)
    assert [call.prompt for call in ws.calls] == [PROMPT, PROMPT.replace(b"ORI\n", b"OTHER $HOME `id`\n")]


def test_without_a_limit_it_runs_until_stopped(ws: Workspace) -> None:
    """Limit 0 runs until it is stopped."""
    ws.side(5, "kill -TERM -$(ps -o pgid= -p $PPID | tr -d ' ')")
    command = ["bash", str(SCRIPT), "build", "--ai-cmd", FAKE_AI]
    run = subprocess.run(command, cwd=ws.path, env=ws.env, capture_output=True, timeout=30, start_new_session=True)
    assert run.returncode == -15
    assert len(ws.calls) == 5


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "name a procedure, or all four phase files"),
        (["nosuch"], "no such prompt file: prompts/observe_nosuch.md"),
        (["build", "--max-iterations", "many"], "--max-iterations must be a whole number, got 'many'"),
        (["build", "--ai-cmd"], "--ai-cmd needs a value"),
        (["build", "--turbo"], "unknown option --turbo"),
        (["build", "twice"], "only one procedure, please: build or twice"),
    ],
)
def test_a_wrong_command_line_is_refused(ws: Workspace, arguments: list[str], complaint: str) -> None:
    """A wrong command line ends with 2 and one sentence; nothing is called."""
    run = loop(ws, *arguments)
    assert (run.returncode, run.stderr.splitlines()[0]) == (2, f"rooda.sh: {complaint}")
    assert ws.calls == []
