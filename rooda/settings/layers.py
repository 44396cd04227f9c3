"""Loads and checks all settings, as layers from the strongest to the weakest."""

import os
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from rooda.base import files, workspace_files
from rooda.base.dirs import shipped
from rooda.base.workspace_files import upward
from rooda.errors import ConfigProblem
from rooda.run.setup import Watch
from rooda.settings.check import OwnKeys, dotted, faults_of, rename_old_keys
from rooda.settings.schema import LOOP, OLDER, RESERVED, VARIABLES, flag_of, variable_of
from rooda.settings.toml import Lines, Path, Tree, line_of, parse
from rooda.settings.types import SUCCESSORS, Fault, ValueType, did_you_mean, key_with_alias, shown
from rooda.settings.where import FILE

# ROODA_LOOP_<KEY>: the settings of [loop] from the environment.


def environment(environ: Mapping[str, str]) -> tuple[Tree, list[str], list[str]]:
    """Return the settings in ROODA_LOOP_* variables, the errors, and the warnings; an empty one counts as unset."""
    loop: Tree = {}
    problems: list[str] = []
    warnings = [f"{name}: is not read; use {new}" for name, new in _OLD_VARIABLES.items() if environ.get(name)]
    for variable in sorted(name for name in environ if name.startswith(VARIABLES) and environ[name].strip()):
        key = variable.removeprefix(VARIABLES).lower() if variable.isupper() else ""
        if key in OLDER:
            warnings.append(f"{variable}: is now called {variable_of(OLDER[key])}")
            key = OLDER[key]
        if key not in LOOP:
            warnings.append(f"{variable}: unknown variable{_known(variable, key)}")
            continue
        value, faults = _value(LOOP[key].type, environ[variable])
        problems += [f"{variable} {fault}" for fault in faults]
        loop.setdefault(key, value)
    return ({"loop": loop} if loop else {}), problems, warnings


_OLD_VARIABLES = dict.fromkeys(("ROODA_AI_CLI", "ROODA_AI_CMD"), variable_of("ai_cmd"))


def _known(variable: str, key: str) -> str:
    if key in SUCCESSORS:
        return f"; instead: {variable_of(SUCCESSORS[key][0])}{SUCCESSORS[key][1]}"
    if other := key_with_alias(key, LOOP):
        return f"; did you mean {variable_of(other)!r}?"
    return did_you_mean(variable, [variable_of(name) for name in LOOP])


def _value(value_type: ValueType, text: str) -> tuple[Any, list[str]]:
    try:
        value = value_type.read(text)
    except (ValueError, OverflowError):
        return None, [f"{value_type.expected}, got {shown(text)}"]
    return value, [fault.text for fault in value_type.faults(value)]


# The settings files, strongest first.
OLDER_FILE = "rooda-config.yml"  # of an older program of the same name; `older` converts it
ENVIRONMENT, WORKSPACE, USER, BUILT_IN, FLAG = "environment", "workspace config", "user config", "built-in", "flag"


class Source(NamedTuple):
    tier: str
    path: str

    @property
    def exists(self) -> bool:
        return os.path.lexists(self.path)


def find(workspace: str, config: str | None, environ: Mapping[str, str]) -> list[Source]:
    """Return the settings files to read, strongest first; files that don't exist are included."""
    near = Source(WORKSPACE, os.path.abspath(config) if config else workspace_file(workspace))
    if config and not near.exists:
        raise ConfigProblem(f"--config {config}: no such file")
    if config and config.endswith((".yml", ".yaml")):
        from rooda.settings import older

        what = f"--config {config}: settings are TOML, and this is YAML from an older version of rooda"
        raise ConfigProblem(what, f"Convert it: {older.advice(near.path)}")
    own = Source(USER, user_file(environ))
    written = [near] if near.path == own.path else [near, own]
    return written + [Source(BUILT_IN, shipped("config", name)) for name in (FILE, "procedures.toml")]


