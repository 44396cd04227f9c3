"""Criteria of success: how each is verified, its evidence, and the files that verify the work."""

import operator
import os
import re
import warnings
from collections.abc import Callable
from typing import NamedTuple

_CHECKING = re.compile(
    r"(?:^|/)(?:tests?|specs?|__tests__|checks)/.|(?:^|/)(?:tests?|check|verify|conftest)(?:[_.-][^/]*)?$"
    r"|(?:^|/)[^/]*[_.-](?:tests?|specs?)\.[^/]+$|(?:^|/)[^/]*[a-z0-9]Tests?\.[a-z]+$",
)
_RECIPES = {  # files that a command reads to know what to do, in the order in which it looks for them
    **dict.fromkeys(("make", "gmake"), ("GNUmakefile", "makefile", "Makefile")),
    **dict.fromkeys(("npm", "pnpm", "yarn", "bun"), ("package.json",)),
    "just": ("justfile", "Justfile", ".justfile"),
    "task": ("Taskfile.yml", "Taskfile.yaml"),
    "rake": ("Rakefile", "rakefile"),
    "tox": ("tox.ini",),
    "nox": ("noxfile.py",),
}
_PART = re.compile(r"&&|\|\||[;&|()\n]")
_UNSAFE = re.compile(r"[/\0-\x1f\x7f]")
LONGEST = 120  # bytes of a name


def verifies(path: str) -> bool:
    """True if a file of this name tests or checks other files."""
    return bool(_CHECKING.search(path))


def recipes(command: str) -> tuple[str, ...]:
    """Paths of the files that define what a command like `make check` or `npm test` does. Some may not exist."""
    found: list[str] = []
    folder = ""
    for words in map(str.split, _PART.split(command)):
        if words[:1] == ["cd"] and len(words) == 2:
            folder = os.path.join(folder, words[1].strip("\"'"))
        name = next((os.path.basename(word) for word in words if os.path.basename(word) in _RECIPES), "")
        if name:
            inside = os.path.join(folder, _option(words, "-C"))
            chosen = _option(words, "-f", "--file=", "--makefile=")
            found += [os.path.join(inside, each) for each in ([chosen] if chosen else _RECIPES[name])]
    return tuple(dict.fromkeys(map(os.path.normpath, found)))


def _option(words: list[str], *names: str) -> str:
    """The value of the first of these options: joined to its name, or the next word."""
    for place, word in enumerate(words):
        for name in names:
            if word.startswith(name):
                value = word.removeprefix(name) or " ".join(words[place + 1 : place + 2])
                return value.strip("\"'")
    return ""


def evidence_name(iteration: int | str, criterion: str, encoding: str = "utf-8") -> str:
    """File name of a criterion's evidence, such as `3-tests pass.txt`. Changed names get a checksum to stay unique.

    `encoding`: of the names of files here. A C locale may have no more than ASCII.
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
# Also `.25`, as bc writes it. A part of a version isn't a number, and the dash in `3-9` isn't a sign.
_PLAIN = r"(?:\d+(?:\.\d+)?|(?<![\w.])\.\d+)(?:[eE][+-]?\d+)?"
_BOUND = re.compile(rf"^\s*(<=|>=|==|!=|<|>|=|≤|≥)\s*\$?(-?{_PLAIN})\s*[a-zA-Z%µ/]*\s*$")
_NUMBER = re.compile(rf"(?:(?<!\w)-)?{_PLAIN}")
_COMPARE = {
    "<": operator.lt, "<=": operator.le, "≤": operator.le, ">": operator.gt, ">=": operator.ge, "≥": operator.ge,
    "==": operator.eq, "=": operator.eq, "!=": operator.ne,
}  # fmt: skip


def is_bound(expect: str) -> bool:
    """True for a comparison with a number: the command measures something."""
    return bool(_BOUND.match(expect))


def fault(expect: str) -> str:
    """Why the expectation is invalid; "" if it is valid."""
    if is_bound(expect):
        return ""
    try:
        with warnings.catch_warnings(action="ignore"):
            re.compile(expect)
    except (re.error, RecursionError, OverflowError) as problem:
        return f"{expect!r} is neither a comparison nor a regular expression ({problem})"
    return ""


def holds(expect: str, output: str, finds: Callable[[str, str], bool]) -> bool:
    """True if the output meets the expectation, or there is none. `finds` searches for a pattern, with a timeout."""
    if not expect:
        return True
    bound = _BOUND.match(expect)
    if not bound:
        return not fault(expect) and finds(expect, output)
    numbers = _NUMBER.findall(output)
    return bool(numbers) and bool(_COMPARE[bound[1]](float(numbers[-1]), float(bound[2])))


# How a criterion is verified.
EXECUTION, MEASUREMENT, OBSERVATION = "execution output", "measurement", "observation"
REVIEW, ASSUMPTION = "code review", "assumption"
KNOWN = (EXECUTION, MEASUREMENT, OBSERVATION, REVIEW, ASSUMPTION)
RUN = (EXECUTION, MEASUREMENT)
SHOWING = (*RUN, OBSERVATION, REVIEW)  # every other type is an assumption
SHIP, MONITOR, RESEARCH = "SHIP", "MONITOR", "RESEARCH"


class Criterion(NamedTuple):
    """One condition of success, as planned. `verification` keeps the words of the plan."""

    name: str
    verification: str
    command: str = ""
    expect: str = ""
    holdout: bool = False  # verified, but never shown to the agent
    note: str = ""  # a method for people, without a command

    @property
    def kind(self) -> str:
        """How rooda verifies it. Without a usable method it is an assumption."""
        word = plain(self.verification)
        return ASSUMPTION if word not in KNOWN or (word in RUN and not self.command) else word


class Mark(NamedTuple):
    """The state of one criterion."""

    met: bool
    verification: str  # planned until met, then achieved
    evidence: str = ""  # path, relative to the workspace
    since: int = 0  # the iteration of the last change of `met`
    valid: int = 0  # the last iteration for which an observation counts
    note: str = ""


def plain(word: str) -> str:
    """Normalize a type: `Execution-Output` and `execution_output` become `execution output`."""
    return " ".join(word.lower().replace("_", " ").replace("-", " ").split())


def verdict(criteria: tuple[Criterion, ...], marks: tuple[Mark, ...], reversibility: str) -> str:
    """The verdict, by the weakest criterion. Work that is hard to undo is at best MONITOR."""
    achieved = {plain(mark.verification) if mark.met else "" for mark in marks}
    if not criteria or not achieved <= {*SHOWING}:
        return RESEARCH
    return MONITOR if REVIEW in achieved or reversibility == "1" else SHIP


def used(marks: tuple[Mark, ...]) -> list[str]:
    """Types by which criteria were verified, in order of first use."""
    words = [plain(mark.verification) for mark in marks if mark.met]
    return [word for word in dict.fromkeys(words) if word in SHOWING]


def claimed(criteria: tuple[Criterion, ...], marks: tuple[Mark, ...]) -> tuple[str, ...]:
    """Names of the criteria that are met by an assumption only."""
    pairs = zip(criteria, marks, strict=True)
    return tuple(each.name for each, mark in pairs if mark.met and plain(mark.verification) not in SHOWING)
