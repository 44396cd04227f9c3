"""Names that anybody can give a file, and words of agents, without power over the terminal. Pure."""

import re

_POWERS = "\0-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"  # also over a text's direction
_IN_A_LINE, _IN_A_TEXT = re.compile(f"[\t\n{_POWERS}]"), re.compile(f"[{_POWERS}]")


def visible(text: str) -> str:
    """One line: each such character is written as Python would, `\\x1b`."""
    return _IN_A_LINE.sub(_escape, text)


def visible_lines(text: str) -> str:
    """The same, but line ends and tabs stay."""
    return _IN_A_TEXT.sub(_escape, text)


def _escape(found: "re.Match[str]") -> str:
    return ascii(found[0])[1:-1]
