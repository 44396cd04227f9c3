"""Counts a user's iterations and failures for metrics. The counts are kept when runs are deleted.

`<state home>/counts/<month>.jsonl` has one line for each iteration that ended, and one for each run that failed
without a failed iteration. Tokens and cost are in the ledger (`run/cost_ledger.py`).
"""

import os
from collections import Counter
from collections.abc import Iterator, Sequence

from rooda.base import clock, dirs, files
from rooda.base.json import Json, parse_object
from rooda.run import cost_ledger, history
from rooda.run.ended import FAILED_STATE
from rooda.run.events import encoded
from rooda.run.records import Owner
from rooda.run.tally import is_below_top, outcome_of

VERSION = 1
ENDING = ".jsonl"
# Why an iteration failed. Most are the outcomes of agents/outcome.py and the ways in which a process ends.
GATES, PROMISE, REJECTED = "gates", "promise", "rejected"
CAUSES = (
    *("agent_error", "auth", "config", "context_overflow", GATES, "idle", "killed", "not_started", "permission_denied"),
    *(PROMISE, "rate_limit", REJECTED, "resources", "timeout", "usage_limit"),
)


def cause_of(calls: Sequence[Json], gates: Sequence[Json]) -> str:
    """Return why an iteration failed: its latest failed call, else its gates, else the rejection of its result."""
    found = [cause for call in reversed(calls) if (cause := _of_call(call))]
    return found[0] if found else GATES if any(gate.get("verdict") != "pass" for gate in gates) else REJECTED


def _of_call(call: Json) -> str:
    """Return why a call failed, one of CAUSES; "" if it did not."""
    outcome, ended = str(call.get("agent_outcome", "")), str(call.get("ended", ""))
    if outcome in CAUSES:
        return outcome
    if ended.replace("-", "_") in CAUSES:
        return ended.replace("-", "_")
    if call.get("outcome") == "failure":
        return "agent_error"
    return PROMISE if call.get("promise") == "FAILURE" else ""


class Counting:
    """Counts the iterations of one session. If a count can't be written, it is lost, and the loop continues."""

    def __init__(self, workspace: str, owner: Owner, run: str) -> None:
        place = {"workspace": os.path.realpath(workspace), "loop": owner.kind.name, "name": owner.name, "run": run}
        self._place, self._ends = place, owner.kind.turn_ends
        self._calls: list[Json] = []
        self._gates: list[Json] = []
        self._failed = False  # True: the latest iteration failed
        self._descriptor = -1
        self.events = ("iteration.started", "agent.ended", "gate.ended", "run.ended", *self._ends)

    def add(self, record: Json) -> None:
        event = record["event"]
        if event == "agent.ended":
            self._calls.append({key: record.get(key) for key in ("agent_outcome", "ended", "outcome", "promise")})
        elif event == "gate.ended":
            self._gates.append({"verdict": record["verdict"]})
        elif event == "run.ended":
            if record["state"] == FAILED_STATE and not self._failed:
                self._write(record, "failure")
        elif event == "iteration.started":
            self._calls, self._gates = [], []
        elif not is_below_top(record):
            self._failed = (outcome := outcome_of(record)) == "failure"
            self._write(record, outcome)
            self._calls, self._gates = [], []

    def _write(self, record: Json, outcome: str) -> None:
        cause = {"cause": cause_of(self._calls, self._gates)} if outcome == "failure" else {}
        event = "run" if record["event"] == "run.ended" else "iteration"
        line = {"v": VERSION, "ts": record["ts"], **self._place, "event": event, "outcome": outcome, **cause}
        try:
            if self._descriptor < 0:
                folder = dirs.make_state("counts")
                path = os.path.join(folder, clock.rfc3339(clock.now())[:7] + ENDING)
                self._descriptor = files.open_append(path, 0o600)
            files.write_all(self._descriptor, encoded(line).encode("utf-8", "replace") + b"\n")  # others write, too
        except OSError:
            self.close()

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class Totals:
    """Sums over all runs of a user, from the ledger and the counts. `refresh` reads only the lines that were added."""

    def __init__(self) -> None:
        self.iterations = self.tokens = 0
        self.cost = 0.0
        self.failures: Counter[str] = Counter()
        self.workspaces: set[str] = set()
        self._offsets: dict[str, int] = {}

    def refresh(self) -> "Totals":
        """Read the lines added since the last refresh. Skip files that can't be read."""
        for record in self._added("ledger"):
            if call := history.call_of(record, record):
                self.tokens += call.tokens
                self.cost += call.cost or 0.0
        for record in self._added("counts"):
            self.iterations += record.get("event") == "iteration"
            if record.get("outcome") == "failure":
                cause = record.get("cause")
                self.failures[cause if cause in CAUSES else REJECTED] += 1
        self.workspaces |= {str(each.get("workspace", "")) for each in cost_ledger.open_sessions()}
        return self

    def _added(self, folder: str) -> Iterator[Json]:
        home = dirs.state(folder)
        for name in files.list_if_readable(home) if home else ():
            path = os.path.join(home, name)
            if not name.endswith(ENDING):
                continue
            try:
                for end, line in history.lines(path, self._offsets.get(path, 0)):
                    self._offsets[path] = end
                    if record := json_object(line):
                        self.workspaces.add(str(record.get("workspace", "")))
                        yield record
            except OSError:
                continue


def json_object(line: bytes) -> Json:
    """Parse one line; {} if it is damaged."""
    try:
        return parse_object(line)
    except ValueError:
        return {}
