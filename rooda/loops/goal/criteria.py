"""Names of files: which of them verify work, and how a criterion's evidence is called."""

import operator
import os
import re
import warnings
from collections.abc import Callable
from typing import NamedTuple
from zlib import crc32

_CHECKING = re.compile(
    r"(?:^|/)(?:tests?|specs?|__tests__|checks)/.|(?:^|/)(?:tests?|check|verify|conftest)(?:[_.-][^/]*)?$"
    r"|(?:^|/)[^/]*[_.-](?:tests?|specs?)\.[^/]+$|(?:^|/)[^/]*[a-z0-9]Tests?\.[a-z]+$",
)
_RECIPES = {  # what a command of this name reads to know what to do, in the order in which it looks
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
    """Does a file of this name test or check others?"""
    return bool(_CHECKING.search(path))


def recipes(command: str) -> tuple[str, ...]:
    """Paths of the files that say what `make check` or `npm test` does; some of them may not be there."""
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
    """The value of the first of these options: joined to it, or the next word."""
    for place, word in enumerate(words):
        for name in names:
            if word.startswith(name):
                value = word.removeprefix(name) or " ".join(words[place + 1 : place + 2])
                return value.strip("\"'")
    return ""


def evidence_name(iteration: int | str, criterion: str, encoding: str = "utf-8") -> str:
    """`3-tests pass.txt`; where the criterion's name had to be changed, with a mark that keeps it apart from others.

    `encoding`: of the names of files here. A C locale may have no more than ASCII.
    """
    whole = f"{iteration}-{criterion}"
    name = _UNSAFE.sub("_", whole[:LONGEST])
    if encoding != "utf-8":
        name = name.encode(encoding, "replace").decode(encoding).replace("?", "_")
    while len(name.encode("utf-8", "replace")) > LONGEST:
        name = name[:-1]
    return f"{name}.txt" if name == whole else f"{name}~{crc32(criterion.encode('utf-8', 'replace')):08x}.txt"


# Does a command's output show what was expected? A bound on its last number, or a pattern.
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


# The ways in which a criterion can be shown to hold, and what each of them is worth.
EXECUTION, MEASUREMENT, OBSERVATION = "execution output", "measurement", "observation"
REVIEW, ASSUMPTION = "code review", "assumption"
KNOWN = (EXECUTION, MEASUREMENT, OBSERVATION, REVIEW, ASSUMPTION)
RUN = (EXECUTION, MEASUREMENT)
SHOWING = (*RUN, OBSERVATION, REVIEW)  # whatever else is said of a criterion shows nothing
SHIP, MONITOR, RESEARCH = "SHIP", "MONITOR", "RESEARCH"


class Criterion(NamedTuple):
    """One condition of success, as planned. `verification` stays in the words it was given in."""

    name: str
    verification: str
    command: str = ""
    expect: str = ""
    holdout: bool = False  # verified, but never shown to the agent
    note: str = ""  # a method that only a person can follow

    @property
    def kind(self) -> str:
        """How it will really be shown; without any method only somebody's word is left."""
        word = plain(self.verification)
        return ASSUMPTION if word not in KNOWN or (word in RUN and not self.command) else word


class Mark(NamedTuple):
    """Where one criterion stands."""

    met: bool
    verification: str  # planned until met, then achieved
    evidence: str = ""  # path below the workspace
    since: int = 0  # the iteration since which it stands so
    valid: int = 0  # an observation holds until this iteration
    note: str = ""


def plain(word: str) -> str:
    """`Execution-Output`, `execution_output` and `execution output` are one word."""
    return " ".join(word.lower().replace("_", " ").replace("-", " ").split())


def verdict(criteria: tuple[Criterion, ...], marks: tuple[Mark, ...], reversibility: str) -> str:
    """The weakest criterion decides; what can't be taken back quickly is at best to be monitored."""
    achieved = {plain(mark.verification) if mark.met else "" for mark in marks}
    if not criteria or not achieved <= {*SHOWING}:
        return RESEARCH
    return MONITOR if REVIEW in achieved or reversibility == "1" else SHIP


def used(marks: tuple[Mark, ...]) -> list[str]:
    """The types that really showed something, in order of first use."""
    words = [plain(mark.verification) for mark in marks if mark.met]
    return [word for word in dict.fromkeys(words) if word in SHOWING]


def claimed(criteria: tuple[Criterion, ...], marks: tuple[Mark, ...]) -> tuple[str, ...]:
    """Names of the criteria for which there is only somebody's word."""
    pairs = zip(criteria, marks, strict=True)
    return tuple(each.name for each, mark in pairs if mark.met and plain(mark.verification) not in SHOWING)
