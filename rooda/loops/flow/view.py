"""Formats a flow's events as lines and as reasons for `rooda why`; draws the live tree of nodes."""

import re
import shlex
from collections.abc import Iterator
from typing import TextIO

from rooda.base import clock
from rooda.base.json import Json
from rooda.base.text import counted, escape_line, format_seconds, padded, truncate
from rooda.loops.flow.model import COMPLETE, ERROR, LIMIT, PASS, RUNNING
from rooda.views.lines import Line, LineMakers, error, warning
from rooda.views.live import Live, size
from rooda.views.screen import Screen, ScreenOptions
from rooda.views.summary import Words, summary
from rooda.views.why import Past, Reason, ReasonMakers, limits, stopped

MET = "target-met"


def _began(record: Json, past: Past) -> Iterator[Reason]:
    nodes = " > ".join(record["nodes"])
    where = f"; at {record['active']}{record['step'] and ' (' + record['step'] + ')'}" if record["step"] else ""
    yield Reason(record["ts"], 0, "began", f"nodes: {nodes}; on branch {record['branch']}{where}")


def _entered(record: Json, past: Past) -> Iterator[Reason]:
    rule = _of_node(record, f"the node begins, at most {counted(record['max_iterations'], 'iteration')}")
    yield Reason(record["ts"], record["display"], "began", rule)


def _continued(record: Json, past: Past) -> Iterator[Reason]:
    """Explain why a node continued after a commit; `_node_ended` explains why it ended."""
    if record["status"] != "running":
        return
    if record["number"]:
        rule = f"its controller did not say that the target is met; {record['summary']}"
        evidence = _decision(record, past)
    elif set(record["sensors"].values()) <= {"pending"}:
        rule, evidence = "its sensors are measured after the first cycle", ("", "")
    else:
        rule, evidence = "measured", _measured(record, past)
    yield Reason(record["ts"], record["display"], "went on", _of_node(record, rule), *evidence)


def _node_ended(record: Json, past: Past) -> Iterator[Reason]:
    """Explain why a node ended: its controller's decision, its limit or an error."""
    error = record["reason"] == "error"
    if record["reason"] == MET:
        rule, evidence = "its controller said that the target is met", _decision(record, past)
    elif error:
        rule, evidence = f"a step failed: {record.get('error') or record['action']}", past.transcript()
    else:
        rule, evidence = f"{record['action']}, before its controller was asked", _measured(record, past)
    rule = _of_node(record, f"{record['status']}: {rule}")
    yield Reason(record["ts"], record["display"], "failed" if error else "ended", rule, *evidence)


def _decision(record: Json, past: Past) -> tuple[str, str]:
    """Return the evidence for a decision: the path of the controller's file, and the key of the decision in it."""
    return next(iter(past.written_files.get((record["node"], "controller"), ())), ""), f"{MET}:"


def _measured(record: Json, past: Past) -> tuple[str, str]:
    """Return the evidence for a measurement: the path of a sensor's file, and the key of the status in it.

    The file is that of the first failing sensor, else that of the first sensor.
    """
    paths = past.written_files.get((record["node"], "sensor"), [])
    found = dict(zip(record["sensors"], paths, strict=False))
    failing = [path for name, path in found.items() if record["sensors"][name] == "fail"]
    return next(iter([*failing, *paths]), ""), "status:"


def _problem(record: Json, past: Past) -> Iterator[Reason]:
    """Explain a problem such as a broken contract or a restored file, usually caused by the call that just ended."""
    yield Reason(record["ts"], record["display"], "told", record["text"], *past.transcript())


def _why_ended(record: Json, past: Past) -> Iterator[Reason]:
    said = LINES["run.ended"](record)[0].message
    rule = limits(record) if record["reason"] == "limit" else _RULES.get(record["reason"], "")
    rule = "the state is kept; a resume repeats the step" if _is_open_error(record) else rule
    text = "; ".join(filter(None, (said, stopped(record), rule)))
    last = past.this_iteration.get("node.ended", {})
    evidence = _decision(last, past) if last and record["reason"] == MET else ("", "")
    evidence = past.transcript() if record["reason"] == "error" else evidence
    yield Reason(record["ts"], 0, "ended", f"{text} (exit {record['exit_code']})", *evidence)


