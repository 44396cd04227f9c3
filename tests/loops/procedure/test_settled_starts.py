"""Settled points about starting: dry-run, gates of AGENTS.md, offered resumes, codes, streams, context, names."""

import os
import signal
from pathlib import Path

import pytest

from tests.kit.workspace import FAKE_AI, SAMPLE, Workspace, masked, until

GATES = '# P\n\n## Quality Gates\n\n- first: `echo one >>"$FAKE/ran"`\n* **second**: `echo two >>"$FAKE/ran"; exit 3`\n'


def ran_gates(ws: Workspace) -> list[str]:
    """What the gates of `GATES` wrote."""
    log = Path(ws.fake, "ran")
    return log.read_text().split() if log.exists() else []


@pytest.mark.parametrize("status", ["running", "interrupted", "completed", "aborted"])
def test_OA_13_OA_14_a_preview_leaves_the_state_alone(ws: Workspace, status: str) -> None:
    """Whatever the state file says, a dry-run exits 0 and neither reads, changes nor removes it, and takes no lock."""
    ws.put_state(status=status)
    before = sorted(Path(ws.path).rglob("*")), ws.read(".rooda/state/build.json")
    ran = ws.rooda("build", "--dry-run")
    assert (ran.code, ran.err) == (0, "")
    assert (sorted(Path(ws.path).rglob("*")), ws.read(".rooda/state/build.json")) == before


def test_OA_14_a_preview_during_a_running_loop(ws: Workspace) -> None:
    """The lock of a live loop does not stop a dry-run."""
    ws.side(1, 'until [ -e "$FAKE/go" ]; do sleep 0.02; done')
    first = ws.start("build", "--max-iterations", "1")
    ws.wait_calls(1)
    assert ws.rooda("build", "--dry-run").code == 0
    Path(ws.fake, "go").touch()
    assert first.finish() == 0


def test_OA_14_what_is_missing_makes_a_preview_fail(ws: Workspace) -> None:
    """A broken configuration, a missing prompt file: each exit 2, words on stderr alone."""
    os.remove(ws.file("prompts/act_build.md"))
    prompt = ws.rooda("build", "--dry-run")
    ws.config("[loop]\nfailure_threshold = 0\n")
    config = ws.rooda("build", "--dry-run")
    for ran, word in ((prompt, "act_build.md"), (config, "loop.failure_threshold")):
        assert (ran.code, ran.out) == (2, "")
        assert word in ran.err


def test_OA_14_over_budget_is_still_ready(ws: Workspace) -> None:
    """The warning is on stderr, stdout is complete, exit 0."""
    ran = ws.rooda("build", "--dry-run", "--token-budget", "7")
    assert (ran.code, ran.err) == (0, "WARNING: Prompt exceeds token budget: 30 > 7\n")
    assert ran.lines[2] == "[DRY RUN] Token count: 30 / 7 budget"
    assert ran.lines[-1] == "ACT"


def test_OA_15_the_section_of_agents_md(ws: Workspace) -> None:
    """Each bullet under Quality Gates is a gate, by its name; the log's first record lists them."""
    ws.write("AGENTS.md", GATES + "\n### Notes\n\n- third: `exit 0`\n\n## Other\n\n- not: `exit 9`\n")
    ran = ws.rooda("build", "--max-iterations", "1")
    assert ran_gates(ws) == ["one", "two"]
    assert "Quality gates failed: second (exit 3), consecutive failures: 1/3" in ran.out
    assert [gate["name"] for gate in ws.events()[0]["gates"]] == ["first", "second", "third"]


def test_OA_15_settings_win_over_agents_md(ws: Workspace) -> None:
    """Gates in rooda.toml replace those of AGENTS.md; an empty list means none."""
    ws.write("AGENTS.md", GATES)
    ws.procedure(gates={"own": 'echo own >>"$FAKE/ran"'})
    assert ws.rooda("build", "--max-iterations", "1").code == 0
    assert ran_gates(ws) == ["own"]
    ws.procedure(keys="quality_gates = []\n")
    assert ws.rooda("build", "--max-iterations", "1").code == 0
    assert ran_gates(ws) == ["own"]


def test_OA_15_no_gates_switches_both_off(ws: Workspace) -> None:
    """--no-gates: neither those of AGENTS.md nor those of rooda.toml run."""
    ws.write("AGENTS.md", GATES)
    assert ws.rooda("build", "--max-iterations", "1", "--no-gates").code == 0
    ws.procedure(gates={"own": 'echo own >>"$FAKE/ran"'})
    assert ws.rooda("build", "--max-iterations", "1", "--no-gates").code == 0
    assert ran_gates(ws) == []


