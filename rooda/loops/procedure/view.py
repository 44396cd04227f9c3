"""Formats a procedure's events as lines for the screen and as reasons for `rooda why`."""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from rooda.agents.outcome import in_words
from rooda.base.json import Json
from rooda.base.text import counted, format_seconds, format_tenths, timing_text
from rooda.loops.procedure.state import resume_command
from rooda.run.spending import cause_of
from rooda.views.lines import Line, LineMakers, error, info, warning
from rooda.views.lines import lines as lines_of
from rooda.views.summary import Words, summary
from rooda.views.why import Past, Reason, ReasonMakers, limits, stopped

PROMISE = "<promise>SUCCESS</promise>"
_FAILED = {
    "timeout": "AI CLI timed out after {limit}s",
    "idle": "AI CLI timed out after {limit}s without output",
    "resources": "AI CLI ended because it used {note}",
    "outcome": "AI CLI failed (exit 0, {outcome})",
    "": "AI CLI failed (exit {code})",
}


# The lines of the specification have one form, also for 1: "max 1 iterations". All others use `_iterations`.


def _run_started(record: Json) -> list[Line]:
    return [info(f"Starting procedure: {record['procedure']} ({_limit(record)})")]


def _run_resumed(record: Json) -> list[Line]:
    count, limit = record["iterations"], record["max_iterations"]
    bound = f"max {limit}" if limit else "unlimited iterations"
    return [
        info(f"Resuming procedure: {record['procedure']} from iteration {count} ({bound})"),
        info(f"Previous session: {count} iterations completed in {format_seconds(record['elapsed'])}"),
    ]


def _limit(record: Json) -> str:
    limit = record["max_iterations"]
    return f"max {limit} iterations" if limit else "unlimited iterations"


def _baseline_ended(record: Json) -> list[Line]:
    return [info(f"Baseline: {baseline_text(record)}", to_stderr=True)]


def _recheck_started(record: Json) -> list[Line]:
    return [info(f"Iteration {record['iteration'] + 1} was cut off; running the quality gates", to_stderr=True)]


def baseline_text(record: Json) -> str:
    """Return the gates' results before the first iteration: `tests red, lint green`."""
    return ", ".join([*(f"{gate} red" for gate in record["failed"]), *(f"{gate} green" for gate in record["passed"])])


def _iteration_started(record: Json) -> list[Line]:
    return [info(f"Iteration {_number(record)} starting...")]


def _number(record: Json) -> str:
    shown = record["iteration"] + 1
    return f"{shown}/{record['max_iterations']}" if record["max_iterations"] else str(shown)


def _iteration_ended(record: Json) -> list[Line]:
    if record["outcome"] == "interrupted":
        return []
    count = f"consecutive failures: {_count(record)}"
    found = [*_changes(record), *(warning(f"{fault.text}, {count}") for fault in faults(record))]
    if record["consecutive_failures"] < record["failure_threshold"]:
        found.append(info(f"Iteration {_number(record)} completed in {format_tenths(record['elapsed'])}"))
    return found


def _changes(record: Json) -> list[Line]:
    """Return a line if rooda committed or undid what the iteration changed."""
    if record.get("commit"):
        return [info(f"Committed {str(record['commit'])[:12]}", to_stderr=True)]
    if record.get("undone"):
        text = f"The changes of iteration {record['iteration'] + 1} were undone"
        return [info(f"{text}; they are kept as {record['undone']} (rooda undo --redo)", to_stderr=True)]
    return []


def _count(record: Json) -> str:
    return f"{record['consecutive_failures']}/{record['failure_threshold']}"


class Fault(NamedTuple):
    """A reason why an iteration failed."""

    text: str
    of_gates: bool = False


def faults(record: Json) -> list[Fault]:
    """Return the reasons why an iteration failed."""
    if failed := in_words(record, _FAILED):
        return [Fault(failed)]
    found = [Fault("AI signaled FAILURE")] if record.get("promise") == "FAILURE" else []
    red = record.get("gates_failed")
    gates = [Fault(f"Quality gates failed: {red}", True)] if red else []
    refused = record.get("commit_refused")
    commit = [Fault(f"Commit refused: {' '.join(str(refused).split())[:300]}")] if refused else []
    return [*found, *gates, *commit]


