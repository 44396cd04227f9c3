"""Events to reasons: which rule let a run go on, fail, pause or stop, and where the evidence stands. Pure."""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, TypeAlias

from rooda.base.json import Json
from rooda.base.text import format_number
from rooda.run.history import SessionState
from rooda.run.spending import cause_of
from rooda.views.lines import LEVELS, OWN_WORDS, faults, lines

PROMISE = "<promise>SUCCESS</promise>"
SIGNALS = {1: "SIGHUP", 2: "SIGINT", 15: "SIGTERM"}
CUT_OFF = "no end in its log: it was killed, or the machine stopped"


class Reason(NamedTuple):
    """One decision: what was decided, by which rule, and the file with the words that show it."""

    ts: str
    iteration: int  # as the screen counts, 0 for the run itself
    decision: str  # began | went on | failed | waited | switched | asked | told | ended | cut off
    rule: str
    evidence: str = ""  # path; empty: the event itself shows it
    words: str = ""  # what to look for in it; empty: its end
    at: int = 0  # line of the event


class Seen(SessionState):
    """What came before an event, as far as reasons need it."""

    def __init__(self) -> None:
        super().__init__()
        self.turn: dict[str, Json] = {}  # the latest event of each name, of this iteration
        self.red: list[Json] = []  # gates of this iteration that did not pass
        self.latest: dict[str, Json] = {}  # the call that ended last, by what ROODA_CALL said
        self.call: Json = {}  # the latest of all
        self.agents: dict[str, str] = {}  # who was asked last, by what ROODA_CALL said
        self.written: dict[tuple[str, str], list[str]] = {}  # files, by node and call

    def note(self, record: Json) -> None:
        event, begun = record["event"], self.at_work.get(str(record.get("transcript", "")), {})
        super().note(record)
        if event == "iteration.started":
            self.turn, self.red = {}, []
        if event == "agent.ended":
            self.call = {**begun, **record}
            self.latest[self.call.get("call", "")] = self.call
        if event == "node.answered":
            self.written[record["node"], record["call"]] = record["files"]
        if event == "gate.ended" and record.get("verdict") != "pass":
            self.red.append(record)
        self.turn[event] = record

    def transcript(self, call: str = "") -> tuple[str, str]:
        """The latest call's file, and the words in it that say how it failed. `call`: the latest of this kind."""
        found = self.latest.get(call, {}) if call else self.call
        return found.get("transcript", ""), found.get("message") or ""


def reasons(records: Iterable[Json], alive: bool = False) -> Iterator[Reason]:
    """In the order of the events, each with the `line` that it has in its file. `alive`: more may come."""
    seen = Seen()
    for record in records:
        try:
            found = [reason for reason in _maker(record)(record, seen) if _is_sound(reason)]
            seen.note(record)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError):
            continue  # somebody changed the file
        yield from (reason._replace(at=record.get("line", 0)) for reason in found)
    if seen.last and not alive and seen.ended is None:
        yield _cut_off(seen)


def _maker(record: Json) -> "Maker":
    """Of the kind of loop, if it has reasons of its own: REASONS of its `view.py`."""
    if (loop := record.get("loop")) in OWN_WORDS:
        import importlib

        own: Maker | None = importlib.import_module(f"rooda.loops.{loop}.view").REASONS.get(record["event"])
        if own:
            return own
    return _MAKERS.get(record["event"], told)


def _is_sound(reason: Reason) -> bool:
    """Not made of what somebody else wrote into the file."""
    texts = (reason.ts, reason.decision, reason.rule, reason.evidence, reason.words)
    return all(isinstance(text, str) for text in texts) and isinstance(reason.iteration, int)


def _cut_off(seen: Seen) -> Reason:
    """What was at work then is the evidence; nothing that comes later in its transcript was ever read."""
    last, at_work = seen.last, [*seen.at_work]
    rule = f"the run was cut off: {CUT_OFF}" if seen.opening else "the run did not begin: no start in its log"
    number = last.get("display", 0)
    where = last["ts"], number if isinstance(number, int) else 0
    return Reason(*where, "cut off", rule, str(at_work[-1]) if at_work else "", at=last.get("line", 0))


def began(record: Json, seen: Seen) -> Iterator[Reason]:
    most = record.get("max_iterations")
    limit = f"at most {most} iterations" if most else "no limit of iterations"
    gates = ", ".join(record.get("gates") or ()) or "none"
    before = f"{record.get('iterations', 0)} were completed before"
    yield Reason(record["ts"], 0, "began", f"{limit}; gates: {gates}; {before}")


