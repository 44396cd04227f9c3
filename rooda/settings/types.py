"""Defines the value types of settings, and the rows `Key` and `Option` that describe a setting."""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from rooda.settings.toml import Path

LARGEST = 10**12
LONGEST_COMMAND = 65_536


class Fault(NamedTuple):
    """An error or warning about the key at `path`; `text` continues a sentence that begins with the key."""

    path: Path
    text: str
    warning: bool = False
    near: bool = False  # an unknown key that is probably misspelled: an error when a run starts

    def under(self, *path: str | int) -> "Fault":
        return self._replace(path=(*path, *self.path))


class ValueType(NamedTuple):
    """The type of a setting's value: what it expects, how to validate a value, and how to parse a string.

    `read` raises ValueError for a string that it can't parse.
    """

    expected: str
    faults: Callable[[Any], list[Fault]]
    read: Callable[[str], Any] = str
    choices: tuple[str, ...] = ()  # the valid words, if limited
    schema: Mapping[str, Any] = {}  # its JSON Schema, for editors


def shown(value: object) -> str:
    """Format a value for a message: short, on one line, in TOML's terms."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return repr(value if len(value) <= 60 else value[:57] + "...")
    if isinstance(value, dict | list | tuple):
        return "a table" if isinstance(value, dict) else "an array"
    if isinstance(value, int):
        return str(value) if abs(value) <= 10**18 else "a huge number"
    return repr(value) if isinstance(value, float) else "a date"


class Hints:
    """Limits the number of searches for similar words per settings file, since each takes a millisecond."""

    MOST = 100
    left = MOST


def did_you_mean(word: str, known: tuple[str, ...] | list[str]) -> str:
    """Return `; did you mean 'X'?` if one of the known words is similar, else ""."""
    if not Hints.left:
        return ""
    Hints.left -= 1
    near = nearest(word, known)
    return f"; did you mean {near!r}?" if near else ""


def nearest(word: str, known: tuple[str, ...] | list[str]) -> str:
    import difflib

    if len(word) > 100:
        return ""
    exact = [name for name in known if name.lower() == word.lower().replace("-", "_")]
    return (exact or difflib.get_close_matches(word, list(known), 1) or [""])[0]


EDITS = 2  # characters by which a misspelled key may differ from the right one


def is_near(word: str, known: Iterable[str]) -> bool:
    """True if a key differs from a known one by at most EDITS edits, and at most half the length of the shorter key."""
    return Hints.left > 0 and any(_is_misspelt(word, name) for name in known)


def _is_misspelt(word: str, name: str) -> bool:
    most = min(EDITS, min(len(word), len(name)) // 2)
    if abs(len(word) - len(name)) > most:
        return False
    row: list[int] = [*range(len(name) + 1)]
    for at, letter in enumerate(word, 1):
        left, row = row, [at]
        for there, other in enumerate(name, 1):
            row.append(min(left[there] + 1, row[-1] + 1, left[there - 1] + (letter != other)))
        if min(row) > most:
            return False
    return row[-1] <= most


def simple(
    expected: str, accepts: Callable[[Any], bool], read: Callable[[str], Any] = str, schema: Mapping[str, Any] = {}
) -> ValueType:
    def faults(value: Any) -> list[Fault]:
        return [] if accepts(value) else [Fault((), f"{expected}, got {shown(value)}")]

    return ValueType(expected, faults, read, schema=schema)


def whole(least: int) -> ValueType:
    expected = f"must be a whole number >= {least}"

    def faults(value: Any) -> list[Fault]:
        if type(value) is int and least <= value <= LARGEST:
            return []
        bound = f"must be a whole number <= {LARGEST}" if type(value) is int and value > LARGEST else expected
        return [Fault((), f"{bound}, got {shown(value)}")]

    return ValueType(expected, faults, _read_whole, schema={"type": "integer", "minimum": least, "maximum": LARGEST})


def _read_whole(text: str) -> int:
    digits = text.strip()
    if not digits.removeprefix("-").removeprefix("+").isdecimal():
        raise ValueError
    return int(digits)


def word(*words: str) -> ValueType:
    expected = "must be one of " + ", ".join(words)

    def faults(value: Any) -> list[Fault]:
        if isinstance(value, str) and value in words:
            return []
        near = did_you_mean(value, words) if isinstance(value, str) else ""
        return [Fault((), f"{expected}, got {shown(value)}{near}")]

    return ValueType(expected, faults, str.strip, words, {"type": "string", "enum": [*words]})


def _read_flag(text: str) -> bool:
    known = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}
    if text.strip().lower() not in known:
        raise ValueError
    return known[text.strip().lower()]


def _is_seconds(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value <= 10**9


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip()) and "\0" not in value


def _command_faults(value: Any) -> list[Fault]:
    if not _is_text(value):
        return [Fault((), f"must be a command, got {shown(value)}")]
    if len(value) > LONGEST_COMMAND:
        return [Fault((), f"must be a command of at most {LONGEST_COMMAND} characters, got {shown(value)}")]
    import shlex

    try:
        return [] if shlex.split(value) else [Fault((), f"must be a command, got {shown(value)}")]
    except ValueError as problem:
        return [Fault((), f"can't be split into words ({str(problem).lower()}), got {shown(value)}")]


def _is_scalar(value: Any) -> bool:
    """True for a string, boolean or number; False for a whole number beyond TOML's range."""
    return isinstance(value, str | float) or (isinstance(value, int) and abs(value) < 2**63)


