"""Events to the lines that people read. Pure: facts in, text out."""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from rooda.base.json import Json
from rooda.base.text import format_seconds, format_tenths, timing_text

OWN_WORDS = ("reflex", "flow", "goal")  # kinds of loops whose `view.py` has LINES and REASONS that come first
_FAILED = {
    "timeout": "AI CLI timed out after {limit}s",
    "idle": "AI CLI timed out after {limit}s without output",
    "outcome": "AI CLI failed (exit 0, {outcome})",
    "": "AI CLI failed (exit {code})",
}
LEVELS = {"debug": 0, "info": 1, "warn": 2, "result": 2, "error": 3}  # result: said even if quiet


class Line(NamedTuple):
    """One line without its stamp."""

    level: str
    said: str
    aside: bool = False  # not one of the catalogue: goes to stderr
    label: str = ""  # what a screen puts before it
    ascii: str = ""  # for a terminal that knows ASCII only, where signs can't just be replaced

    @property
    def text(self) -> str:
        return self.label + self.said


def warning(said: str, aside: bool = False) -> Line:
    return Line("warn", str(said), aside, "WARNING: ")  # somebody may have changed the file


def error(said: str, aside: bool = False) -> Line:
    return Line("error", str(said), aside, "ERROR: ")


def lines(record: Json) -> list[Line]:
    """What an event says on the screen; most events say nothing."""
    maker = _of_kind(record.get("loop", "ooda")).get(record["event"]) or _MAKERS.get(record["event"])
    said = maker(record) if maker else []
    return [*said, *_stopped(record)] if "stopped_because" in record else said


def _stopped(record: Json) -> list[Line]:
    """The reason that a person gave to `rooda stop`."""
    why = " ".join(str(record["stopped_because"] or "").split())
    return [Line("warn", f"Stopped by a person: {why}", aside=True)] if why else []


def _of_kind(loop: str) -> "Makers":
    """The makers of a kind of loop that says things of its own: LINES of its `view.py`."""
    if loop not in OWN_WORDS:
        return {}
    import importlib

    makers: Makers = importlib.import_module(f"rooda.loops.{loop}.view").LINES
    return makers


def _run_started(record: Json) -> list[Line]:
    return [_info(f"Starting procedure: {record['procedure']} ({_limit(record)})")]


def _run_resumed(record: Json) -> list[Line]:
    count, limit = record["iterations"], record["max_iterations"]
    bound = f"max {limit}" if limit else "unlimited iterations"
    return [
        _info(f"Resuming procedure: {record['procedure']} from iteration {count} ({bound})"),
        _info(f"Previous session: {count} iterations completed in {format_seconds(record['elapsed'])}"),
    ]


def _limit(record: Json) -> str:
    limit = record["max_iterations"]
    return f"max {limit} iterations" if limit else "unlimited iterations"


def _iteration_started(record: Json) -> list[Line]:
    return [_info(f"Iteration {_number(record)} starting...")]


def _number(record: Json) -> str:
    shown = record["iteration"] + 1
    return f"{shown}/{record['max_iterations']}" if record["max_iterations"] else str(shown)


def _over_budget(record: Json) -> list[Line]:
    count = f"{'' if record['exact'] else '~'}{record['tokens']}"
    return [warning(f"Prompt exceeds token budget: {count} > {record['budget']}")]


def _truncated(record: Json) -> list[Line]:
    text = f"AI CLI output of {record['size']} bytes is over max_output_buffer ({record['limit']})"
    return [warning(f"{text}; only the end is read", aside=True)]


def _iteration_ended(record: Json) -> list[Line]:
    if record["outcome"] == "interrupted":
        return []
    count = f"consecutive failures: {_count(record)}"
    found = [*_reason(record), *(warning(f"{fault.text}, {count}") for fault in faults(record))]
    if record["consecutive_failures"] < record["failure_threshold"]:
        found.append(_info(f"Iteration {_number(record)} completed in {format_tenths(record['elapsed'])}"))
    return found


def _reason(record: Json) -> list[Line]:
    """Why, in the CLI's own words; not one of the catalogue's lines."""
    if not record.get("agent_outcome") or not record["message"]:
        return []
    said = record["message"].strip().splitlines()
    return [warning(f"{record['agent_outcome']}: {said[0][:300]}", aside=True)] if said else []


