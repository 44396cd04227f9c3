"""Defines the state of a reflex loop, as `run.json` stores it."""

from typing import Any, NamedTuple

from rooda.base import json
from rooda.base.json import Json
from rooda.loops.reflex.rules import LEVELS, active, is_number
from rooda.loops.reflex.scoring import COMPLETED, FAILED, STATUS_OF, STOPPED, SWITCH

RUNNING = "running"
STATUSES = (RUNNING, COMPLETED, STOPPED, FAILED)
PLAN, PRODUCE_PREPARE, PREPARE = "PLAN", "PRODUCE_PREPARE", "PREPARE"
EVALUATE, CRITIQUE, REFINE = "EVALUATE", "CRITIQUE", "REFINE"
NOT_STOPPED = {"passed": False, "reason": ""}
NEEDED = {CRITIQUE: ("evaluation",), REFINE: ("evaluation", "critique")}  # values that the state must have at a step
GOING_ON = ("iteration_limit", "stagnation")  # reasons of an end after which a higher limit lets the loop continue
MORE = 4  # iterations that the proposed command adds after such an end
WRITERS = ("PRODUCE", "REFINE")  # phases whose answer is the artifact
STEPS = (PLAN, PRODUCE_PREPARE, PREPARE, EVALUATE, CRITIQUE, REFINE)


class State(NamedTuple):
    """The content of `run.json`: one field per key, in the order of the file."""

    run_id: str
    task_alias: str
    status: str
    iteration: int
    max_iterations: int
    phase: str
    current_step: str
    task: Any
    criteria: Any
    plan: tuple[str, ...] = ()
    prepared_checks: Any = None
    evaluation: Any = None
    critique: Any = None
    stop: Any = NOT_STOPPED
    last_score: Any = 0
    stagnation_count: int = 0
    created_at: str = ""
    updated_at: str = ""
    error: str = ""  # why a phase failed for good; not in run.json
    elsewhere: bool = False  # another command ended the loop; not in run.json

    @property
    def rules(self) -> list[Json]:
        rules: list[Json] = self.criteria["rules"]
        return rules

    @property
    def can_go_on(self) -> bool:
        """True if the loop ended at its limit or by stagnation, so that it can continue with a higher limit."""
        return self.status == STOPPED and self.stop["reason"] in GOING_ON and self.evaluation is not None

    @property
    def strict(self) -> bool:
        """True if the loop keeps refining when only rules of severity `warn` or `info` fail."""
        return self.criteria.get("strict") is True

    @property
    def active(self) -> list[Json]:
        return active(self.rules, self.phase)

    @property
    def threshold(self) -> Any:
        return self.criteria["phase"][self.phase]["threshold"]


def ended(state: State, reason: str, error: str = "") -> State:
    """Return the state of a loop that ends for a reason in STATUS_OF."""
    return _ended(state, STATUS_OF[reason], reason)._replace(error=error)


def after_evaluation(state: State, step: str) -> State:
    """Return the state that follows an evaluation: in phase B, at CRITIQUE, or ended."""
    if step == SWITCH:
        return state._replace(phase="B", current_step=PREPARE)
    return ended(state, step) if step in STATUS_OF else state._replace(current_step=CRITIQUE)


def stopped(state: State, word: str) -> State:
    """Return the state of a loop that the user stops. The reason can be any word, even one that rooda itself uses."""
    return _ended(state, STOPPED, word or "user_stop")


def _ended(state: State, status: str, reason: str) -> State:
    passed = bool(state.evaluation and state.evaluation["passed"])
    return state._replace(status=status, stop={"passed": passed, "reason": reason})


def reopened(state: State, limit: int) -> State:
    """Return the state of a loop that continues with this limit; an ended loop continues after its last evaluation."""
    if state.status != RUNNING:
        state = state._replace(status=RUNNING, stop=NOT_STOPPED, current_step=CRITIQUE, stagnation_count=0)
    return state._replace(max_iterations=limit)


def encoded(state: State) -> Json:
    data: Json = json.encode(state)
    del data["error"], data["elsewhere"]
    return data


