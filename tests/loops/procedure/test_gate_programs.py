"""Quality gates are listed with their origin, and a program that is missing is refused before anything is paid for."""

import json

import pytest

from rooda.run import gate_programs
from tests.kit.workspace import Workspace

AGENTS_MD = "# Project\n\n## Quality Gates\n\n- lint: `nosuchlinter src`\n"


@pytest.mark.parametrize(
    ("command", "program"),
    [
        ("nosuch --all", "nosuch"),
        ("A=1 B='x y' nosuch", "nosuch"),
        ("'no such' x", "no such"),
        ("tools/check fast", "tools/check"),
        ("if true", ""),
        ("cd src", ""),
        (": nothing", ""),
        ("A=1", ""),
        ("PATH=/x nosuch", ""),
        ("'nosuch", ""),
        *((f"nosuch {sign}x", "") for sign in "|&;<>()$\\{}*?[#~!`\n"),
    ],
)
def test_E_16_the_program_of_a_command(command: str, program: str) -> None:
    """A plain first word after assignments; nothing where a shell decides."""
    assert gate_programs.program(command) == program


def test_E_16_a_missing_program_is_refused_before_the_first_call(ws: Workspace) -> None:
    """The error has gate, place and cure, for gates of both files; nothing is started or written."""
    ws.procedure(gates={"fine": "true", "tests": "A=1 nosuchtests -q"})
    ran = ws.rooda("build")
    line = ws.read("rooda.toml").splitlines().index('command = "A=1 nosuchtests -q"') + 1
    what = f"{ws.file('rooda.toml')}:{line - 2}: the quality gate 'tests' can't run: nosuchtests: it is not on PATH"
    assert (ran.code, ws.calls, ws.exists(".rooda")) == (2, [], False)
    assert what in ran.err and "Install the program, correct the command, or run without gates: --no-gates" in ran.err
    ws.sections.clear()
    ws.procedure()
    ws.write("AGENTS.md", AGENTS_MD)
    ran = ws.rooda("build")
    assert ran.code == 2 and f"{ws.file('AGENTS.md')}:5: the quality gate 'lint'" in ran.err
    assert "FAIL  gate lint" in ws.rooda("doctor").out
    assert ws.rooda("build", "--no-gates", "-n", "1").code == 0


def test_E_16_a_missing_program_of_an_option_is_named_with_it(ws: Workspace) -> None:
    """The place is the option, not the number of its value."""
    ran = ws.rooda("build", "--gate", "true", "--gate", "nosuchtests")
    assert ran.code == 2 and "Error: --gate: the quality gate 'nosuchtests' can't run" in ran.err


def test_E_16_a_file_of_the_workspace_may_be_the_program(ws: Workspace) -> None:
    """An existing path is accepted, a missing one is refused by name, a shell's job is left to the shell."""
    ws.write("tools/check", "#!/bin/sh\n", 0o755)
    ws.procedure(gates={"a": "tools/check", "b": "nosuch || true"})
    assert ws.rooda("build", "-n", "1").code == 0
    ws.procedure(gates={"a": "./tools/gone"})
    ran = ws.rooda("build", "-n", "1")
    assert ran.code == 2 and f"./tools/gone: there is no file {ws.file('./tools/gone')}" in ran.err


def test_E_16_exit_127_is_said_in_words(ws: Workspace) -> None:
    """A program that disappears during the run, or that only the shell looked for."""
    ws.write("tools/check", "#!/bin/sh\n", 0o755)
    ws.side(1, "rm tools/check")
    ws.procedure(gates={"a": "tools/check", "b": "true && nosuch"})
    said = "Quality gates failed: a (not there yet), b (command not found), consecutive failures: 1/3"
    assert said in ws.rooda("build", "-n", "1").out


def test_E_17_gates_are_listed_with_name_command_and_origin(ws: Workspace) -> None:
    """By a dry run, info, doctor, config show, and the run's first event; secrets are hidden."""
    ws.procedure(gates={"tests": "echo zq8Rw1Lx5Vt2Nb7Km4Pd"})
    env = {"MY_TOKEN": "zq8Rw1Lx5Vt2Nb7Km4Pd"}
    line = ws.read("rooda.toml").splitlines().index("[[procedures.build.quality_gates]]") + 1
    origin = f"{ws.file('rooda.toml')}:{line}"
    gate = f"tests: echo *** ({origin})"
    assert f"[DRY RUN] Quality gate {gate}\n" in ws.rooda("build", "--dry-run", env=env).out
    assert f"Quality Gates:\n  {gate}\n" in ws.rooda("info", "build", env=env).out
    assert "gate tests" in ws.rooda("doctor", env=env).out and gate in ws.rooda("doctor", env=env).out
    assert f"# quality gate of build: {gate}\n" in ws.rooda("config", "show", env=env).out
    assert json.loads(ws.rooda("config", "show", "--json", env=env).out)["quality gates of build"] == [gate]
    assert ws.rooda("build", "-n", "1", env=env).code == 0
    assert ws.events()[0]["gates"] == [{"name": "tests", "command": "echo ***", "origin": origin}]


def test_E_17_gates_of_AGENTS_md_have_an_origin_too(ws: Workspace) -> None:
    """The line of the bullet."""
    ws.write("AGENTS.md", AGENTS_MD.replace("nosuchlinter", "true"))
    assert f"[DRY RUN] Quality gate lint: true src ({ws.file('AGENTS.md')}:5)" in ws.rooda("build", "--dry-run").out


@pytest.mark.parametrize("how", ["none", "missing", "forbidden"])
def test_E_29_a_dry_run_needs_no_agent(ws: Workspace, how: str) -> None:
    """It ends with 0, shows the prompt, and says what a start would refuse."""
    ws.procedure(
        gates={"tests": "nosuchtests"}, loop={"ai_cmd": {"none": None, "missing": "nosuchagent"}.get(how, "./x")}
    )
    ws.write("x", "", 0o644)
    ran = ws.rooda("build", "--dry-run")
    reasons = {"none": "no AI command", "missing": "binary not found: nosuchagent", "forbidden": "is not executable"}
    assert (ran.code, ran.err) == (0, "") and "## OBSERVE\nOBS\n" in ran.out
    refusals = [line for line in ran.out.splitlines() if line.startswith("[DRY RUN] A start would be refused: ")]
    assert len(refusals) == 2 and reasons[how] in refusals[0] and "nosuchtests" in refusals[1]


def test_E_29_a_dry_run_says_which_settings_a_start_refuses(ws: Workspace) -> None:
    """A misspelt key, and a setting that needs git or snapshots."""
    for setting, reason in (
        ('stuck_afer = 3\ncommit = "green"', ("did you mean 'stuck_after'", 'commit = "green" needs git')),
        ('on_red = "undo"\nbaseline = true', ('on_red = "undo" needs snapshots',)),
    ):
        ws.procedure()
        ws.config(ws.read("rooda.toml").replace("[loop]\n", f"[loop]\n{setting}\n"))
        ran = ws.rooda("build", "--dry-run")
        refusals = [line for line in ran.out.splitlines() if line.startswith("[DRY RUN] A start would be refused: ")]
        assert ran.code == 0 and len(refusals) == len(reason), ran.both
        assert all(words in line for words, line in zip(reason, refusals, strict=True))
