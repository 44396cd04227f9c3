"""The words of the command line: help, mistakes, places of options, closed streams."""

import os
import subprocess

import pytest

from tests.kit.workspace import Ran, Workspace, masked

STREAMS = {0: "<&-", 1: ">&-", 2: "2>&-"}


def closed(ws: Workspace, *arguments: str, streams: tuple[int, ...]) -> subprocess.CompletedProcess:
    """A command started with some of its standard streams closed."""
    script = 'exec "$@" ' + " ".join(STREAMS[number] for number in streams)
    words = ["sh", "-c", script, "sh", *ws.command(*arguments)]
    return subprocess.run(words, cwd=ws.path, env=ws.env, capture_output=True, text=True, timeout=30)


def deaf(ws: Workspace, *arguments: str) -> subprocess.CompletedProcess:
    """A command whose reader on stdout has gone before the first word."""
    read, write = os.pipe()
    os.close(read)
    try:
        return subprocess.run(
            ws.command(*arguments), cwd=ws.path, env=ws.env, stdout=write, stderr=subprocess.PIPE, text=True, timeout=30
        )
    finally:
        os.close(write)


@pytest.mark.parametrize("words", [(), ("--help",), ("-h",), ("help",)], ids=" ".join)
def test_rooda_alone_is_a_question(bare: Workspace, words: tuple[str, ...]) -> None:
    """Without a word, and asked for help, rooda says what it is and what to type; nothing is written."""
    ran = bare.rooda(*words)
    assert (ran.code, ran.err) == (0, "")
    for text in ("Usage: rooda", "rooda build --dry-run", "resume", "status", "stop", "logs", "init", "completion"):
        assert text in ran.out
    assert not bare.exists(".rooda")


@pytest.mark.parametrize("words", [("build", "--help"), ("help", "build"), ("run", "build", "-h")], ids=" ".join)
def test_O_111_help_of_a_procedure(bare: Workspace, words: tuple[str, ...]) -> None:
    """The help of a procedure says what it is for and names every option of a run."""
    ran = bare.rooda(*words)
    assert ran.code == 0
    for option in (
        "--max-iterations",
        "--dry-run",
        "--ai-cmd",
        "--agent",
        "--context",
        "--observe",
        "--fresh",
        "--json",
    ):
        assert option in ran.out
    assert "rooda info build" in ran.out


def test_every_option_has_a_description(bare: Workspace) -> None:
    """Each option in the help of a run or a resume has an explanation, and none shows a type of the code."""
    for words in (("build", "--help"), ("resume", "--help")):
        lines = bare.rooda(*words).out.partition("Options:\n")[2].splitlines()
        for line, following in zip(lines, [*lines[1:], ""], strict=True):
            if line.startswith("  -"):
                assert "  " in line.strip() or following.startswith("      "), line
            assert "x>=" not in line


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("buidl", "rooda build"),
        ("Build", "rooda build"),
        ("resum", "rooda resume"),
        ("stat", "rooda status"),
        ("claude", "rooda build --agent claude"),
        ("fix the parser", "rooda build --context …"),
        ("notes/task.md", "rooda build --context-file notes/task.md"),
    ],
)
def test_OU_33_an_unknown_word(bare: Workspace, typed: str, meant: str) -> None:
    """An unknown word is a sentence, the nearest right word, and exit 2."""
    ran = bare.rooda(typed)
    assert (ran.code, ran.out) == (2, "")
    assert f"Unknown procedure '{typed}'. Run 'rooda list' to see available procedures." in ran.err
    assert f"Did you mean '{meant}'?" in ran.err


@pytest.mark.parametrize(
    ("words", "advice"),
    [
        (("build", "fix", "the", "parser"), "Put the task in quotes."),
        (("resume", "build", "go on"), 'Describe the task with --context "TEXT".'),
        (("goal", "run", "fix", "the", "parser"), "Put the specification in quotes, or in a file: --file FILE."),
        (("status", "build", "more"), "Error: Got unexpected extra argument (more)"),
        (("goal", "fix", "it"), 'If it is a task, put it in quotes: rooda goal run "TASK"'),
        (("flow", "fix", "it"), 'If it is a task, put it in quotes: rooda flow run "TASK"'),
        (("reflex", "fix", "it"), 'If it is a task, put it in quotes: rooda reflex new "TASK"'),
        (("agents", "list"), "To list them: rooda agents"),
        (("tasks", "list"), "To list them: rooda tasks"),
    ],
)
def test_extra_words_are_refused_with_a_hint(bare: Workspace, words: tuple[str, ...], advice: str) -> None:
    """Words that a command does not take are refused with exit 2, and where they belong is said last."""
    ran = bare.rooda(*words)
    assert (ran.code, ran.out, ran.err.splitlines()[-1]) == (2, "", advice)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("goal", "run"), "Give either a specification or --file FILE."),
        (("goal", ""), "The specification is empty."),
        (("reflex", ""), "The task is empty."),
        (("build", ""), "The task is empty."),
    ],
)
def test_a_missing_task_is_reported_before_a_missing_agent(bare: Workspace, words: tuple[str, ...], said: str) -> None:
    """Without an agent, too, the error names the text that the user left out."""
    ran = bare.rooda(*words)
    assert (ran.code, ran.err.splitlines()[0]) == (2, f"Error: {said}")


