"""Formats durations, escapes control characters and aligns columns, for the screen and for state files."""

import re
from collections.abc import Collection, Sequence

_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ns": 1e-9}
LONGEST = 9_223_372_036.0  # seconds; the longest Go duration
LONGEST_TEXT = 1000  # characters of a duration
_FORM = r"(?a)-?(?:\d+(?:\.\d*)?|\.\d+)(?:h|ms|m|s|us|µs|μs|ns)"


def format_tenths(seconds: float) -> str:
    """Format a duration to a tenth of a second: 45.2s, 1m15.3s, 1h2m3.0s.

    Rounds to milliseconds first, as events do, so that a state file and an event show the same duration.
    """
    count = max(0, round(round(seconds, 3) * 10))
    minutes, rest = divmod(count, 600)
    hours, minutes = divmod(minutes, 60)
    text = f"{rest // 10}.{rest % 10}s"
    if hours:
        return f"{hours}h{minutes}m{text}"
    return f"{minutes}m{text}" if minutes else text


def format_seconds(seconds: float) -> str:
    """Format a duration in whole seconds: 45s, 2m16s, 1h0m5s."""
    minutes, rest = divmod(max(0, round(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h{minutes}m{rest}s"
    return f"{minutes}m{rest}s" if minutes else f"{rest}s"


def format_short(seconds: float) -> str:
    """Like `format_seconds`, but with two significant digits below 10 s: 0.05s, 1.5s."""
    return format_seconds(seconds) if seconds >= 10 else f"{seconds:.2g}s"


def parse_seconds(text: str) -> float:
    """Parse a Go duration: "45.2s", "1h2m3.5s", "250ms", "0". Raises ValueError if it is invalid."""
    if text in ("0", "+0", "-0"):
        return 0.0
    sign, body = (-1.0, text[1:]) if text.startswith("-") else (1.0, text.removeprefix("+"))
    parts = re.findall(_FORM, body) if len(body) <= LONGEST_TEXT else []
    if not parts or "".join(parts) != body or "-" in body:
        raise ValueError(f"{text[:20]!r} is not a duration such as 45.2s")
    total = 0.0
    for part in parts:
        number = part.rstrip("hmsunµμ")
        total += float(number) * _UNITS[part[len(number) :]]
    if total > LONGEST:
        raise ValueError(f"{text[:20]!r} is too long for a duration")
    return sign * total


def format_number(amount: float) -> str:
    """Format a configured number as the user wrote it: 300 for 300.0, 0.5 for 0.5."""
    return f"{amount:g}" if amount < 1e6 else str(int(amount))


def timing_text(facts: dict[str, float]) -> str:
    """Format timing statistics on one line: count=3 min=1.0s max=2.0s mean=1.5s stddev=0.4s."""
    parts = (f"{key}={value}" if key == "count" else f"{key}={value:.1f}s" for key, value in facts.items())
    return " ".join(parts)


# Escapes for file names and agents' output: control characters (C1 too), line separators, and characters that change
# the direction of text.
_CONTROLS = "\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
_IN_A_LINE, _IN_A_TEXT = f"[\t\n{_CONTROLS}]", f"[{_CONTROLS}]"
_COLOUR = r"(\x1b\[[0-9;:]*m)"


def escape_line(text: str) -> str:
    """Escape control characters, line breaks and tabs: `\\x1b`, `\\n`, `\\u202e`."""
    return re.sub(_IN_A_LINE, _escape, text)


def escape_text(text: str) -> str:
    """Like `escape_line`, but keep line breaks and tabs."""
    return re.sub(_IN_A_TEXT, _escape, text)


def escape_all_but_colours(text: str) -> str:
    """Like `escape_text`, but keep sequences that set colors."""
    parts = re.split(_COLOUR, text)
    return "".join(part if place % 2 else escape_text(part) for place, part in enumerate(parts))


def _escape(found: "re.Match[str]") -> str:
    """Escape a character as Python does, but DEL and above as JSON does, so that printed JSON stays valid."""
    code = ord(found[0])
    return f"\\u{code:04x}" if code >= 0x7F else ascii(found[0])[1:-1]


# What a program printed, as a terminal would show it.
_ESCAPES = r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-~])"
_INVISIBLE = "[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"


def plain(text: str) -> str:
    """Return the text as a terminal would show it, without control characters and colors."""
    text = re.sub(_ESCAPES, "", text)
    if "\r" in text:
        text = "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))
    return re.sub(_INVISIBLE, "", text)


def first_line(text: str) -> str:
    """Return the first line that is not empty, as a terminal would show it."""
    return next((row.strip() for row in plain(text).split("\n") if row.strip()), "")


# Lines that only frame an output, or repeat that a command failed
_FRAME = (
    r"(?i)make(?:\[\d+\])?: \*\*\*|npm (?:ERR!|error)(?: A complete log|\s*$)|error Command failed"
    r"|error: script .* exited|ELIFECYCLE|info Visit |Error: Process completed|exit status \d+$|\[no test files\]"
    r"|To rerun|```"
)


def telling_line(text: str) -> str:
    """Return the last informative line, skipping lines that only frame the output or repeat that a command failed."""
    rows = [row.strip(" \t=-_*#~") for row in plain(text).split("\n")]
    worded = [row for row in rows if any(map(str.isalnum, row))]
    return next((row for row in reversed(worded) if not re.search(_FRAME, row)), worded[-1] if worded else "")


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: 1 call, 2 calls."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


# Tables and cells, measured in terminal columns.


def columns(rows: Sequence[Sequence[str]], right: Collection[int] = ()) -> list[str]:
    """Format rows as aligned lines; `right` contains the indices of right-aligned columns."""
    widths = [max(width(cell) for cell in column) for column in zip(*rows, strict=True)]
    lines = (zip(row, widths, strict=True) for row in rows)
    return ["  ".join(_cell(*each, right) for each in enumerate(line)).rstrip() for line in lines]


def _cell(place: int, pair: tuple[str, int], right: Collection[int]) -> str:
    text, room = pair
    return " " * (room - width(text)) + text if place in right else padded(text, room)


def truncate(line: str, room: int) -> str:
    """Cut a line to `room` columns; a final `…` marks the cut."""
    if width(line) <= room:
        return line
    while width(line) >= max(room, 1):
        line = line[:-1]
    return f"{line}…"


def padded(text: str, room: int) -> str:
    return text + " " * (room - width(text))


def width(text: str) -> int:
    """Return the number of terminal columns that the text occupies."""
    return len(text) if text.isascii() else sum(map(_columns, text))


def _columns(sign: str) -> int:
    import unicodedata

    if unicodedata.combining(sign) or unicodedata.category(sign) in ("Cf", "Me", "Mn"):
        return 0
    return 2 if unicodedata.east_asian_width(sign) in "WF" else 1
