"""Checks before the first call: likely problems, sizes, who pays. The CLIs are scripted, with the real names."""

import os

import pytest

from rooda.agents import command, preflight
from rooda.agents.records import Agent
from tests.kit.workspace import Ran, Workspace, until

AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="a rule for root")
RESULT = """\
{"type":"result","subtype":"success","is_error":false,"result":"Done."}
{"type":"turn.completed","usage":{"input_tokens":10,"output_tokens":1}}"""  # the last words of claude, and of codex
CLI = f"""\
#!/bin/sh
if [ "$1" = --version ]; then echo asked >>"$FAKE/asked"; echo "name-cli 1.2.3 (of a kind)"; exit 0; fi
cat >"$FAKE/prompt"
for word; do echo "$word"; done >"$FAKE/argv"
env >"$FAKE/env"
echo '{RESULT}'
"""
KEY = "sk-ant-api03-abcdefghijklmnop-wxyz"


def install(ws: Workspace, *names: str) -> None:
    """Scripted CLIs of these names, first on PATH."""
    for name in names:
        ws.write(f"bin/{name}", CLI, mode=0o755)
    ws.env["PATH"] = ws.file("bin") + os.pathsep + ws.env["PATH"]


def build(ws: Workspace, *words: str, env: dict[str, str] | None = None) -> Ran:
    return ws.rooda("build", "-n", "1", *words, env=env)


def kept(ws: Workspace, name: str) -> str:
    """What the scripted CLI recorded; empty if it was not called."""
    path = os.path.join(ws.fake, name)
    if not os.path.exists(path):
        return ""
    with open(path, encoding="utf-8") as file:
        return file.read()


@AS_ROOT
@pytest.mark.parametrize("words", [[], ["--dry-run"]], ids=["run", "dry-run"])
def test_claude_as_root_is_refused_before_the_start(ws: Workspace, words: list[str]) -> None:
    """Without IS_SANDBOX=1 nothing starts, and the message says what to do; other values do not count."""
    install(ws, "claude")
    ran = build(ws, "--agent", "claude", *words, env={"IS_SANDBOX": "yes"})
    if words:  # a dry run says what a start would refuse
        assert ran.code == 0 and "A start would be refused: claude refuses to skip permissions as root" in ran.out
    else:
        assert ran.code == 2 and ran.out == ""
        assert "as root" in ran.err and "IS_SANDBOX=1" in ran.err and "acceptEdits" in ran.err
    assert kept(ws, "argv") == "" and not ws.exists(".rooda/runs")


@AS_ROOT
def test_claude_as_root_runs_in_a_sandbox(ws: Workspace) -> None:
    """IS_SANDBOX=1 in our environment or the agent's, or another permission mode, lets the start through."""
    install(ws, "claude")
    assert build(ws, "--agent", "claude", env={"IS_SANDBOX": "1"}).code == 0
    settings = ws.read("rooda.toml")
    ws.config(settings + '[agents.claude.env]\nIS_SANDBOX = "1"\n')
    assert build(ws, "--agent", "claude").code == 0
    ws.config(settings + '[agents.claude]\ncommand = "claude -p --permission-mode acceptEdits"\n')
    assert build(ws, "--agent", "claude").code == 0


def test_a_raw_command_is_not_judged(ws: Workspace) -> None:
    """An --ai-cmd runs as typed: no warning, no version, no line, also with --verbose."""
    install(ws, "claude", "codex")
    for typed in ("claude -p --dangerously-skip-permissions", "codex exec"):
        quiet = build(ws, "--ai-cmd", typed)
        assert (quiet.code, quiet.notes) == (0, "") and kept(ws, "argv")
        loud = build(ws, "--ai-cmd", typed, "--verbose", env={"ANTHROPIC_API_KEY": KEY})
        assert "Agent:" not in loud.both and "Billed" not in loud.both and "WARNING" not in loud.both
    assert kept(ws, "asked") == ""


