"""Finds the reasons that `rooda why` shows: the rule and the evidence behind each decision of a run.

These reasons apply to all kinds of loops; a kind's view.py has the reasons for its own events. Pure.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

from rooda.base.json import Json
from rooda.base.text import format_number
from rooda.run.history import SessionState
from rooda.run.spending import cause_of
from rooda.views.lines import LEVELS, LineMakers, changed_limits, lines

if TYPE_CHECKING:
    from rooda.views.summary import Words

SIGNALS = {1: "SIGHUP", 2: "SIGINT", 15: "SIGTERM"}
CUT_OFF = "its log records no end, so the run was killed or the machine stopped"


class Reason(NamedTuple):
    """One decision of a run, the rule behind it, and the file and words that are the evidence."""

    ts: str
    iteration: int  # as on the screen, from 1; 0 for the run as a whole
    decision: str  # began | went on | failed | waited | switched | asked | told | ended | cut off
    rule: str
    evidence: str = ""  # path; "" if the event is the evidence
    words: str = ""  # words to search for in the evidence; "" for its last line
    at: int = 0  # line number of the event in the log


class Past(SessionState):
    """The earlier events of a run that are needed to find the reason for the current one."""

    def __init__(self) -> None:
        super().__init__()
        self.this_iteration: dict[str, Json] = {}  # this iteration's latest event, keyed by event name
        self.failed_gates: list[Json] = []  # gates of this iteration that did not pass
        self.latest_by_call: dict[str, Json] = {}  # last call that ended, keyed by ROODA_CALL
        self.call: Json = {}  # last call that ended, of any ROODA_CALL
        self.agents: dict[str, str] = {}  # last agent, keyed by ROODA_CALL
        self.written_files: dict[tuple[str, str], list[str]] = {}  # written files, keyed by node and call

    def add(self, record: Json) -> None:
        event, begun = record["event"], self.open_calls.get(str(record.get("transcript", "")), {})
        super().add(record)
        if event == "iteration.started":
            self.this_iteration, self.failed_gates = {}, []
        if event == "agent.ended":
            self.call = {**begun, **record}
            self.latest_by_call[self.call.get("call", "")] = self.call
        if event == "node.answered":
            self.written_files[record["node"], record["call"]] = record["files"]
        if event == "gate.ended" and record.get("verdict") != "pass":
            self.failed_gates.append(record)
        self.this_iteration[event] = record

    def transcript(self, call: str = "") -> tuple[str, str]:
        """Return the transcript's path and the error message of the latest call that ended; "" for a missing one.

        With `call`, only calls with this ROODA_CALL count.
        """
        found = self.latest_by_call.get(call, {}) if call else self.call
        return found.get("transcript", ""), found.get("message") or ""


ReasonMaker: TypeAlias = Callable[[Json, Past], Iterator[Reason]]
ReasonMakers: TypeAlias = Mapping[str, ReasonMaker]  # keyed by event name


class View(Protocol):
    """Protocol of each kind's view.py: its screen lines, its reasons, and its texts for the summary of a run."""

    @property
    def LINES(self) -> LineMakers: ...

    @property
    def REASONS(self) -> ReasonMakers: ...
    @property
    def WORDS(self) -> "Words": ...


def reasons(records: Iterable[Json], view_of: Callable[[object], View], alive: bool = False) -> Iterator[Reason]:
    """Yield the reasons in the order of the events; `view_of` returns the view for an event's `loop`.

    Each record's `line` is its line number in the log. `alive`: the run still has a process, which may add events.
    """
    past = Past()
    for record in records:
        try:
            found = [reason for reason in _of_event(record, past, view_of(record.get("loop"))) if _is_sound(reason)]
            past.add(record)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError):
            continue  # the log was edited
        yield from (reason._replace(at=record.get("line", 0)) for reason in found)
    if past.last and not alive and past.ended is None:
        yield _cut_off(past)


def _of_event(record: Json, past: Past, view: View) -> Iterator[Reason]:
    maker = view.REASONS.get(record["event"]) or _MAKERS.get(record["event"])
    return maker(record, past) if maker else _warnings(record, view.LINES)


def _is_sound(reason: Reason) -> bool:
    """True if all fields have the right types; those from an edited log may not."""
    texts = (reason.ts, reason.decision, reason.rule, reason.evidence, reason.words)
    return all(isinstance(text, str) for text in texts) and isinstance(reason.iteration, int)


