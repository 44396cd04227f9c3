"""Scenarios turn by turn, and the choice of a tool for a turn."""

from typing import Any

import pytest

from rooda.agentkit.server import responses as server_responses
from rooda.agentkit.server.scenario import Reply, Script
from rooda.agentkit.server.tools import choose, from_schema, least

TEXT = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}


def test_repeated_turns_and_the_turn_after_the_last() -> None:
    """A turn is repeated as often as it says, and the scenario defines what follows the last one."""
    script = Script({"turns": [{"text": "a", "times": 2}, {"text": "b"}], "after": {"text": "z"}})
    assert [script.take().turn["text"] for _ in range(5)] == ["a", "a", "b", "z", "z"]
    script = Script({"turns": [{"text": "a"}, {"text": "b"}], "after": "last"})
    assert [script.take().turn["text"] for _ in range(3)] == ["a", "b", "b"]
    script = Script({"turns": [{"text": "a", "times": -1}, {"text": "b"}]})
    assert [script.take().turn["text"] for _ in range(3)] == ["a", "a", "a"]


def test_a_misspelt_key_is_refused() -> None:
    """A scenario with unknown keys does not start."""
    with pytest.raises(ValueError, match="unknown key in a turn: retry"):
        Script({"turns": [{"text": "x", "retry": 3}]})


@pytest.mark.parametrize(
    ("tool", "kind", "given"),
    [
        ({"type": "custom", "name": "apply_patch"}, "custom_tool_call", "*** Add File: /a\n+x\n"),
        ({"type": "custom", "name": "exec", "description": "await tools.f()"}, "custom_tool_call", "exec_command("),
        ({"type": "local_shell"}, "local_shell_call", "cat > '/a'"),
        ({"type": "namespace", "tools": [{"name": "shell", "parameters": TEXT}]}, "function_call", "cat > '/a'"),
    ],
    ids=["patch", "code-mode", "local-shell", "namespace"],
)
def test_codex_writes_with_any_tool_that_it_offers(tool: Any, kind: str, given: str) -> None:
    """A file is written by a patch, JavaScript or a shell, whichever is offered; tools may be in the input."""
    offered = server_responses.offered({"input": [{"type": "additional_tools", "tools": [tool]}]})
    call = choose({"write": {"path": "/a", "content": "x"}}, offered)
    answer = server_responses.plain(Reply("m", call=call))["output"][0]
    assert answer["type"] == kind
    assert given in str(answer.get("input") or answer.get("arguments") or answer.get("action")).replace("\\n", "\n")


def test_a_shell_that_takes_words() -> None:
    """A shell tool that expects a list gets one, with every other required argument filled in."""
    properties = {"command": {"type": "array"}, "timeout": {"type": "integer"}, "why": {"type": "string"}}
    tool = from_schema("shell", {"properties": properties, "required": ["command", "timeout", "why"]})
    call = choose({"shell": "ls"}, [from_schema("read_file", None), tool])
    assert call == ("shell", {"command": ["sh", "-c", "ls"], "timeout": 1, "why": "text"})


def test_least_values() -> None:
    """The smallest value of a schema is valid for it, however the schema is written."""
    schema = {
        "type": "OBJECT",
        "properties": {
            "a": {"enum": ["p", "q"]},
            "b": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
            "c": {"type": ["boolean", "null"]},
            "d": {"type": "array"},
            "e": {"type": "string"},
        },
    }
    assert least(schema) == {"a": "p", "b": 1, "c": False, "d": [], "e": "text"}