def _resting(record: Json) -> list[Line]:
    who = f"Usage limit of {record['account']}: waiting" if record.get("account") else "Waiting"
    text = f"{who} {format_seconds(record['seconds'])} before the next call (until {record['until']})"
    return [warning(text, aside=True)]


def _count(record: Json) -> str:
    return f"{record['consecutive_failures']}/{record['failure_threshold']}"


class Fault(NamedTuple):
    """What made an iteration a failed one."""

    text: str
    of_gates: bool = False


def faults(record: Json) -> list[Fault]:
    from rooda.agents.outcome import in_words

    if failed := in_words(record, _FAILED):
        return [Fault(failed)]
    found = [Fault("AI signaled FAILURE")] if record["promise"] == "FAILURE" else []
    gates = [Fault(f"Quality gates failed: {record['gates_failed']}", True)] if record["gates_failed"] else []
    return [*found, *gates]


def _run_ended(record: Json) -> list[Line]:
    total = format_seconds(record["elapsed"])
    reason = record["reason"]
    if reason == "max-iterations":
        end = [_info(f"Reached max iterations: {record['max_iterations']} (total: {total})")]
    elif reason == "success-signal":
        end = [_info(f"AI signaled SUCCESS: completed after {record['iterations']} iterations (total: {total})")]
    elif reason == "failures":
        after = f"Aborting after {record['consecutive_failures']} consecutive failures"
        end = [error(f"{after} ({record['iterations']} iterations completed, total: {total})")]
    elif reason == "limit":
        end = [warning(f"{record['note']} ({record['iterations']} iterations completed, total: {total})")]
    elif reason == "agent":
        end = [error(f"Aborting: {record['note'].splitlines()[0][:400]}"), *_cure(record)]
    elif reason == "prompt":
        end = [error(line) for line in record["note"].splitlines()[:1]]
    else:
        end = [Line("warn", _interrupted(record))]
    timing = [Line("debug", f"Iteration timing: {timing_text(record['timing'])}")] if record["timing"] else []
    return [*end, *timing]


def _cure(record: Json) -> list[Line]:
    """What a person can do about a fault that would only repeat."""
    cure = _CURES.get(record.get("refused", ""))
    go_on = f"then: rooda resume {record['procedure']}"
    return [Line("warn", f"{cure}; {go_on}", aside=True)] if cure else []


def _interrupted(record: Json) -> str:
    if not record.get("saved", True):
        return "Interrupted. State could not be saved."
    return f"Interrupted. State saved. Resume with: rooda resume {record['procedure']}"


def _unsaved(record: Json) -> list[Line]:
    text = f"State could not be saved to {record['path']} ({record['why']}); the loop goes on without it"
    return [error(text, aside=True)]


def _problem(record: Json) -> list[Line]:
    return [warning(record["text"], aside=True)]


def _gate_ended(record: Json) -> list[Line]:
    return [Line("debug", f"Gate {record['gate']}: {record['verdict']} in {format_tenths(record['elapsed'])}")]


def _prompt_assembled(record: Json) -> list[Line]:
    count = f"{'' if record['exact'] else '~'}{record['tokens']:,}"
    return [Line("debug", f"Prompt: {record['size']:,} bytes, {count} tokens")]


def _info(text: str) -> Line:
    return Line("info", text)


_CURES = {
    "auth": "Log in with the agent's own program, or set its key (`rooda agents` shows who would be billed)",
    "config": "Correct what the agent's program refuses: command, model or options (rooda config show agents)",
    "context_overflow": "Shorten the prompt, let the agent read less at once, or give it a model with a larger window",
}
Makers: TypeAlias = dict[str, Callable[[Json], list[Line]]]

_MAKERS: Makers = {
    "run.started": _run_started,
    "run.resumed": _run_resumed,
    "run.ended": _run_ended,
    "iteration.started": _iteration_started,
    "iteration.ended": _iteration_ended,
    "prompt.assembled": _prompt_assembled,
    "budget.exceeded": _over_budget,
    "output.truncated": _truncated,
    "gate.ended": _gate_ended,
    "state.unsaved": _unsaved,
    "problem": _problem,
    "resting": _resting,
}