def _turn(record: Json, seen: Seen) -> Iterator[Reason]:
    transcript = seen.transcript()[0]
    where = record["ts"], record["display"]
    if record["outcome"] == "interrupted":
        rule = "a signal ended its agent; the call counts, failures in a row do not change"
        yield Reason(*where, "ended", rule, transcript)
    elif record["outcome"] == "failure":
        yield from _failed(record, seen, transcript)
    else:
        rule = "the agent exited with 0"
        rule += ", and every gate passed" if "gates.ended" in seen.turn else ", and there are no gates"
        promised = record.get("promise") == "SUCCESS"
        signal = "; it signaled SUCCESS" if promised else ""
        yield Reason(*where, "went on", rule + signal, transcript, PROMISE if promised else "")


def _failed(record: Json, seen: Seen, transcript: str) -> Iterator[Reason]:
    where = record["ts"], record["display"], "failed"
    count = f"failures in a row: {record['consecutive_failures']} of {record['failure_threshold']}"
    words = record.get("message") or (PROMISE.replace("SUCCESS", "FAILURE") if record["promise"] == "FAILURE" else "")
    for fault in faults(record):
        evidence = seen.red[0].get("output", "") if seen.red and fault.of_gates else transcript
        yield Reason(*where, f"{fault.text}; {count}", evidence, words)
    for gate in seen.red:
        yield Reason(*where, f"gate {gate['gate']}: {gate['verdict']}", gate.get("output", ""))


def _asked(record: Json, seen: Seen) -> Iterator[Reason]:
    """Only if somebody else than the last time is asked the same: because the other one may not be."""
    before, now = seen.agents.get(record["call"], ""), record.get("agent", "")
    seen.agents[record["call"]] = now
    if before and now and before != now:
        limited = seen.call.get("agent_outcome") == "usage_limit"
        why = f"usage limit of {before}" if limited else f"{before} may not be asked, or {now} may again"
        rule = f"{now} is asked instead of {before} (on_limit, fallback): {why}"
        yield Reason(record["ts"], record["display"], "switched", rule, *(seen.transcript() if limited else ()))


def _waited(record: Json, seen: Seen) -> Iterator[Reason]:
    who = record.get("account")
    cause = f"usage limit of {who}" if who else "a fault of the service that may pass"
    rule = f"{cause}: {format_number(record['seconds'])}s, until {record['until']}"
    yield Reason(record["ts"], record["display"], "waited", rule, *seen.transcript())


def _ended(record: Json, seen: Seen) -> Iterator[Reason]:
    said, reason = lines(record), record.get("reason", "")
    rule = limits(record) if reason == "limit" else _RULES.get(reason, "")
    text = "; ".join(part for part in (said[0].text if said else "", stopped(record), rule) if part)
    transcript, words = seen.transcript()
    words = PROMISE if reason == "success-signal" else words
    shown = reason in ("success-signal", "failures", "agent") or _of_account(record)
    if reason == "failures" and seen.red:
        transcript, words = seen.red[0].get("output", ""), ""
    yield Reason(record["ts"], 0, "ended", f"{text} (exit {record['exit_code']})", transcript if shown else "", words)


def limits(record: Json) -> str:
    """The rule behind an end at a limit of money, tokens, time or an account; "" in a log without its cause."""
    cause = cause_of(record)
    return _LIMITS.get(cause.kind, "") if cause else ""


def _of_account(record: Json) -> bool:
    cause = cause_of(record)
    return cause is not None and cause.kind == "account"


def stopped(record: Json) -> str:
    """Who ended it: a person from another terminal, a signal, or neither."""
    if "stopped_by" in record:
        because = record.get("stopped_because")
        return "a person ended it with rooda stop" + (f": {because}" if because else "")
    number = record.get("signal") or max(record["exit_code"] - 128, 0)
    return f"the signal was {SIGNALS.get(number, number)}" if number else ""


def told(record: Json, seen: Seen) -> Iterator[Reason]:
    """Whatever warns a person is a reason too."""
    if record["event"] in ("iteration.ended", "budget.exceeded"):
        return
    for line in lines(record):
        if LEVELS[line.level] >= LEVELS["warn"]:
            text = line.said if line.level == "warn" else line.text
            yield Reason(record["ts"], record.get("display", 0), "told", text)


_OF_RUN = "money, tokens and time are counted over all sessions of a run, and tested before each call"
_LIMITS = {  # by kind of cause
    "account": 'a usage limit is not waited for with on_limit = "stop"',
    **dict.fromkeys(("cost", "tokens", "time"), _OF_RUN),
}
_RULES = {
    "max-iterations": "the limit is tested after the failures, before each iteration",
    "failures": "the failures in a row reached the threshold",
    "success-signal": "a success signal ends the loop if the agent exited with 0 and every gate passed",
    "signal": "a signal ends the loop; the state is kept",
    "agent": "the same call would only fail again, so no other was made",
    "prompt": "without a prompt there is nothing to ask",
}
Maker: TypeAlias = Callable[[Json, Seen], Iterator[Reason]]
_MAKERS: dict[str, Maker] = {
    "run.started": began,
    "run.resumed": began,
    "agent.started": _asked,
    "iteration.ended": _turn,
    "resting": _waited,
    "run.ended": _ended,
}
