"""What a value may be: each kind says what it expects, what is wrong with a value, and how to read it from a text."""

from collections.abc import Callable
from typing import Any, NamedTuple

from rooda.settings.toml import Path

LARGEST = 10**12
LONGEST_COMMAND = 65_536


class Fault(NamedTuple):
    """Something wrong at `path`, as the rest of a sentence that begins with the key's name."""

    path: Path
    text: str
    warning: bool = False

    def under(self, *path: str | int) -> "Fault":
        return self._replace(path=(*path, *self.path))


class Kind(NamedTuple):
    """A kind of value. `read` turns an environment variable's text into one (ValueError: it can't)."""

    expected: str
    faults: Callable[[Any], list[Fault]]
    read: Callable[[str], Any] = str
    choices: tuple[str, ...] = ()  # the only words it may be


def shown(value: object) -> str:
    """The value for a sentence: short, on one line, in TOML's words."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return repr(value if len(value) <= 60 else value[:57] + "...")
    if isinstance(value, dict | list | tuple):
        return "a table" if isinstance(value, dict) else "an array"
    if isinstance(value, int):
        return str(value) if abs(value) <= 10**18 else "a huge number"
    return repr(value) if isinstance(value, float) else "a date"


def meant(word: str, known: tuple[str, ...] | list[str]) -> str:
    """`; did you mean 'X'?` when one of the known words is near, else nothing."""
    near = nearest(word, known)
    return f"; did you mean {near!r}?" if near else ""


def nearest(word: str, known: tuple[str, ...] | list[str]) -> str:
    import difflib

    if len(word) > 100:
        return ""
    exact = [name for name in known if name.lower() == word.lower().replace("-", "_")]
    return (exact or difflib.get_close_matches(word, list(known), 1) or [""])[0]


def simple(expected: str, accepts: Callable[[Any], bool], read: Callable[[str], Any] = str) -> Kind:
    def faults(value: Any) -> list[Fault]:
        return [] if accepts(value) else [Fault((), f"{expected}, got {shown(value)}")]

    return Kind(expected, faults, read)


def whole(least: int) -> Kind:
    expected = f"must be a whole number >= {least}"

    def faults(value: Any) -> list[Fault]:
        if type(value) is int and least <= value <= LARGEST:
            return []
        bound = f"must be a whole number <= {LARGEST}" if type(value) is int and value > LARGEST else expected
        return [Fault((), f"{bound}, got {shown(value)}")]

    return Kind(expected, faults, _read_whole)


def _read_whole(text: str) -> int:
    digits = text.strip()
    if not digits.removeprefix("-").removeprefix("+").isdecimal():
        raise ValueError
    return int(digits)


def word(*words: str) -> Kind:
    expected = "must be one of " + ", ".join(words)

    def faults(value: Any) -> list[Fault]:
        if isinstance(value, str) and value in words:
            return []
        near = meant(value, words) if isinstance(value, str) else ""
        return [Fault((), f"{expected}, got {shown(value)}{near}")]

    return Kind(expected, faults, str.strip, words)


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
    """No whole number that is too large for TOML's own rules."""
    return isinstance(value, str | float) or (isinstance(value, int) and abs(value) < 2**63)


def _is_amount(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value <= 10**9


def _names_faults(value: Any) -> list[Fault]:
    if not isinstance(value, list):
        return [Fault((), f"must be an array of texts, got {shown(value)}")]
    return [fault.under(index) for index, text in enumerate(value) for fault in TEXT.faults(text)]


def _read_names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


SECONDS = simple("must be a number of seconds >= 0", _is_seconds, float)
FLAG = simple("must be true or false", lambda value: isinstance(value, bool), _read_flag)
TEXT = simple("must be a text that is not empty", _is_text)
ANY_TEXT = simple("must be a text", lambda value: isinstance(value, str))
SCALAR = simple("must be a text, a number or true/false", _is_scalar)
COMMAND = Kind("must be a command", _command_faults)
OPTION = Kind("must be words of a command line", _command_faults)
AMOUNT = simple("must be a number >= 0", _is_amount, float)
NAMES = Kind("must be an array of texts", _names_faults, _read_names)


def _read_duration(text: str) -> float:
    from rooda.base.text import parse_seconds

    return float(text) if text.replace(".", "", 1).isdigit() else parse_seconds(text)


def _duration_faults(value: Any) -> list[Fault]:
    try:
        good = _is_seconds(_read_duration(value) if isinstance(value, str) else value)
    except ValueError:
        good = False
    return [] if good else [Fault((), f"must be seconds, or a duration such as 2h30m, got {shown(value)}")]


DURATION = Kind("must be seconds, or a duration such as 2h30m", _duration_faults, _read_duration)
