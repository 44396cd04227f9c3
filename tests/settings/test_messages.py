"""The settings on the command line: tiers, merging, errors, warnings, `config`, `list`, `info`, `version`."""

import json
import os
import re

import pytest

from tests.kit.workspace import FAKE_AI, Workspace, until

NAMES = [
    *("agents-sync", "audit-agents", "audit-impl", "audit-impl-to-spec", "audit-spec", "audit-spec-to-impl"),
    *("bootstrap", "build"),
    *(f"draft-plan-{side}-{kind}" for side in ("impl", "spec") for kind in ("chore", "feat", "fix", "refactor")),
    "publish-plan",
]


def user(ws: Workspace, toml: str) -> None:
    """Make this text the user's own settings file."""
    ws.write(f"{ws.home}/.config/rooda/rooda.toml", toml)


def test_OU_16_OU_17_list(bare: Workspace) -> None:
    """`rooda list`: a head, then every built-in procedure with its summary, `build` first, by group (E-37)."""
    ran = bare.rooda("list")
    assert ran.code == 0 and ran.lines[0] == "Available procedures:"
    rows = [re.fullmatch(r"  (\S+) +(\S.*)", line) for line in ran.lines[1:] if line[:1] == " "]
    assert sorted(row[1] for row in rows if row) == NAMES
    assert ran.lines[1] == f"  {'build':<24}  Implement the next open task, check it, commit it"
    assert [line for line in ran.lines if line and line[0] != " "][1:] == ["Set up:", "Audit:", "Plan:"]
    assert max(map(len, ran.lines)) <= 80 and "..." not in ran.out
    bare.procedure("review", keys='summary = "look"')
    assert bare.rooda("list").lines[2:5] == ["", "Yours:", f"  {'review':<24}  look"]


def test_E_37_help_in_groups(bare: Workspace) -> None:
    """`rooda --help` has every command once, in groups, in 80 columns."""
    from rooda.cli.words import WORDS

    lines = bare.rooda("--help").lines
    heads = [line for line in lines if line.endswith(":") and line[0] != " "]
    assert heads == ["Options:", "Run:", "Watch:", "Tasks:", "Money:", "Safety:", "Set up:"]
    rows = [line.split()[0] for line in lines[lines.index("Run:") :] if line.startswith("  ")]
    assert sorted(rows) == sorted(WORDS) and max(map(len, lines)) <= 80


def test_OU_17_long_and_missing_summaries(bare: Workspace) -> None:
    """A summary that does not fit 80 columns is cut, with three dots; none leaves no blanks."""
    tables = {"exact": "x" * 52, "long": "y" * 53, "none": "", "lines": "first\\nsecond"}
    phases = 'observe="o"\norient="o"\ndecide="d"\nact="a"\n'
    bare.config("".join(f'[procedures.{name}]\nsummary = "{text}"\n{phases}' for name, text in tables.items()))
    lines = bare.rooda("list").lines
    assert f"  {'exact':<24}  {'x' * 52}" in lines
    assert f"  {'long':<24}  {'y' * 49}..." in lines
    assert "  none" in lines and f"  {'lines':<24}  first" in lines
    found = {row["name"]: row["summary"] for row in json.loads(bare.rooda("list", "--json").out)}
    assert found["long"] == "y" * 53


def test_OU_18_info(ws: Workspace) -> None:
    """`rooda info P` shows names, summary, description, each phase's fragments, and its own settings."""
    lines = ws.rooda("info", "bootstrap").lines
    assert lines[:3] == ["Procedure: bootstrap", "Display Name: Bootstrap", f"Summary: {lines[2].partition(' ')[2]}"]
    assert "Description:" in lines and "OODA Phases:" in lines
    assert "  Observe: 4 fragments" in lines and "  Decide:  1 fragment" in lines
    assert lines[lines.index("Configuration:") + 1] == "  default_iterations = 1"
    ws.config('[procedures.plain]\nobserve="o"\norient="prompts/orient_build.md"\ndecide="d"\nact="a"\n')
    lines = ws.rooda("info", "plain").lines
    assert lines[:2] == ["Procedure: plain", "Display Name: plain"]
    assert "    prompts/orient_build.md" in lines
    assert lines[-2:] == ["Configuration:", "  (uses global defaults)"]