def _run_ended(record: Json) -> list[Line]:
    total = format_seconds(record["elapsed"])
    reason = record["reason"]
    if reason == "max-iterations":
        end = [info(f"Reached max iterations: {record['max_iterations']} (total: {total})"), *_red_end(record)]
    elif reason == "success-signal":
        end = [info(f"AI signaled SUCCESS: completed after {record['iterations']} iterations (total: {total})")]
    elif reason in ("blocked", "stuck"):
        end = [error(f"Aborting: {_standstill(record)}")]
    elif reason == "failures":
        after = f"Aborting after {record['consecutive_failures']} consecutive failures"
        end = [error(f"{after} ({record['iterations']} iterations completed, total: {total})")]
    elif reason == "limit":
        end = [warning(f"{record['note']} ({_iterations(record['iterations'])} completed, total: {total})")]
    elif reason == "question":
        answer = f'rooda answer {record["procedure"]} "…"'
        end = [warning(f"The agent asks: {record['note']}"), Line("warn", f"Answer it: {answer}", to_stderr=True)]
    elif reason == "agent":
        end = [error(f"Aborting: {record['note'].splitlines()[0][:400]}"), *_cure(record)]
    elif reason == "prompt":
        end = [error(line) for line in record["note"].splitlines()[:1]]
    else:
        end = [Line("warn", _interrupted(record))]
    timing = [Line("debug", f"Iteration timing: {timing_text(record['timing'])}")] if record["timing"] else []
    return [*end, *timing, *summary(record, WORDS)]


def _red_end(record: Json) -> list[Line]:
    """Return a warning that says why a run that reached its iteration limit has failed; none if it succeeded."""
    what = _left_red(record)
    return [warning(f"Ended with {what}; exit code {record['exit_code']}", to_stderr=True)] if what else []


def _left_red(record: Json) -> str:
    """Return what is red or failed at the end of a run that reached its iteration limit; "" if nothing is."""
    if "last" not in record:
        return ""
    last = record["last"]
    found = [f"red gates: {last['gates_failed']}"] if last.get("gates_failed") else []
    found += [f"a failed iteration: {fault.text}" for fault in faults(last) if not fault.of_gates]
    return "; ".join(found) or "a failed iteration"


def _standstill(record: Json) -> str:
    if record["reason"] == "stuck":
        return f"no progress in {record['stuck']} iterations: {', '.join(record['red'])}"
    count = {1: "once", 2: "twice"}.get(record["blocked"], f"{record['blocked']} times")
    return f"blocked {count}: {' '.join(record['note'].split())[:300] or 'no reason given'}"


def _cure(record: Json) -> list[Line]:
    """Return a line that says how the user can correct an error of the agent, if rooda knows it."""
    cure = _CURES.get(record.get("refused", ""))
    go_on = f"then: rooda resume {record['procedure']}"
    return [Line("warn", f"{cure}; {go_on}", to_stderr=True)] if cure else []


def _interrupted(record: Json) -> str:
    if not record.get("saved", True):
        return "Interrupted. State could not be saved."
    return f"Interrupted. State saved. Resume with: rooda resume {record['procedure']}"


def _iterations(count: int) -> str:
    return counted(count, "iteration")


_CURES = {
    "auth": "Log in with the agent's own program, or set its key (`rooda agents` shows who would be billed)",
    "config": "Correct what the agent's program refuses: command, model or options (rooda config show agents)",
    "context_overflow": "Shorten the prompt, let the agent read less at once, or give it a model with a larger window",
}
_CAUSES: Mapping[str, Callable[[Json], str]] = {
    "max-iterations": lambda record: f"after {record['max_iterations']} of {_iterations(record['max_iterations'])}",
    "success-signal": lambda record: "the agent signaled SUCCESS",
    "failures": lambda record: f"{counted(record['consecutive_failures'], 'failure')} in a row",
    "stuck": lambda record: f"no progress in {_iterations(record['stuck'])}",
    "blocked": lambda record: f"blocked {counted(record['blocked'], 'time')}",
    "question": lambda record: f"the agent asks: {record['note']}",
}


def _cause(record: Json) -> str:
    cause = _CAUSES[record["reason"]](record) if record["reason"] in _CAUSES else ""
    summary = record.get("summary")
    unchecked = record["reason"] == "success-signal" and isinstance(summary, dict) and not summary["gates"]
    return f"{cause} (no gates)" if unchecked else cause


def _next(record: Json) -> str:
    """Return the command that resumes the run, or that starts it again if it failed at its iteration limit."""
    if record["reason"] == "question":
        return f'rooda answer {record["procedure"]} "…"'
    if record["status"] != "completed":
        return resume_command(record["procedure"], record["iterations"], record["max_iterations"])
    return f"rooda {record['procedure']}" if record["exit_code"] else ""


WORDS = Words(lambda record: str(record["procedure"]), _cause, _next)
LINES: LineMakers = {
    "baseline.ended": _baseline_ended,
    "recheck.started": _recheck_started,
    "run.started": _run_started,
    "run.resumed": _run_resumed,
    "run.ended": _run_ended,
    "iteration.started": _iteration_started,
    "iteration.ended": _iteration_ended,
}


