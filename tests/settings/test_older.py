"""Users of an older program of the same name: its rooda-config.yml, and its words."""

import os
import re
import tomllib

import pytest

from rooda.loops.configuration import load
from tests.kit.workspace import Workspace

OLD = """\
loop:
  default_max_iterations: 4
  iteration_timeout: 300
  failure_threshold: 2
  log_level: loud
  ai_cmd_alias: thorough
  colour: red
ai_cmd_aliases:
  thorough: "kiro-cli chat --model big"
  claude: claude -p
procedures:
  build:
    act: prompts/act.md
    observe: prompts/gone.md
    default_max_iterations: 7
    ai_cmd_alias: claude
  tidy:
    summary: Tidy up
    observe: [{content: "Look at {{.what}}.", parameters: {what: tests}}, "builtin:fragments/observe/x.md"]
    orient: prompts/act.md
    decide: [{path: prompts/act.md, parameters: {a: 1}}]
    act: prompts/act.md
    iteration_mode: unlimited
  status:
    act: x
"""
FIRST = """\
ai_tools:
  fast: "cheap-cli -q"
procedures:
  bootstrap:
    display: "Bootstrap"
    observe: prompts/act.md
    default_iterations: 1
"""


@pytest.fixture
def old(bare: Workspace) -> Workspace:
    bare.write("rooda-config.yml", OLD)
    bare.write("prompts/act.md", "Act.\n")
    return bare


def test_I_40_the_file_is_named_and_converted(old: Workspace) -> None:
    """A start names it and the command; that command writes a file that loads, and lists what it leaves out."""
    said = f"{old.file('rooda-config.yml')}: settings from an older version of rooda, ignored; to convert them: "
    assert said + "rooda init --from rooda-config.yml" in old.rooda("build").err
    made = old.rooda("init", "--from", "rooda-config.yml")
    assert made.code == 0, made.both
    assert made.lines[1:3] == ["Agents: thorough, my-claude", "Procedures: build, tidy"]
    left = [re.sub(r"^Not converted, ", "", line) for line in made.lines[3:-1]]
    assert [line.partition(":")[0] for line in left] == ["line 5", "line 7", "line 14", "line 19", "line 24"]
    assert "line 7: loop.colour: rooda has no such setting" in left
    found = load(old.path, environ=old.env)
    assert found.warnings == ()
    loop = found.table("loop")
    keys = ("default_iterations", "iteration_timeout", "failure_threshold", "agent")
    assert [loop[key] for key in keys] == [4, 300, 2, "thorough"]
    assert found.table("agents", "my-claude")["command"] == "claude -p"
    build = tomllib.loads(old.read("rooda.toml"))["procedures"]["build"]
    assert build == {"agent": "my-claude", "default_iterations": 7, "act": "prompts/act.md"}
    dry = old.rooda("tidy", "--dry-run")
    assert dry.code == 0 and "Look at tests." in dry.out and "kiro-cli chat --model big" in dry.out, dry.both
    assert "rooda-config.yml" not in dry.err
    assert "is from an older version of rooda and is ignored" in " ".join(old.rooda("doctor").out.split())


def test_I_40_the_user_s_own_file(old: Workspace) -> None:
    """It is named where it lies, and stays in its folder; prompts are found from there."""
    path = f"{old.root}/own/rooda-config.yml"
    old.write("../own/rooda-config.yml", OLD)
    os.unlink(old.file("rooda-config.yml"))
    old.env["ROODA_CONFIG_HOME"] = os.path.dirname(path)
    assert f"rooda init --from {path}" in old.rooda("config", "show").err
    assert old.rooda("init", "--from", path).code == 0 and old.exists("../own/rooda.toml")
    assert not old.exists("rooda.toml")


def test_I_40_the_first_form(bare: Workspace) -> None:
    """Tools by name, no limit unless the file has one, and a file elsewhere: its prompts keep their place."""
    bare.write("old/rooda-config.yml", FIRST)
    bare.write("old/prompts/act.md", "Act.\n")
    shown = bare.rooda("init", "--from", "old/rooda-config.yml", "--print")
    assert tomllib.loads(shown.out) == {
        "agents": {"fast": {"command": "cheap-cli -q"}},
        "procedures": {"bootstrap": {"display": "Bootstrap", "default_iterations": 1, "observe": "old/prompts/act.md"}},
    }


@pytest.mark.parametrize("text", ["procedures: [", "[1, 2]", "other: 1", ""])
def test_I_40_what_is_no_such_file(text: str, bare: Workspace) -> None:
    """Refused with its name, and nothing is written."""
    bare.write("rooda-config.yml", text)
    ran = bare.rooda("init", "--from", "rooda-config.yml")
    assert ran.code == 2 and "rooda-config.yml" in ran.err and not bare.exists("rooda.toml"), ran.both


@pytest.mark.parametrize(
    ("words", "successor"),
    [
        (["--list-procedures"], "Instead: rooda list"),
        (["build", "--list-procedures"], "Instead: rooda list"),
        (["build", "--ai-tool", "fast"], "Instead: --agent NAME"),
        (["--ai-tool=fast", "build"], "Instead: rooda build --agent NAME"),
        (["build", "-m", "5"], "Instead: -n N, or --max-iterations N"),
        (["run", "build", "-m5"], "Instead: -n N, or --max-iterations N"),
        (["draft-plan-spec-to-impl"], "rooda audit-spec-to-impl (reports the gaps)"),
        (["draft-plan-impl-to-spec"], "rooda audit-impl-to-spec (reports the gaps)"),
        (["draft-plan-story-to-spec"], "Replaced by: rooda draft-plan-spec-feat"),
        (["draft-plan-bug-to-spec", "-n", "1"], "Replaced by: rooda draft-plan-spec-fix"),
        (["--config", "rooda-config.yml", "build"], "Convert it: rooda init --from rooda-config.yml"),
    ],
)
def test_I_40_old_words(words: list[str], successor: str, old: Workspace) -> None:
    """The error names what replaces an option or a procedure."""
    ran = old.rooda(*words)
    assert ran.code == 2 and successor in ran.err, ran.both


def test_I_40_old_settings(bare: Workspace) -> None:
    """A key and variables of old name what replaces them."""
    bare.config('[loop]\niteration_mode = "unlimited"\n[procedures.build]\niteration_mode = "max-iterations"\n')
    bare.env |= {"ROODA_AI_CLI": "claude", "ROODA_LOOP_ITERATION_MODE": "unlimited"}
    err = bare.rooda("config", "show").err
    assert err.count("iteration_mode: unknown key; instead: default_iterations, where 0 is unlimited") == 2
    assert "ROODA_AI_CLI: is not read; use ROODA_LOOP_AI_CMD" in err
    assert "ROODA_LOOP_ITERATION_MODE: unknown variable; instead: ROODA_LOOP_DEFAULT_ITERATIONS" in err
