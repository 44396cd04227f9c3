"""Formats a reflex loop's events as lines for the screen and as reasons for `rooda why`."""

from collections.abc import Iterator

from rooda.base import clock
from rooda.base.json import Json
from rooda.base.text import escape_line
from rooda.loops.reflex.state import GOING_ON, MORE
from rooda.views.lines import Line, LineMakers, warning
from rooda.views.live import Live
from rooda.views.screen import Screen, ScreenOptions
from rooda.views.summary import Words
from rooda.views.summary import summary as _summary
from rooda.views.why import Past, Reason, ReasonMakers, limits, stopped

LONGEST = 300  # characters shown of a plan or a fix


def block(record: Json) -> list[str]:
    """Return the summary of an evaluation as lines, with a fix for each rule that failed."""
    verdict = "PASS" if record["passed"] else "FAIL"
    bound = f"{record['number']}/{record['max_iterations']}"
    changed = record["changed"]
    found = [
        f"── Iteration {bound} | Phase {record['level']} | Score: {record['score']} | {verdict} ──",
        f"Plan: {one_line(record['plan'])}",
        f"Hash: {record['hash']}",
        f"Changed: {'initial generation' if changed is None else _listed(changed)}",
        f"Failed: {_listed(record['failed'])}",
        f"Warnings: {_listed(record['warnings'])}",
        f"Artifact: {record['artifact']}",
    ]
    return found + [f"{rule}: {one_line(fix)}" for rule, fix in record["fixes"]]


def one_line(text: str) -> str:
    flat = escape_line(" ".join(text.split()))
    return flat if len(flat) <= LONGEST else flat[: LONGEST - 1] + "…"


def _listed(names: list[str]) -> str:
    return ", ".join(escape_line(" ".join(name.split())) for name in names) or "none"


def summary(record: Json) -> list[str]:
    """Return the final summary as lines; after the iteration limit, with the distance to success."""
    found = [
        f"── Loop {record['status']} ──",
        f"iteration: {record['number']}",
        f"max_iterations: {record['max_iterations']}",
        f"phase: {record['level']}",
        f"final_score: {record['final_score'] or 'unavailable'}",
    ]
    if record["last_evaluated_score"]:
        found.append(f"last_evaluated_score: {record['last_evaluated_score']}")
    found.append(f"stop_reason: {one_line(record['stop_reason'])}")
    if record.get("error"):
        found.append(f"error: {one_line(record['error'])}")
    return found + (_distance(record) if record.get("distance") else [])


def _distance(record: Json) -> list[str]:
    far = record["distance"]
    score = record["final_score"] or record["last_evaluated_score"]
    gap = f"{far['gap']:.2f} ({far['gap']:.4f})" if far["gap"] else "0"
    names = ", ".join(far["blocking"])
    blocking = f"{len(far['blocking'])} ({names})" if names else "0"
    return [
        "Distance to success:",
        f"  threshold: {far['threshold']}, final score: {score}",
        f"  gap to threshold: {gap}",
        f"  failed rules that block: {blocking}",
        f"  rules progress: {far['passed_rules']}/{far['total_rules']}",
    ]


def _started(record: Json) -> list[Line]:
    limit = "one iteration" if record["max_iterations"] == 1 else f"{record['max_iterations']} iterations"
    return [Line("info", f"Loop {record['name']}: at most {limit}.")]


def _resumed(record: Json) -> list[Line]:
    where = f"iteration {record['number']}/{record['max_iterations']}, phase {record['level']}, {record['step']}"
    return [Line("info", f"Loop {record['name']} resumes: {where}.")]


def _phase(record: Json) -> list[Line]:
    again = f", attempt {record['attempt']}" if record["attempt"] > 1 else ""
    return [Line("debug", f"{' ‖ '.join(record['steps'])} (iteration {record['display']}{again})", to_stderr=True)]


def _breach(record: Json) -> list[Line]:
    what = "the loop ends" if record["last"] else "the agent is asked once more"
    text = f"{record['step']} broke its contract: {one_line(record['error'])}; {what}"
    return [warning(text, to_stderr=True)]


def _checks(record: Json) -> list[Line]:
    told = {
        "run": "Running checks that the agent wrote:",
        "skip": "Checks that the agent wrote are not run (exec_checks); an agent judges their rules:",
    }
    rows = [told[record["way"]], *(f"  $ {one_line(command)}" for command in record["commands"])]
    return [Line("info", row, to_stderr=True) for row in rows]


def _restored(record: Json) -> list[Line]:
    text = f"{record['artifact']} was changed during an agent's call; it was put back"
    return [warning(text, to_stderr=True)]


def _boundary(record: Json) -> list[Line]:
    text = "All state is on disk. You can interrupt here and go on later with: rooda reflex resume"
    return [Line("info", text)]


def _ended(record: Json) -> list[Line]:
    rest = _summary(record, WORDS)
    if record["status"] == "running":
        saved = f"State saved. Resume with: rooda reflex resume {record['name']}"
        lost = "It can't be resumed. Start a new loop with: rooda reflex new TASK"
        return [Line("warn", f"{record['note']}. {lost if record['reason'] == 'gone' else saved}"), *rest]
    if record["elsewhere"]:
        lines = [warning("This loop was ended by another command.", to_stderr=True)]
        return lines + _info(summary(record)) + rest
    return _info(summary(record)) + rest


