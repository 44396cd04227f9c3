"""Builds tool calls that fit the tools in a request, because each CLI has its own names for tools."""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from rooda.agentkit.server.scenario import Call, Json

# Parameter names that identify a write or shell tool, the most likely first.
PATH = ("file_path", "filePath", "path", "file", "filename", "absolute_path", "target_file")
BODY = ("content", "contents", "file_text", "text", "file_content")
COMMAND = ("command", "cmd", "script", "commandLine", "command_line", "commands")
WRITERS = ("write", "writing", "create", "str_replace_based_edit_tool")
SHELLS = ("shell", "bash", "exec", "terminal", "command", "run")
LEAST: Json = {"array": [], "object": {}, "integer": 1, "number": 1, "boolean": False, "null": None}


class Tool(NamedTuple):
    """A tool that a request offers. `kind`: function, custom (free-form), js (calls other tools), local_shell."""

    name: str
    kind: str
    properties: Json
    required: tuple[str, ...]


def from_schema(name: str, schema: Json | None, kind: str = "function") -> Tool:
    """Return a tool whose parameters are described by a JSON schema."""
    schema = schema or {}
    return Tool(name, kind, schema.get("properties") or {}, tuple(schema.get("required") or ()))


def choose(turn: Json, tools: list[Tool]) -> Call | None:
    """Return the tool call that the turn requires; None if no offered tool can do it."""
    if "tool" in turn:
        return Call(turn["tool"], turn.get("input", {}))
    if "write" in turn:
        path, content = turn["write"]["path"], turn["write"]["content"]
        return next(_writing(path, content, tools), None) or next(_running(_heredoc(path, content), tools), None)
    return next(_running(turn["shell"], tools), None) if "shell" in turn else None


def _writing(path: str, content: str, tools: list[Tool]) -> Iterator[Call]:
    for tool in tools:
        at, body = _first(PATH, tool), _first(BODY, tool)
        if at and body and any(word in tool.name.lower() for word in WRITERS):
            command = {"command": "create"} if "command" in tool.properties else {}
            yield Call(tool.name, _filled(tool, {at: path, body: content, **command}))
    for tool in tools:
        if tool.name == "apply_patch":
            lines = "".join(f"+{line}\n" for line in content.splitlines())
            patch = f"*** Begin Patch\n*** Add File: {path}\n{lines}*** End Patch\n"
            yield Call(tool.name, patch if tool.kind == "custom" else {next(iter(tool.properties), "input"): patch})


def _running(command: str, tools: list[Tool]) -> Iterator[Call]:
    for tool in tools:
        if tool.kind == "js":
            given = f"{{cmd: {json.dumps(command)}, yield_time_ms: 30000}}"
            yield Call(tool.name, f"const r = await tools.exec_command({given}); text(r.output);")
    for tool in tools:
        key = _first(COMMAND, tool)
        if key and any(word in tool.name.lower() for word in SHELLS):
            yield Call(tool.name, _filled(tool, {key: _given(command, key, tool.properties[key] or {})}))
    for tool in tools:
        if tool.kind == "local_shell":
            yield Call("local_shell", {"type": "exec", "command": ["sh", "-c", command], "env": {}})


def _given(command: str, key: str, schema: Json) -> str | list[str]:
    """Return the command in the form that the parameter requires: a string, a list of words, or a list of commands."""
    if key == "commands":
        return [command]
    return ["sh", "-c", command] if schema.get("type") == "array" else command


def _heredoc(path: str, content: str) -> str:
    text = content if content.endswith("\n") else content + "\n"
    return f"cat > '{path}' <<'END_OF_FILE'\n{text}END_OF_FILE"


def _first(names: tuple[str, ...], tool: Tool) -> str:
    return next((name for name in names if name in tool.properties), "")


def _filled(tool: Tool, known: Json) -> Json:
    """Return the `known` arguments, plus the smallest valid value for each required parameter that they lack."""
    missing = [key for key in tool.required if key not in known]
    return {**known, **{key: least(tool.properties.get(key) or {"type": "string"}) for key in missing}}


def least_call(tool: Tool) -> Call:
    """Return a call to a tool with the smallest valid arguments."""
    return Call(tool.name, _filled(tool, {}))


def least(schema: Any) -> Any:
    """Return the smallest valid value for a JSON schema. Also used to answer side requests that require JSON."""
    if not isinstance(schema, dict):
        return "text"
    if schema.get("enum"):
        return schema["enum"][0]
    for key in ("anyOf", "oneOf", "allOf"):
        if schema.get(key):
            return least(schema[key][0])
    kind = schema.get("type")
    kind = str(kind[0] if isinstance(kind, list) else kind or "object").lower()
    if kind == "object":
        return {key: least(value) for key, value in (schema.get("properties") or {}).items()}
    return LEAST.get(kind, "text")
