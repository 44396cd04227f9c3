"""Finds rooda-config.yml, the settings of the older program named rooda, and converts it to rooda.toml."""

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from rooda.base import yaml
from rooda.base.workspace_files import upward
from rooda.errors import ConfigProblem
from rooda.settings.layers import OLDER_FILE, user_file
from rooda.settings.toml import toml_key, toml_value

_PHASES = ("observe", "orient", "decide", "act")
_WORDS = ("display", "summary", "description")
_SAME = ("iteration_timeout", "max_output_buffer", "failure_threshold", "log_level", "log_timestamp_format")
_LIMITS = ("default_iterations", "default_max_iterations", "max_iterations")
_ALIASES = ("ai_cmd_aliases", "ai_tools")
_COMMANDS = ("ai_cmd", "ai_cli_command")
_NAMED = ("ai_cmd_alias", "ai_tool", "ai_cmd_preset")
DEFAULT_LIMIT = 5  # iterations: default of the older program, for files that name no limit


class Converted(NamedTuple):
    """The converted settings as TOML, the names of agents and procedures in them, and what was left out."""

    toml: str
    agents: tuple[str, ...]
    procedures: tuple[str, ...]
    left: tuple[str, ...] = ()  # what was not converted, as `line 3: KEY: why`


def lying(workspace: str, environ: Mapping[str, str]) -> list[str]:
    """Return paths of rooda-config.yml files: from the workspace up to the repository's root, and the user's own."""
    folders = dict.fromkeys([*upward(workspace), os.path.dirname(user_file(environ))])
    return [path for folder in folders if os.path.lexists(path := os.path.join(folder, OLDER_FILE))]


def advice(path: str) -> str:
    """Return the command that converts the file, for a message."""
    import shlex

    near = os.path.relpath(path)
    return f"rooda init --from {shlex.quote(path if near.startswith('..') else near)}"


def notices(workspace: str, environ: Mapping[str, str]) -> Iterator[str]:
    """Yield a warning for each rooda-config.yml without a rooda.toml in its folder."""
    for path in lying(workspace, environ):
        if not os.path.lexists(os.path.join(os.path.dirname(path), "rooda.toml")):
            yield f"{path}: settings from an older version of rooda, ignored; to convert them: {advice(path)}"


def convert(text: str, path: str, target: str, built_in: Mapping[str, Any]) -> Converted:
    """Convert `text`, the content of `path`. `target`: folder of the rooda.toml; `built_in`: the shipped settings."""
    document = yaml.read(text)
    if document.faults:
        raise ConfigProblem("\n".join(f"{path}:{fault.line}: {fault.text}" for fault in document.faults))
    if not isinstance(document.value, dict) or not {"procedures", "loop", *_ALIASES, *_COMMANDS} & {*document.value}:
        hint = "A rooda-config.yml has the tables loop, procedures and ai_cmd_aliases."
        raise ConfigProblem(f"{path} is not a rooda-config.yml: it has none of the expected tables.", hint)
    return _Converter(document, path, target, built_in).converted()


