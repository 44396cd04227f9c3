"""Turns the events of a session into spans: run, iteration, call, gate. Pure.

Only the fields that run/telemetry.py selects arrive here; they contain no prompts, answers or other agent text.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from rooda.otel import names
from rooda.run import trace_ids

Json = dict[str, Any]
Attributes = Mapping[str, str | int | float | bool]


class Span(NamedTuple):
    """A span that has ended. Times are in nanoseconds since 1970."""

    name: str
    trace: str
    id: str
    parent: str
    began: int
    ended: int
    attributes: Attributes
    error: bool = False
    link: str = ""  # span of the same trace that this one continues
    is_client: bool = False


class About(NamedTuple):
    """The session, as the loop describes it in the first line of the input."""

    workspace: str  # name of the loop
    place: str  # path of the session, from which the IDs are made
    session: str
    begun: str  # the session that started the run
    before: str  # the previous session of a resumed run, if it is known to be in the same trace
    kind: str
    name: str
    trace: str
    parent: str
    flags: str = "01"
    version: str = ""
    endpoint: str = ""


class _Open(NamedTuple):
    key: str
    began: int
    attributes: Json
    parent: str = ""


class Tracker:
    """Keeps the open spans of one session."""

    def __init__(self, about: About) -> None:
        self._about = about
        self._root: _Open | None = None
        self._turn: _Open | None = None
        self._outcome = ""
        self._calls: dict[str, _Open] = {}
        self._checks = 0
        self._is_over = False

    def take(self, record: Json) -> Iterator[Span]:
        """Yield the spans that this event ends."""
        at, event = nanoseconds(str(record.get("ts", ""))), record.get("event")
        self._root = self._root or _Open(trace_ids.RUN, at, {})
        if event == "agent.started":
            self._begin_call(record, at)
        elif event == "agent.ended":
            yield from self._end_call(record, at)
        elif event in ("gate.ended", "criterion.verified"):
            yield self._gate(record, at)
        self._outcome = str(record.get("outcome") or self._outcome) if record.get("turn_end") else self._outcome
        yield from self._turns(record, at)
        if event == "run.ended":
            self._is_over = True
            yield from self._end_calls(at)
            yield self._end_run(record, at)

    def finish(self, at: int, cut: bool) -> Iterator[Span]:
        """Yield the spans that are still open. `cut`: the loop was killed."""
        if self._root and not self._is_over:
            yield from self._end_calls(at)
            yield from self._end_turn(at, cut)
            yield self._end_run({names.CUT_OFF: True} if cut else {}, at)

    def _turns(self, record: Json, at: int) -> Iterator[Span]:
        number = record.get("number")
        if record.get("ends") or (self._turn and number is not None and self._turn.key != f"iteration {number}"):
            yield from self._end_turn(at)
        if number is not None and self._turn is None:
            self._turn = _Open(f"iteration {number}", at, {names.ITERATION: number})

    def _end_turn(self, at: int, cut: bool = False) -> Iterator[Span]:
        turn, outcome = self._turn, self._outcome
        self._turn, self._outcome = None, ""
        if turn is None:
            return
        facts: Json = {**turn.attributes, **({names.OUTCOME: outcome} if outcome else {})}
        facts |= {names.CUT_OFF: True} if cut else {}
        yield self._span(turn.key, turn, at, facts, outcome == "failure")

    def _begin_call(self, record: Json, at: int) -> None:
        key, agent = str(record.get("transcript")), str(record.get("agent") or "")
        self._calls[key] = _Open(key, at, {**record, "agent": agent}, self._parent())

    def _end_call(self, record: Json, at: int) -> Iterator[Span]:
        key = str(record.get("transcript"))
        began = self._calls.pop(key, None)
        if began:
            yield self._call_span(began, {**began.attributes, **record}, at)

    def _end_calls(self, at: int) -> Iterator[Span]:
        for began in self._calls.values():
            yield self._call_span(began, {**began.attributes, "cut": True}, at)
        self._calls.clear()

    def _call_span(self, began: _Open, record: Json, at: int) -> Span:
        name = f"{names.INVOKE_AGENT} {record['agent'] or 'command'}"
        error = error_of(record)
        return self._span(name, began, at, call_attributes(record, self._about), bool(error))._replace(is_client=True)

    def _gate(self, record: Json, at: int) -> Span:
        name, verdict = str(record.get("gate") or record.get("criterion")), str(record.get("verdict", ""))
        self._checks += 1
        began = at - int(float(record.get("elapsed") or 0.0) * 1e9)
        failed = verdict not in ("pass", "met")
        facts = {names.GATE: name, names.VERDICT: verdict, **({names.ERROR: verdict} if failed else {})}
        open_ = _Open(f"{record.get('output') or name} {self._checks}", began, {}, self._parent())
        return self._span(f"gate {name}", open_, at, facts, failed)

    def _end_run(self, record: Json, at: int) -> Span:
        about, root = self._about, self._root or _Open(trace_ids.RUN, at, {})
        facts: Json = {names.OPERATION: names.INVOKE_WORKFLOW, names.WORKFLOW: about.name, **of_session(about)}
        given = {names.STATE: "state", names.REASON: "reason", names.EXIT_CODE: "exit_code"}
        given |= {names.ITERATIONS: "iterations", names.COST: "cost", names.CUT_OFF: names.CUT_OFF}
        facts |= {name: record[key] for name, key in given.items() if record.get(key) is not None}
        link = self._id(trace_ids.RUN, about.before) if about.before else ""
        span = self._span(f"rooda {about.name}", root, at, facts, record.get("state") == "failed")
        return span._replace(parent=about.parent, link=link)

    def _parent(self) -> str:
        return self._id(self._turn.key if self._turn else trace_ids.RUN)

    def _id(self, key: str, session: str = "") -> str:
        return trace_ids.span_id(self._about.place, session or self._about.session, key)

    def _span(self, name: str, began: _Open, at: int, attributes: Attributes, error: bool) -> Span:
        parent = began.parent or self._id(trace_ids.RUN)
        own = self._id(began.key)
        return Span(name, self._about.trace, own, parent, began.began, max(at, began.began), attributes, error)


def error_of(record: Json) -> str:
    """Return a short reason why a call failed; "" if it succeeded."""
    outcome, ended = str(record.get("agent_outcome") or ""), str(record.get("ended") or "")
    if record.get("cut"):
        return "cut_off"
    if outcome not in ("", "ok"):
        return outcome
    if ended not in ("", "exit"):
        return ended
    return f"exit {record.get('exit_code')}" if record.get("outcome") == "failure" else ""


def of_session(about: About) -> Json:
    return {
        names.RUN: about.begun,
        names.SESSION: about.session,
        names.CONVERSATION: about.begun,
        names.KIND: about.kind,
        names.LOOP: about.name,
        names.WORKSPACE: about.workspace,
    }


def of_model(record: Json) -> Json:
    """Return the attributes that spans and metrics of a call share."""
    agent, model = str(record.get("agent") or ""), str(record.get("model") or "")
    found = {names.OPERATION: names.INVOKE_AGENT, names.AGENT: agent or "command"}
    found |= {names.PROVIDER: names.provider(str(record.get("output") or ""), model, agent)}
    return found | ({names.REQUEST_MODEL: model} if model else {})


def call_attributes(record: Json, about: About) -> Json:
    """Return the attributes of a call's span."""
    facts = {**of_model(record), names.CONVERSATION: about.begun, names.CALL: str(record.get("call") or "")}
    facts |= {names.RESPONSE_MODEL: str(record["model"])} if record.get("model") and record.get("usage") else {}
    facts |= tokens(record)
    given = {names.COST: "cost", names.COST_SOURCE: "cost_source", names.TURNS: "turns", names.TOOLS: "tools"}
    given |= {names.EXIT_CODE: "exit_code"}
    facts |= {name: record[key] for name, key in given.items() if record.get(key) is not None}
    return {**facts, **({names.ERROR: error} if (error := error_of(record)) else {})}


def tokens(record: Json) -> Json:
    """Return a call's token counts, keyed by attribute. Input tokens include those read from or written to a cache."""
    usage = record.get("usage")
    if not isinstance(usage, dict):
        return {}
    fresh, cached, written = (int(usage.get(key) or 0) for key in ("input", "cached", "written"))
    found = {names.INPUT: fresh + cached + written, names.OUTPUT: int(usage.get("output") or 0)}
    return found | {names.CACHED: cached, names.WRITTEN: written}


def nanoseconds(ts: str) -> int:
    """Convert an event's time stamp; 0 if it is invalid."""
    try:
        return round(datetime.fromisoformat(ts).timestamp() * 1000) * 1_000_000
    except ValueError:
        return 0