def _is_open_error(record: Json) -> bool:
    return bool(record["reason"] == "error" and record["status"] == RUNNING)


def _of_node(record: Json, rule: str) -> str:
    sensors = ", ".join(f"{name}: {status}" for name, status in record["sensors"].items())
    return f"{record['node']} {record['label']}: {rule}" + (f"; {sensors}" if sensors else "")


_RULES = {
    MET: "the controller of the top node decides",
    "max-iterations": "the limit of the top node is tested before its controller is asked",
    "error": "an error of a node ends the flow",
    "signal": "a signal ends the loop; the state is kept",
}
REASONS: ReasonMakers = {
    "run.started": _began,
    "run.resumed": _began,
    "node.entered": _entered,
    "node.boundary": _continued,
    "node.ended": _node_ended,
    "problem": _problem,
    "run.ended": _why_ended,
}


# The lines of a flow's events.
DETACHED = re.compile("[0-9a-f]{40,64}")  # hash of a base commit without a branch


def _started(record: Json) -> list[Line]:
    nodes = " > ".join(record["nodes"])
    return [
        Line(
            "info",
            f"Starting flow {record['name']}: {nodes}, on branch {record['branch']} from {record['base_branch']}",
        )
    ]


def _resumed(record: Json) -> list[Line]:
    where = f"at {record['active']}" + (f" ({record['step']})" if record["step"] else "")
    return [Line("info", f"Resuming flow {record['name']} {where}, on branch {record['branch']}")]


def _boundary(record: Json) -> list[Line]:
    """Return one line per commit of a node, indented for inner nodes."""
    sensors = ", ".join(f"{name}: {status}" for name, status in record["sensors"].items())
    said = "; ".join(part for part in (record["summary"], sensors) if part)
    met = f"target-met {'true' if record['target_met'] else 'false'}"
    if record["level"] == 0:
        return [Line("info", f"Iteration {record['label']}: {met}; {said}")]
    node = record["node"].rpartition("/")[2]
    return [Line("info", f"{'  ' * record['level']}{node} {record['label']}: {met}; {said}")]


def _ended(record: Json) -> list[Line]:
    if record["status"] == RUNNING:
        again = f"{record['note']}. State saved. Resume with: rooda flow resume {record['name']}"
        hint = [Line("warn", record["hint"])] if record["hint"] else []
        return [Line("warn", again) if record["reason"] == "signal" else warning(again), *hint, *summary(record, WORDS)]
    branch, base = shlex.quote(record["branch"]), shlex.quote(record["base_branch"])
    commits = record["commits"]
    base_branch = f"-b NAME {base}" if DETACHED.fullmatch(base) else base  # a detached HEAD would lose the merge
    going = [Line("info", f"Resume:   {_next(record)}")] if record["status"] in (ERROR, LIMIT) else []
    return [
        _end(record),
        *_unmet(record),
        Line("info", f"Branch: {record['branch']}"),
        Line("info", f"Base branch: {record['base_branch']}"),
        Line("info", f"Commits: {commits}"),
        Line("info", f"See it:   git diff {base}...{branch}"),
        *([] if DETACHED.fullmatch(base) else [Line("info", f"Take it:  rooda flow merge {record['name']}")]),
        Line("info", f"Or take it with its files and commits: git checkout {base_branch} && git merge {branch}"),
        Line("info", f"Rebase:   git rebase {base}"),
        Line("info", _discard(record, base, branch)),
        *going,
        *summary(record, WORDS),
    ]


def _discard(record: Json, base: str, branch: str) -> str:
    if own := record.get("own_changes", ""):
        return (
            "Discard:  only after you have saved your own changes, which are in its first commit. "
            f"See: git show {own[:10]}"
        )
    return f"Discard:  git checkout {base} && git branch -D {branch}"


def _cause(record: Json) -> str:
    if record["status"] == LIMIT:
        return f"its limit of {counted(record['max_iterations'], 'iteration')} is reached"
    if record["status"] == COMPLETE:
        return f"target met, but {unmet}" if (unmet := _not_passing(record)) else "target met"
    return str(record.get("error") or "")