def test_verbose_shows_version_program_and_payer(ws: Workspace) -> None:
    """--verbose shows version, program and who pays, with only the last four characters of the key."""
    install(ws, "claude")
    ran = build(ws, "--agent", "claude", "-v", env={"IS_SANDBOX": "1", "ANTHROPIC_API_KEY": KEY})
    first, second = ran.err.splitlines()[:2]
    assert first.endswith(f"Agent: claude 1.2.3 ({ws.file('bin/claude')}), prompt by stdin")
    assert second.endswith("Billed: the Anthropic account of this key (ANTHROPIC_API_KEY …wxyz)")
    assert KEY not in ran.both and KEY[-6:] not in ran.both


def test_nothing_is_printed_to_a_pipe(ws: Workspace) -> None:
    """Without --verbose stderr has the summary alone, and the version is not asked."""
    install(ws, "codex")
    assert build(ws, "--agent", "codex").notes == "" and kept(ws, "asked") == ""
    assert build(ws, "--agent", "codex", "--verbose", "--json").err == "" and kept(ws, "asked") == ""


def test_the_payer_is_shown_on_a_terminal(ws: Workspace) -> None:
    """On a terminal the payer is shown without --verbose."""
    install(ws, "codex")
    screen = ws.terminal("build", "-n", "1", "--agent", "codex", columns=200)
    screen.finish()
    assert "Agent: codex 1.2.3" in screen.out and "Billed: the account that codex is logged in to" in screen.out


def test_an_installation_is_asked_once(ws: Workspace) -> None:
    """The version is cached until the program changes."""
    install(ws, "codex")
    for _ in range(2):
        assert "codex 1.2.3" in build(ws, "--agent", "codex", "-v").err
    assert kept(ws, "asked") == "asked\n"
    ws.write("bin/codex", CLI.replace("1.2.3", "1.2.4-beta"), mode=0o755)
    assert "codex 1.2.4-beta " in build(ws, "--agent", "codex", "-v").err


def test_a_cli_without_a_version(ws: Workspace) -> None:
    """An agent whose version is unknown, or is never asked, runs anyway."""
    install(ws, "codex")
    ws.write("bin/codex", CLI.replace("exit 0", "exit 3"), mode=0o755)
    ran = build(ws, "--agent", "codex", "-v")
    assert ran.code == 0 and "Agent: codex (" in ran.err
    asked = kept(ws, "asked")
    ws.config(ws.read("rooda.toml") + '[agents.codex]\nversion = ""\n')
    assert "Agent: codex (" in build(ws, "--agent", "codex", "-v").err and kept(ws, "asked") == asked


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("codex exec --json -", "read-only sandbox"),
        ("gemini --output-format stream-json --skip-trust", "gets no tools"),
        ("gemini --yolo", "exit 55"),
        ("copilot --output-format json", "denies every tool"),
        ("claude -p", "denies every tool that changes something"),
        ("claude -p --allowedTools Write --output-format=stream-json", "without --verbose"),
        ("amp -x", "AMP_API_KEY is not set"),
    ],
)
def test_a_command_that_cannot_work_gets_a_warning(ws: Workspace, command: str, says: str) -> None:
    """The warning goes to stderr, also without a terminal, since the call costs money. The agent runs anyway."""
    name = command.split(maxsplit=1)[0]
    install(ws, name)
    ws.config(ws.read("rooda.toml") + f'[agents.{name}]\ncommand = "{command}"\noutput = "text"\n')
    ran = build(ws, "--agent", name)
    assert ran.code == 0 and kept(ws, "argv") == "".join(f"{word}\n" for word in command.split()[1:])
    (warning,) = ran.notes.splitlines()
    assert "WARNING: " in warning and says in warning


@pytest.mark.parametrize(
    ("command", "env"),
    [
        ("codex exec --sandbox workspace-write", {}),
        ("codex exec -c sandbox_mode=x", {}),
        ("codex exec --sandbox=read-only", {}),
        ("gemini --approval-mode=yolo", {"GEMINI_CLI_TRUST_WORKSPACE": "true"}),
        ("claude -p --permission-mode acceptEdits --output-format stream-json --verbose", {}),
        ("copilot --yolo", {}),
        ("amp -x", {"AMP_API_KEY": "k"}),
        ("codex-like exec", {}),
    ],
)
def test_no_false_alarm(command: str, env: dict[str, str]) -> None:
    """A command with explicit permissions gets no warning."""
    words = command.split()
    assert preflight.likely_problems(words[0], words, env) == []


