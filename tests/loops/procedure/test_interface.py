"""What the specification says about its interface, the gates of a project, the guard, and the room loops live in."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rooda.agents.records import Reply
from rooda.errors import FAILED, OK
from rooda.loops.procedure import loop, progress
from rooda.loops.procedure.model import Procedure
from rooda.loops.procedure.progress import NOTHING, Seen
from rooda.loops.procedure.state import OodaState
from tests.kit.workspace import FAKE_AI, Workspace, masked, until

PROJECT = Path(__file__).resolve().parents[3]
STATE = OodaState(0, 2, 0, 3, "2026-02-06T10:00:00Z", None, "running", "build", ())


def test_O_111_the_command_line_of_the_examples(ws: Workspace) -> None:
    """`rooda --help` names resume and how a procedure is run; the procedure's own help has both options."""
    general, own = ws.rooda("--help"), ws.rooda("build", "--help")
    assert (general.code, own.code) == (0, 0)
    assert re.search(r"^  resume\s", general.out, re.MULTILINE)
    assert "rooda build --max-iterations" in general.out and "rooda build --dry-run" in general.out
    assert "--max-iterations" in own.out and "--dry-run" in own.out


def test_O_112_gates_come_from_the_project(ws: Workspace) -> None:
    """Without AGENTS.md nothing is checked; a bullet under Quality Gates makes the check run after each call."""
    assert ws.rooda("build", "--max-iterations", "1").code == 0
    assert not [event for event in ws.events() if event["event"].startswith("gate")]
    ws.write("AGENTS.md", '# P\n\n## Quality Gates\n\n- mine: `echo checked >>"$FAKE/gate"`\n')
    assert ws.rooda("build", "--max-iterations", "2").code == 0
    assert Path(ws.fake, "gate").read_text() == "checked\n" * 2


def test_O_113_an_empty_folder_is_enough(bare: Workspace) -> None:
    """Nothing but an AI command: the shipped build procedure completes where there is no project at all."""
    ran = bare.rooda("build", "--max-iterations", "1", "--ai-cmd", FAKE_AI)
    assert (ran.code, len(bare.calls)) == (0, 1)
    assert masked(ran.lines)[-1] == "[T] Reached max iterations: 1 (total: D)"


def test_O_115_the_guard_is_per_procedure(ws: Workspace) -> None:
    """While build runs, a second build is refused and audit-spec in the same workspace runs to its end."""
    ws.procedure("audit-spec")
    ws.side(1, 'until [ -e "$FAKE/go" ]; do sleep 0.02; done')
    first = ws.start("build", "--max-iterations", "1")
    ws.wait_calls(1)
    second = ws.rooda("build")
    assert (second.code, second.out) == (3, "")
    assert "is already running here" in second.err and str(first.pid) in second.err
    other = ws.rooda("audit-spec", "--max-iterations", "1")
    assert (other.code, len(ws.calls)) == (0, 2)
    Path(ws.fake, "go").touch()
    assert first.finish() == 0


def test_O_116_a_stale_file_can_be_removed_by_hand(ws: Workspace) -> None:
    """Once the file that says running is deleted, the procedure starts with 1."""
    ws.put_state(status="running")
    assert ws.rooda("build").code == 3
    os.remove(ws.state_file())
    ran = ws.rooda("build", "--max-iterations", "1")
    assert ran.code == 0
    assert masked(ran.lines)[1] == "[T] Iteration 1/1 starting..."


def test_O_117_resume_takes_care_of_a_stale_file(ws: Workspace) -> None:
    """A file that says running, without a live owner: resume warns on stderr and continues with the next number."""
    ws.put_state(status="running", iteration=2, max_iterations=3, elapsed_per_iteration=["1.0s", "2.0s"])
    ran = ws.rooda("resume", "build")
    assert (ran.code, len(ws.calls)) == (0, 1)
    assert "did not end cleanly" in ran.err
    assert masked(ran.lines) == [
        "[T] Resuming procedure: build from iteration 2 (max 3)",
        "[T] Previous session: 2 iterations completed in D",
        "[T] Iteration 3/3 starting...",
        "[T] Iteration 3/3 completed in D",
        "[T] Reached max iterations: 3 (total: D)",
    ]


