"""`rooda config`."""

import json
import tomllib

from tests.kit.workspace import Workspace


def test_show_is_readable_toml(bare: Workspace) -> None:
    """`rooda config` and `rooda config show` print the same settings, as TOML."""
    bare.config('[loop]\nmodel = "opus"\nquality_gates = ["a \\"b\\"", { command = "x" }]\n[models]\n"odd key" = "m"\n')
    shown = bare.rooda("config", "show")
    assert (shown.code, shown.err) == (0, "")
    assert shown.out == bare.rooda("config").out
    tree = tomllib.loads(shown.out)
    assert tree["loop"]["quality_gates"] == ['a "b"', {"command": "x"}]
    assert tree["loop"]["failure_threshold"] == 3 and tree["models"] == {"odd key": "m"}


def test_OU_26_show_origin(bare: Workspace) -> None:
    """--origin, or the older --show-origin, adds where each value comes from."""
    bare.config("[loop]\ntoken_budget = 7\n")
    line = f"loop.token_budget = 7  # workspace config ({bare.file('rooda.toml')}:2)"
    for words in (("config", "show", "--origin"), ("config", "--show-origin"), ("config", "show", "--show-origin")):
        assert line in bare.rooda(*words).lines
    assert "loop.failure_threshold = 3  # built-in" in bare.rooda("config", "show", "loop", "--origin").lines


def test_show_json(bare: Workspace) -> None:
    """--json is one object; with --origin each value has its origin."""
    bare.config('[loop]\ntoken_budget = 7\n[hooks]\ndone = "true"\n')
    plain = json.loads(bare.rooda("config", "show", "--json").out)
    assert (plain["loop.token_budget"], plain["hooks.done"]) == (7, "true")
    with_origin = json.loads(bare.rooda("config", "show", "--json", "--origin").out)
    assert with_origin["loop.log_level"] == {"value": "info", "origin": "built-in"}


def test_show_leaves_out_agents_that_are_not_in_use(bare: Workspace) -> None:
    """In use: chosen or changed in the settings, or behind such an agent. The last line says how to see all."""

    def shown(*words: str) -> set[str]:
        return {line.split(".")[1] for line in bare.rooda("config", *words).lines if line.startswith("agents.")}

    every = shown("show", "agents")
    assert {"claude", "codex", "gemini", "demo"} <= every and shown() == set()
    note = f"# {len(every)} shipped agents not in use; show all: rooda config show agents"
    assert bare.rooda("config").lines[-1] == note
    bare.config(
        '[loop]\nagent = "mine"\n[agents.mine]\nlike = "claude"\nfallback = ["codex"]\n'
        '[procedures.build]\nagent = "gemini-acp"\n[agents.qwen]\nmodel = "m"\n'
    )
    assert shown() == shown("show", "--origin") == {"mine", "claude", "codex", "gemini", "gemini-acp", "qwen"}
    assert shown("show", "agents") == every | {"mine"}
    assert "agents.aider.command" in json.loads(bare.rooda("config", "--json").out)


def test_show_one_part(bare: Workspace) -> None:
    """KEY narrows it down; a key that is nowhere is an error."""
    lines = bare.rooda("config", "show", "agents.claude").lines
    assert lines and all(line.startswith("agents.claude.") for line in lines)
    nothing = bare.rooda("config", "show", "loop.modle")
    assert nothing.code == 2 and "Setting 'loop.modle' is not set." in nothing.err


def test_path(bare: Workspace) -> None:
    """The files, strongest first, and which of them are there; a broken file does not matter."""
    bare.config("[loop\n")
    ran = bare.rooda("config", "path")
    assert ran.code == 0
    assert ran.lines[0].split() == ["workspace", "config", bare.file("rooda.toml")]
    assert ran.lines[1].startswith("user config ") and ran.lines[1].endswith("rooda.toml  (missing)")
    assert [line.split()[0] for line in ran.lines[2:]] == ["built-in", "built-in"]


def test_OU_030_warnings_go_to_stderr(bare: Workspace) -> None:
    """A misspelt key is reported apart from the settings."""
    bare.config("[loop]\ntoken_bugdet = 7\n")
    ran = bare.rooda("config", "show")
    assert ran.code == 0 and "token_bugdet" not in ran.out
    assert (
        ran.err
        == f"WARNING: {bare.file('rooda.toml')}:2: loop.token_bugdet: unknown key; did you mean 'token_budget'?\n"
    )


def test_O_119_faults_are_sentences(bare: Workspace) -> None:
    """A wrong file ends with exit code 2 and its faults, one per line."""
    bare.config("[loop]\nfailure_threshold = 0\nagent = 1\n")
    ran = bare.rooda("config", "show")
    assert ran.code == 2 and ran.out == "" and "Traceback" not in ran.err
    assert f"{bare.file('rooda.toml')}:2: loop.failure_threshold: must be a whole number >= 1, got 0" in ran.err
    assert f"{bare.file('rooda.toml')}:3: loop.agent: must be a string" in ran.err
