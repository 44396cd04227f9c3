"""Formats the summary at the end of a run: at most seven lines on stderr."""

import os
from collections.abc import Callable
from typing import NamedTuple

from rooda.base.json import Json
from rooda.base.text import counted, first_line, format_number, format_seconds, truncate
from rooda.errors import Cause
from rooda.run.spending import LIMIT_OPTIONS, cause_of, dollars, in_words, remedy
from rooda.views.lines import Line, listed
from rooda.views.why import SIGNALS

WIDTH = 68  # columns; with a timestamp, such a line fits in a terminal of 80 columns
_MORE = 2  # factor by which the proposed command raises the limit that ended the run
PASS = "pass"


class Words(NamedTuple):
    """Functions of a kind of loop that return its texts for the summary of a run."""

    name: Callable[[Json], str]  # the loop, as in "build" or "flow main"
    cause: Callable[[Json], str]  # why the run ended, if not by the user, a signal or a limit that all kinds share
    next: Callable[[Json], str]  # command that continues the run; "" if the run is over
    elapsed: Callable[[Json], float] = lambda record: float(record.get("elapsed") or record.get("ran") or 0.0)


def summary(record: Json, words: Words) -> list[Line]:
    """Return the summary from a session's last event; [] if it has none. `record["place"]`: options for `next`."""
    if not isinstance(facts := record.get("summary"), dict):
        return []
    sandbox, gates = _sandbox(facts), _gates(facts)
    done = f"{_iterations(facts)} in {format_seconds(words.elapsed(record))}"
    rows = [  # at most six
        _titled(f"{words.name(record)}: {record['state']}", cause_text(record, words.cause)),
        row("iterations", _with_gates(done, gates, facts) if sandbox and gates else done),
        row("gates", "" if sandbox else gates),
        row("changes", _changes(facts)),
        row("cost", _cost(facts)),
        row("sandbox", sandbox),
        row("next", _next(record, words.next), whole=True),
    ]
    return [Line("info", each, to_stderr=True) for each in rows if each]


def _titled(head: str, cause: str) -> str:
    return truncate(f"{head}, {cause}" if cause else head, WIDTH)


def row(label: str, text: str, whole: bool = False) -> str:
    """Return a row of the summary, cut to WIDTH unless `whole` is set; "" if `text` is empty."""
    line = f"  {label:<10}  {text}"
    return "" if not text else line if whole else truncate(line, WIDTH)


def cancelled_text(because: str) -> str:
    """Return the cause of a run that the user cancelled, with the reason if the user gave one."""
    return f"by rooda cancel: {because}" if because else "by rooda cancel"


def cause_text(record: Json, of_kind: Callable[[Json], str]) -> str:
    """Return why a run ended (a command, a signal, a limit or a rule of the loop), as a phrase such as "by Ctrl+C"."""
    if "cancelled" in record:
        return cancelled_text(record["cancelled"])
    if "stopped_by" in record:
        because = " ".join(str(record.get("stopped_because") or "").split())
        return f"by rooda stop: {because}" if because else "by rooda stop"
    number = record.get("signal") or max(int(record.get("exit_code", 0)) - 128, 0)
    if number and record.get("state") == "interrupted":
        return "by Ctrl+C" if number == 2 else f"by {SIGNALS.get(number, number)}"
    cause = cause_of(record)
    limit = in_words(cause) if cause else ""
    return _lower(limit) or of_kind(record) or first_line(str(record.get("note", "")))


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


def _iterations(facts: Json) -> str:
    parts = [(facts["failed"], "failed"), (facts["cut_off"], "cut off")]
    some = ", ".join(f"{number:,} {word}" for number, word in parts if number)
    return f"{facts['iterations']:,} ({some})" if some else f"{facts['iterations']:,}"


def _gates(facts: Json) -> str:
    """Return the last result of each gate, red ones first, and the baseline."""
    now = ", ".join(
        f"{' '.join(name.split())} {'green' if verdict == PASS else f'red ({verdict})'}"
        for name, verdict in sorted(facts["gates"].items(), key=lambda gate: gate[1] == PASS)
    )
    before = facts.get("red_before")
    baseline = "" if before is None else f"{', '.join(before)} red" if before else "all green"
    return f"{now}; baseline: {baseline}" if baseline else now


def _with_gates(done: str, gates: str, facts: Json) -> str:
    """Return the iterations and the gates in one row; to fit, omit the baseline, then replace gates with counts."""
    red = [f"{' '.join(name.split())} red" for name, verdict in sorted(facts["gates"].items()) if verdict != PASS]
    green = [f"{count} green"] if (count := len(facts["gates"]) - len(red)) else []
    counted = [f"{len(red)} red", *green] if red else green
    forms = (gates, gates.partition("; baseline: ")[0], ", ".join([*red, *green]), ", ".join(counted))
    texts = [f"{done}; gates: {form}" for form in forms]
    return next((text for text in texts if len(row("iterations", text, whole=True)) <= WIDTH), texts[-1])


def _changes(facts: Json) -> str:
    if "files" not in facts:
        return ""
    if not facts["files"] and not facts["commits"]:
        return "none"
    lines = f"{counted(facts['files'], 'file')}, +{facts['added']:,} -{facts['removed']:,}"
    return f"{lines}, {counted(facts['commits'], 'commit')}"


def _cost(facts: Json) -> str:
    if not facts["calls"]:
        return ""
    known = facts["unknown"] < facts["calls"]
    cost = f"{dollars(facts['cost'])}{'+' if facts['unknown'] else ''}" if known else "unknown"
    tokens = f", {facts['tokens']:,} tokens" if facts["tokens"] else ""
    return f"{cost}{tokens}, {counted(facts['calls'], 'call')}"


def _sandbox(facts: Json) -> str:
    parts = [f"off: {facts['sandbox_off']}"] if "sandbox_off" in facts else []
    for key, what in (("restored", "put back"), ("refused", "refused")):
        if names := facts.get(key):
            parts.append(f"{what}: {listed([*map(str, names)])}")
    return "; ".join(parts)


def _next(record: Json, of_kind: Callable[[Json], str]) -> str:
    """Return the command that continues the run, and what the user must do before it, if a budget paused the run."""
    command, before = next_command(record, of_kind), remedy(cause_of(record))
    return f"{before}, then: {command}" if before and command else command


def next_command(record: Json, of_kind: Callable[[Json], str]) -> str:
    """Return the command that continues the run, with the options in `record["place"]`.

    If a limit ended the run, the command raises that limit; if lost calls make the limit useless, it removes the limit.
    """
    if "cancelled" in record:
        return ""
    command, cause = of_kind(record), cause_of(record)
    if command and cause and cause.kind in LIMIT_OPTIONS and cause.limit and not cause.budget:
        command += f" {LIMIT_OPTIONS[cause.kind]} {'0' if cause.lost else _higher(cause)}"
    place = str(record.get("place", ""))
    return command.replace("rooda ", f"rooda {place} ", 1) if place else command


def _higher(cause: Cause) -> str:
    limit = max(cause.limit * _MORE, cause.used * _MORE) if cause.kind != "time" else cause.limit * _MORE
    if cause.kind == "time":
        return format_seconds(max(limit, 1.0))
    return f"{limit:.0f}" if cause.kind == "tokens" or limit >= 10 else format_number(round(limit, 2))


def relative_place(workspace: str) -> str:
    """Return the option that names the workspace; "" if it is the current directory."""
    import shlex

    try:
        here = os.path.realpath(".")
    except OSError:
        here = ""
    return "" if os.path.realpath(workspace) == here else f"-C {shlex.quote(workspace)}"