def _cut_off(past: Past) -> Reason:
    """Return the reason for a run that was cut off. Its evidence is the transcript of a call that was still running."""
    last, open_calls = past.last, [*past.open_calls]
    rule = f"the run was cut off: {CUT_OFF}" if past.opening else "the run did not begin: its log records no start"
    number = last.get("display", 0)
    where = last["ts"], number if isinstance(number, int) else 0
    return Reason(*where, "cut off", rule, str(open_calls[-1]) if open_calls else "", at=last.get("line", 0))


def _agent_switched(record: Json, past: Past) -> Iterator[Reason]:
    """Yield a reason if the agent differs from that of the previous call with the same ROODA_CALL."""
    before, now = past.agents.get(record["call"], ""), record.get("agent", "")
    past.agents[record["call"]] = now
    if before and now and before != now:
        limited = past.call.get("agent_outcome") == "usage_limit"
        why = f"usage limit of {before}" if limited else f"{before} is unavailable, or {now} is available again"
        rule = f"{now} is asked instead of {before} (on_limit, fallback): {why}"
        yield Reason(record["ts"], record["display"], "switched", rule, *(past.transcript() if limited else ()))


def _waited(record: Json, past: Past) -> Iterator[Reason]:
    who = record.get("account")
    cause = f"usage limit of {who}" if who else "a transient error of the service"
    rule = f"{cause}: {format_number(record['seconds'])}s, until {record['until']}"
    yield Reason(record["ts"], record["display"], "waited", rule, *past.transcript())


def _notes(record: Json, past: Past) -> Iterator[Reason]:
    for note in record["notes"]:
        yield Reason(record["ts"], record["display"], "told", f"the user said (rooda say): {' '.join(note.split())}")


def _limits_changed(record: Json, past: Past) -> Iterator[Reason]:
    yield Reason(record["ts"], record["display"], "told", f"{changed_limits(record)} (rooda set)")


def _warnings(record: Json, own: LineMakers) -> Iterator[Reason]:
    """Yield a reason for each warning on the screen, except for warnings that another reason covers."""
    if record["event"] in ("iteration.ended", "budget.exceeded", "agent.ended", "gate.ended"):
        return
    for line in lines(record, own):
        if LEVELS[line.level] >= LEVELS["warn"]:
            text = line.message if line.level == "warn" else line.text
            yield Reason(record["ts"], record.get("display", 0), "told", text)


def limits(record: Json) -> str:
    """Return the rule behind the limit or upgrade that ended the run; "" if the log has no such cause."""
    cause = cause_of(record)
    if cause is None:
        return ""
    return _BUDGETS.get(cause.budget, _OF_ALL_RUNS) if cause.budget else _LIMITS.get(cause.kind, "")


def stopped(record: Json) -> str:
    """Return what ended the run: the user's `rooda stop`, or a signal; "" if the run ended by itself."""
    if "stopped_by" in record:
        because = record.get("stopped_because")
        return "the user ended it with rooda stop" + (f": {because}" if because else "")
    number = record.get("signal") or max(record["exit_code"] - 128, 0)
    return f"the signal was {SIGNALS.get(number, number)}" if number else ""


_OF_RUN = "money, tokens and time are counted over all sessions of a run, and tested before each call"
_RESERVED = "and what running calls have reserved; tested before each call"
_OF_ALL_RUNS = f"a budget counts all runs of the user, {_RESERVED}"
_BUDGETS = {  # keyed by budget
    "project": f"[budget] project counts all runs of the repository, its worktrees and its tasks, {_RESERVED}",
    "run": f"--max-cost of `rooda tasks run` counts all its tasks, {_RESERVED}",
}
_LIMITS = {  # keyed by kind of cause
    "upgrade": "another version of rooda was installed; a process never runs code of two versions",
    "account": 'with on_limit = "stop", rooda does not wait for a usage limit to end',
    **dict.fromkeys(("cost", "tokens", "time"), _OF_RUN),
}
_MAKERS: ReasonMakers = {
    "agent.started": _agent_switched,
    "resting": _waited,
    "notes.given": _notes,
    "limits.changed": _limits_changed,
}
