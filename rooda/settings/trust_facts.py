"""Finds everything that a workspace's settings and AGENTS.md start, redirect or restrict: their facts."""

import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from rooda.base import files
from rooda.base.facts import Fact
from rooda.base.workspace_files import upward
from rooda.settings.check import OwnKeys, dotted, keys_of_kind, rename_old_keys
from rooda.settings.layers import WORKSPACE, Layer, Settings
from rooda.settings.schema import (
    AGENT,
    BUDGET,
    GATE_NETWORKS,
    NETWORKS,
    PROCEDURE,
    SANDBOX,
    SANDBOXES,
    TASKS,
    TELEMETRY,
    WORKTREE,
)
from rooda.settings.toml import Path, line_of, parse
from rooda.settings.types import AGENT_ENV, ANY_TEXT, GUARDS, PHASE, RESTRAINS, RUNS, TEXTS, Key
from rooda.settings.where import FILE

GATE = "gate"
PRICES = Key(ANY_TEXT, "the prices of a model", trust=RUNS)
ELSEWHERE = ("_BASE_URL", "_API_BASE", "_ENDPOINT", "_HOST", "_PROXY")  # endings of variables that name an address
LOADERS = ("PATH", "LD_PRELOAD", "LD_LIBRARY_PATH", "NODE_OPTIONS", "PYTHONPATH", "PYTHONSTARTUP", "BASH_ENV", "ENV")


