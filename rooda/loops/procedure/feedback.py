"""Writes the STATUS section of a prompt: how the agent is judged, and how the last iteration ended. Pure."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from rooda.agents.outcome import ASKING, in_words
from rooda.base.json import Json
from rooda.base.text import format_number, plain
from rooda.loops.procedure.model import Procedure
from rooda.run.records import CommandResult, Gate
from rooda.run.spending import BudgetUse, dollars

LINES = 30  # lines shown of the end of a gate's output
LONGEST = 4_000  # characters shown of one gate's output
LONGEST_OF_ALL = 12_000  # characters shown of all gates' outputs together
LONGEST_FRAGMENT = 10_000  # characters shown of a command's output in a prompt fragment
MOST_FILES = 20
PASS = "pass"
HEAD = "Written by rooda, the program that runs this loop."
_REASONS = {
    "timeout": "the agent was ended after {limit}s, the time limit of a call",
    "idle": "the agent was ended after {limit}s without output",
    "resources": "the agent was ended because it used {note}",
    "not-started": "the agent could not be started: {reason}",
    "outcome": "the agent reported an error{detail}",
    "": "the agent exited with code {code}{detail}",
}


class Past:
    """The iterations of a run so far, as its events report them."""

    EVENTS = (
        *("iteration.started", "agent.started", "agent.ended", "gate.ended", "iteration.ended", "snapshot.taken"),
        *("baseline.started", "baseline.ended", "files.restored", "network.refused"),
    )

    def __init__(self, limit: int = 0) -> None:
        self.number, self.limit = 1, limit  # the current iteration, counted from 1, and the iteration limit
        self.last: Json = {}  # `iteration.ended` of the last iteration, or its equivalent after a crash
        self._verdicts: dict[tuple[str, int], Json] = {}  # the last `gate.ended` of each gate; names may repeat
        self._checked: list[str] = []  # gates of the current iteration
        self.has_failed = False  # an iteration failed or was cut off
        self.began = self.newest = ""  # snapshots: when the last iteration began, and the latest one
        self._stage = ""  # of the current iteration: agent | gates
        self.walls: list[str] = []  # what the sandbox prevented in the last iteration, one line each
        self._prevented: list[str] = []  # and in the current one
        self._before = ""  # the snapshot when the current iteration began

    def adding(self, events: Iterable[Json]) -> Iterator[Json]:
        """Add events one by one and pass them on: a list of all events of a long run would fill the memory."""
        for record in events:
            self.add(record)
            yield record

    def add(self, record: Json) -> None:
        event = record["event"]
        if event == "iteration.started":
            self._close_if_killed()
            self.number, self.limit = record["iteration"] + 1, record["max_iterations"]
        elif event == "agent.started":
            self._stage = "agent"
        elif event == "agent.ended":
            self._stage = "gates" if record["outcome"] == "success" else self._stage
        elif event == "gate.ended":
            name = record["gate"]
            self._verdicts[name, self._checked.count(name)] = record
            self._checked.append(name)
        elif event == "iteration.ended":
            self._close(record)
        elif event == "files.restored":
            self._prevented.append(f"You may not change these files; rooda put them back: {listed(record['paths'])}")
        elif event == "network.refused":
            self._prevented.append(f"The sandbox has no connection to {record['host']}.")
        elif event in ("baseline.started", "baseline.ended"):
            self._checked.clear()
        elif event == "snapshot.taken":
            if record["moment"] == "before":  # may come before or after the `iteration.started` that it belongs to
                self._close_if_killed()
                self._before = record["commit"]
            self.newest = record["commit"]

    def _close_if_killed(self) -> None:
        if self._stage:
            self._close({"outcome": "interrupted", "stage": self._stage, "iteration": self.number - 1})

    def _close(self, record: Json) -> None:
        self.last, self.began = record, self._before
        self.walls, self._prevented = self._prevented, []
        self._checked.clear()
        self.has_failed = self.has_failed or record["outcome"] != "success"
        self._stage = ""

    @property
    def was_cut_off(self) -> bool:
        """True if the last iteration's agent did not end by itself, so that its work may be incomplete."""
        return self.last.get("outcome") == "interrupted" or self.last.get("ended") in ("timeout", "idle", "resources")

    def results(self, gates: Sequence[Gate]) -> list[Json]:
        """Return the last `gate.ended` of each given gate; {} for a gate that has not run."""
        names = [gate.name for gate in gates]
        return [self._verdicts.get((name, names[:place].count(name)), {}) for place, name in enumerate(names)]

    def failed(self, gates: Sequence[Gate]) -> list[Json]:
        """Return the last `gate.ended` of each given gate whose last run failed."""
        return [each for each in self.results(gates) if each and each["verdict"] != PASS]