def workspace_file(workspace: str) -> str:
    """Return the nearest rooda.toml from the workspace up to the repository's root, else its path in the workspace."""
    candidates = [os.path.join(folder, FILE) for folder in upward(workspace)]
    return next((path for path in candidates if os.path.lexists(path)), candidates[0])


def user_file(environ: Mapping[str, str]) -> str:
    if environ.get("ROODA_CONFIG_HOME"):
        return os.path.join(os.path.abspath(environ["ROODA_CONFIG_HOME"]), FILE)
    home = environ.get("HOME") or os.path.expanduser("~")
    folder = environ.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")
    return os.path.join(os.path.abspath(folder), "rooda", FILE)


def users_own(table: str, environ: Mapping[str, str]) -> Mapping[str, Any]:
    """Return a table of the user's own settings file; {} if the table is missing or the file can't be read."""
    try:
        text = files.text(user_file(environ), workspace_files.TEXT)
        found = parse(text.removeprefix("\ufeff"))[0].get(table, {}) if f"[{table}" in text else {}
    except (OSError, ValueError):
        return {}  # the command itself reports it
    return found if isinstance(found, dict) else {}


class Layer(NamedTuple):
    """The settings of one source: a file, the environment or the command line."""

    tier: str
    path: str
    tree: Mapping[str, Any]
    lines: Mapping[Path, int] = {}

    def origin(self, path: Path) -> str:
        """Return the source of a value for display, such as `user config (FILE:LINE)` or `built-in`."""
        return BUILT_IN if self.tier == BUILT_IN else f"{self.tier} ({self.location(path)})"

    def location(self, path: Path) -> str:
        """Return the variable, flag or FILE:LINE that sets a value; "" for a built-in value."""
        if self.tier == ENVIRONMENT:
            return variable_of(str(path[1]))
        if self.tier == FLAG:
            return flag_of(next(key for key in reversed(path) if isinstance(key, str)))  # not an index of an array
        return "" if self.tier == BUILT_IN else self.file_line(path)

    def file_line(self, path: Path) -> str:
        """Return FILE:LINE, or FILE if the line is unknown."""
        line = line_of(self.lines, path)
        return f"{self.path}:{line}" if line else self.path

    def table(self, *path: str) -> Mapping[str, Any]:
        table: Any = self.tree
        for part in path:
            table = table.get(part, {})
        inner: Mapping[str, Any] = table
        return inner


class Settings(NamedTuple):
    """All layers of settings, strongest first; tables are merged on request."""

    workspace: str
    layers: tuple[Layer, ...]
    warnings: tuple[str, ...]
    own_keys: OwnKeys
    misspelt: tuple[str, ...] = ()  # those of the warnings that are errors when a run starts
    untrusted: bool = False  # True: settings of the workspace that need trust are left out
    own_files: tuple[str, ...] = ()  # agents for which the workspace has settings files, if it is untrusted
    watch: Watch | None = None

    @property
    def written(self) -> tuple[Layer, ...]:
        """Return all layers except the built-in ones."""
        return tuple(layer for layer in self.layers if layer.tier != BUILT_IN)

    @property
    def shipped(self) -> tuple[Layer, ...]:
        return tuple(layer for layer in self.layers if layer.tier == BUILT_IN)

    def table(self, *path: str) -> dict[str, Any]:
        """Return a table merged from all layers, key by key."""
        merged: dict[str, Any] = {}
        for layer in reversed(self.layers):
            merged = merge(merged, layer.table(*path))
        return merged

    def agents(self) -> dict[str, Any]:
        """Return the tables of all agents, each with the keys that it inherits (`like`)."""
        tables = self.table("agents")
        return {name: _inherited(tables, name) for name in tables}

    def definer(self, agent: str, key: str) -> str:
        """Return the agent whose own table sets a key of this agent."""
        tables = self.table("agents")
        return next((each for each in ancestors(tables, agent) if key in tables[each]), agent)

    def origin(self, path: Path) -> str:
        """Return the source of the value at `path` for display; "" if it is not set."""
        return next((layer.origin(path) for layer in self.layers if _has(layer.tree, path)), "")

    def location(self, path: Path) -> str:
        """Return the variable, flag or FILE:LINE of the value at `path`; "" if it is built in or not set."""
        return next((layer.location(path) for layer in self.layers if _has(layer.tree, path)), "")

    def folder(self, path: Path) -> str:
        """Return the folder of the settings file that sets the value at `path`; "" if it is built in or not set."""
        found = next((layer for layer in self.layers if _has(layer.tree, path)), None)
        return os.path.dirname(found.path) if found and found.tier != BUILT_IN else ""