def test_E_13_gates_for_one_run(ws: Workspace) -> None:
    """A built-in procedure that writes documents runs the project's gates only with --gates, which a resume keeps."""
    ws.write("AGENTS.md", GATES)
    assert ws.rooda("bootstrap", "--failure-threshold", "1").code == 0
    assert ran_gates(ws) == []
    assert ws.rooda("bootstrap", "--gates", "--failure-threshold", "1").code == 1
    assert ran_gates(ws) == ["one", "two"]
    assert ws.rooda("resume", "bootstrap", "--max-iterations", "2").code == 1
    assert ran_gates(ws) == ["one", "two"] * 2


def test_OA_18_without_a_terminal_nothing_is_decided(ws: Workspace) -> None:
    """End of input, or words that are no answer: what was found, both commands, exit 3, the file as it was."""
    ws.put_state()
    before = ws.read(".rooda/state/build.json")
    for stdin in (None, b"", b"perhaps\n"):
        ran = ws.rooda("build", stdin=stdin)
        assert (ran.code, ran.out, ws.calls) == (3, "", [])
        assert "Found an interrupted run of 'build': iteration 3 of 10 completed (2m16s)" in ran.err
        assert "rooda resume build" in ran.err and "rooda build --fresh" in ran.err
        assert ws.read(".rooda/state/build.json") == before


def test_OA_18_an_open_pipe_that_says_nothing(ws: Workspace) -> None:
    """A stdin that stays open is waited for a moment only, then it counts as no answer."""
    ws.put_state()
    read, write = os.pipe()
    try:
        assert ws.rooda("build", stdin=read).code == 3
    finally:
        os.close(read)
        os.close(write)
    assert ws.calls == []


@pytest.mark.parametrize(
    ("answer", "first"), [(b"y\n", "4"), (b"\n", "4"), (b"YES\n", "4"), (b"n\n", "1"), (b"no", "1")]
)
def test_OA_18_a_waiting_answer_is_honoured(ws: Workspace, answer: bytes, first: str) -> None:
    """A line that waits on a piped stdin decides: yes or Enter continues with 4, no starts with 1."""
    ws.put_state(max_iterations=4)
    ran = ws.rooda("build", "--max-iterations", "4", stdin=answer)
    assert ran.code == 0
    assert ws.calls[0].env["ROODA_ITERATION"] == first


@pytest.mark.parametrize(("keys", "first"), [("\n", "4"), ("y\n", "4"), ("n\n", "1"), ("what\ny\n", "4")])
def test_OA_18_the_user_at_a_terminal_is_asked(ws: Workspace, keys: str, first: str) -> None:
    """`Resume? [Y/n]`: Enter is yes, and what is neither yes nor no is asked again."""
    ws.put_state(max_iterations=4)
    terminal = ws.terminal("build", "--max-iterations", "4")
    until(lambda: "Resume? [Y/n] " in terminal.out, what="the question")
    terminal.type(keys)
    assert terminal.finish() == 0
    assert ws.calls[0].env["ROODA_ITERATION"] == first
    assert terminal.out.count("Resume? [Y/n] ") == keys.count("\n")


def test_OA_18_ctrl_c_at_the_question(ws: Workspace) -> None:
    """Ctrl+C instead of an answer: exit 130, nothing started, the file as it was."""
    ws.put_state()
    before = ws.read(".rooda/state/build.json")
    terminal = ws.terminal("build")
    until(lambda: "Resume? [Y/n] " in terminal.out, what="the question")
    terminal.type("\x03")
    assert terminal.finish() == 130
    assert "Traceback" not in terminal.out
    assert (ws.calls, ws.read(".rooda/state/build.json")) == ([], before)


@pytest.mark.parametrize(
    ("flag", "key", "first"),
    [
        ("--resume", "ask", "4"),
        ("--fresh", "ask", "1"),
        ("", "resume", "4"),
        ("", "fresh", "1"),
        ("--fresh", "resume", "1"),
    ],
)
def test_OA_18_decided_beforehand(ws: Workspace, flag: str, key: str, first: str) -> None:
    """A flag or the key on_interrupted decides without a question; the flag is the stronger."""
    ws.procedure(loop={"on_interrupted": key})
    ws.put_state(max_iterations=4)
    ran = ws.rooda("build", "--max-iterations", "4", *([flag] if flag else []))
    assert ran.code == 0
    assert "Resume?" not in ran.both
    assert ws.calls[0].env["ROODA_ITERATION"] == first