class Reader(NamedTuple):
    """Finds the facts in a settings file: in its current content, or in an older version from git."""

    file: str  # the file's name in facts
    folder: str  # base of the file's relative paths
    inside: str  # a path outside of this folder is a fact
    own_keys: OwnKeys
    hides: str  # the settings file that this one replaces; "" if there is none
    below: Callable[[Path], list[Any]]  # returns the value that would apply without the file

    def read(self, data: bytes) -> list[Fact]:
        """Return the facts in an older version (`data`); if it is invalid, one unnamed fact for the whole file."""
        try:
            tree, lines = parse(data.decode().removeprefix("\ufeff"))
            rename_old_keys(tree, lines)
            return [*self.hidden(), *(fact for _, fact in self.located(tree, lines))]
        except (ValueError, TypeError, AttributeError):
            return [Fact(self.file, "", "can't be read", "settings")] if data else []

    def hidden(self) -> list[Fact]:
        """Return a fact if this file replaces another settings file and thus that file's gates and limits; else []."""
        value = f"replaces {self.hides}"
        return [Fact(self.file, "file", value, "settings")] if self.hides else []

    def located(self, tree: Mapping[str, Any], lines: Mapping[Path, int]) -> Iterator[tuple[Path, Fact]]:
        """Yield each fact with its path in the file."""
        for path, rows, table in self._tables(tree):
            for key, value in table.items():
                row, here = rows.get(key), (*path, key)
                if row is None:
                    continue
                general = tree.get("loop", {}).get(key) if path[0] != "loop" else None
                for fact in self._facts(row, here, value, general):
                    yield here, fact._replace(line=line_of(lines, here))

    def _tables(self, tree: Mapping[str, Any]) -> Iterator[tuple[Path, Mapping[str, Key], Mapping[str, Any]]]:
        """Yield each table: its path, the schema rows of its keys, and its content."""
        yield ("loop",), PROCEDURE, tree.get("loop", {})
        for name, table in tree.get("procedures", {}).items():
            yield ("procedures", name), PROCEDURE, table
        for kind, own in self.own_keys.items():
            yield (kind,), keys_of_kind(own), tree.get(kind, {})
        for name, table in tree.get("agents", {}).items():
            yield ("agents", name), AGENT, table
        from rooda.settings.setup import HOOKS

        yield ("hooks",), {name: row._replace(trust=RUNS) for name, row in HOOKS.items()}, tree.get("hooks", {})
        yield ("worktree",), WORKTREE, tree.get("worktree", {})
        yield ("tasks",), TASKS, tree.get("tasks", {})
        yield ("telemetry",), TELEMETRY, tree.get("telemetry", {})
        yield ("sandbox",), SANDBOX, tree.get("sandbox", {})
        yield ("budget",), BUDGET, tree.get("budget", {})
        prices = tree.get("prices", {})
        yield ("prices",), dict.fromkeys(prices, PRICES), prices
        aliases = tree.get("ai_cmd_aliases", {})
        yield ("ai_cmd_aliases",), dict.fromkeys(aliases, PROCEDURE["ai_cmd"]), aliases

    def _facts(self, row: Key, path: Path, value: Any, general: Any) -> Iterator[Fact]:
        """Yield the facts of one key. `general`: the value of the key in [loop] of the same file."""
        if row.type in (PHASE, TEXTS):
            yield from self._files_outside(path, value)
            for item in value if isinstance(value, list) else [value]:
                if row.type is PHASE and isinstance(item, dict) and item.get("command"):
                    yield Fact(self.file, dotted(path), shown(item["command"]), "prompt command")
        if not row.trust:
            return
        if row is PRICES:
            value = {name: number for name, number in value.items() if isinstance(number, int | float)}
            if _lowered(value, (self.below(path) or [{}])[0]):
                text = ", ".join(f"{name} {number}" for name, number in value.items())
                yield Fact(self.file, dotted(path), text, "price", warning="weakens cost limits")
            return
        others = [each for each in (general, *self.below(path)) if each is not None]
        weaker = any(is_weaker(row, str(path[-1]), value, each) for each in others)
        restrains, harmless = row.trust in (RESTRAINS, GUARDS), row.trust == RESTRAINS and not weaker
        values = shown_values(row, value)
        if not values and row.trust != GUARDS and not weaker:
            return
        if not values:
            values, restrains = ["(none)"], False  # no gates, although AGENTS.md or another table may have some
        for text in values:
            fact = Fact(self.file, dotted(path), text, _label(path), restrains=restrains, harmless=harmless)
            yield fact._replace(warning=_warning(path, text))

    def _files_outside(self, path: Path, value: Any) -> Iterator[Fact]:
        """Yield a fact for each prompt file outside of the workspace, since its text is sent to the agent's service."""
        for name, place in self._named_files(value):
            real = os.path.realpath(place)
            if os.path.exists(real) and not is_below(real, self.inside):
                warning = "a file outside of the workspace"
                yield Fact(self.file, dotted(path), f"{name} is {real}", "prompt", warning=warning)

    def _named_files(self, value: Any) -> Iterator[tuple[str, str]]:
        """Yield each string that may be the name of a prompt file, and the file's path."""
        for item in value if isinstance(value, list) else [value]:
            name = item.get("path", "") if isinstance(item, dict) else item
            if isinstance(name, str) and "\n" not in name and "\0" not in name and 0 < len(name) < 4096:
                yield name, os.path.join(self.folder, os.path.expanduser(name))

    def prompt_files(self, tree: Mapping[str, Any]) -> list[str]:
        """Return the paths of all values that may be names of prompt files."""
        values = [
            value for _, keys, table in self._tables(tree) for key, value in table.items() if _is_prompt(keys, key)
        ]
        return [path for value in values for _, path in self._named_files(value)]


def _is_prompt(rows: Mapping[str, Key], key: str) -> bool:
    return key in rows and rows[key].type in (PHASE, TEXTS)


def reader_of(settings: Settings, file: str, path: str, inside: str) -> Reader:
    """Return a `Reader` for the settings file at `path`, which is named `file` in its facts."""
    weaker = [layer for layer in settings.layers if layer.tier != WORKSPACE and layer.path]

    def below(at: Path) -> list[Any]:
        tables = ("procedures", *settings.own_keys)
        paths = [at, ("loop", at[-1])] if at[0] in tables else [at]
        found = [
            table[str(path[-1])]
            for path in paths
            for layer in weaker
            if str(path[-1]) in (table := layer.table(*map(str, path[:-1])))
        ]
        shipped = _shipped_price(str(at[1])) if not found and at[0] == "prices" else None
        return [shipped] if shipped is not None else found

    folders = [folder for folder in upward(settings.workspace) if is_below(os.path.dirname(path), folder)]
    others = (os.path.join(folder, FILE) for folder in folders if folder != os.path.dirname(path))
    hides = next((other for other in others if os.path.lexists(other)), "")
    hides = os.path.relpath(hides, os.path.dirname(path)) if hides else ""
    return Reader(file, os.path.dirname(path), inside, settings.own_keys, hides, below)