def test_O_117_resume_refuses_while_the_owner_lives(ws: Workspace) -> None:
    """A resume during a live loop is refused like a start, and the loop's state stays as it is."""
    ws.side(1, 'until [ -e "$FAKE/go" ]; do sleep 0.02; done')
    first = ws.start("build", "--max-iterations", "1")
    ws.wait_calls(1)
    second = ws.rooda("resume", "build")
    assert (second.code, second.out) == (3, "")
    assert "is already running here" in second.err
    Path(ws.fake, "go").touch()
    assert (first.finish(), len(ws.calls)) == (0, 1)


@pytest.mark.parametrize(
    ("harm", "code"),
    [("config", 2), ("prompt", 2), ("binary", 2), ("mode", 2), ("state", 0), ("procedure", 2), ("folder", 2)],
)
def test_O_119_errors_are_sentences(ws: Workspace, harm: str, code: int) -> None:
    """Whatever is broken: a sentence on stderr that names it, the right code, never a traceback."""
    arguments, named = ["build", "--max-iterations", "1"], ""
    if harm == "config":
        ws.config("[loop\n")
        named = "rooda.toml:1"
    elif harm == "prompt":
        os.remove(ws.file("prompts/decide_build.md"))
        named = "decide_build.md"
    elif harm == "binary":
        arguments += ["--ai-cmd", "no-such-agent --flag"]
        named = "no-such-agent"
    elif harm == "mode":
        named = ws.write("plain-file", "#!/bin/sh\n")
        arguments += ["--ai-cmd", named]
    elif harm == "state":
        named = ws.write(".rooda/state", "")
    elif harm == "procedure":
        arguments[0] = named = "biuld"
    else:
        named = ws.file("nowhere")
        arguments = ["-C", named, *arguments]
    ran = ws.rooda(*arguments)
    assert ran.code == code, ran
    assert named in ran.err
    assert "Traceback" not in ran.both
    assert len(ws.calls) == (1 if code == 0 else 0)