def test_the_shipped_commands_get_no_warnings() -> None:
    """None of the shipped agents gets a warning, except amp without a key."""
    from rooda.loops import configuration
    from rooda.settings import agents

    found = configuration.load("/", environ={"HOME": "/nowhere"})
    for name in agents.agents(found):
        agent = agents.agent_named(found, name)
        assert agent and (preflight.warnings(agent) == [] or name == "amp")


@pytest.mark.parametrize(
    ("limit", "text", "fits"),
    [
        ("size_limit = 300", "x" * 150, True),
        ("size_limit = 300", "x" * 400, False),
        ("size_limit = 300", "é" * 150, False),
        ("character_limit = 300", "é" * 150, True),
        ("character_limit = 300", "é" * 400, False),
    ],
    ids=["bytes", "too-many-bytes", "bytes-not-characters", "characters", "too-many-characters"],
)
@pytest.mark.parametrize("words", [[], ["--dry-run"]], ids=["run", "dry-run"])
def test_a_prompt_that_is_too_long_is_refused(
    ws: Workspace, limit: str, text: str, fits: bool, words: list[str]
) -> None:
    """A prompt over the CLI's limit: nothing starts, and the message has both numbers."""
    install(ws, "codex")
    ws.write("prompts/observe_build.md", text)
    ws.config(ws.read("rooda.toml") + f"[agents.codex]\n{limit}\n")
    ran = build(ws, "--agent", "codex", *words)
    assert (ran.code, bool(kept(ws, "prompt"))) == ((0, not words) if fits else (2, False))
    assert fits or ("codex takes at most 300" in ran.err and not ws.exists(".rooda/runs"))


@pytest.mark.parametrize("command", ["codex {prompt}", "codex --text={prompt}"])
def test_a_prompt_that_is_too_long_for_an_argument(ws: Workspace, command: str) -> None:
    """{prompt} on the command line takes 128 KiB on Linux: more is refused, for raw commands too."""
    install(ws, "codex")
    ws.write("prompts/observe_build.md", "x" * (preflight.ARGUMENT + 1))
    ran = build(ws, "--ai-cmd", command)
    assert ran.code == 2 and f"one command-line argument has at most {preflight.ARGUMENT:,}" in ran.err
    assert kept(ws, "argv") == "" and not ws.exists(".rooda/runs")
    frame = len(build(ws, "--ai-cmd", "true", "--dry-run", "--observe", "OBS").out.partition("\n\n")[2]) - len("OBS")
    ws.write("prompts/observe_build.md", "x" * (preflight.ARGUMENT - frame - len("--text=")))
    assert build(ws, "--ai-cmd", command).code == 0 and "xxx" in kept(ws, "argv")


def test_who_pays() -> None:
    """The first variable that is set decides; a short value is not shown; without any the login pays."""
    agent = Agent("a", "a", billing={"FIRST": "one", "SECOND": "two"}, account="the login")
    assert preflight.who_pays(agent, {"SECOND": "0123456789abcdef"}) == "two (SECOND …cdef)"
    assert preflight.who_pays(agent, {"FIRST": "1", "SECOND": "0123456789abcdef"}) == "one (FIRST)"
    assert preflight.who_pays(agent, {"FIRST": ""}) == "the login"


def test_a_variable_that_is_not_passed_on_does_not_pay(ws: Workspace) -> None:
    """With the key removed by env_deny, the login pays."""
    install(ws, "claude")
    ws.config(ws.read("rooda.toml") + '[agents.claude]\nenv_deny = ["ANTHROPIC_*"]\n')
    ran = build(ws, "--agent", "claude", "-v", env={"IS_SANDBOX": "1", "ANTHROPIC_API_KEY": KEY})
    assert "Billed: the account that claude is logged in to" in ran.err


def test_denied_variables_are_removed() -> None:
    """Names and patterns of env_deny are removed; rooda's own variables can't be."""
    env = {"A_KEY": "1", "A_KEYS": "2", "B": "3", "ROODA_RUN": "4"}
    assert command.without_denied(env, ["*_KEY", "ROODA_*"]) == {"A_KEYS": "2", "B": "3", "ROODA_RUN": "4"}
    assert command.without_denied(env, []) == env


