"""Events of a reflex loop to the lines that people read. Pure: facts in, text out."""

from collections.abc import Callable

from rooda.base.json import Json
from rooda.base.text import visible
from rooda.views.lines import Line, warning

LONGEST = 300  # characters of a plan, of a fix


def block(record: Json) -> list[str]:
    """The compact summary of an evaluation, and a fix for each rule that failed."""
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
    flat = visible(" ".join(text.split()))
    return flat if len(flat) <= LONGEST else flat[: LONGEST - 1] + "…"


def _listed(names: list[str]) -> str:
    return ", ".join(visible(" ".join(name.split())) for name in names) or "none"


def summary(record: Json) -> list[str]:
    """The final summary; how far it is to success where the limit ended the loop."""
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
    return [Line("info", f"Loop {record['name']} goes on: {where}.")]


def _phase(record: Json) -> list[Line]:
    again = f", attempt {record['attempt']}" if record["attempt"] > 1 else ""
    return [Line("debug", f"{' ‖ '.join(record['steps'])} (iteration {record['display']}{again})", aside=True)]


def _breach(record: Json) -> list[Line]:
    what = "the loop ends" if record["last"] else "it is asked once more"
    text = f"{record['step']} broke its contract: {one_line(record['error'])}; {what}"
    return [warning(text, aside=True)]


def _checks(record: Json) -> list[Line]:
    told = {
        "run": "Checks that the agent wrote, run now:",
        "skip": "Checks that the agent wrote are not run (exec_checks); an agent judges their rules:",
    }
    rows = [told[record["way"]], *(f"  $ {one_line(command)}" for command in record["commands"])]
    return [Line("info", row, aside=True) for row in rows]


def _restored(record: Json) -> list[Line]:
    text = f"{record['artifact']} was changed during an agent's call; it was put back"
    return [warning(text, aside=True)]


def _boundary(record: Json) -> list[Line]:
    text = "Context: all state is on disk. Recommended: clear the context, then rooda reflex resume."
    return [Line("info", text)]


def _ended(record: Json) -> list[Line]:
    if record["status"] == "running":
        saved = f"State saved. Resume with: rooda reflex resume {record['name']}"
        lost = "It can't go on. Start a new loop with: rooda reflex new TASK"
        return [Line("warn", f"{record['note']}. {lost if record['reason'] == 'gone' else saved}")]
    if record["elsewhere"]:
        lines = [warning("this loop was ended by another command.", aside=True)]
        return lines + _info(summary(record))
    return _info(summary(record))


def _info(rows: list[str]) -> list[Line]:
    return [Line("info", row) for row in rows]


MAKERS: dict[str, Callable[[Json], list[Line]]] = {
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