def test_OU_33_nothing_is_near(bare: Workspace) -> None:
    """Where nothing is near, nothing is guessed, and the same sentence comes from run and info."""
    for words in (("xyzzy",), ("run", "xyzzy"), ("info", "xyzzy")):
        ran = bare.rooda(*words)
        assert ran.code == 2
        assert "Unknown procedure 'xyzzy'. Run 'rooda list'" in ran.err
        assert "Did you mean" not in ran.err


def test_OU_30_a_word_that_is_unknown_since_a_table_is(bare: Workspace) -> None:
    """If a procedure is missing because of a misspelt table, the error names that table too."""
    bare.config("[procedure.review]\nact = 'x'\n")
    for words in (("review",), ("run", "review"), ("info", "review"), ("review", "-C", "."), ("list",)):
        ran = bare.rooda(*words)
        assert ran.err.count(":1: procedure: unknown table; did you mean 'procedures'?") == 1, words


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("build", "--max-iteratons", "3"), "--max-iterations"),
        (("build", "--max-iterations", "two"), "'two'"),
        (("build", "-n", "-1"), "-1"),
        (("build", "--failure-threshold", "0"), "0"),
        (("build", "one", "extra"), "extra"),
        (("build", "--log-level", "loud"), "loud"),
        (("build", "--verbose", "--quiet"), "--verbose and --quiet are mutually exclusive."),
        (("build", "--resume", "--fresh"), "--resume and --fresh are mutually exclusive."),
        (("build", "-u", "-n", "3"), "--unlimited and --max-iterations are mutually exclusive."),
        (("build", "--param", "novalue"), "NAME=VALUE"),
        (("-C", "nowhere", "build"), "nowhere"),
        (("--config", "nowhere.toml", "build"), "nowhere.toml"),
        (("completion", "tcsh"), "tcsh"),
        (("info",), "PROCEDURE"),
    ],
    ids=lambda words: " ".join(words) if isinstance(words, tuple) else "",
)
def test_OU_21_OU_22_OA_31_OA_32_a_wrong_option(ws: Workspace, words: tuple[str, ...], said: str) -> None:
    """A mistake in the options is a sentence that names it, and exit 2; no agent is called, nothing is written."""
    ran = ws.rooda(*words)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err
    assert "Traceback" not in ran.err and "range" not in ran.err.replace("'-n' / '--max-iterations'", "")
    assert not ws.calls and not ws.exists(".rooda")


@pytest.mark.parametrize("option", ["-v", "--dry-run", "--max-iterations=3", "-n"])
def test_an_option_before_its_word(ws: Workspace, option: str) -> None:
    """For a run's option in front of the procedure's name, the error says where it belongs."""
    ran = ws.rooda(option, "build")
    assert ran.code == 2
    assert "rooda build -" in ran.err
    assert not ws.calls


def test_OA_42_workspace_options_before_and_after_the_command(ws: Workspace) -> None:
    """-C and --config mean the same before the word and after it."""
    ws.write("other.toml", ws.read("rooda.toml").replace("[loop]\n", "[loop]\ndefault_iterations = 2\n"))
    folder = os.path.dirname(ws.path)
    for words in (
        ("-C", "work", "--config", "work/other.toml", "build"),
        ("build", "-C", "work", "--config", "work/other.toml"),
    ):
        ran = ws.rooda(*words, cwd=folder)
        assert ran.code == 0, ran.both
        assert "(max 2 iterations)" in ran.lines[0]
    assert {call.cwd for call in ws.calls} == {ws.path}
    assert len(ws.calls) == 4


