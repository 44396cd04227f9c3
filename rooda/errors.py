"""Defines the errors that the user can act on, and the exit codes. Imports no other module of rooda."""

from typing import NamedTuple

OK = 0
FAILED = 1
USAGE = 2
UNDECIDED = 3
UNFINISHED = 4
INTERRUPTED = 130
TERMINATED = 143


class RoodaError(Exception):
    """An error that the user can act on. `what` says what happened, `hint` what to do next."""

    code = FAILED

    def __init__(self, what: str, hint: str = "", code: int | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.hint = hint
        if code is not None:
            self.code = code

    def __str__(self) -> str:
        return f"{self.what}\n{self.hint}" if self.hint else self.what


class UsageProblem(RoodaError):
    """The command line is invalid; nothing was started."""

    code = USAGE


class ConfigProblem(RoodaError):
    """A setting is invalid; nothing was started. `what` has a line `file:line: key: …` for each error."""

    code = USAGE


class Undecided(RoodaError):
    """Nothing was started because the user must decide first."""

    code = UNDECIDED


class PromptProblem(RoodaError):
    """A prompt could not be assembled: a file is missing or unreadable, or a parameter is not set."""

    code = USAGE


class Cause(NamedTuple):
    """The limit or request that ended a run. Fields that don't belong to `kind` stay empty."""

    kind: str  # limit: account | cost | tokens | time; request from elsewhere: cancel | pause | handover
    used: float = 0.0  # dollars, tokens or seconds
    limit: float = 0.0  # in the same unit
    unknown: int = 0  # calls whose cost is unknown
    lost: int = 0  # calls whose transcript or events vanished; under a cost or token limit they end the run
    account: str = ""
    until: str = ""  # local time at which the account can be used again
    budget: str = ""  # of kind cost: day | project | agent for a budget of all runs; "" for the run's own limit
    reserved: float = 0.0  # dollars reserved for calls that run now; they count toward a budget
    problem: str = ""  # why the budget can't be checked


class LimitReached(RoodaError):
    """A cost, token, time or account limit is reached: rooda starts no further agent and keeps the state."""

    code = UNFINISHED

    def __init__(self, what: str, hint: str, cause: Cause) -> None:
        super().__init__(what, hint)
        self.cause = cause


class AgentMissing(RoodaError):
    """The agent's program is not installed or not executable."""

    code = USAGE


class StateDamaged(RoodaError):
    code = USAGE

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"State file {path} is damaged: {why}")
        self.path = path
        self.why = why


class Interrupted(Exception):
    """A signal ended the run. `number` is the first signal that arrived."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def code_of_signal(number: int) -> int:
    """Return the exit code: 130 after SIGINT, 143 after SIGTERM and SIGHUP."""
    return INTERRUPTED if number == 2 else TERMINATED