def test_OA_19_declined_means_fresh(ws: Workspace) -> None:
    """The old file is replaced before the first call: counter 0, no durations, a start time of today."""
    ws.put_state(consecutive_failures=2)
    ws.copy_state_at(1)
    assert ws.rooda("build", "--max-iterations", "1", stdin=b"n\n").code == 0
    copy = ws.copies[1]
    assert (copy["iteration"], copy["consecutive_failures"], copy["elapsed_per_iteration"]) == (0, 0, [])
    assert (copy["status"], copy["max_iterations"]) == ("running", 1)
    assert copy["started_at"] > SAMPLE["started_at"] and copy["last_iteration_at"] is None


def test_OA_34_a_missing_agent_lists_every_way_to_set_one(bare: Workspace) -> None:
    """Without an AI command: exit 2, the list of ways, the known agents, and nothing written."""
    ran = bare.rooda("build")
    assert (ran.code, ran.out, bare.exists(".rooda")) == (2, "", False)
    assert "no AI command configured" in ran.err and "Set one via:" in ran.err
    for way in ("--ai-cmd", "--agent", "[procedures.P]", "[loop]", "ROODA_LOOP_AI_CMD"):
        assert way in ran.err
    assert "claude" in ran.err.partition("Available agents: ")[2]


def test_OA_40_context_comes_before_observe(ws: Workspace) -> None:
    """Texts in the order typed, an empty line between them; without context there is no such section."""
    ran = ws.rooda("build", "--dry-run", "--context", "first  text ", "-c", "second\ntext")
    assert ran.out.partition("\n\n")[2] == (
        "# OODA Loop Iteration\n\n## CONTEXT\nfirst  text \n\nsecond\ntext\n\n"
        "## OBSERVE\nOBS\n\n## ORIENT\nORI\n\n## DECIDE\nDEC\n\n## ACT\nACT\n"
    )
    assert "CONTEXT" not in ws.rooda("build", "--dry-run").out


@pytest.mark.parametrize("name", ["resume", "status", "list", "run", "version"])
def test_OA_41_a_procedure_cannot_be_called_like_a_command(ws: Workspace, name: str) -> None:
    """A reserved name is a settings error for a start of any procedure: exit 2 with file, line and name."""
    ws.procedure(name)
    ran = ws.rooda("build", "--max-iterations", "1")
    assert (ran.code, ws.calls) == (2, [])
    assert "rooda.toml:" in ran.err and f"'{name}' is a rooda command" in ran.err


@pytest.mark.parametrize("name", ["-x", ".hidden", "a b", "a/b", "../up", "größe", ""])
def test_OA_41_names_that_are_not_file_names(ws: Workspace, name: str) -> None:
    """Names that would not make a plain file name are refused in the settings."""
    ws.config(f'[procedures."{name}"]\nobserve = "o"\norient = "o"\ndecide = "d"\nact = "a"\n')
    ran = ws.rooda("build", "--dry-run", "--ai-cmd", "cat")
    assert ran.code == 2
    assert "rooda.toml:1: procedures." in ran.err and "name" in ran.err


def test_OA_41_run_is_a_synonym_and_unusual_names_work(ws: Workspace) -> None:
    """`rooda run P` is `rooda P`, for names with dots, digits, capitals, hyphens and underscores too."""
    ws.config(ws.read("rooda.toml").replace("[procedures.build]", '[procedures."My.proc_2-x"]'))
    for words in (["My.proc_2-x"], ["run", "My.proc_2-x"]):
        ran = ws.rooda(*words, "--max-iterations", "1")
        assert ran.code == 0
        assert masked(ran.lines)[0] == "[T] Starting procedure: My.proc_2-x (max 1 iterations)"
    assert len(ws.calls) == 2


def test_OA_42_the_workspace_is_where_one_is_or_C(ws: Workspace) -> None:
    """-C DIR, before or behind the procedure: settings, state, log and the agent's folder are all there."""
    elsewhere = os.path.join(ws.root, "elsewhere")
    os.mkdir(elsewhere)
    ws.copy_state_at(1, 2)
    assert ws.rooda("-C", ws.path, "build", "--max-iterations", "1", cwd=elsewhere).code == 0
    assert ws.rooda("build", "-C", "../work", "--max-iterations", "1", cwd=elsewhere).code == 0
    assert [call.cwd for call in ws.calls] == [ws.path] * 2
    assert len(ws.copies) == 2
    assert os.listdir(elsewhere) == []


def test_OA_45_git_never_sees_our_folder(ws: Workspace) -> None:
    """`git add -A` by the agent takes nothing of .rooda."""
    ws.git("init", "-q")
    ws.side(1, "git add -A")
    assert ws.rooda("build", "--max-iterations", "1").code == 0
    assert ws.read(".rooda/.gitignore") == "*\n"
    assert "rooda.toml" in ws.git("ls-files") and ".rooda/" not in ws.git("ls-files")