def test_O_120_loop_state_and_signals_import_alone() -> None:
    """The three modules import without the command line, and without anything that only it needs."""
    program = (
        "import sys, rooda.loops.procedure.loop, rooda.loops.procedure.store, rooda.processes.signals\n"
        "print(sorted({name.split('.')[0] for name in sys.modules} & {'click', 'yaml', 'tiktoken', 'psutil'}),"
        " [name for name in sys.modules if name.startswith('rooda.cli')])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[] []\n"


@pytest.mark.parametrize(
    ("changes", "signal", "kind", "code"),
    [
        ({}, 0, None, 0),
        ({"iteration": 2}, 0, "max-iterations", OK),
        ({"iteration": 3}, 0, "max-iterations", OK),
        ({"iteration": 99, "max_iterations": 0}, 0, None, 0),
        ({"iteration": 2, "consecutive_failures": 3}, 0, "failures", FAILED),
        ({}, 2, "signal", 130),
        ({}, 15, "signal", 143),
        ({}, 1, "signal", 143),
        ({"iteration": 2}, 2, "max-iterations", OK),
    ],
)
def test_O_120_the_rules_are_testable_without_a_process(
    changes: dict, signal: int, kind: str | None, code: int
) -> None:
    """Why a loop stops depends on its state and a signal alone: `>=` on the counter, failures before the limit."""
    ending = loop.why_stop(STATE._replace(**changes), signal)
    assert (ending and ending.kind, ending.code if ending else 0) == (kind, code)


def test_O_120_settling_an_iteration_is_a_table(ws: Workspace) -> None:
    """Each kind of reply leads to one next state, without a clock, a file or a process."""
    for reply, status, failures in (
        (Reply(0, 1.0), "running", 0),
        (Reply(7, 1.0), "running", 3),
        (Reply(0, 1.0, "timeout"), "running", 3),
        (Reply(143, 1.0, "interrupted"), "interrupted", 2),
        (Reply(0, 1.0, promise="SUCCESS"), "completed", 0),
        (Reply(0, 1.0, promise="FAILURE"), "running", 3),
        (Reply(1, 1.0, promise="SUCCESS"), "running", 3),
    ):
        seen = Seen(reply)
        turn = loop.Turn(seen, progress.failed(Procedure("build", ()), NOTHING, seen))
        state = loop.next_state(STATE._replace(consecutive_failures=2), turn, "now")
        assert (state.status, state.consecutive_failures) == (status, failures), reply
        assert (state.iteration, state.elapsed_per_iteration, state.last_iteration_at) == (1, ("1.0s",), "now")


def test_O_121_the_first_version_is_kept_beside_the_package() -> None:
    """archive/ holds the bash loop and a note on it, and no part of it is in the package."""
    note = (PROJECT / "archive" / "README.md").read_text()
    assert "rooda.sh" in note and len(note.split()) > 50
    assert (PROJECT / "archive" / "rooda.sh").read_text().startswith("#!")
    assert not list((PROJECT / "rooda").rglob("*.sh"))


def test_O_122_the_comparison_is_on_the_counter_as_stored(ws: Workspace) -> None:
    """10 of 10 are done: the resume makes no call and ends at the limit; 9 of 10 makes one."""
    ws.put_state(iteration=10)
    ran = ws.rooda("resume", "build")
    assert (ran.code, ws.calls, ws.state()) == (0, [], None)
    assert masked(ran.lines) == [
        "[T] Resuming procedure: build from iteration 10 (max 10)",
        "[T] Previous session: 10 iterations completed in D",
        "[T] Reached max iterations: 10 (total: D)",
    ]
    ws.put_state(iteration=9)
    assert (ws.rooda("resume", "build").code, len(ws.calls)) == (0, 1)


def test_O_123_the_budget_is_a_setting_for_each_prompt(ws: Workspace) -> None:
    """Another budget in the configuration changes the dry-run's third line and whether there is a warning."""
    for budget, shown in ((100_000, "100,000"), (29, "29"), (30, "30")):
        ws.procedure(loop={"token_budget": budget})
        dry = ws.rooda("build", "--dry-run")
        assert dry.lines[2] == f"[DRY RUN] Token count: 30 / {shown} budget"
        assert dry.err == ("WARNING: Prompt exceeds token budget: 30 > 29\n" if budget < 30 else "")
        ran = ws.rooda("build", "--max-iterations", "1")
        assert [line[11:] for line in ran.lines if "budget" in line] == (
            ["WARNING: Prompt exceeds token budget: 30 > 29"] if budget < 30 else []
        )


def test_O_124_a_run_needs_no_bash(ws: Workspace) -> None:
    """With a PATH that holds a plain sh and no bash, agent, gates and git-free workspace work as usual."""
    tools = os.path.join(ws.root, "tools")
    os.mkdir(tools)
    for tool in ("sh", "cat", "mkdir", "sleep", "test", "grep"):
        found = shutil.which("dash") if tool == "sh" else None
        os.symlink(found or shutil.which(tool) or "/bin/" + tool, os.path.join(tools, tool))
    ws.procedure(gates={"here": "test -f rooda.toml && ! command -v bash", "piped": "cat rooda.toml | grep -q loop"})
    ran = ws.rooda("build", "--max-iterations", "2", env={"PATH": tools, "SHELL": "/nowhere/bash"})
    assert (ran.code, ran.notes, len(ws.calls)) == (0, "", 2)
    assert "WARNING" not in ran.out


def test_O_124_nothing_in_the_program_asks_for_bash() -> None:
    """The word bash is only in completion and in what reads AGENTS.md; Python starts no shell of its own."""
    for path in (PROJECT / "rooda").rglob("*.py"):
        text = re.sub(r"(?:SHELLS = |shell=)\([^)]*\)", "", path.read_text())  # what agent CLIs call their own tools
        assert "shell=True" not in text, path
        if path.name not in ("completion.py", "words.py", "gate_words.py", "gates_md.py", "mini.py"):
            assert not re.search(r"[\"'/ ]bash\b", text), path
    assert (PROJECT / "tests" / "kit" / "agent").read_text().startswith("#!/bin/sh\n")


def test_O_110_lines_reach_a_pipe_at_once(ws: Workspace) -> None:
    """Each line is on the pipe as soon as it is true: a watcher sees iteration 3 while its agent still works."""
    ws.side(3, 'until [ -e "$FAKE/go" ]; do sleep 0.02; done')
    ws.signal_at(4)
    loop = ws.start("build", "--max-iterations", "0")
    loop.wait_line("Iteration 3 starting...")
    ws.wait_calls(3)
    until(ws.state, what="a state file")
    assert loop.lines[-1].endswith("Iteration 3 starting...")
    Path(ws.fake, "go").touch()
    assert loop.finish() == 130
