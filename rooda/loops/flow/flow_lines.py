"""What a flow's events say on the screen. Pure: facts in, text out."""

import re
import shlex

from rooda.base.json import Json
from rooda.base.text import whole
from rooda.loops.flow.model import COMPLETE, ERROR, LIMIT, PASS, RUNNING
from rooda.views.lines import Line, error, warning

DETACHED = re.compile("[0-9a-f]{40,64}")  # a base that is no branch


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
    """After each iteration of the root its progress; the inner ones indented before it."""
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
        return [Line("warn", again) if record["reason"] == "signal" else warning(again), *hint]
    branch, base = shlex.quote(record["branch"]), shlex.quote(record["base_branch"])
    commits = record["commits"]
    mine = f"-b NAME {base}" if DETACHED.fullmatch(base) else base  # merged into no branch, it would be lost again
    first = {ERROR: "", LIMIT: "raise max_iterations, then: "}
    resume = f"Go on:    {first.get(record['status'], '')}rooda flow resume {record['name']}"
    going = [Line("info", resume)] if record["status"] in first else []
    return [
        _end(record),
        Line("info", f"Branch: {record['branch']}"),
        Line("info", f"Base branch: {record['base_branch']}"),
        Line("info", f"Commits: {commits}"),
        Line("info", f"See it:   git diff {base}...{branch}"),
        Line("info", f"Take it:  git checkout {mine} && git merge {branch}"),
        Line("info", f"Or:       git rebase {base}"),
        Line("info", f"Discard:  git checkout {base} && git branch -D {branch}"),
        *going,
    ]


def _end(record: Json) -> Line:
    total = whole(record["elapsed"])
    rounds, most = record["executed"], record["max_iterations"]
    count = f"{rounds} {'iteration' if rounds == 1 else 'iterations'}"
    if record["status"] == COMPLETE:
        return Line("info", f"Flow {record['name']} complete: target met after {count} (total: {total})")
    if record["status"] == LIMIT:
        cycles = f"limit {most}: {most - 1} full {'cycle' if most == 2 else 'cycles'}"
        text = f"Flow {record['name']} max-iterations-reached ({cycles}), target not met (total: {total})"
        passing = record["sensors"] and all(status == PASS for status in record["sensors"].values())
        return warning(text + ("; all sensors pass, but no controller judged that" if passing else ""))
    what = record.get("error") or record["action"]  # a log of an earlier rooda has no error
    return error(f"Flow {record['name']} ended with an error: {what} (total: {total})")


MAKERS = {
    "run.started": _started,
    "run.resumed": _resumed,
    "run.ended": _ended,
    "node.boundary": _boundary,
}
