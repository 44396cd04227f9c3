"""The catalogue of errors: what, where, what to do next; and the exit codes. Imports nothing of ours."""

from typing import NamedTuple

OK = 0
FAILED = 1
USAGE = 2
UNDECIDED = 3
UNFINISHED = 4
INTERRUPTED = 130
TERMINATED = 143


class RoodaError(Exception):
    """A mistake or mishap a person can act on. `what` is the sentence, `hint` says what to do next."""

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
    """The command line is wrong; nothing was started."""

    code = USAGE


class ConfigProblem(RoodaError):
    """A setting is wrong; nothing was started. `what` holds one `file:line: key: …` sentence per fault."""

    code = USAGE


class Undecided(RoodaError):
    """Nothing was started because a person must decide first."""

    code = UNDECIDED


class PromptProblem(RoodaError):
    """A prompt could not be put together: a file is gone, unreadable, or lacks a parameter."""

    code = USAGE


class Cause(NamedTuple):
    """What ended a run, where its reason has several kinds; the fields that don't belong to `kind` stay empty."""

    kind: str  # a limit: account | cost | tokens | time; a request from another terminal: cancel | pause
    used: float = 0.0  # dollars, tokens or seconds
    limit: float = 0.0  # of the same unit
    unknown: int = 0  # calls whose cost nobody knows
    account: str = ""
    until: str = ""  # when the account may be asked again, local time


class LimitReached(RoodaError):
    """A limit of cost, tokens, time or an account: no further agent is started. The state is kept."""

    code = UNFINISHED

    def __init__(self, what: str, hint: str, cause: Cause) -> None:
        super().__init__(what, hint)
        self.cause = cause


class AgentMissing(RoodaError):
    """The agent's program is not on this machine, or may not be run."""

    code = USAGE


class StateDamaged(RoodaError):
    """A state file can't be understood. `path` is where it lies."""

    code = USAGE

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"State file {path} is damaged: {why}")
        self.path = path
        self.why = why


class Interrupted(Exception):
    """A signal asked for the end. `number` is the signal that came first."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def code_of_signal(number: int) -> int:
    """SIGINT ends with 130; SIGTERM and SIGHUP with 143."""
    return INTERRUPTED if number == 2 else TERMINATED