def ancestors(tables: Mapping[str, Any], name: str) -> list[str]:
    """Return an agent and the agents that it inherits from (`like`), nearest first."""
    found: list[str] = []
    while name in tables and name not in found:
        found.append(name)
        name = tables[name].get("like", "")
    return found


def _inherited(tables: Mapping[str, Any], name: str) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    for each in reversed(ancestors(tables, name)):
        merged = merge(merged, tables[each])
    return merged


def merge(weaker: Mapping[str, Any], stronger: Mapping[str, Any]) -> dict[str, Any]:
    """Return two tables merged key by key; if both have a value, that of the stronger one is used."""
    merged = dict(weaker)
    for key, value in stronger.items():
        old = merged.get(key)
        merged[key] = merge(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return merged


def _has(tree: Any, path: Path) -> bool:
    for part in path:
        if not isinstance(tree, Mapping) or part not in tree:
            return False
        tree = tree[part]
    return True


def load(workspace: str, config: str | None, environ: Mapping[str, str] | None, own_keys: OwnKeys) -> Settings:
    """Load the settings from all files and the environment; one ConfigProblem lists all errors."""
    environ = os.environ if environ is None else environ
    workspace = os.path.abspath(workspace)
    tree, problems, warnings = environment(environ)
    layers = [Layer(ENVIRONMENT, "", tree)]
    sources = find(workspace, config, environ)
    require_own(workspace, config, environ, own_keys)
    misspelt: list[str] = []
    for source in sources:
        found = _read(workspace, source, own_keys)
        layers += [found.layer] if found.layer else []
        problems += found.errors
        warnings += found.warnings
        misspelt += found.misspelt
    if not config:
        warnings += _unread(workspace, environ)
    if problems:
        raise ConfigProblem("\n".join(problems))
    return Settings(workspace, tuple(layers), tuple(warnings), own_keys, tuple(misspelt))


def _unread(workspace: str, environ: Mapping[str, str]) -> list[str]:
    """Return a warning for each rooda-config.yml (of an older rooda) without a rooda.toml in its folder."""
    folders = [*upward(workspace), os.path.dirname(user_file(environ))]
    if not any(os.path.lexists(os.path.join(folder, OLDER_FILE)) for folder in folders):
        return []
    from rooda.settings import older

    return [*older.notices(workspace, environ)]


def require_own(workspace: str, config: str | None, environ: Mapping[str, str], own_keys: OwnKeys) -> None:
    """Raise ConfigProblem if files of another user could control a loop; a file given with --config is accepted."""
    from rooda.settings import ownership

    settings = "" if config else workspace_file(workspace)
    if ownership.foreign(workspace, settings, environ):
        user = _read(workspace, Source(USER, user_file(environ)), own_keys).layer
        ownership.require_own(workspace, settings, environ, user.tree if user else {})


def has_reserved(workspace: str, config: str | None) -> bool:
    """True if a settings file, other than the shipped ones, gives a procedure the name of a rooda command."""
    found = find(os.path.abspath(workspace), config, os.environ)
    return any(_has_reserved(workspace, source) for source in found if source.tier != BUILT_IN)


def _has_reserved(workspace: str, source: Source) -> bool:
    try:
        data = _data(workspace, source)
        tree = parse(data.decode().removeprefix("\ufeff"))[0] if b"procedures" in data else {}
    except (OSError, ValueError):
        return False
    names = tree.get("procedures")
    return isinstance(names, dict) and not RESERVED.isdisjoint(names)


def workspace_word(workspace: str, environ: Mapping[str, str]) -> str:
    """Return the value of [loop] workspace, for use before the settings are loaded; "" if it is not set."""
    if typed := environ.get(variable_of("workspace"), "").strip():
        return typed
    for source in find(workspace, None, environ):
        try:
            found = parse(_data(workspace, source).decode().removeprefix("\ufeff"))[0]["loop"]["workspace"]
        except (OSError, ValueError, LookupError, TypeError):  # reported when the settings are loaded
            continue
        return str(found)
    return ""


def _data(workspace: str, source: Source) -> bytes:
    """Return the content of a settings file. In a workspace, the file must not be a link that leads out of it."""
    if source.tier == WORKSPACE:
        return workspace_files.read(workspace, source.path)
    return files.read(source.path, workspace_files.TEXT)


class _File(NamedTuple):
    """A settings file that was read: its layer and faults. `misspelt`: warnings that are errors when a run starts."""

    layer: Layer | None
    errors: Sequence[str] = ()
    warnings: Sequence[str] = ()
    misspelt: Sequence[str] = ()


@cache
def _shipped(data: bytes) -> dict[str, Any]:
    """Parse a settings file that ships with rooda. Cached, since a start loads the settings up to three times."""
    import tomllib

    return tomllib.loads(data.decode())


def _read(workspace: str, source: Source, own_keys: OwnKeys) -> _File:
    """Read and check a settings file."""
    try:
        data = _data(workspace, source)
    except OSError as problem:
        return _File(None, _unreadable(source, problem))
    if source.tier == BUILT_IN:
        return _File(Layer(source.tier, source.path, _shipped(data)))
    try:
        tree, lines = parse(data.decode().removeprefix("\ufeff"))
    except UnicodeDecodeError as problem:
        line = data.count(b"\n", 0, problem.start) + 1
        return _File(None, [f"{source.path}:{line}: this line is not UTF-8 text (byte 0x{data[problem.start]:02x})"])
    except ValueError as problem:
        from rooda.settings import toml

        return _File(None, [f"{source.path}{toml.sentence(problem, data)}"])
    notices, faults = rename_old_keys(tree, lines), faults_of(tree, own_keys)
    if source.tier != USER and "trust" in tree:
        faults.append(Fault(("trust",), f"only your own settings can have this table: {user_file(os.environ)}"))
    if source.tier != USER and "fleet" in tree:
        text = f"is ignored here; only your own settings can have this table: {user_file(os.environ)}"
        faults = [fault for fault in faults if fault.path[:1] != ("fleet",)]
        faults.append(Fault(("fleet",), text, warning=True))
    for fault in faults:
        if fault.warning:
            _drop(tree, fault.path)
    faults = notices + faults
    said = [(fault, _sentence(source.path, lines, fault)) for fault in faults]
    return _File(
        Layer(source.tier, source.path, tree, lines),
        [text for fault, text in said if not fault.warning],
        [text for fault, text in said if fault.warning],
        [text for fault, text in said if fault.near],
    )


def _drop(tree: Any, path: Path) -> None:
    """Remove an unknown key, so that `rooda config show` does not list it."""
    for part in path[:-1]:
        tree = tree[part]
    del tree[path[-1]]


def _unreadable(source: Source, problem: OSError) -> list[str]:
    if not source.exists and source.tier != BUILT_IN:
        return []
    if isinstance(problem, IsADirectoryError):
        return [f"{source.path}: is a folder, not a settings file"]
    return [f"{source.path}: can't be read: {problem.strerror or problem}"]


def _sentence(path: str, lines: Lines, fault: Fault) -> str:
    line = line_of(lines, fault.path)
    where = f"{path}:{line}" if line else path
    return f"{where}: {dotted(fault.path)}: {fault.text}"


def flag_layer(flags: Mapping[str, Any]) -> Layer:
    """Return the command-line options as the strongest layer."""
    tree: Tree = {key: value for key, value in flags.items() if value is not None}
    return Layer(FLAG, "", tree)
