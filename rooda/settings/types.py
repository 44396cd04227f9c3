"""Kinds of values with an inner shape: tables, gates, phases, parameters."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from rooda.settings.kinds import ANY_TEXT, COMMAND, SCALAR, SECONDS, TEXT, Fault, Kind, meant, shown

ALL, PROCEDURES = "all", "procedures"  # the kinds of loops that a key of [loop] holds for


class Option(NamedTuple):
    """The command-line option that sets a key. The command line makes its parameters from this."""

    help: str
    words: tuple[str, ...] = ()  # --the-key if empty; a last one without dashes is the parameter's name
    metavar: str = ""  # N if empty
    sets: str = ""  # the key it sets, if that is another one
    switch: bool = False  # takes no value, whatever the key's kind
    many: bool = False  # may be repeated
    hidden: bool = False

    @property
    def both(self) -> bool:
        """True if there is a word for no as well as one for yes."""
        return any("/" in word for word in self.words)

    def named(self, key: str) -> tuple[str, ...]:
        return self.words or (f"--{key.replace('_', '-')}",)

    def flag(self, key: str) -> str:
        """The word that people know it by: the longest, and of --yes/--no the first."""
        return max((word for word in self.named(key) if word.startswith("-")), key=len).partition("/")[0]

    def parameter(self, key: str) -> str:
        """The name of its value among all that was typed."""
        name = self.named(key)[-1]
        return self.flag(key).lstrip("-").replace("-", "_") if name.startswith("-") else name


class Key(NamedTuple):
    """One setting: all that is to be known of it, but for the code that goes by it."""

    kind: Kind
    what: str
    also: tuple[str, ...] = ()  # other words that people try
    default: Any = None  # in config/rooda.toml; None: not set there
    unset: str = "none"  # what holds then, for the documentation
    flag: Option | None = None  # None: no option of its own
    kinds: str = ALL
    kept: bool = False  # a resume goes on with what was typed at the start
    into: str = ""  # record.field that it fills, or setup for Setup.further; empty: its consumer looks it up
    group: str = ""  # the part of --help that has its option

    def converted(self, value: Any) -> Any:
        """A valid value as the code wants it: a duration written as a text becomes seconds."""
        return self.kind.read(value) if isinstance(value, str) else value


FEW = 8  # keys that a sentence can list


def table_faults(value: Any, keys: Mapping[str, Key], required: tuple[str, ...] = ()) -> list[Fault]:
    """What is wrong with a table of known keys; an unknown key is a warning."""
    if not isinstance(value, dict):
        return [Fault((), f"must be a table, got {shown(value)}")]
    faults = [Fault((), f"the key {key!r} is missing") for key in required if key not in value]
    for key, inner in value.items():
        if key in keys:
            faults += [fault.under(key) for fault in keys[key].kind.faults(inner)]
        else:
            faults.append(Fault((key,), f"unknown key{_known(key, keys)}", warning=True))
    return faults


def called(word: str, keys: Mapping[str, Key]) -> str:
    """The key that people also look for under this word; "" if there is none."""
    return next((key for key, row in keys.items() if word in row.also), "")


def _known(word: str, keys: Mapping[str, Key]) -> str:
    """The key that was meant; where none is near and there are few, all of them."""
    if key := called(word, keys):
        return f"; did you mean {key!r}?"
    return meant(word, list(keys)) or (f"; known are {', '.join(keys)}" if len(keys) <= FEW else "")


def named(kind: Kind, what: str) -> Kind:
    """A table whose keys are free names and whose values are all of one kind."""

    def faults(value: Any) -> list[Fault]:
        if not isinstance(value, dict):
            return [Fault((), f"must be a table of {what}, got {shown(value)}")]
        return [fault.under(name) for name, inner in value.items() for fault in kind.faults(inner)]

    return Kind(f"must be a table of {what}", faults)


GATE = {
    "name": Key(TEXT, "what the gate is called; its command when left out"),
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


PARAMETERS = named(SCALAR, "texts and numbers")
ENVIRONMENT = named(ANY_TEXT, "texts")
WORDS = named(TEXT, "texts")
COMMANDS = named(COMMAND, "commands")

FRAGMENT = {
    "content": Key(TEXT, "the text itself"),
    "path": Key(TEXT, "a file, or builtin:NAME"),
    "parameters": Key(PARAMETERS, "values for {{name}} in the text"),
}


def _phase_faults(value: Any) -> list[Fault]:
    if isinstance(value, dict):
        return _fragment_faults(value)
    if not isinstance(value, list):
        return TEXT.faults(value)
    if not value:
        return [Fault((), "must hold at least one fragment")]
    return [fault.under(index) for index, fragment in enumerate(value) for fault in _fragment_faults(fragment)]


def _fragment_faults(value: Any) -> list[Fault]:
    if not isinstance(value, dict):
        return TEXT.faults(value)
    faults = table_faults(value, FRAGMENT)
    if ("content" in value) == ("path" in value):
        faults.append(Fault((), "must have exactly one of content and path"))
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
                faults.append(Fault((name,), "can't be an environment variable"))
    return faults


def _read_gates(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


GATES = Kind("must be an array of commands", _gates_faults, _read_gates)
PHASE = Kind("must be a text, a file or an array of fragments", _phase_faults)
TEXTS = Kind("must be a text or an array of texts", _texts_faults)
AGENT_ENV = Kind("must be a table of texts", _agent_env_faults)