def _is_amount(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value <= 10**9


def _names_faults(value: Any) -> list[Fault]:
    if not isinstance(value, list):
        return [Fault((), f"must be an array of strings, got {shown(value)}")]
    return [fault.under(index) for index, text in enumerate(value) for fault in TEXT.faults(text)]


def _read_names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


_NUMBER = {"type": "number", "minimum": 0, "maximum": 10**9}
_STRING = {"type": "string", "pattern": "\\S"}
SECONDS = simple("must be a number of seconds >= 0", _is_seconds, float, _NUMBER)
BEAT = simple(
    "must be a number of seconds >= 5",
    lambda value: _is_seconds(value) and value >= 5,
    float,
    {**_NUMBER, "minimum": 5},
)
FLAG = simple("must be true or false", lambda value: isinstance(value, bool), _read_flag, {"type": "boolean"})
TEXT = simple("must be a string that is not empty", _is_text, schema=_STRING)
ANY_TEXT = simple("must be a string", lambda value: isinstance(value, str), schema={"type": "string"})
URL = simple(
    "must be an http or https address",
    lambda value: isinstance(value, str) and value.startswith(("http://", "https://")),
    schema={"type": "string", "pattern": "^https?://"},
)
SCALAR = simple(
    "must be a string, a number or true/false",
    _is_scalar,
    schema={"anyOf": [{"type": "string"}, {"type": "number"}, {"type": "boolean"}]},
)
COMMAND = ValueType("must be a command", _command_faults, schema=_STRING)
OPTION = ValueType("must be command-line options", _command_faults, schema=_STRING)
AMOUNT = simple("must be a number >= 0", _is_amount, float, _NUMBER)
NAMES = ValueType("must be an array of strings", _names_faults, _read_names, schema={"type": "array", "items": _STRING})
_HOST = r"(?:https?://)?(?:(?:\*\.)?[\w-]+(?:\.[\w-]+)*\.?|\[[0-9A-Fa-f:.]+\])(?::(?P<port>\d{1,5}))?/?"


def _hosts_faults(value: Any) -> list[Fault]:
    expected = "must be a host: example.org, *.example.org, example.org:8443, localhost:5432"
    return _names_faults(value) or [
        Fault((number,), f"{expected}; got {shown(host)}") for number, host in enumerate(value) if not _is_host(host)
    ]


def _is_host(text: str) -> bool:
    found = re.fullmatch(_HOST, text)
    return found is not None and int(found["port"] or 1) in range(1, 65_536)


HOSTS = NAMES._replace(faults=_hosts_faults)


def _read_duration(text: str) -> float:
    from rooda.base.text import parse_seconds

    return float(text) if text.replace(".", "", 1).isdigit() else parse_seconds(text)


def _duration_faults(value: Any) -> list[Fault]:
    try:
        good = _is_seconds(_read_duration(value) if isinstance(value, str) else value)
    except ValueError:
        good = False
    return [] if good else [Fault((), f"must be a number of seconds, or a duration such as 2h30m, got {shown(value)}")]


DURATION = ValueType(
    "must be a number of seconds, or a duration such as 2h30m",
    _duration_faults,
    _read_duration,
    schema={"anyOf": [_NUMBER, _STRING]},
)


def _read_age(text: str) -> float:
    """Return the seconds of a duration, which may have days, such as 14d."""
    return float(text[:-1]) * 86_400 if text.endswith("d") and text[:-1].isdecimal() else _read_duration(text)


def _age_faults(value: Any) -> list[Fault]:
    return _duration_faults(_read_age(value) if isinstance(value, str) and value[:-1].isdecimal() else value)


AGE = DURATION._replace(faults=_age_faults, read=_read_age)
_SIZE = r"(\d+(?:\.\d+)?)\s*([KMGT]?)I?B?"
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


def read_size(text: str | float) -> int:
    """Return the bytes that a size such as 5GB means; ValueError if it isn't one."""
    found = re.fullmatch(_SIZE, str(text).strip(), re.IGNORECASE)
    if not found:
        raise ValueError(text)
    return int(float(found[1]) * _UNITS[found[2].upper()])


def _size_faults(value: Any) -> list[Fault]:
    try:
        if isinstance(value, str) or _is_amount(value):
            read_size(value)
            return []
    except ValueError:
        pass
    return [Fault((), f"must be a number of bytes, or a size such as 5GB, got {shown(value)}")]


SIZE = ValueType(
    "must be a number of bytes, or a size such as 5GB", _size_faults, read_size, schema={"anyOf": [_NUMBER, _STRING]}
)

ALL, PROCEDURES = "all", "procedures"  # the kinds of loops that a key of [loop] applies to

# Whether a setting of a workspace needs the user's trust (settings/trust.py)
RUNS = "runs"  # it starts, redirects or leaks something
RESTRAINS = "restrains"  # it restricts the agent: rooda asks if it is weaker than the user's value, or was weakened
GUARDS = "runs and restrains"  # a gate does both


class Option(NamedTuple):
    """The command-line option that sets a key; click parameters are made from it."""

    help: str
    words: tuple[str, ...] = ()  # empty: --the-key; a last word without dashes names the click parameter
    metavar: str = ""  # N if empty
    sets: str = ""  # the key that the option sets; empty: the key of its row
    switch: bool = False  # takes no value, regardless of the key's type
    many: bool = False  # may be repeated
    hidden: bool = False

    @property
    def both(self) -> bool:
        """True if the option has a negative form, as in `--x/--no-x`."""
        return any("/" in word for word in self.words)

    def named(self, key: str) -> tuple[str, ...]:
        return self.words or (f"--{key.replace('_', '-')}",)

    def flag(self, key: str) -> str:
        """Return the option's main name: the longest; for --x/--no-x, the first."""
        return max((word for word in self.named(key) if word.startswith("-")), key=len).partition("/")[0]

    def parameter(self, key: str) -> str:
        """Return the name of the option's click parameter."""
        name = self.named(key)[-1]
        return self.flag(key).lstrip("-").replace("-", "_") if name.startswith("-") else name


class Key(NamedTuple):
    """One setting: everything about it except the code that uses it."""

    type: ValueType
    what: str  # its meaning, for the documentation
    also: tuple[str, ...] = ()  # other names that users may try, for hints
    default: Any = None  # its value in config/rooda.toml; None: not set there
    unset: str = "none"  # text for the documentation if there is no default
    flag: Option | None = None  # None: no option of its own
    kinds: str = ALL
    kept: bool = False  # True: a resume reuses the option given at the start
    into: str = ""  # the record.field that it fills, or setup for Setup.further; empty: looked up where it is used
    group: str = ""  # the part of --help that has its option
    trust: str = ""  # RUNS, RESTRAINS or GUARDS; "": a workspace may set it without trust

    def converted(self, value: Any) -> Any:
        """Return a valid value in the form that the code uses: a duration such as "2h30m" becomes seconds."""
        return self.type.read(value) if isinstance(value, str) else value


FEW = 8  # keys that a message can list


def table_faults(value: Any, keys: Mapping[str, Key], required: tuple[str, ...] = ()) -> list[Fault]:
    """Return the errors in a table with these keys; an unknown key is a warning."""
    if not isinstance(value, dict):
        return [Fault((), f"must be a table, got {shown(value)}")]
    faults = [Fault((), f"the key {key!r} is missing") for key in required if key not in value]
    for key, inner in value.items():
        if key in keys:
            faults += [fault.under(key) for fault in keys[key].type.faults(inner)]
        else:
            near = is_near(key, keys)
            faults.append(Fault((key,), f"unknown key{_known(key, keys)}", warning=True, near=near))
    return faults


def key_with_alias(word: str, keys: Mapping[str, Key]) -> str:
    """Return the key that has this word as an alias; "" if there is none."""
    return next((key for key, row in keys.items() if word in row.also), "")


SUCCESSORS = {  # keys of an older program of the same name: what to set instead, and how
    "iteration_mode": ("default_iterations", ", where 0 is unlimited"),
    "ai_cli_command": ("ai_cmd", ""),
    "ai_tool": ("agent", ""),
}


def _known(word: str, keys: Mapping[str, Key]) -> str:
    """Return a hint for an unknown key: its successor, else a similar key, else all keys if they are few, else ""."""
    if word in SUCCESSORS and SUCCESSORS[word][0] in keys:
        return f"; instead: {SUCCESSORS[word][0]}{SUCCESSORS[word][1]}"
    if key := key_with_alias(word, keys):
        return f"; did you mean {key!r}?"
    return did_you_mean(word, list(keys)) or (f"; available: {', '.join(keys)}" if len(keys) <= FEW else "")


def table_with(keys: Mapping[str, Key]) -> ValueType:
    """Return the type of a table with these keys."""
    return ValueType("must be a table", lambda value: table_faults(value, keys), schema=table_schema(keys))


def table_of(value_type: ValueType, what: str) -> ValueType:
    """Return the type of a table with arbitrary keys and values of one type."""

    def faults(value: Any) -> list[Fault]:
        if not isinstance(value, dict):
            return [Fault((), f"must be a table of {what}, got {shown(value)}")]
        return [fault.under(name) for name, inner in value.items() for fault in value_type.faults(inner)]

    return ValueType(
        f"must be a table of {what}", faults, schema={"type": "object", "additionalProperties": value_type.schema}
    )


def table_schema(keys: Mapping[str, Key], required: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the JSON Schema of a table with these keys."""
    properties = {
        key: {**row.type.schema, "description": row.what, **({} if row.default is None else {"default": row.default})}
        for key, row in keys.items()
    }
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**schema, "required": [*required]} if required else schema


GATE = {
    "name": Key(TEXT, "name of the gate; default: its command"),
    "command": Key(TEXT, "a shell command that must exit 0"),
    "timeout": Key(SECONDS, "seconds, 0 = none"),
}


def _gates_faults(value: Any) -> list[Fault]:
    if not isinstance(value, list):
        return [Fault((), f"must be an array of commands or of tables with name and command, got {shown(value)}")]
    faults = []
    for index, gate in enumerate(value):
        if isinstance(gate, dict):
            faults += [fault.under(index) for fault in table_faults(gate, GATE, ("command",))]
        else:
            faults += [fault.under(index) for fault in TEXT.faults(gate)]
    return faults


PARAMETERS = table_of(SCALAR, "strings and numbers")
ENVIRONMENT = table_of(ANY_TEXT, "strings")
WORDS = table_of(TEXT, "strings")
COMMANDS = table_of(COMMAND, "commands")
FRAGMENT = {
    "content": Key(TEXT, "the text itself"),
    "path": Key(TEXT, "a file, or builtin:NAME"),
    "parameters": Key(PARAMETERS, "values for {{name}} in the text"),
    "command": Key(COMMAND, "a shell command whose output is the text", trust=RUNS),
    "timeout": Key(SECONDS, "seconds after which the command is ended, 0 = none; default: 10"),
}


def _phase_faults(value: Any) -> list[Fault]:
    if isinstance(value, dict):
        return _fragment_faults(value)
    if not isinstance(value, list):
        return TEXT.faults(value)
    if not value:
        return [Fault((), "must have at least one fragment")]
    return [fault.under(index) for index, fragment in enumerate(value) for fault in _fragment_faults(fragment)]


def _fragment_faults(value: Any) -> list[Fault]:
    if not isinstance(value, dict):
        return TEXT.faults(value)
    faults = table_faults(value, FRAGMENT)
    sources = {"content", "path", "command"} & value.keys()
    if len(sources) != 1:
        faults.append(Fault((), "must have exactly one of content, path and command"))
    if "command" in value and "parameters" in value:
        faults.append(Fault(("parameters",), "has no effect on a command"))
    if "timeout" in value and "command" not in value:
        faults.append(Fault(("timeout",), "needs a command"))
    return faults


def _texts_faults(value: Any) -> list[Fault]:
    if not isinstance(value, list):
        return TEXT.faults(value)
    return [fault.under(index) for index, text in enumerate(value) for fault in TEXT.faults(text)]


def _agent_env_faults(value: Any) -> list[Fault]:
    faults = ENVIRONMENT.faults(value)
    if isinstance(value, dict):
        for name, text in value.items():
            if not name or "=" in name or "\0" in name or (isinstance(text, str) and "\0" in text):
                faults.append(Fault((name,), "is not a valid environment variable"))
    return faults


def _home_files_faults(value: Any) -> list[Fault]:
    faults = ENVIRONMENT.faults(value)
    for path in value if isinstance(value, dict) else ():
        if not path or path.startswith("/") or "\0" in path or ".." in path.split("/"):
            faults.append(Fault((path,), "must be the path of a file below HOME, such as .mycli/settings.json"))
    return faults


def _read_gates(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


_FRAGMENTS = {"anyOf": [_STRING, table_schema(FRAGMENT)]}
GATES = ValueType(
    "must be an array of commands",
    _gates_faults,
    _read_gates,
    schema={"type": "array", "items": {"anyOf": [_STRING, table_schema(GATE, ("command",))]}},
)
PHASE = ValueType(
    "must be a string, a file or an array of fragments",
    _phase_faults,
    schema={"anyOf": [*_FRAGMENTS["anyOf"], {"type": "array", "items": _FRAGMENTS, "minItems": 1}]},
)
TEXTS = ValueType("must be a string or an array of strings", _texts_faults, schema={"anyOf": [_STRING, NAMES.schema]})
AGENT_ENV = ValueType("must be a table of strings", _agent_env_faults, schema=ENVIRONMENT.schema)
HOME_FILES = ValueType("must be a table of files and their texts", _home_files_faults, schema=ENVIRONMENT.schema)
