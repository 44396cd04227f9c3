"""The command line of an agent."""

import shlex
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rooda.agents.command import argv, describe
from rooda.agents.records import Agent
from rooda.errors import ConfigProblem
from rooda.settings import agents
from rooda.settings.lookup import lookup
from tests.kit.tiers import Tiers


def words(command: str, prompt: str | None = None, model: str = "", way: str = "stdin") -> list[str]:
    return argv(Agent("", command, prompt=way, model=model), prompt)


@pytest.mark.parametrize(
    ("command", "without", "with_model"),
    [
        ("a --model {model} b", ["a", "b"], ["a", "--model", "M x", "b"]),
        ("a -v --model={model}", ["a", "-v"], ["a", "-v", "--model=M x"]),
        ("a b {model}", ["a", "b"], ["a", "b", "M x"]),
        ("a - {model}", ["a", "-"], ["a", "-", "M x"]),
        ("a -- {model}", ["a", "--"], ["a", "--", "M x"]),
        ("a '-m {model}' 'b c'", ["a", "b c"], ["a", "-m M x", "b c"]),
    ],
)
def test_model(command: str, without: list[str], with_model: list[str]) -> None:
    """Without a model the word goes, and the option before it; with one, it is one word."""
    assert words(command) == without
    assert words(command, model="M x") == with_model


def test_prompt_and_python() -> None:
    """{prompt} is replaced by the text, {python} by this interpreter; other braces stay."""
    assert words("a {prompt}", "it's {model}", way="argument") == ["a", "it's {model}"]
    assert words("a", "text", way="argument") == ["a", "text"]
    assert words("a --file={prompt}", "/p", way="file") == ["a", "--file=/p"]
    assert words("{python} -m x '{\"a\": 1}'") == [sys.executable, "-m", "x", '{"a": 1}']
    assert words("a -p {prompt} b") == ["a", "b"]


@given(st.text(min_size=1), st.text())
def test_no_value_breaks_the_quoting(model: str, prompt: str) -> None:
    """Model and prompt are one argument each, whatever they contain."""
    assert words("a --model {model} -p {prompt}", prompt, model, "argument") == ["a", "--model", model, "-p", prompt]


def test_describe() -> None:
    """A raw command is shown as it was written; a filled one as a shell would take it."""
    assert describe(Agent("", "claude-cli   --no-interactive 'x y'")) == "claude-cli   --no-interactive 'x y'"
    assert describe(Agent("x", "a --model {model} -", model="m n")) == "a --model 'm n' -"
    assert describe(Agent("x", "a --model {model} {prompt}", prompt="argument")) == "a {prompt}"
    assert describe(Agent("x", "a", prompt="argument")) == "a {prompt}"


def test_every_shipped_agent_has_a_command_line(tiers: Tiers) -> None:
    """With and without a model, no placeholder is left and the program is the agent's own."""
    found = tiers.load()
    for name in agents.agents(found):
        agent = agents.agent_named(found, name)
        assert agent
        for model in ("", "m"):
            line = argv(agent._replace(model=model), "P" if agent.prompt == "argument" else None, "/x/1.out")
            assert "{" not in shlex.join(line) and ("m" in line) == (bool(model) and "{model}" in agent.command)
            assert line[0] in (name, agent.like, sys.executable)


def test_E_35_an_agent_like_another(tiers: Tiers) -> None:
    """It inherits all keys, tables key by key; its own fallback beats [loop]'s, and an unknown base is an error."""
    tiers.write(
        '[loop]\nagent = "work"\non_limit = "switch"\n[agents.work]\nlike = "claude"\naccount = "the firm"\n'
        'env = { CLAUDE_CONFIG_DIR = "/work" }\nfallback = ["home"]\n[agents.home]\nlike = "work"\nmodel = "haiku"\n'
    )
    found = tiers.load()
    work = agents.agent_of(lookup(found, "build", {}))
    assert work and (work.name, work.cli, work.account, work.stop) == ("work", "claude", "the firm", "INT")
    assert work.command == found.table("agents", "claude")["command"]
    inherited = {"CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1", "CLAUDE_CODE_RETRY_WATCHDOG": ""}
    assert work.env == {"CLAUDE_CONFIG_DIR": "/work", **inherited}
    assert [(each.name, each.cli, each.model) for each in work.fallback] == [("home", "claude", "haiku")]
    tiers.write('[loop]\nagent = "work"\n[agents.work]\nlike = "claud"\n')
    with pytest.raises(ConfigProblem, match=r"rooda.toml:3: agents.work.like: unknown agent 'claud'"):
        agents.agent_of(lookup(tiers.load(), "build", {}))
    tiers.write('[loop]\nagent = "a"\n[agents.a]\nlike = "b"\n[agents.b]\nlike = "a"\n')
    with pytest.raises(ConfigProblem, match="the key 'command' is missing"):
        agents.agent_of(lookup(tiers.load(), "build", {}))