def without(layer: Layer, reader: Reader) -> Layer:
    """Return the layer without the settings that need trust; settings that only restrict the agent are kept."""
    import copy

    tree = copy.deepcopy(dict(layer.tree))
    for path, fact in [*reader.located(tree, layer.lines)]:
        table: Any = tree
        for part in path[:-1]:
            table = table[part]
        if not fact.harmless:
            table.pop(path[-1], None)
    return layer._replace(tree=tree)


def agents_md_reader(file: str, commands: bool) -> Callable[[bytes], list[Fact]]:
    """Return a function that finds the facts in an AGENTS.md.

    With `commands`, the build commands of a file without gates count as gates.
    """

    def facts(data: bytes) -> list[Fact]:
        from rooda.run import gates_md

        text = files.to_text(data)
        found = gates_md.gates(text, file) or (gates_md.commands(text, file) if commands else ())
        return [
            Fact(file, "quality gates", gate.command, GATE, int(gate.origin.rpartition(":")[2]), restrains=True)
            for gate in found
        ]

    return facts


def _lowered(row: Mapping[str, Any], known: Mapping[str, Any]) -> bool:
    """True if a price is 0, or lower than the known price, so that a cost limit allows more calls."""
    return any(value == 0 or (key in known and value < known[key]) for key, value in row.items())


def is_weaker(row: Key, key: str, value: Any, below: Any) -> bool:
    """True if a value restricts the agent less than the one it replaces; 0 means no limit."""
    if isinstance(value, list) or isinstance(below, list):
        mine, theirs = {*map(shown, value or [])}, {*map(shown, below or [])}
        if key == "allowed_tools":  # [] allows all
            return bool(theirs) and not (mine and mine <= theirs)
        return not theirs <= mine
    if isinstance(value, bool) or isinstance(below, bool):
        return bool(below) and not value
    try:
        value, below = row.converted(value), row.converted(below)
    except (ValueError, OverflowError):
        return True
    if isinstance(value, int | float) and isinstance(below, int | float):
        exceeds: bool = value == 0 or value > below
        return bool(below) and exceeds
    for words in (SANDBOXES, NETWORKS[::-1], GATE_NETWORKS[::-1]):
        if value in words and below in words:
            return words.index(value) < words.index(below)
    return bool(value == "off" and below != "off")


def shown(value: Any) -> str:
    """Format a gate, a hook or a plain value; strip whitespace at both ends, and replace CRLF with LF as git does."""
    if isinstance(value, dict):
        insecure = " (insecure)" if value.get("insecure") else ""
        value = str(value.get("command") or value.get("url") or sorted(value.items())) + insecure
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return text.strip().replace("\r\n", "\n")


def shown_values(row: Key, value: Any) -> list[str]:
    """Return strings for the elements of a list, the variables of an `env` table (NAME=VALUE), or any other value."""
    if isinstance(value, list):
        return [shown(each) for each in value]
    if row.type is AGENT_ENV and isinstance(value, dict):
        return [f"{name}={shown(text)}" for name, text in value.items()]
    return [shown(value)]


def is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def _label(path: Path) -> str:
    key = str(path[-1])
    if path[0] == "hooks":
        return f"hook {key}"
    if path[0] in ("agents", "ai_cmd_aliases"):
        return f"agent {path[1]}"
    if path[0] in ("worktree", "sandbox", "telemetry"):
        return f"{path[0]} {key}"
    return {"quality_gates": GATE, "gates_from_commands": GATE, "agent": "agent", "ai_cmd": "agent"}.get(key, key)


def _warning(path: Path, text: str) -> str:
    name = text.partition("=")[0]
    if path[-1] != "env":
        return ""
    if name.upper().endswith(ELSEWHERE):
        return "sends your key elsewhere"
    return "chooses which programs run" if name.upper() in LOADERS else ""


def _shipped_price(model: str) -> Mapping[str, Any] | None:
    """Return the built-in price of a model, if it has one."""
    from rooda.agents.prices import matches, names_of
    from rooda.settings.setup import shipped_prices

    return next((row for name, row in shipped_prices().items() if matches(model, names_of(name))), None)
