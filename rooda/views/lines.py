"""Formats the events that all kinds of loops emit as screen lines. Each kind's view.py formats its own events."""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from rooda.base import clock
from rooda.base.json import Json
from rooda.base.text import first_line, format_number, format_seconds, format_tenths, telling_line

_INTERRUPT = 2  # SIGINT
LONGEST_REASON = 300  # characters of the reason for a failure
MOST_NAMES = 5  # file names in one line
LEVELS = {"debug": 0, "info": 1, "warn": 2, "result": 2, "error": 3}  # "result" is shown with --quiet, too


PROGRAMS, PEOPLE = "programs", "people"


class Line(NamedTuple):
    """A line for the screen, without its timestamp."""

    level: str
    message: str
    to_stderr: bool = False
    label: str = ""  # printed before the message on the screen, but not by `rooda why`
    ascii: str = ""  # the text for an ASCII terminal, if replacing single characters isn't enough
    audience: str = ""  # PROGRAMS or PEOPLE: who the line is for; "": both

    @property
    def text(self) -> str:
        return self.label + self.message


def is_for(line: Line, audience: str) -> bool:
    return line.audience in ("", audience)


LineMakers: TypeAlias = Mapping[str, Callable[[Json], list[Line]]]  # keyed by event name


def info(text: str, to_stderr: bool = False) -> Line:
    return Line("info", text, to_stderr)


def warning(message: str, to_stderr: bool = False) -> Line:
    return Line("warn", str(message), to_stderr, "WARNING: ")  # str(): a log that was edited can hold any type


def error(message: str, to_stderr: bool = False) -> Line:
    return Line("error", str(message), to_stderr, "ERROR: ")


def lines(record: Json, own: LineMakers) -> list[Line]:
    """Return the screen lines of an event; most events have none. `own`, the kind's LINES, takes precedence."""
    maker = own.get(record["event"]) or _MAKERS.get(record["event"])
    found = maker(record) if maker else []
    return [*found, *_stop_reason(record)] if "stopped_because" in record else found


def _stop_reason(record: Json) -> list[Line]:
    """Return a line with the reason that the user gave to `rooda stop`; [] if there is none."""
    why = " ".join(str(record["stopped_because"] or "").split())
    return [Line("warn", f"Stopped by the user: {why}", to_stderr=True)] if why else []


def _over_budget(record: Json) -> list[Line]:
    count = f"{'' if record['exact'] else '~'}{record['tokens']}"
    return [warning(f"Prompt exceeds token budget: {count} > {record['budget']}")]


def _replaced(record: Json) -> list[Line]:
    if record["now"] == "missing":
        return [warning(f"The transcript {record['transcript']} was deleted while the agent ran")]
    return [warning(f"The transcript {record['transcript']} was replaced by {record['now']} while the agent ran")]


def _truncated(record: Json) -> list[Line]:
    text = f"AI CLI output of {record['size']} bytes is over max_output_buffer ({record['limit']})"
    return [warning(f"{text}; only the end is read", to_stderr=True)]


def _silent(record: Json) -> list[Line]:
    log = f"; its own log may say why: {record['log']}" if record["log"] else ""
    return [warning(f"The agent has printed nothing since {clock.local(record['since'])}{log}", to_stderr=True)]


def _resting(record: Json) -> list[Line]:
    who = f"Usage limit of {record['account']}: waiting" if record.get("account") else "Waiting"
    text = f"{who} {format_seconds(record['seconds'])} before the next call (until {record['until']})"
    return [warning(text, to_stderr=True)]


def _notes(record: Json) -> list[Line]:
    return [info(f"Note from the user: {' '.join(str(note).split())}", to_stderr=True) for note in record["notes"]]


def changed_limits(record: Json) -> str:
    """Format the limits that the user changed with `rooda set`."""
    units = {"iterations": "iterations {}", "cost": "cost ${}", "tokens": "tokens {}", "seconds": "seconds {}"}
    found = (
        text.format(format_number(record[key]) if record[key] else "∞") for key, text in units.items() if key in record
    )
    return f"The user set new limits: {', '.join(found)}"


def _limits(record: Json) -> list[Line]:
    return [info(changed_limits(record), to_stderr=True)]


def _unsaved(record: Json) -> list[Line]:
    text = f"State could not be saved to {record['path']} ({record['why']}); the loop continues without it"
    return [error(text, to_stderr=True)]


