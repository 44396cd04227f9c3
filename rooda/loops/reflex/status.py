"""Reads the progress of reflex loops from their files and locks, and formats it as lines."""

from typing import Any

from rooda.base.json import Json
from rooda.loops.reflex import files
from rooda.loops.reflex.events import KIND
from rooda.loops.reflex.files import Place
from rooda.loops.reflex.rules import is_number
from rooda.loops.reflex.scoring import hundredths, number_text
from rooda.loops.reflex.state import GOING_ON, MORE, RUNNING, State
from rooda.processes import lock
from rooda.run.ended import STOPPED, of_file
from rooda.run.history import state_of

BARS = "▁▂▃▄▅▆▇█"
UNREADABLE = "unreadable"


def facts_of(place: Place) -> Json:
    """Return a loop's details from its files and lock."""
    found = files.load(place)
    held = lock.is_held(place.lock)
    owner = {"running": held, "pid": lock.owner(place.lock).get("pid") if held else None}
    state = found.state or files.ended_elsewhere(place)
    if state is None:
        return {"task_alias": place.alias, "status": UNREADABLE, **owner}
    scores = [
        [event["phase"], event["payload"].get("score", 0)]
        for event in found.history
        if event["event"] == "evaluation_done"
    ]
    keys = ("run_id", "task_alias", "status", "iteration", "max_iterations", "phase", "current_step")
    more = ("last_score", "stagnation_count", "stop", "created_at", "updated_at")
    facts = {key: getattr(state, key) for key in (*keys, *more)}
    facts |= {"state": RUNNING if held else of_file(state.status, state.stop["reason"])}
    return {**facts, "threshold": _threshold(state), "scores": scores, "artifact": place.shown_artifact, **owner}


def _threshold(state: State) -> Any:
    """Return the threshold of the state's phase; None if another tool's files do not have it."""
    return state.threshold if state.phase in state.criteria["phase"] else None


def shown(place: Place) -> Json:
    """Return a loop's details with the state that rooda shows, which also depends on the log."""
    facts = facts_of(place)
    if facts["status"] == UNREADABLE:
        return facts
    return {**facts, "shown_status": state_of(place.workspace, place.alias, KIND.name, facts)}


def lines(facts: Json) -> list[str]:
    alias, word = facts["task_alias"], facts["status"]
    if word == UNREADABLE:
        why = "its files are damaged, or of another tool"
        return [f"{alias}: unreadable: {why}; start a new loop with: rooda reflex new TASK"]
    how = f" (pid {facts['pid']})" if facts["running"] else ""
    shown = facts.get("shown_status") or facts["state"]
    threshold = "unknown" if facts["threshold"] is None else number_text(facts["threshold"])
    rows = [
        f"{alias}: {shown}{how}",
        f"  iteration {facts['iteration']}/{facts['max_iterations']}, phase {facts['phase']}, {facts['current_step']}",
        f"  last score {hundredths(facts['last_score'])}, threshold {threshold}{sparkline(facts['scores'])}",
        f"  started {facts['created_at']}, updated {facts['updated_at']}",
        f"  artifact {facts['artifact']}",
    ]
    if word != "running":
        rows.append(f"  stop reason {facts['stop']['reason']}")
        if word == STOPPED and facts["stop"]["reason"] in GOING_ON:
            rows.append(f"  resume with: rooda reflex resume {alias} -n {facts['iteration'] + MORE}")
    elif not facts["running"]:
        rows.append(f"  resume with: {facts.get('resume') or f'rooda reflex resume {alias}'}")
    return rows


def sparkline(scores: list[list[object]]) -> str:
    """Return a bar chart of the scores: one bar per evaluation, phase by phase."""
    text = ""
    for level in ("A", "B"):
        bars = [BARS[_height(score)] for at, score in scores if at == level]
        text += f", {level} {''.join(bars)}" if bars else ""
    return text


def row(place: Place) -> Json:
    state = files.load(place).state or files.ended_elsewhere(place)
    if state is None:
        return {"task_alias": place.alias, "status": UNREADABLE}
    if state.status == RUNNING:
        word = str(shown(place)["shown_status"])
    else:
        word = of_file(state.status, state.stop["reason"])
    keys = ("task_alias", "status", "iteration", "max_iterations", "phase", "last_score", "updated_at")
    facts = {key: getattr(state, key) for key in keys}
    return {**facts, "status": word, "file_status": state.status, "stop_reason": state.stop["reason"]}


def row_line(row: Json, width: int) -> str:
    begin = f"{row['task_alias']:<{width}}  {row['status']:<11}"
    if "iteration" not in row:
        return f"{begin}  its files are damaged, or of another tool"
    where = f"{row['iteration']}/{row['max_iterations']}  {row['phase']}  {hundredths(row['last_score'])}"
    return f"{begin}  {where}  {row['updated_at']}  {' '.join(row['stop_reason'].split())}".rstrip()


def _height(score: Any) -> int:
    share = min(1.0, max(0.0, score)) if is_number(score) else 0.0
    return min(len(BARS) - 1, int(share * len(BARS)))