class _Converter:
    """Collects the lines of the TOML, and the keys that can't be converted."""

    def __init__(self, document: yaml.Read, path: str, target: str, built_in: Mapping[str, Any]) -> None:
        self._tree: dict[str, Any] = document.value
        self._lines, self._built_in = document.lines, built_in
        self._folder, self._target = os.path.dirname(os.path.abspath(path)), target
        self._name = os.path.basename(path)
        self._left: list[tuple[int, str]] = []
        self._agents = self._named_agents()

    def converted(self) -> Converted:
        parts = [f"# Made from {self._name} by `rooda init --from`. To see all settings: rooda config show --origin"]
        parts += self._loop() + self._agent_tables()
        names: list[str] = []
        for name, table in self._table("procedures").items():
            if rows := self._procedure(name, table):
                names.append(name)
                parts.append("\n".join([f"[procedures.{toml_key(name)}]", *rows]))
        for key in self._tree:
            if key not in ("loop", "procedures", *_ALIASES, *_COMMANDS):
                self._leave((key,), "rooda has no such table")
        left = tuple(f"line {line}: {said}" for line, said in sorted(self._left))
        comments = "\n".join(f"# Not converted, {row}" for row in left)
        agents = tuple(name for name, _ in self._agents.values())
        return Converted("\n\n".join(filter(None, [*parts, comments])) + "\n", agents, (*names,), left)

    def _table(self, *path: str) -> dict[str, Any]:
        value: Any = self._tree
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        if value is not None and not isinstance(value, dict):
            self._leave(path, "it must be a table")
        return value if isinstance(value, dict) else {}

    def _leave(self, path: tuple[str, ...], why: str) -> None:
        self._left.append((self._lines.get(path, 0), f"{'.'.join(path)}: {why}"))

    # Agents

    def _named_agents(self) -> dict[str, tuple[str, str]]:
        """Map each alias in the file to the agent's name in rooda.toml and its command."""
        found = {}
        for key in _ALIASES:
            for alias, command in self._table(key).items():
                if not isinstance(command, str) or not command.strip():
                    self._leave((key, alias), "it has no command")
                    continue
                name = re.sub(r"[^A-Za-z0-9._-]", "-", alias).lstrip("._-") or "agent"
                found[alias] = (f"my-{name}" if name in self._built_in["agents"] else name, command.strip())
        return found

    def _agent_tables(self) -> list[str]:
        rows = [(name, command) for name, command in self._agents.values()]
        return [f"[agents.{toml_key(name)}]\ncommand = {toml_value(command)}" for name, command in rows]

    def _agent(self, path: tuple[str, ...], table: Mapping[str, Any]) -> list[str]:
        """Return the line that chooses the agent, [] if there is none. As in the older rooda, commands beat aliases."""
        command = next((table[key] for key in _COMMANDS if isinstance(table.get(key), str) and table[key].strip()), "")
        if command:
            return [f"ai_cmd = {toml_value(command.strip())}"]
        for key in _NAMED:
            if isinstance(alias := table.get(key), str) and alias:
                if alias not in self._agents and alias not in self._built_in["agents"]:
                    self._leave((*path, key), f"there is no agent {alias!r}; define it as [agents.{alias}]")
                return [f"agent = {toml_value(self._agents.get(alias, (alias, ''))[0])}"]
        return []

    # [loop] and procedures

    def _loop(self) -> list[str]:
        table = self._table("loop")
        rows = self._agent(("loop",), {**{key: self._tree.get(key) for key in _COMMANDS}, **table})
        rows += self._numbers(("loop",), table, dated=bool({"loop", "ai_cmd_aliases"} & {*self._tree}))
        rows += self._same(("loop",), table, (*_SAME, "show_ai_output"))
        self._rest(("loop",), table, (*_SAME, "show_ai_output"))
        return ["\n".join(["[loop]", *rows])] if rows else []

    def _numbers(self, path: tuple[str, ...], table: Mapping[str, Any], dated: bool = False) -> list[str]:
        """Return the line with the iteration limit. `dated`: this form of the file has a default, DEFAULT_LIMIT."""
        mode = table.get("iteration_mode")
        limit = next((table[key] for key in _LIMITS if table.get(key) is not None), None)
        if mode == "unlimited":
            return ["default_iterations = 0  # unlimited"]
        if mode not in (None, "", "max-iterations"):
            self._leave((*path, "iteration_mode"), "it must be max-iterations or unlimited")
        if isinstance(limit, int) and not isinstance(limit, bool) and limit >= 0:
            return [f"default_iterations = {limit}"]
        if limit is not None:
            self._leave((*path, next(key for key in _LIMITS if key in table)), "it must be a whole number")
        return [f"default_iterations = {DEFAULT_LIMIT}  # the default of the older rooda"] if dated else []

    def _same(self, path: tuple[str, ...], table: Mapping[str, Any], keys: tuple[str, ...]) -> list[str]:
        """Return lines for the keys that have the same name and meaning in rooda.toml."""
        from rooda.settings.schema import LOOP, PROCEDURE

        rows = []
        for key in keys:
            value = table.get(key)
            if value is None or value == "":
                continue
            if faults := (LOOP.get(key) or PROCEDURE[key]).type.faults(value):
                self._leave((*path, key), faults[0].text)
            else:
                rows.append(f"{key} = {toml_value(value)}")
        return rows

    def _rest(self, path: tuple[str, ...], table: Mapping[str, Any], known: tuple[str, ...]) -> None:
        for key in table:
            if key not in (*known, *_LIMITS, *_COMMANDS, *_NAMED, "iteration_mode"):
                self._leave((*path, key), "rooda has no such setting")

    def _procedure(self, name: str, table: Any) -> list[str]:
        from rooda.settings.check import NAME
        from rooda.settings.schema import RESERVED

        path = ("procedures", name)
        if not isinstance(table, dict) or name in RESERVED or not re.fullmatch(NAME, name):
            self._leave(path, "it must be a table" if not isinstance(table, dict) else "rooda can't use this name")
            return []
        rows = self._same(path, table, _WORDS) + self._agent(path, table)
        rows += self._numbers(path, table) + self._same(path, table, _SAME)
        for phase in _PHASES:
            if phase in table and (value := self._phase(path, phase, table[phase])) is not None:
                rows.append(f"{phase} = {toml_value(value)}")
        self._rest(path, table, (*_WORDS, *_SAME, *_PHASES))
        return rows

    def _phase(self, path: tuple[str, ...], phase: str, value: Any) -> Any:
        """Return the converted value of a phase; None if no part of it can be converted.

        With None, a built-in procedure keeps its own value for the phase.
        """
        found = [self._fragment((*path, phase), each) for each in (value if isinstance(value, list) else [value])]
        kept = [each for each in found if each is not None]
        return (kept if isinstance(value, list) else kept[0]) if kept else None

    def _fragment(self, path: tuple[str, ...], value: Any) -> Any:
        given = {"path": value} if isinstance(value, str) else value if isinstance(value, dict) else {}
        parameters = given.get("parameters")
        more = {"parameters": parameters} if isinstance(parameters, dict) and parameters else {}
        if isinstance(content := given.get("content"), str) and content.strip():
            return {"content": _placeholders(content), **more}
        name = given.get("path")
        if not isinstance(name, str) or not name.strip():
            self._leave(path, "it has neither path nor content")
        elif name.startswith("builtin:"):
            self._leave(path, f"{name} is a prompt of the older rooda. To see the present prompts: rooda info build")
        elif not os.path.isfile(there := os.path.join(self._folder, os.path.expanduser(name))):
            if path[1] in self._built_in["procedures"]:
                self._leave(path, f"{name} does not exist; the built-in phase applies")
                return None
            self._leave(path, f"{name} does not exist")
            return {"path": name, **more} if more else name
        else:
            if more and "{{" in _content(there):
                self._leave(path, f"check {name}: a parameter is written {{{{name}}}} here, without the dot")
            near = os.path.relpath(there, self._target)
            return {"path": near, **more} if more else near
        return None


def _placeholders(text: str) -> str:
    """Return the text with `{{.name}}` written as `{{name}}`."""
    return re.sub(r"\{\{-?\s*\.(\w+)\s*-?\}\}", r"{{\1}}", text)


def _content(path: str) -> str:
    from rooda.base import workspace_files

    try:
        return workspace_files.text(os.path.dirname(path), path)
    except OSError:
        return ""