def test_OU_19_version(bare: Workspace) -> None:
    """`--version` is one line; `rooda version` adds Python and platform."""
    from rooda import __version__

    assert bare.rooda("--version").out == f"rooda {__version__}\n"
    lines = bare.rooda("version").lines
    assert lines[0] == f"rooda {__version__}" and any(line.startswith("Python 3.") for line in lines)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_OU_48_completion(bare: Workspace, shell: str) -> None:
    """`rooda completion SHELL` prints a script for that shell."""
    ran = bare.rooda("completion", shell)
    assert ran.code == 0 and "_ROODA_COMPLETE" in ran.out and "rooda" in ran.out


@pytest.mark.parametrize(
    ("words", "expected", "absent"),
    [
        ("rooda ", {"build", "resume", "mine"}, set()),
        ("rooda mi", {"mine"}, {"build"}),
        ("rooda build --max", {"--max-iterations"}, {"--dry-run"}),
        ("rooda run pub", {"publish-plan"}, {"build"}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_OU_48_what_TAB_offers(bare: Workspace, words: str, expected: set[str], absent: set[str]) -> None:
    """TAB completes commands, procedures (one's own too) and options."""
    bare.config('[procedures.mine]\nobserve="o"\norient="o"\ndecide="d"\nact="a"\n')
    place = len(words.split(" ")) - 1
    env = {"_ROODA_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(place)}
    found = {line.rpartition(",")[2] for line in bare.rooda(env=env).lines}
    assert expected <= found and not absent & found


def test_OU_29_merging_field_by_field(ws: Workspace) -> None:
    """A stronger file changes the fields it names, of procedures, agents and aliases; the others stay."""
    user(ws, '[procedures.audit-impl]\ndefault_iterations = 4\nsummary = "mine"\n[agents.claude]\nmodel = "opus"\n')
    ws.config('[procedures.audit-impl]\ndefault_iterations = 7\n[ai_cmd_aliases]\na = "x"\n')
    lines = ws.rooda("info", "audit-impl").lines
    assert "Summary: mine" in lines and "  default_iterations = 7" in lines and "  Observe: 5 fragments" in lines
    shown = ws.rooda("config", "show").lines
    assert 'agents.claude.model = "opus"' in shown
    assert any(line.startswith("agents.claude.command = ") for line in shown)
    assert len([line for line in ws.rooda("list").lines if line[:1] == " "]) == len(NAMES)


def test_OU_28_where_the_users_file_is(ws: Workspace) -> None:
    """ROODA_CONFIG_HOME beats XDG_CONFIG_HOME beats ~/.config; a missing file is skipped."""
    places = {"a": "ROODA_CONFIG_HOME", "b/rooda": "XDG_CONFIG_HOME", "home/.config/rooda": "HOME"}
    for number, place in enumerate(places, 2):
        ws.write(f"../{place}/rooda.toml", f"[loop]\nfailure_threshold = {number}\n")
    env = {"ROODA_CONFIG_HOME": f"{ws.root}/a", "XDG_CONFIG_HOME": f"{ws.root}/b"}
    for expected in (2, 3, 4):
        shown = ws.rooda("config", "show", "loop.failure_threshold", env=env).out
        assert shown == f"loop.failure_threshold = {expected}\n"
        env[next(iter(name for name in ("ROODA_CONFIG_HOME", "XDG_CONFIG_HOME") if env[name]), "HOME")] = ""
    ws.env.pop("XDG_CONFIG_HOME")


def test_settled_13_upward_to_the_repository_root(ws: Workspace) -> None:
    """rooda.toml is found above the workspace up to the repository's root; with -C, state stays in the workspace."""
    ws.git("init", "-q")
    os.makedirs(ws.file("deep/er"))
    assert ws.rooda("build", "-C", ".", "-n", "1", cwd=ws.file("deep/er")).code == 0
    assert ws.calls[0].prompt.startswith(b"# OODA Loop Iteration\n\n## OBSERVE\nOBS\n")
    assert ws.exists("deep/er/.rooda") and not ws.exists(".rooda")
    ws.git("init", "-q", "deep/er")
    assert ws.rooda("build", "-n", "1", cwd=ws.file("deep/er")).code == 2


def test_OU_28_config_replaces_the_workspace_file(ws: Workspace) -> None:
    """--config FILE replaces the workspace's rooda.toml; the user's file still counts."""
    user(ws, "[loop]\nfailure_threshold = 9\n")
    ws.write("other.toml", "[loop]\ndefault_iterations = 8\n")
    lines = ws.rooda("--config", "other.toml", "config", "show", "loop").lines
    assert "loop.default_iterations = 8" in lines and "loop.failure_threshold = 9" in lines
    assert not any(FAKE_AI in line for line in lines)


def test_OU_30_unknown_keys_warn(ws: Workspace) -> None:
    """An unknown key is a warning with file, line and the nearest right key, in a run too; the run continues."""
    ws.config(ws.read("rooda.toml").replace("[loop]\n", "[loop]\nfailure_limit = 2\n") + "\n[looping]\nx = 1\n")
    for words in (("build", "-n", "1"), ("build", "--dry-run"), ("config", "show")):
        ran = ws.rooda(*words)
        assert ran.code == 0
        assert "WARNING: " in ran.err and "WARNING" not in ran.out
        assert "rooda.toml:2: loop.failure_limit: unknown key" in ran.err
        assert "looping: unknown table; did you mean 'loop'?" in ran.err
    assert len(ws.calls) == 1


MISSPELT = "rooda.toml:2: loop.failure_treshold: unknown key; did you mean 'failure_threshold'?"


def test_E_25_a_misspelt_key_is_an_error_for_a_start(ws: Workspace) -> None:
    """A start is refused (exit 2); commands that only show or end something warn; prices and env have any keys."""
    written = ws.read("rooda.toml")
    ws.config(written.replace("[loop]\n", "[loop]\nfailure_treshold = 2\n"))
    for words in (("build", "-n", "1"), ("run", "build"), ("goal", "run", "x"), ("reflex", "new", "x")):
        ran = ws.rooda(*words)
        assert ran.code == 2 and MISSPELT in ran.err and "WARNING" not in ran.err, words
    assert ws.calls == []
    for words in (("config", "show"), ("doctor",), ("build", "--dry-run"), ("status",), ("stop",)):
        ran = ws.rooda(*words)
        assert ran.code == 0 and MISSPELT in ran.out + ran.err, words
    free = '[models]\nmodl = "x"\n[prices.x]\ninptu = 1\ninput = 1\noutput = 1\n[agents.a.env]\nenf = "x"\n'
    ws.config(f"{written}\n{free}")
    assert ws.rooda("build", "-n", "1").code == 0


def test_E_25_a_cut_off_run_is_resumed_in_spite_of_a_misspelt_key(ws: Workspace) -> None:
    """`resume --all` resumes it with a warning; `resume NAME` is a start and is refused."""
    ws.side(1, 'kill -9 "$PPID"; sleep 30')
    ws.rooda("build", "-n", "2")
    ws.config(ws.read("rooda.toml").replace("[loop]\n", "[loop]\nfailure_treshold = 2\n"))
    assert ws.rooda("resume", "build").code == 2
    ran = ws.rooda("resume", "--all")
    assert ran.code == 0 and "Resumed build" in ran.out and MISSPELT in ran.err
    until(lambda: not ws.exists(".rooda/state/build.json"))


def test_E_25_warnings_are_printed_where_the_command_was_typed(ws: Workspace) -> None:
    """With --detach and with --worktree the terminal gets them."""
    ws.config(ws.read("rooda.toml").replace("[loop]\n", "[loop]\nnonsense = 2\n"))
    ran = ws.rooda("build", "-n", "1", "--detach")
    assert ran.code == 0 and "rooda.toml:2: loop.nonsense: unknown key" in ran.err
    until(lambda: any(event["event"] == "run.ended" for event in ws.events()))
    ws.git("init", "-q")
    ws.git("commit", "-q", "--allow-empty", "-m", "x")
    assert "loop.nonsense: unknown key" in ws.rooda("build", "-n", "1", "--worktree").err


def test_OU_31_the_environment(ws: Workspace) -> None:
    """ROODA_LOOP_<KEY> sets [loop]; an empty variable sets nothing; a wrong value names variable and value, exit 2."""
    env = {"ROODA_LOOP_DEFAULT_ITERATIONS": "2", "ROODA_LOOP_FAILURE_THRESHOLD": ""}
    ws.procedure("review")
    assert "(max 2 iterations)" in ws.rooda("review", env=env).lines[0]
    ran = ws.rooda("build", env={"ROODA_LOOP_DEFAULT_ITERATIONS": "abc"})
    assert ran.code == 2
    assert "ROODA_LOOP_DEFAULT_ITERATIONS must be" in ran.err and "got 'abc'" in ran.err
    ran = ws.rooda("build", "--dry-run", env={"ROODA_LOOP_FAILURE_TRESHOLD": "3"})
    assert ran.code == 0 and "did you mean 'ROODA_LOOP_FAILURE_THRESHOLD'?" in ran.err
    ws.rooda("review", env={"ROODA_LOOP_AI_CMD": f"{FAKE_AI} env", "ROODA_LOOP_DEFAULT_ITERATIONS": "1"})
    assert ws.calls[-1].argv == ["env"]


@pytest.mark.parametrize(
    ("toml", "said"),
    [
        ("[loop]\nfailure_threshold = 0\n", "rooda.toml:2: loop.failure_threshold: must be a whole number >= 1, got 0"),
        ("[loop]\n\nkill_grace = '5'\n", "rooda.toml:3: loop.kill_grace: must be a number of seconds >= 0, got '5'"),
        (
            "[loop]\nmax_output_buffer = 1023\n",
            "rooda.toml:2: loop.max_output_buffer: must be a whole number >= 1024, got 1023",
        ),
        (
            "[loop]\nlog_level = 'warning'\n",
            "must be one of debug, info, warn, error, got 'warning'; did you mean 'warn'?",
        ),
        ("[loop]\ntoken_encoding = 'o200k'\n", "did you mean 'o200k_base'?"),
        (
            "[agents.x]\nprompt = 'pipe'\ncommand = 'x'\n",
            "rooda.toml:2: agents.x.prompt: must be one of stdin, argument, file",
        ),
        ("[agents.x]\ncommand = 'x \"y'\n", "agents.x.command: can't be split into words (no closing quotation)"),
        ("[loop]\nai_cmd = \n", "rooda.toml:2:10: "),
        ("loop = 3\n", "rooda.toml:1: loop: must be a table, got 3"),
    ],
)
def test_OU_32_mistakes(bare: Workspace, toml: str, said: str) -> None:
    """A wrong setting names file, line, key, what was expected and what was found; exit 2 for every command."""
    bare.config(toml)
    for words in (("build", "--dry-run", "--ai-cmd", "true"), ("list",), ("config", "show")):
        ran = bare.rooda(*words)
        assert (ran.code, ran.out) == (2, "")
        assert said in ran.err and "Traceback" not in ran.err


def test_OU_38_a_procedures_own_threshold(ws: Workspace) -> None:
    """failure_threshold of a procedure beats the loop's; another procedure keeps the loop's."""
    ws.procedure("review", loop={"failure_threshold": 2})
    ws.procedure("build", "failure_threshold = 1\n")
    ran = ws.rooda("build", env={"FAKE_EXIT": "1"})
    assert ran.code == 1 and "consecutive failures: 1/1" in ran.out
    ran = ws.rooda("review", env={"FAKE_EXIT": "1"})
    assert ran.code == 1 and "consecutive failures: 2/2" in ran.out


def test_settled_12_every_key_in_both_places(ws: Workspace) -> None:
    """Every key of [loop] that is documented is accepted there and under a procedure, where it wins."""
    keys = {
        "default_iterations": 2, "failure_threshold": 4, "token_budget": 5, "token_encoding": "cl100k_base",
        "iteration_timeout": 6, "idle_timeout": 7, "kill_grace": 8, "max_output_buffer": 9999,
        "on_interrupted": "fresh", "quality_gates": ["true"], "promise_signals": True, "preamble": True,
    }  # fmt: skip
    lines = "".join(f"{key} = {json.dumps(value)}\n" for key, value in keys.items())
    ws.procedure("build", lines)
    ran = ws.rooda("build", "--dry-run", "-v")
    assert ran.code == 0 and "unknown" not in ran.err
    for key, value in keys.items():
        shown = json.dumps(value) if not isinstance(value, str) else value
        line = next(line for line in ran.err.splitlines() if line.startswith(f"{key}: "))
        assert "(from: workspace config (" in line, (key, shown)
    ws.config("[loop]\n" + lines)
    assert "WARNING" not in ws.rooda("config", "show").err


def test_config_show(ws: Workspace) -> None:
    """`config show` lists what is in force as TOML; KEY narrows it; --origin adds file and line; --json too."""
    lines = ws.rooda("config", "show", "--origin").lines
    assert any(re.fullmatch(r'loop\.ai_cmd = ".*"  # workspace config \(.*rooda\.toml:2\)', line) for line in lines)
    assert "loop.failure_threshold = 3  # built-in" in lines
    assert ws.rooda("config", "show", "loop.kill_grace").out == "loop.kill_grace = 5\n"
    shown = json.loads(ws.rooda("config", "show", "loop", "--json", "--origin").out)
    assert shown["loop.kill_grace"] == {"value": 5, "origin": "built-in"}
    assert ws.rooda("config", "--origin").out == ws.rooda("config", "show", "--origin").out
    ran = ws.rooda("config", "show", "loop.nothing")
    assert ran.code == 2 and "Setting 'loop.nothing' is not set." in ran.err


def test_config_path(ws: Workspace) -> None:
    """`config path` names the files that are read, strongest first, and those that would be."""
    lines = ws.rooda("config", "path").lines
    assert [line.partition("  ")[0] for line in lines][:2] == ["workspace config", "user config"]
    assert lines[0].endswith(ws.file("rooda.toml")) and lines[1].endswith("(missing)")


def test_init_and_a_first_run(bare: Workspace) -> None:
    """`rooda init` writes a file that rooda itself accepts without a word; a second time it is left alone."""
    assert bare.rooda("init").code == 0
    text = bare.read("rooda.toml")
    ran = bare.rooda("config", "show")
    assert (ran.code, ran.err) == (0, "")
    again = bare.rooda("init")
    assert again.code == 2 and "already exists" in again.err and bare.read("rooda.toml") == text
    assert bare.rooda("init", "--print").out == text


def test_OU_40_OU_41_the_built_in_prompts_read_the_contract_first(bare: Workspace) -> None:
    """A built-in procedure has AGENTS.md read first; bootstrap names its ten sections."""
    for name in ("build", "publish-plan", "audit-impl-to-spec", "draft-plan-spec-chore"):
        text = bare.rooda(name, "--dry-run", "--ai-cmd", "true").out
        assert "AGENTS.md" in text.partition("## ORIENT")[0], name
    text = bare.rooda("bootstrap", "--dry-run", "--ai-cmd", "true").out
    sections = "Work Tracking System|Quick Reference|Task Input|Planning System|Build/Test/Lint Commands"
    sections += (
        "|Specification Definition|Implementation Definition|Audit Output|Quality Criteria|Operational Learnings"
    )
    for section in sections.split("|"):
        assert section in text, section


def test_OU_47_the_loop_never_commits(ws: Workspace) -> None:
    """A run leaves a repository's history alone, and .rooda out of its status."""
    ws.git("init", "-q")
    ws.git("add", "-A")
    ws.git("commit", "-q", "-m", "first")
    head = ws.git("rev-parse", "HEAD")
    assert ws.rooda("build", "-n", "2").code == 0
    assert ws.git("rev-parse", "HEAD") == head and ws.git("status", "--porcelain") == ""