def _next(record: Json) -> str:
    more = f" -n {record['max_iterations'] + MORE}" if record["status"] == LIMIT else ""
    return "" if record["status"] == COMPLETE else f"rooda flow resume {record['name']}{more}"


MORE = 3  # iterations that the command after a limit adds
WORDS = Words(lambda record: f"flow {record['name']}", _cause, _next)


def _not_passing(record: Json) -> str:
    """Return the sensors of the top node that don't pass, each with its status; "" if all pass."""
    return ", ".join(f"{name}: {status}" for name, status in record["sensors"].items() if status != PASS)


def _unmet(record: Json) -> list[Line]:
    """Return a warning if the target is met according to the controller, but not according to the sensors."""
    what = _not_passing(record) if record["status"] == COMPLETE else ""
    text = f"The controller says that the target is met, but not every sensor passes: {what}"
    return [warning(text, to_stderr=True)] if what else []


def _end(record: Json) -> Line:
    total = format_seconds(record["elapsed"])
    rounds, most = record["executed"], record["max_iterations"]
    count = f"{rounds} {'iteration' if rounds == 1 else 'iterations'}"
    if record["status"] == COMPLETE:
        return Line("info", f"Flow {record['name']} complete: target met after {count} (total: {total})")
    if record["status"] == LIMIT:
        cycles = f"limit {most}: {most - 1} full {'cycle' if most == 2 else 'cycles'}"
        text = f"Flow {record['name']} max-iterations-reached ({cycles}), target not met (total: {total})"
        passing = record["sensors"] and all(status == PASS for status in record["sensors"].values())
        return warning(text + ("; all sensors pass, but no controller judged that" if passing else ""))
    what = record.get("error") or record["action"]  # logs of earlier versions have no error
    return error(f"Flow {record['name']} ended with an error: {what} (total: {total})")


LINES: LineMakers = {
    "run.started": _started,
    "run.resumed": _resumed,
    "run.ended": _ended,
    "node.boundary": _boundary,
}


# The screen of a flow: its lines, and below them a live tree of the nodes.


class FlowLive(Live):
    """A live tree with one row per node: its iteration, its sensors, and the running agent call."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._nodes: dict[str, Json] = {}
        self._busy = self._at = ""
        self._rows = 0

    def update(self, record: Json) -> None:
        event = record["event"]
        self._meter.update(record)
        if event in ("run.started", "run.resumed"):
            self._nodes = {path: {} for path in record["nodes_paths"]}
            self._where = record["name"]
        elif event in ("node.entered", "node.boundary"):
            self._nodes[record["node"]] = record
            self._at, self._busy = record["node"], ""
        elif event == "agent.started":
            self._busy, self._since = str(record["call"]), clock.monotonic()
            self._at = record.get("node") or self._at
        elif event == "agent.ended":
            self._busy = ""
        elif event == "run.ended":
            self._where = ""

    def draw(self) -> None:
        self.clear()
        if not self._where:
            return
        room = size(self._stream)[0] - 1
        rows = [truncate(escape_line(self._row(path, facts)), room) for path, facts in self._nodes.items()]
        self._write("\n".join(rows))
        self._rows, self._shown = len(rows), True

    def clear(self) -> None:
        if self._shown:
            up = f"\x1b[{self._rows - 1}A" if self._rows > 1 else ""
            self._write(f"\r{up}\x1b[J")
            self._shown = False

    def _row(self, path: str, facts: Json) -> str:
        depth = path.count("/")
        name = f"{'  ' * depth}{'└ ' if depth else ''}{path.rpartition('/')[2]}"
        parts = [padded(name, 24)]
        if facts:
            parts.append(f"{facts['label']}/{facts['max_iterations']}")
            parts.append(", ".join(f"{each}: {status}" for each, status in facts["sensors"].items()))
            parts.append("" if facts["status"] == "running" else str(facts["status"]))
        if path == self._at and self._busy:
            parts.append(f"{self._busy} {format_seconds(clock.monotonic() - self._since)}")
            parts += self._doing
        return "  ".join(part for part in parts if part)


class FlowScreen(Screen):
    """A screen for flows, with a live tree of the nodes."""

    def __init__(self, look: ScreenOptions) -> None:
        super().__init__(look, LINES, FlowLive)