def restricted(ws: Workspace, toml: str, table: str = "") -> None:
    """These keys in [loop], and these of the agent `codex`."""
    ws.config(ws.read("rooda.toml").replace("[loop]\n", f"[loop]\n{toml}\n") + f"[agents.codex]\n{table}\n")


@pytest.mark.parametrize(
    ("toml", "table", "argv"),
    [
        ("read_only = true", 'read_only = "codex look"', ["look"]),
        ("read_only = false", 'read_only = "codex look"\ncommand = "codex do"', ["do"]),
        ('allowed_tools = ["A b", "C"]', 'command = "codex x"\nallow = "--only {tools}"', ["x", "--only", "A b,C"]),
        ('denied_tools = ["A", "C"]', 'command = "codex x"\ndeny = "-d {tool}"', ["x", "-d", "A", "-d", "C"]),
        ("call_budget = 1.5", 'command = "codex x"\nbudget = "--cap {budget}"', ["x", "--cap", "1.5"]),
        ("call_budget = 0", 'command = "codex x"\nbudget = "--cap {budget}"', ["x"]),
    ],
)
def test_restrictions_become_options(ws: Workspace, toml: str, table: str, argv: list[str]) -> None:
    """The agent's permissions are passed to its CLI by its own options; the dry run shows them."""
    install(ws, "codex")
    restricted(ws, toml, table)
    assert build(ws, "--agent", "codex").code == 0
    assert kept(ws, "argv").splitlines() == argv
    shown = build(ws, "--agent", "codex", "--dry-run").lines[1]
    assert all(word in shown for word in argv)


@pytest.mark.parametrize(
    ("setting", "key"),
    [
        ("read_only = true", "read_only"),
        ('allowed_tools = ["A"]', "allow"),
        ('denied_tools = ["A"]', "deny"),
        ("call_budget = 1", "budget"),
    ],
)
def test_a_restriction_that_cannot_be_put_is_refused(ws: Workspace, setting: str, key: str) -> None:
    """An agent without such options does not run unrestricted: the error has file, line and what to set."""
    ws.config(ws.read("rooda.toml").replace("[loop]\n", f"[loop]\n{setting}\n") + '[agents.mine]\ncommand = "true"\n')
    for words in (["--agent", "mine"], ["--ai-cmd", "true"]):
        ran = build(ws, *words)
        assert ran.code == 2 and f"{key} = " in ran.err
        assert f"rooda.toml:2: loop.{setting.split(maxsplit=1)[0]}: " in ran.err
        assert not ws.exists(".rooda/runs")


def test_claudes_own_cap_is_a_second_fence(ws: Workspace) -> None:
    """call_budget reaches claude as --max-budget-usd."""
    ws.config(ws.read("rooda.toml").replace("[loop]\n", "[loop]\ncall_budget = 2\n"))
    install(ws, "claude")
    assert build(ws, "--agent", "claude", env={"IS_SANDBOX": "1"}).code == 0
    assert kept(ws, "argv").endswith("--max-budget-usd\n2\n")


def test_processes_started_for_a_version_are_ended(ws: Workspace) -> None:
    """Processes that a CLI starts while printing its version are ended with the run."""
    install(ws, "codex")
    ws.write("bin/codex", CLI.replace("exit 0", "sleep 300 >/dev/null 2>&1 & exit 0"), mode=0o755)
    assert build(ws, "--agent", "codex", "-v").code == 0
    until(lambda: not ws.leftovers(), what="nobody to be left")


def test_a_dry_run_shows_a_prompt_that_is_too_long(ws: Workspace) -> None:
    """All warnings are printed, then the message that refuses the start, exit 2."""
    ws.sections["agent"] = '\n[agents.small]\ncommand = "cat"\nsize_limit = 300\n'
    ws.procedure(loop={"ai_cmd": None, "agent": "small"})
    ws.write("big.md", "x" * 400)
    ran = ws.rooda("build", "--dry-run", "--context", "big.md")
    assert ran.code == 2 and "x" * 400 in ran.out and ran.out.startswith("[DRY RUN] Procedure: build\n")
    start = ws.rooda("build", "-n", "1", "--context", "big.md")
    assert start.code == 2 and start.err == ran.err and "The prompt is too long: it has " in ran.err
