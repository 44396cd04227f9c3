"""The ways in which a criterion can be shown to hold, and what each of them is worth."""

from typing import NamedTuple

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