def decoded(data: Json) -> State:
    """Return the state in a parsed `run.json`; raise Mismatch if it is invalid."""
    state = json.decode(State, data)._replace(error="", elsewhere=False)
    if state.current_step == "PRODUCE":
        state = state._replace(current_step=PRODUCE_PREPARE)
    for key, words in (("status", STATUSES), ("phase", LEVELS), ("current_step", STEPS)):
        if getattr(state, key) not in words:
            raise json.Mismatch(f"{key} {getattr(state, key)!r} is not one of {', '.join(words)}")
    for key, least in (("iteration", 1), ("max_iterations", 1), ("stagnation_count", 0)):
        if getattr(state, key) < least:
            raise json.Mismatch(f"{key} must be at least {least}, found {getattr(state, key)}")
    for key, shape in SHAPES.items():
        value = getattr(state, key)
        if not (shape(value) or (value is None and key in ("prepared_checks", "evaluation", "critique"))):
            raise json.Mismatch(f"{key} has an invalid form")
    for step, needed in NEEDED.items():
        if state.current_step == step and any(getattr(state, key) is None for key in needed):
            raise json.Mismatch(f"{step} needs {' and '.join(needed)}")
    return state


def read_ended(data: Json, alias: str) -> State | None:
    """Return what can be read of the state of an ended loop; None if its status does not say that it has ended."""
    status = data.get("status")
    if status not in STATUSES or status == RUNNING:
        return None
    stop = data.get("stop")
    stop = stop if isinstance(stop, dict) else {"reason": stop or data.get("stop_reason")}
    counts = {key: value for key in ("iteration", "max_iterations") if type(value := data.get(key)) is int}
    texts = {key: str(data[key]) for key in ("phase", "current_step", "created_at", "updated_at") if data.get(key)}
    score = data.get("last_score")
    unknown: Json = dict.fromkeys(("iteration", "max_iterations"), 0) | dict.fromkeys(("phase", "current_step"), "?")
    return State(
        run_id=str(data.get("run_id", "")),
        task_alias=alias,
        status=status,
        task={},
        criteria={"phase": {}, "rules": []},
        stop={"passed": stop.get("passed") is True, "reason": str(stop.get("reason") or "")},
        last_score=score if is_number(score) else 0,
        **(unknown | counts | texts),
    )


def _criteria(value: Any) -> bool:
    try:
        thresholds = [value["phase"][level]["threshold"] for level in LEVELS]
        fine = all(_texts(rule, "id", "description", "severity", "phase", "check") for rule in value["rules"])
        return fine and bool(value["rules"]) and all(map(is_number, [*thresholds, *_weights(value["rules"])]))
    except (KeyError, TypeError):
        return False


def _weights(rules: list[Json]) -> list[Any]:
    return [rule["weight"] for rule in rules]


def _texts(value: Any, *keys: str) -> bool:
    return isinstance(value, dict) and all(isinstance(value.get(key), str) for key in keys)


def _all(value: Any, *keys: str) -> bool:
    return isinstance(value, list) and all(_texts(each, *keys) for each in value)


def _evaluation(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and is_number(value.get("score"))
        and isinstance(value.get("passed"), bool)
        and _all(value.get("failed"), "id", "severity", "message")
        and _all(value.get("warnings"), "id", "severity", "message")
        and _all(value.get("rule_results"), "id", "verdict", "details")
    )


def _checks(value: Any) -> bool:
    if not (isinstance(value, dict) and _all(value.get("checks"), "rule_id", "type", "expected")):
        return False
    kinds = {"executable": "command", "content": "search"}
    return all(check["type"] in kinds and _texts(check, kinds[check["type"]]) for check in value["checks"])


def _critique(value: Any) -> bool:
    return isinstance(value, dict) and _all(value.get("issues"), "rule_id", "problem", "fix_instruction")


def _task(value: Any) -> bool:
    return _texts(value, "prompt")


def _stop(value: Any) -> bool:
    return _texts(value, "reason") and isinstance(value.get("passed"), bool)


SHAPES = {
    "task": _task,
    "criteria": _criteria,
    "prepared_checks": _checks,
    "evaluation": _evaluation,
    "critique": _critique,
    "stop": _stop,
    "last_score": is_number,
}