class Left(NamedTuple):
    """The run's limits, how much of them is used, and the limits of a single call."""

    used: BudgetUse = BudgetUse()
    call_seconds: float = 0.0  # 0 = no limit
    call_cost: float = 0.0  # dollars, 0 = no limit


class Output(NamedTuple):
    """The end of a failed gate's output, as the prompt shows it."""

    gate: str
    text: str
    path: str  # of the whole output


class Changed(NamedTuple):
    """The files that an iteration changed."""

    files: Sequence[str]
    exact: bool  # False: all files with uncommitted changes


class Facts(NamedTuple):
    """Data for the STATUS section that the events of the run do not contain."""

    left: Left = Left()
    notes: Sequence[str] = ()  # from the user
    remarks: Sequence[str] = ()  # from rooda, one line each
    outputs: Sequence[Output] = ()  # of failed gates
    changed: Changed | None = None


def section(past: Past, gates: Sequence[Gate], facts: Facts) -> str:
    """Return the STATUS section. It is needed only if there are gates, notes or remarks, or an iteration has failed."""
    notes = [f"- {_one_line(note)}" for note in facts.notes]
    parts = [
        HEAD,
        "\n".join([_number(past), *_left(facts.left)]),
        "\n".join(["Notes from the user:", *notes] if notes else ()),
        "\n".join(_last(past.last, facts.changed)),
        "\n".join(facts.remarks),
        "\n".join(_gates(past, gates)),
        *map(_output, facts.outputs),
    ]
    return "\n\n".join(filter(None, parts))


def _number(past: Past) -> str:
    return f"This is iteration {past.number} of {past.limit or 'an unlimited number'}."


def _left(left: Left) -> list[str]:
    """Return lines that say what is left of the run's limits, and what the limits of this call are."""
    (cost, tokens, seconds), spent, ran = left.used
    calls = "1 call" if spent.unknown == 1 else f"{spent.unknown} calls"
    doubt = f" (the cost of {calls} is unknown)" if spent.unknown else ""
    run = [f"{dollars(max(cost - spent.cost, 0.0))} of {dollars(cost)}{doubt}"] if cost else []
    run += [f"{max(tokens - spent.tokens, 0):,} of {tokens:,} tokens"] if tokens else []
    run += [f"{span(max(seconds - ran, 0.0))} of {span(seconds)}"] if seconds else []
    call = [span(left.call_seconds)] if left.call_seconds else []
    call += [dollars(left.call_cost)] if left.call_cost else []
    whole = [f"Left for the whole run: {', '.join(run)}."] if run else []
    return [*whole, *([f"Limit of this call: {', '.join(call)}."] if call else [])]


def span(seconds: float) -> str:
    """Format a duration without parts that are 0: 2h, 1h5m, 42m, 90s."""
    if seconds < 600:
        return f"{seconds:.0f}s" if seconds >= 10 else f"{format_number(round(seconds, 1))}s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return "".join([f"{hours}h" if hours else "", f"{minutes}m" if minutes else ""])


def _last(last: Json, changed: Changed | None) -> Iterator[str]:
    """Yield lines that say how the last iteration ended; none in the first iteration of a run."""
    if not last:
        return
    number, outcome = last["iteration"] + 1, last["outcome"]
    if outcome == "success":
        red = last["gates_failed"]
        result = f"made progress, but quality gates failed: {red}" if red else "succeeded"
        yield f"Iteration {number} {result}."
        return
    if outcome == "interrupted":
        yield f"Iteration {number} was cut off: {_cut(last)}. Its work may be incomplete."
    else:
        yield f"Iteration {number} failed: {'; '.join(reasons(last))}."
        yield f"Failures in a row: {last['consecutive_failures']}. The run ends at {last['failure_threshold']}."
    if last.get("promise") == "SUCCESS":
        yield f"It claimed SUCCESS; that was refused, because {_refusal(last)}."
    if changed and changed.files:
        what = "Files that it changed" if changed.exact else "Files with uncommitted changes now"
        yield f"{what}: {listed(changed.files)}."
    if last.get("said"):
        yield f"Its last words:\n{fenced(plain(last['said']))}"


def reasons(ended: Json) -> list[str]:
    """Return why an iteration failed, from its `iteration.ended`."""
    if failed := in_words(ended, _REASONS):
        return [failed]
    gave_up = ["the agent gave up with FAILURE"] if ended["promise"] == "FAILURE" else []
    gates = [f"quality gates failed: {ended['gates_failed']}"] if ended["gates_failed"] else []
    refused = ended.get("commit_refused")
    return [*gave_up, *gates, *([f"git refused to commit its changes: {_one_line(refused)}"] if refused else [])]