@pytest.mark.parametrize(
    ("script", "arguments", "code"),
    [
        ("", ["build", "--max-iterations", "1"], 0),
        ("", ["build", "--dry-run"], 0),
        ("exit 1", ["build"], 1),
        ("", ["build", "--max-iterations", "-1"], 2),
        ("", ["resume", "build"], 2),
        ("", ["build", "--no-such-flag"], 2),
        ("kill -INT $PPID; sleep 30", ["build"], 130),
        ("kill -TERM $PPID; sleep 30", ["build"], 143),
        ("kill -HUP $PPID; sleep 30", ["build"], 143),
    ],
)
def test_OA_25_the_exit_codes(ws: Workspace, script: str, arguments: list[str], code: int) -> None:
    """One table: completed and shown 0, aborted 1, usage 2, Ctrl+C 130, TERM and HUP 143 (3 has tests of its own)."""
    ws.side("iteration", script)
    ran = ws.rooda(*arguments)
    assert ran.code == code
    if code >= 130:
        state = ws.state()
        assert state is not None and state["status"] == "interrupted"


def test_OA_25_two_different_signals(ws: Workspace) -> None:
    """The first signal decides the code, the second only hurries."""
    ws.side(1, 'trap ": >\\"$FAKE/asked\\"" TERM\nwhile :; do sleep 0.02; done')
    ws.procedure(loop={"kill_grace": 600})
    loop = ws.start("build")
    ws.wait_calls(1)
    loop.signal(signal.SIGTERM)
    until(lambda: Path(ws.fake, "asked").exists(), what="the agent to be asked")
    loop.signal(signal.SIGINT)
    assert loop.finish() == 143


def test_OA_26_streams(ws: Workspace) -> None:
    """Lines of the loop on stdout, its stderr empty; the agent's words on neither, until --verbose asks for them."""
    ws.out("iteration", "words of the agent\n")
    ws.err("iteration", "complaints of the agent\n")
    plain = ws.rooda("build", "--max-iterations", "1", "--token-budget", "1")
    assert plain.notes == "" and "of the agent" not in plain.out
    assert "WARNING: Prompt exceeds token budget" in plain.out
    loud = ws.rooda("build", "--max-iterations", "1", "--verbose")
    assert "words of the agent" in loud.out and "complaints of the agent" in loud.out
    for wrong in (["biuld"], ["build", "--nope"], ["resume", "build"]):
        ran = ws.rooda(*wrong)
        assert ran.out == "" and ran.err


def test_OA_33_the_budget_without_settings_and_without_limit(ws: Workspace) -> None:
    """The default budget is 100,000; 0 means no check at all."""
    assert ws.rooda("build", "--dry-run").lines[2].endswith("/ 100,000 budget")
    ws.write("prompts/act_build.md", "word " * 120_000)
    over = ws.rooda("build", "--max-iterations", "2")
    assert [line[11:].partition(" > ")[2] for line in over.lines if "budget" in line] == ["100000"] * 2
    free = ws.rooda("build", "--max-iterations", "1", "--token-budget", "0")
    dry = ws.rooda("build", "--dry-run", "--token-budget", "0")
    assert (free.code, dry.code, dry.err) == (0, 0, "")
    assert "budget" not in free.out


def test_OA_33_a_count_that_is_a_guess_says_so(ws: Workspace) -> None:
    """Where tiktoken can't be loaded the number is a quarter of the characters, marked with `~`."""
    broken = os.path.join(ws.root, "broken")
    os.makedirs(os.path.join(broken, "tiktoken"))
    Path(broken, "tiktoken", "__init__.py").write_text("raise ImportError('not today')\n")
    ws.write("prompts/act_build.md", "a" * 4000)
    dry = ws.rooda("build", "--dry-run", env={"PYTHONPATH": broken})
    prompt = dry.out.partition("\n\n")[2]
    assert dry.lines[2] == f"[DRY RUN] Token count: ~{-(-len(prompt) // 4):,} / 100,000 budget"
    over = ws.rooda("build", "-n", "1", "--token-budget", "10", env={"PYTHONPATH": broken})
    assert f"Prompt exceeds token budget: ~{-(-len(prompt) // 4)} > 10" in over.out


def test_OA_34_a_raw_command_beats_the_settings(ws: Workspace) -> None:
    """--ai-cmd is split without a shell and wins over what rooda.toml says."""
    ran = ws.rooda("build", "--max-iterations", "1", "--ai-cmd", f"{FAKE_AI} --a '$HOME ;' \"b c\"")
    assert ran.code == 0
    assert ws.calls[0].argv == ["--a", "$HOME ;", "b c"]