@pytest.mark.parametrize("words", [("status",), ("logs",), ("config", "show"), ("info", "mine"), ("list",)])
def test_OA_42_workspace_options_of_commands_that_only_read(ws: Workspace, words: tuple[str, ...]) -> None:
    """Every word that looks at a workspace takes -C and --config in front of it and behind it."""
    ws.procedure("mine")
    ws.rooda("mine", "-n", "1")
    ws.put_state()
    place = ("-C", ws.path, "--config", ws.file("rooda.toml"))
    before, after = ws.rooda(*place, *words, cwd=ws.home), ws.rooda(*words, *place, cwd=ws.home)
    assert before == after and before.code == 0
    assert before != ws.rooda(*words, cwd=ws.home)


def test_OU_35_short_flags(ws: Workspace) -> None:
    """-n, -u, -d, -c, -q and -v are the short forms."""
    assert "(max 3 iterations)" in ws.rooda("build", "-n", "3").lines[0]
    assert ws.rooda("build", "-n1", "-q").out == ""
    assert "CTX-TEXT" in ws.rooda("build", "-d", "-c", "CTX-TEXT").out
    assert "--- AI CLI Output Start ---" in ws.rooda("build", "-n1", "-v").out
    ws.exits(*[1] * 9)
    assert "(unlimited iterations)" in ws.rooda("build", "-u").lines[0]


def test_OU_20_run_is_a_synonym(ws: Workspace) -> None:
    """`rooda run build` does what `rooda build` does, with the same options."""
    ran = ws.rooda("run", "build", "-n", "2")
    assert ran.code == 0 and len(ws.calls) == 2
    assert masked(ran.lines)[-1] == "[T] Reached max iterations: 2 (total: D)"


@pytest.mark.parametrize("name", ["status", "help", "goal", "run"])
def test_OA_41_reserved_names(bare: Workspace, name: str) -> None:
    """A procedure that is called like a command is a settings error for every command, exit 2, with file and line.

    Every command is tried with one of the names.
    """
    bare.procedure(name)
    starts = ("list", "build --dry-run", "info build", "config show", "resume", "flow check", "goal status")
    looks = ("status", "stop", "logs", "events", "usage", "why", "tokens rooda.toml", "version", "doctor", "pause")
    for ran in bare.each(*starts, *looks) if name == "status" else (bare.rooda("list"), bare.rooda("status")):
        assert ran.code == 2, ran.both
        assert f"rooda.toml:4: procedures.{name}: '{name}' is a rooda command" in ran.err


@pytest.mark.parametrize("name", ["../up", ".hidden", "a b", "-dash", "a/b", "ü"])
def test_OA_41_invalid_procedure_names(bare: Workspace, name: str) -> None:
    """A procedure's name that could not be a file's name is refused in words."""
    bare.config(f'[procedures."{name}"]\nobserve = "o"\norient = "o"\ndecide = "d"\nact = "a"\n')
    ran = bare.rooda("list")
    assert ran.code == 2
    assert "rooda.toml:1: " in ran.err and "a procedure name has" in ran.err


@pytest.mark.parametrize("streams", [(0,), (1,), (2,), (0, 1, 2)], ids=str)
def test_a_closed_stream_does_not_matter(ws: Workspace, streams: tuple[int, ...]) -> None:
    """With stdin, stdout or stderr closed the loop runs its course, and no file of the run gets the free number."""
    ran = closed(ws, "build", "-n", "2", streams=streams)
    assert ran.returncode == 0, ran.stderr
    assert len(ws.calls) == 2 and ws.state() is None
    assert "Traceback" not in ran.stdout + ran.stderr
    if 1 not in streams:
        assert len(ran.stdout.splitlines()) == 6
    assert "pid" in ws.json(".rooda/state/build.lock")


@pytest.mark.parametrize(
    "words", [("list",), ("--help",), ("build", "--dry-run"), ("config", "show"), ("info", "build")]
)
def test_a_reader_that_has_gone(ws: Workspace, words: tuple[str, ...]) -> None:
    """`rooda list | head -1`: no complaint, and no failure either."""
    ran = deaf(ws, *words)
    assert (ran.returncode, ran.stderr) == (0, "")


@pytest.mark.parametrize("words", [("-n", "3"), ("-n", "3", "-v"), ("-n", "3", "--json")], ids=" ".join)
def test_a_loop_outlives_its_reader(ws: Workspace, words: tuple[str, ...]) -> None:
    """`rooda build | head -1`: the loop does its work to the end."""
    ws.out(1, "x" * 200_000)
    ran = deaf(ws, "build", *words)
    assert (ran.returncode, Ran(0, "", ran.stderr).notes) == (0, "")
    assert len(ws.calls) == 3 and ws.state() is None
