"""Collects the metrics of all loops of a user, for `rooda metrics` and for /metrics of `rooda page`."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from rooda.agents import limits
from rooda.base import clock
from rooda.errors import RoodaError
from rooda.loops.overview import Overview
from rooda.run import ended, workspaces
from rooda.run import folder as run_folder
from rooda.run.counts import CAUSES, Totals
from rooda.run.events import NAME
from rooda.run.history import SessionLog
from rooda.settings.where import Where
from rooda.views.exposition import Family, Sample, exposition
from rooda.views.status_table import Row

UNKNOWN = "unknown"
STATES = (*ended.STATES, "damaged", "foreign", "unreadable", UNKNOWN)
_HELP = {
    "rooda_loops": "Loops by state. A loop counts once, in the state of its newest run; deleted runs do not count.",
    "rooda_iterations_total": "Iterations that ended, in all loops of this user.",
    "rooda_failures_total": "Iterations that failed, and runs that failed without a failed iteration, by cause.",
    "rooda_tokens_total": "Tokens of all agent calls: input, output and both kinds of cached input.",
    "rooda_cost_dollars_total": "Cost of all agent calls. A call of unknown cost adds nothing.",
    "rooda_limit_reset_seconds": "Seconds until every account is usable again; 0 if no usage limit is known.",
    "rooda_loop_state": "1 for each loop that runs or can be resumed, with its names.",
    "rooda_loop_iteration": "The iteration that a loop is in, or was in last.",
    "rooda_loop_tokens": "Tokens of a loop's newest run.",
    "rooda_loop_cost_dollars": "Cost of a loop's newest run, without calls of unknown cost.",
    "rooda_account_limit_reset_seconds": "Seconds until an account is usable again.",
}


class Metrics:
    """Collects the metrics. Keep the object between two scrapes: it then reads only what was added."""

    def __init__(self, here: Where) -> None:
        self._overview, self._totals = Overview(here), Totals()
        self._over: dict[str, tuple[str, str]] = {}  # kind and state of runs that have ended, keyed by folder

    def text(self, named: bool = False) -> str:
        """Return all metrics as text. Without `named`, they contain no text that a user or agent chose."""
        totals = self._totals.refresh()
        places = [path for path in sorted({*workspaces.known(), *totals.workspaces}) if os.path.isdir(path)]
        rows, now = self._overview.rows(places), clock.now()
        states = Counter(map(_known, [*(row.state for row in rows), *self._other_states(places, rows)]))
        left = {who: round(max(until - now, 0.0), 3) for who, until in limits.known().items()}
        families = [
            _gauge("rooda_loops", _by("state", states, STATES)),
            _counter("rooda_iterations_total", totals.iterations),
            Family(*_head("rooda_failures_total", "counter"), _by("cause", totals.failures, CAUSES)),
            _counter("rooda_tokens_total", totals.tokens),
            _counter("rooda_cost_dollars_total", round(totals.cost, 6)),
            _gauge("rooda_limit_reset_seconds", [Sample(max(left.values(), default=0.0))]),
        ]
        return exposition([*families, *(_with_names(rows, left) if named else ())])

    def _other_states(self, places: list[str], rows: list[Row]) -> Iterator[str]:
        """Yield the state of each loop that neither runs nor can be resumed."""
        shown = {(row.workspace, row.loop, row.name) for row in rows}
        read = {(row.workspace, row.run) for row in rows}
        for workspace in places:
            for name, path in _newest_runs(workspace).items():
                if (workspace, os.path.basename(path)) not in read:
                    kind, state = self._end_of(path)
                    if state and (workspace, kind, name) not in shown:
                        yield state

    def _end_of(self, path: str) -> tuple[str, str]:
        """Return a run's kind and final state; the state is "" if the run has not ended."""
        if path not in self._over:
            session = SessionLog(os.path.join(path, NAME)).refresh()
            if session.ended is None:
                return session.loop, ""
            self._over[path] = session.loop, ended.of_end(session.ended)
        return self._over[path]


def _newest_runs(workspace: str) -> dict[str, str]:
    """Return the folder of each loop's newest run, keyed by the loop's name; empty if the workspace can't be read."""
    try:
        return {run_folder.loop_of(os.path.basename(path)): path for path in run_folder.all_of(workspace, None)}
    except (RoodaError, OSError):
        return {}


def _known(state: str) -> str:
    """Return the state; `unknown` for a word that only an edited log or file can have."""
    return state if state in STATES else UNKNOWN


def _with_names(rows: list[Row], left: Mapping[str, float]) -> list[Family]:
    loops = [(row, {"workspace": row.workspace, "kind": row.loop, "name": row.name}) for row in rows]
    return [
        _gauge("rooda_loop_state", [Sample(1, {**names, "state": row.state}) for row, names in loops]),
        _gauge("rooda_loop_iteration", [Sample(row.display or 0, names) for row, names in loops]),
        _gauge("rooda_loop_tokens", [Sample(row.tokens, names) for row, names in loops]),
        _gauge("rooda_loop_cost_dollars", [Sample(row.cost or 0, names) for row, names in loops]),
        _gauge("rooda_account_limit_reset_seconds", [Sample(each, {"account": who}) for who, each in left.items()]),
    ]


def _by(label: str, counts: Mapping[str, int], values: tuple[str, ...]) -> tuple[Sample, ...]:
    """Return a sample for each value, even if it is 0, so that all series exist from the start."""
    return tuple(Sample(counts.get(value, 0), {label: value}) for value in values)


def _counter(name: str, value: float) -> Family:
    return Family(*_head(name, "counter"), (Sample(value),))


def _gauge(name: str, samples: Iterable[Sample]) -> Family:
    return Family(*_head(name, "gauge"), tuple(samples))


def _head(name: str, kind: str) -> tuple[str, str, str]:
    return name, kind, _HELP[name]