def listed(names: Sequence[str]) -> str:
    """Join the first names into text, followed by the number of names that are left out."""
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return ", ".join(names[:MOST_NAMES]) + more


def _left_out(record: Json) -> list[Line]:
    names = [str(path) for path in record["paths"]]
    text = f"Not in the snapshots, because only you may read them: {listed(names)}"
    return [info(f"{text} (snapshot_private = true saves them)", to_stderr=True)]


def _sandbox(record: Json) -> list[Line]:
    if record["why"]:
        head = "No sandbox" if record["mode"] == "off" else "The agent is not in the sandbox"
        return [info(f"{head}: {record['why']}", to_stderr=True)]
    return [Line("debug", f"Sandbox: {record['mode']}", to_stderr=True)]


def _restored(record: Json) -> list[Line]:
    text = f"Restored files that agents and gates may not change: {listed([*map(str, record['paths'])])}"
    hint = f"  what was written: {relative(record['kept'])}; to allow it: [sandbox] allow"
    return [warning(text, to_stderr=True), Line("warn", hint, to_stderr=True)]


def _refused(record: Json) -> list[Line]:
    return [warning(f"Refused: a connection to {record['host']} (to allow it: [sandbox] hosts)", to_stderr=True)]


def _problem(record: Json) -> list[Line]:
    return [warning(record["text"], to_stderr=True)]


def _stopping(record: Json) -> list[Line]:
    if not record["grace"]:
        return []
    again = " Press Ctrl+C again to end it now." if record["signal"] == _INTERRUPT else ""
    text = f"Stopping: the {record['what']} has {format_number(record['grace'])} s.{again}"
    return [info(text, to_stderr=True)]


def _agent_ended(record: Json) -> list[Line]:
    """Return why a call failed: the agent's reason, error message or last words, and the path of its output."""
    if record["outcome"] == "interrupted" or record.get("agent_outcome") == "usage_limit" or "said" not in record:
        return []
    kind = record.get("agent_outcome", "")
    cause = f"{kind}: " if kind not in ("", "ok") else ""
    said = _reason(record)
    if record["outcome"] == "failure" and not said:
        said = str(record["note"] or record.get("message") or "")
    return _why("agent", f"{cause}{said or 'it gave no reason'}", record["transcript"])


def _reason(record: Json) -> str:
    """Return one line: the reason that followed FAILURE, else the CLI's error message, else the agent's last words."""
    if record["promise"] == "FAILURE":
        return first_line(record["said"])
    return first_line(record.get("message") or "") or telling_line(record["said"])


def _gate_ended(record: Json) -> list[Line]:
    ended = Line("debug", f"Gate {record['gate']}: {record['verdict']} in {format_tenths(record['elapsed'])}")
    if record["verdict"] == "pass":
        return [ended]
    return [ended, *_why(f"gate {record['gate']}", record.get("said") or "it printed nothing", record["output"])]


def _why(who: str, said: str, path: str) -> list[Line]:
    said = " ".join(said.split())[:LONGEST_REASON]
    return [Line("warn", f"  {who}: {said}", to_stderr=True), Line("warn", f"    see {relative(path)}", to_stderr=True)]


def relative(path: str) -> str:
    """Return a path, made relative to the current directory if it is below that directory."""
    here = os.path.join(os.path.realpath("."), "")
    return path.removeprefix(here) if os.path.isabs(path) else path


def _prompt_assembled(record: Json) -> list[Line]:
    count = f"{'' if record['exact'] else '~'}{record['tokens']:,}"
    return [Line("debug", f"Prompt: {record['size']:,} bytes, {count} tokens")]


_MAKERS: LineMakers = {
    "notes.given": _notes,
    "limits.changed": _limits,
    "prompt.assembled": _prompt_assembled,
    "budget.exceeded": _over_budget,
    "output.truncated": _truncated,
    "transcript.replaced": _replaced,
    "agent.silent": _silent,
    "agent.ended": _agent_ended,
    "gate.ended": _gate_ended,
    "state.unsaved": _unsaved,
    "snapshot.omitted": _left_out,
    "problem": _problem,
    "sandbox.chosen": _sandbox,
    "files.restored": _restored,
    "network.refused": _refused,
    "resting": _resting,
    "stopping": _stopping,
}
