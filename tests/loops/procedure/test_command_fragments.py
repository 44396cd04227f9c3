"""A prompt fragment may be a command, whose output is the text."""

import pytest

from tests.kit.workspace import Workspace


def act_of(prompt: str) -> str:
    return prompt.partition("## ACT\n")[2]


def with_command(ws: Workspace, fragment: str, more: str = "") -> None:
    """Make the act phase a text and this fragment."""
    ws.procedure(keys=more)
    ws.config(ws.read("rooda.toml").replace('act = "prompts/act_build.md"', f'act = ["DO", {fragment}]'))


def test_E_05_the_output_is_the_text_of_each_iteration(ws: Workspace) -> None:
    """It runs for every prompt; placeholders in its output mean nothing, secrets and escapes are removed."""
    command = "date +%N; echo {{x}} $MY_TOKEN; printf '\\\\033[1mbold\\\\033[0m\\\\n'"
    with_command(ws, f'{{ command = "{command}" }}', "parameters = { x = 'no' }")
    ws.rooda("build", "-n", "2", env={"MY_TOKEN": "zq8Rw1Lx5Vt2Nb7Km4Pd"})
    first, second = (act_of(call.text) for call in ws.calls)
    assert first != second and first.startswith("DO\n\n") and first.endswith("{{x}} ***\nbold\n")


def test_E_05_a_failing_command_says_so_and_the_loop_goes_on(ws: Workspace) -> None:
    """Exit code or timeout, and what it printed."""
    with_command(ws, '{ command = "echo some; exit 3" }, { command = "echo slow; sleep 30", timeout = 0.2 }')
    assert ws.rooda("build", "-n", "1").code == 0
    _, failed, slow = act_of(ws.calls[0].text).split("\n\n")
    assert failed == "[command failed with exit code 3: echo some; exit 3]\nsome"
    assert slow == "[command ended after 0.2s: echo slow; sleep 30]\nslow\n"


def test_E_05_a_long_output_is_cut(ws: Workspace) -> None:
    """Its beginning and end are kept."""
    with_command(ws, '{ command = "echo first; seq 100000; echo last" }')
    assert ws.rooda("build", "-n", "1").code == 0
    text = act_of(ws.calls[0].text)
    assert "first\n1\n2\n" in text and text.endswith("100000\nlast\n") and "characters left out" in text
    assert len(text) < 10_100


def test_E_05_a_dry_run_never_runs_it(ws: Workspace) -> None:
    """It shows the command, says that the count is without it, and doctor and info do not run it either."""
    with_command(ws, '{ command = "touch ran; git log --oneline -5" }')
    shown = ws.rooda("build", "--dry-run")
    assert "[command not run: touch ran; git log --oneline -5]" in shown.out and shown.code == 0
    assert " budget, without the output of 1 command\n" in shown.out
    assert "    command: touch ran; git log --oneline -5\n" in ws.rooda("info", "build").out
    ws.rooda("doctor")
    assert not ws.exists("ran")


def test_E_05_a_signal_during_the_command_ends_the_loop(ws: Workspace) -> None:
    """No agent is started then."""
    with_command(ws, '{ command = "kill -INT $PPID; sleep 30", timeout = 20 }')
    assert ws.rooda("build").code == 130
    assert ws.calls == []


@pytest.mark.parametrize(
    ("fragment", "fault"),
    [
        ('{ command = "a", path = "b" }', "must have exactly one of content, path and command"),
        ('{ path = "b", timeout = 3 }', "needs a command"),
        ('{ command = "a", parameters = { x = 1 } }', "has no effect on a command"),
        ('{ command = "" }', "must be"),
    ],
)
def test_E_05_faults_have_a_line(ws: Workspace, fragment: str, fault: str) -> None:
    """A mistake in the table is refused at once."""
    with_command(ws, fragment)
    ran = ws.rooda("build")
    assert ran.code == 2 and fault in ran.err and "procedures.build.act" in ran.err


def test_E_05_S_03_a_command_is_a_fact_of_trust(ws: Workspace) -> None:
    """One that came with a clone is asked about before anything runs."""
    with_command(ws, '{ command = "touch ran" }')
    ws.git("init", "-q")
    ws.git("remote", "add", "origin", "https://example.invalid/x")
    ws.git("add", "-A")
    ws.git("commit", "-qm", "theirs")
    ws.git("clone", "-q", ".", "../clone")
    ran = ws.rooda("build", cwd=f"{ws.root}/clone")
    assert ran.code == 3 and "touch ran" in ran.err and "prompt command" in ran.err
    assert ws.calls == []