# Reasons for `rooda why`


def _began(record: Json, past: Past) -> Iterator[Reason]:
    most = record.get("max_iterations")
    limit = f"at most {_iterations(most)}" if most else "no iteration limit"
    gates = ", ".join(gate["name"] for gate in record.get("gates") or ()) or "none"
    before = f"{record.get('iterations', 0)} were completed before"
    yield Reason(record["ts"], 0, "began", f"{limit}; gates: {gates}; {before}")


def _turn(record: Json, past: Past) -> Iterator[Reason]:
    transcript = past.transcript()[0]
    where = record["ts"], record["display"]
    if record["outcome"] == "interrupted":
        rule = "a signal ended its agent; the call counts, failures in a row do not change"
        yield Reason(*where, "ended", rule, transcript)
    elif record["outcome"] == "failure":
        yield from _failed(record, past, transcript)
    else:
        yield Reason(*where, "went on", *_accepted(record, past, transcript))


def _accepted(record: Json, past: Past, transcript: str) -> tuple[str, str, str]:
    """Return why an iteration succeeded: the rule, the path of the evidence, and words to search for in it.

    The evidence is a gate's output, else the agent's transcript.
    """
    rule, gate = "the agent exited with 0", past.this_iteration.get("gate.ended", {})
    claimed = record.get("promise") == "SUCCESS"
    if record["gates_failed"]:
        gate = past.failed_gates[0] if past.failed_gates else gate
        rule += f", and no gate turned red; red gates: {record['gates_failed']}{_REFUSED if claimed else ''}"
    else:
        rule += ", and every gate passed" if "gates.ended" in past.this_iteration else ", and there are no gates"
        rule += "; it signaled SUCCESS" if claimed else ""
    if output := gate.get("output", ""):
        return rule, output, gate.get("said", "")
    return rule, transcript, PROMISE if claimed else ""


def _failed(record: Json, past: Past, transcript: str) -> Iterator[Reason]:
    where = record["ts"], record["display"], "failed"
    count = f"failures in a row: {record['consecutive_failures']} of {record['failure_threshold']}"
    words = record.get("message") or (PROMISE.replace("SUCCESS", "FAILURE") if record["promise"] == "FAILURE" else "")
    for fault in faults(record):
        if not (fault.of_gates and past.failed_gates):
            yield Reason(*where, f"{fault.text}; {count}", transcript, words)
    for gate in past.failed_gates:
        rule = f"gate {gate['gate']}: {gate['verdict']}; {count}{_REFUSED if record['promise'] == 'SUCCESS' else ''}"
        yield Reason(*where, rule, gate.get("output", ""), gate.get("said", ""))


def _ended(record: Json, past: Past) -> Iterator[Reason]:
    said, reason = lines_of(record, LINES), record.get("reason", "")
    rule = limits(record) if reason == "limit" else _RULES.get(reason, "")
    red = f"ended with {what}" if (what := _left_red(record)) else ""
    text = "; ".join(part for part in (said[0].text if said else "", red, stopped(record), rule) if part)
    transcript, words = past.transcript()
    words = PROMISE if reason == "success-signal" else words
    shown = reason in ("success-signal", "failures", "agent") or _of_account(record)
    if past.failed_gates and (reason == "failures" or red):
        shown, transcript, words = True, past.failed_gates[0].get("output", ""), past.failed_gates[0].get("said", "")
    yield Reason(record["ts"], 0, "ended", f"{text} (exit {record['exit_code']})", transcript if shown else "", words)


def _of_account(record: Json) -> bool:
    cause = cause_of(record)
    return cause is not None and cause.kind == "account"


_REFUSED = "; the agent's SUCCESS was refused, because gates are red"
_RULES = {
    "max-iterations": "the iteration limit is checked before each iteration, after the failure threshold",
    "failures": "the failures in a row reached the threshold",
    "stuck": "no result of a red gate changed; stuck_after sets the limit",
    "blocked": "the agent gave up again and changed no file; blocked_threshold sets the limit",
    "success-signal": "a success signal ends the loop if the agent exited with 0 and every gate passed",
    "signal": "a signal ends the loop; the state is kept",
    "question": "a question ends the loop; after the answer, the run can be resumed",
    "agent": "the same call would only fail again, so it was not repeated",
    "prompt": "the prompt can't be built, so no agent was called",
}
REASONS: ReasonMakers = {
    "run.started": _began,
    "run.resumed": _began,
    "iteration.ended": _turn,
    "run.ended": _ended,
}
