"""Does a command's output show what was expected? A bound on its last number, or a pattern."""

import operator
import re
import warnings
from collections.abc import Callable

# As `bc` writes it (`.25`), too; a part of a version is no number, and what joins two of them (`3-9`) no sign.
_PLAIN = r"(?:\d+(?:\.\d+)?|(?<![\w.])\.\d+)(?:[eE][+-]?\d+)?"
_BOUND = re.compile(rf"^\s*(<=|>=|==|!=|<|>|=|≤|≥)\s*\$?(-?{_PLAIN})\s*[a-zA-Z%µ/]*\s*$")
_NUMBER = re.compile(rf"(?:(?<!\w)-)?{_PLAIN}")
_COMPARE = {
    "<": operator.lt, "<=": operator.le, "≤": operator.le, ">": operator.gt, ">=": operator.ge, "≥": operator.ge,
    "==": operator.eq, "=": operator.eq, "!=": operator.ne,
}  # fmt: skip


def is_bound(expect: str) -> bool:
    """A comparison with a number: then the command measures something."""
    return bool(_BOUND.match(expect))


def fault(expect: str) -> str:
    """Why this can't be expected of anything; "" if it can."""
    if is_bound(expect):
        return ""
    try:
        with warnings.catch_warnings(action="ignore"):
            re.compile(expect)
    except (re.error, RecursionError, OverflowError) as problem:
        return f"{expect!r} is neither a comparison nor a regular expression ({problem})"
    return ""


def holds(expect: str, output: str, finds: Callable[[str, str], bool]) -> bool:
    """True for no expectation at all. `finds` looks for a pattern in a text: a search may have to be ended."""
    if not expect:
        return True
    bound = _BOUND.match(expect)
    if not bound:
        return not fault(expect) and finds(expect, output)
    numbers = _NUMBER.findall(output)
    return bool(numbers) and bool(_COMPARE[bound[1]](float(numbers[-1]), float(bound[2])))
