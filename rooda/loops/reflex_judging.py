"""EVALUATE: prepared checks, an agent's judgement where there are none, and what follows from both."""

from collections.abc import Mapping
from functools import partial

from rooda.loops import reflex_inputs as inputs
from rooda.loops.reflex_asking import asked, json_of
from rooda.loops.reflex_state import CRITIQUE, PREPARE, RUNNING, State, ended
from rooda.loops.reflex_world import How, Job, World
from rooda.model import Json
from rooda.policy import reflex_contract as contract
from rooda.policy import reflex_score as scoring
from rooda.policy.reflex_score import Finding, Standing


def evaluate(state: State, how: How, world: World) -> State:
    """Commands and searches first; an agent judges only the rules that no check speaks of."""
    text = world.artifact() or ""
    findings, open_rules = checked(state, text, world)
    if open_rules:
        judged: dict[str, Finding] = {}
        state = asked(state, world, (_judge(state, text, open_rules, how, world, judged),))
        if state.status != RUNNING:
            return state
        findings = {name: _both(findings.get(name), judged.get(name)) for name in {**findings, **judged}}
    return settled(state, findings, world.digest(text))


def _judge(state: State, text: str, rules: list[Json], how: How, world: World, judged: dict[str, Finding]) -> Job:
    def take(now: State, verdicts: dict[str, tuple[bool, str]]) -> State:
        judged.update({name: Finding(name, *verdict) for name, verdict in verdicts.items()})
        return now

    read = json_of(partial(contract.verdicts, wanted=[rule["id"] for rule in rules]), how)
    return Job("EVALUATE", world.compose("EVALUATE", inputs.evaluate(state, text, rules)), read, take)


def _both(one: Finding | None, other: Finding | None) -> Finding:
    """A rule that checks and an agent speak of holds if both say so."""
    found = [each for each in (one, other) if each is not None]
    return next((each for each in found if not each.holds), found[-1])


def checked(state: State, text: str, world: World) -> tuple[dict[str, Finding], list[Json]]:
    """What the prepared checks say, rule by rule, and the rules that are left to an agent."""
    checks: list[Json] = state.prepared_checks["checks"] if state.prepared_checks else []
    active = [rule["id"] for rule in state.active]
    checks = [check for check in checks if check["rule_id"] in active]
    commands = [check for check in checks if check["type"] == "executable"]
    skipped = commands and not world.runnable([check["command"] for check in commands])
    results = world.execute(state, [check["command"] for check in commands]) if commands and not skipped else []
    found: dict[str, list[Finding]] = {}
    for check, ran in zip(commands, results, strict=False):
        found.setdefault(check["rule_id"], []).append(_finding(check, ran.holds, ran.details))
    for check in checks:
        if check["type"] == "content":
            found.setdefault(check["rule_id"], []).append(_searched(check, text, world))
    left = {check["rule_id"] for check in commands} if skipped else set()
    findings = {name: next((each for each in all_ if not each.holds), all_[0]) for name, all_ in found.items()}
    return findings, [rule for rule in state.active if rule["id"] not in findings or rule["id"] in left]


def _finding(check: Json, holds: bool, said: str) -> Finding:
    return Finding(check["rule_id"], holds, f"{said}; expected: {check['expected']}" if check["expected"] else said)


def _searched(check: Json, text: str, world: World) -> Finding:
    """Literally in the text, or as a regular expression."""
    pattern, absent = check["search"], check.get("absent", False)
    said = "found" if pattern in text else world.search(pattern, text)
    holds = said == ("missing" if absent else "found")
    return _finding(check, holds, f"{'search timed out' if said == 'timed out' else said}: {pattern}")


def settled(state: State, findings: Mapping[str, Finding], digest: str) -> State:
    """The state after an evaluation: finished, on to phase B, or on to CRITIQUE."""
    rules = state.active
    found = scoring.evaluation(rules, findings, state.threshold)
    before = scoring.exact_score(state.rules, state.evaluation)
    now = scoring.exact_score(rules, found)
    standing = Standing(state.phase, state.iteration, state.max_iterations, state.stagnation_count, before)
    what, count = scoring.what_next(standing, now, found["passed"], bool(found["failed"]))
    state = state._replace(
        evaluation={**found, "artifact_hash": digest}, last_score=found["score"], stagnation_count=count
    )
    if what == scoring.SWITCH:
        return state._replace(phase="B", current_step=PREPARE)
    if what == scoring.REFINE:
        return state._replace(current_step=CRITIQUE)
    return ended(state, what)