def _cause(record: Json) -> str:
    return one_line(record["stop_reason"] or record["note"]).replace("_", " ")


def _next(record: Json) -> str:
    resumable = record["status"] == "running" and record["reason"] != "gone"
    if record["status"] == "stopped" and record["stop_reason"] in GOING_ON:
        return f"rooda reflex resume {record['name']} -n {record['number'] + MORE}"
    return f"rooda reflex resume {record['name']}" if resumable else ""


WORDS = Words(lambda record: f"reflex {record['name']}", _cause, _next)


def _info(rows: list[str]) -> list[Line]:
    return [Line("info", row) for row in rows]


LINES: LineMakers = {
    "run.started": _started,
    "run.resumed": _resumed,
    "run.ended": _ended,
    "reflex.phase": _phase,
    "reflex.block": lambda record: _info(block(record)),
    "reflex.boundary": _boundary,
    "reflex.breach": _breach,
    "reflex.checks": _checks,
    "reflex.restored": _restored,
}


# The screen of a reflex loop: the lines, and a live status with phases, tokens and cost.


class ReflexLive(Live):
    """Shows the running phases, their time, and the tokens and cost of the run."""

    def update(self, record: Json) -> None:
        event = record["event"]
        if event == "reflex.phase":
            self._begin(f"Iteration {record['display']} · phase {record['level']} · {' ‖ '.join(record['steps'])}")
        elif event == "reflex.checks":
            self._begin(f"Iteration {record['display']} · checks")
        elif event != "iteration.started":
            super().update(record)

    def _begin(self, where: str) -> None:
        self._where, self._since = where, clock.monotonic()


class ReflexScreen(Screen):
    """A screen with the live status of a reflex loop."""

    def __init__(self, look: ScreenOptions) -> None:
        super().__init__(look, LINES, ReflexLive)


# Reasons for `rooda why`.


def _began(record: Json, past: Past) -> Iterator[Reason]:
    before = f"{record['iterations']} were completed before"
    where = f"iteration {record['number']}, phase {record['level']}, {record['step']}"
    limit = "one iteration" if record["max_iterations"] == 1 else f"{record['max_iterations']} iterations"
    yield Reason(record["ts"], 0, "began", f"at most {limit}; {before}; at {where}")


def _broke(record: Json, past: Past) -> Iterator[Reason]:
    what = "the second time, so the loop ends" if record["last"] else "the phase is asked once more"
    rule = f"{record['step']} broke its contract: {one_line(record['error'])}; {what}"
    yield Reason(record["ts"], record["display"], "failed", rule, *past.transcript(record["step"].lower()))


def _checked(record: Json, past: Past) -> Iterator[Reason]:
    count = len(record["commands"])
    how = "run" if record["way"] == "run" else "not run, an agent judges their rules"
    rule = f"{count} {'command' if count == 1 else 'commands'} of checks: {how} (exec_checks)"
    yield Reason(record["ts"], record["display"], "went on", rule, *past.transcript("prepare"))


def _judged(record: Json, past: Past) -> Iterator[Reason]:
    """Yield the score of an evaluation, and the rules that failed."""
    open_ = [*record["failed"], *record["warnings"]]
    rule = f"phase {record['level']}: score {record['score']}"
    rule += f"; not met: {', '.join(open_)}" if open_ else "; all rules hold"
    judge = past.this_iteration.get("evaluate", {}) or past.latest_by_call.get("evaluate", {})
    evidence = judge.get("transcript") or record["artifact"]
    decision = "passed" if record["passed"] else "failed"
    yield Reason(record["ts"], record["number"], decision, rule, evidence, open_[0] if open_ else "")


def _went_on(record: Json, past: Past) -> Iterator[Reason]:
    if record["switched"]:
        number = int(past.this_iteration["reflex.block"]["number"])
        yield Reason(record["ts"], number, "went on", "phase A passed, phase B begins", *past.transcript("evaluate"))


def _why_ended(record: Json, past: Past) -> Iterator[Reason]:
    word = "Paused" if record["status"] == "running" else f"{record['status']}, {one_line(record['stop_reason'])}"
    text = f"{word}: {one_line(record['note'])}" if record["note"] else word
    rule = limits(record) if record["reason"] == "limit" else ""
    text = "; ".join(filter(None, (text, stopped(record), rule)))
    if record["elsewhere"]:
        text += "; another command ended it"
    judged = record["status"] != "running" and "reflex.block" in past.this_iteration
    call = past.transcript("evaluate") if judged else past.transcript() if record["status"] == "failed" else ("", "")
    yield Reason(record["ts"], 0, "ended", f"{text} (exit {record['exit_code']})", *call)


REASONS: ReasonMakers = {
    "run.started": _began,
    "run.resumed": _began,
    "reflex.breach": _broke,
    "reflex.checks": _checked,
    "reflex.block": _judged,
    "reflex.boundary": _went_on,
    "run.ended": _why_ended,
}