def remarks(procedure: Procedure, last: Json) -> list[str]:
    """Return what `commit` and `on_red` mean for the agent and, in a task, that the agent may ask questions."""
    found = ["rooda commits your changes once all gates pass: do not commit."] if procedure.commit == "green" else []
    if last.get("undone"):
        what = f"The files that iteration {last['iteration'] + 1} changed are again as they were before it"
        found.append(f"{what}, because of the failed gates. Its commits, if any, are still there.")
        found.append("The gates' results below are from before the undo, with those changes.")
        found.append(f"What it had changed is kept in git as {last['undone']}.")
    return [*found, *([ASKING] if procedure.in_task else [])]


def _cut(last: Json) -> str:
    if "stage" in last:
        rest = "before the agent had finished" if last["stage"] == "agent" else "before the gates had finished"
        return f"rooda was killed {rest}"
    return "a signal ended the agent" if last["ended"] == "interrupted" else "a signal ended the gates"


def _refusal(last: Json) -> str:
    if last["outcome"] == "interrupted":
        return "the iteration was cut off"
    if last.get("commit_refused"):
        return "git refused to commit its changes"
    return "a quality gate failed" if last["gates_failed"] else "the agent failed"


def _gates(past: Past, gates: Sequence[Gate]) -> Iterator[str]:
    """Yield a heading, and one line for each gate with its last result."""
    if gates:
        yield "When you finish, rooda runs these quality gates. Each must exit with 0:"
    for gate, record in zip(gates, past.results(gates), strict=True):
        limit = [f"at most {span(gate.timeout)}"] if gate.timeout else []
        details = [*limit, *([_result(record)] if record else [])]
        shown = f" ({', '.join(details)})" if details else ""
        command = plain(gate.command).strip()
        if "\n" in command:
            yield f"- {_one_line(gate.name)}{shown}:\n  " + fenced(command).replace("\n", "\n  ")
        elif gate.name == gate.command:
            yield f"- {code(command)}{shown}"
        else:
            yield f"- {_one_line(gate.name)}: {code(command)}{shown}"


def _result(record: Json) -> str:
    number = record["display"]
    after = f"after iteration {number}" if number else "before iteration 1"
    return f"passed {after}" if record["verdict"] == PASS else f"failed {after}: {record['verdict']}"


def _output(output: Output) -> str:
    name = _one_line(output.gate)
    if not output.text:
        return f"{name} printed nothing."
    return f"End of the output of {name} (all of it: {output.path}):\n{fenced(output.text)}"


def excerpt(text: str, room: int, clean: Callable[[str], str]) -> str:
    """Return the last lines of a gate's output without secrets and control characters, at most `room` characters."""
    lines = plain(clean(text)).rstrip().split("\n")[-LINES:]
    return shortened("\n".join(lines), room)


def command_text(command: str, done: CommandResult, output: str, clean: Callable[[str], str]) -> str:
    """Return the text of a prompt fragment that is a command: its output, after a line that says why, if it failed."""
    said = shortened(plain(clean(output)).rstrip(), LONGEST_FRAGMENT)
    if done.ended == "exit" and done.code == 0:
        return said
    why = f"ended after {span(done.seconds)}" if done.ended == "timeout" else f"failed with exit code {done.code}"
    return f"[command {why}: {clean(command)}]\n{said}".rstrip()


def room_for(count: int) -> int:
    """Return how many characters each of `count` outputs may have."""
    return min(LONGEST, LONGEST_OF_ALL // max(count, 1))


def shortened(text: str, room: int) -> str:
    """Cut the middle of a text that is too long; a mark says how much is missing."""
    if len(text) <= room:
        return text
    kept = max(room - 50, 2) // 2  # the mark "[… N characters left out …]" has up to 50 characters
    return f"{text[:kept]}\n[… {len(text) - 2 * kept:,} characters left out …]\n{text[-kept:]}"


def fenced(text: str) -> str:
    """Return the text in a code fence that the text itself can't close."""
    ticks = _ticks(text, 3)
    return f"{ticks}\n{text}\n{ticks}"


def code(command: str) -> str:
    """Return a one-line command as inline code."""
    ticks = _ticks(command, 1)
    room = " " if command.startswith("`") or command.endswith("`") else ""
    return f"{ticks}{room}{command}{room}{ticks}"


def _ticks(text: str, least: int) -> str:
    longest = max(map(len, re.findall("`+", text)), default=0)
    return "`" * max(longest + 1, least)


def listed(names: Sequence[str]) -> str:
    """Return the first file names, and how many more there are."""
    more = f" and {format_number(len(names) - MOST_FILES)} more" if len(names) > MOST_FILES else ""
    return ", ".join(map(_one_line, names[:MOST_FILES])) + more


def _one_line(text: str) -> str:
    return " ".join(plain(text).split())
