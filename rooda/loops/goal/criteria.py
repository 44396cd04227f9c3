"""Defines success criteria: how each is verified, what its command's output must show, and where its evidence is."""

import operator
import re
import warnings
from collections.abc import Callable
from typing import NamedTuple

_UNSAFE = re.compile(r"[/\0-\x1f\x7f]")
LONGEST = 120  # bytes of a file name
EXECUTION, MEASUREMENT, OBSERVATION = "execution output", "measurement", "observation"
REVIEW, ASSUMPTION = "code review", "assumption"
KNOWN = (EXECUTION, MEASUREMENT, OBSERVATION, REVIEW, ASSUMPTION)
RUN = (EXECUTION, MEASUREMENT)
SHOWING = (*RUN, OBSERVATION, REVIEW)  # every other type is an assumption
SHIP, MONITOR, RESEARCH = "SHIP", "MONITOR", "RESEARCH"


class Criterion(NamedTuple):
    """One success criterion as planned; `verification` keeps the plan's wording."""

    name: str
    verification: str
    command: str = ""
    expect: str = ""
    holdout: bool = False  # verified, but never shown to the agent
    note: str = ""  # how a person verifies it, if it has no command

    @property
    def kind(self) -> str:
        """How rooda verifies the criterion: a known type, or `assumption` if there is no usable method."""
        word = plain(self.verification)
        return ASSUMPTION if word not in KNOWN or (word in RUN and not self.command) else word


class Mark(NamedTuple):
    """The verification state of one criterion."""

    met: bool
    verification: str  # the planned type; once met, the type that verified it
    evidence: str = ""  # path, relative to the workspace
    since: int = 0  # the iteration of the last change of `met`
    valid: int = 0  # the last iteration for which an observation counts
    note: str = ""


def plain(word: str) -> str:
    """Normalize a verification type: `Execution-Output` and `execution_output` become `execution output`."""
    return " ".join(word.lower().replace("_", " ").replace("-", " ").split())


def verdict(criteria: tuple[Criterion, ...], marks: tuple[Mark, ...], reversibility: str) -> str:
    """Return the goal's verdict, which its weakest criterion decides; at best MONITOR if the work is hard to undo."""
    achieved = {plain(mark.verification) if mark.met else "" for mark in marks}
    if not criteria or not achieved <= {*SHOWING}:
        return RESEARCH
    return MONITOR if REVIEW in achieved or reversibility == "1" else SHIP


def used(marks: tuple[Mark, ...]) -> list[str]:
    """Return the verification types of the met criteria, in order of first use; omit assumptions."""
    words = [plain(mark.verification) for mark in marks if mark.met]
    return [word for word in dict.fromkeys(words) if word in SHOWING]


def claimed(criteria: tuple[Criterion, ...], marks: tuple[Mark, ...]) -> tuple[str, ...]:
    """Return the names of the criteria that are met only by assumption."""
    pairs = zip(criteria, marks, strict=True)
    return tuple(each.name for each, mark in pairs if mark.met and plain(mark.verification) not in SHOWING)


def evidence_name(iteration: int | str, criterion: str, encoding: str = "utf-8") -> str:
    """Return the file name of a criterion's evidence, such as `3-tests pass.txt`.

    A name that had to be changed ends with a checksum that keeps it unique. `encoding`: the encoding of file names,
    which may be ASCII in a C locale.
    """
    from zlib import crc32

    whole = f"{iteration}-{criterion}"
    name = _UNSAFE.sub("_", whole[:LONGEST])
    if encoding != "utf-8":
        name = name.encode(encoding, "replace").decode(encoding).replace("?", "_")
    while len(name.encode("utf-8", "replace")) > LONGEST:
        name = name[:-1]
    return f"{name}.txt" if name == whole else f"{name}~{crc32(criterion.encode('utf-8', 'replace')):08x}.txt"


# What a command's output must show: a bound on its last number, or a pattern.
# Accepts `.25`, as bc prints it. Part of a version isn't a number, and the dash in `3-9` isn't a minus sign.
_PLAIN = r"(?:\d+(?:\.\d+)?|(?<![\w.])\.\d+)(?:[eE][+-]?\d+)?"
_BOUND = re.compile(rf"^\s*(<=|>=|==|!=|<|>|=|≤|≥)\s*\$?(-?{_PLAIN})\s*[a-zA-Z%µ/]*\s*$")
_NUMBER = re.compile(rf"(?:(?<!\w)-)?{_PLAIN}")
_COMPARE = {
    "<": operator.lt, "<=": operator.le, "≤": operator.le, ">": operator.gt, ">=": operator.ge, "≥": operator.ge,
    "==": operator.eq, "=": operator.eq, "!=": operator.ne,
}  # fmt: skip


def is_bound(expect: str) -> bool:
    """True if the expectation compares a number, such as `< 200`, so that the command is a measurement."""
    return bool(_BOUND.match(expect))


def fault(expect: str) -> str:
    """Return the error in the expectation; "" if it is valid."""
    if is_bound(expect):
        return ""
    try:
        with warnings.catch_warnings(action="ignore"):
            re.compile(expect)
    except (re.error, RecursionError, OverflowError) as problem:
        return f"{expect!r} is neither a comparison nor a regular expression ({problem})"
    return ""


def holds(expect: str, output: str, finds: Callable[[str, str], bool]) -> bool:
    """True if the expectation is empty or the output meets it; `finds` searches for a pattern with a timeout."""
    if not expect:
        return True
    bound = _BOUND.match(expect)
    if not bound:
        return not fault(expect) and finds(expect, output)
    numbers = _NUMBER.findall(output)
    return bool(numbers) and bool(_COMPARE[bound[1]](float(numbers[-1]), float(bound[2])))
