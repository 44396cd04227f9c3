"""EVALUATE: prepared checks, an agent's judgement where there are none, and what follows from both."""

from collections.abc import Mapping, Sequence
from functools import partial

from rooda.base.json import Json
from rooda.loops.reflex import contract, scoring
from rooda.loops.reflex import prompts as inputs
from rooda.loops.reflex.asking import asked, json_of
from rooda.loops.reflex.scoring import Finding, Standing
from rooda.loops.reflex.state import RUNNING, State, followed
from rooda.loops.reflex.world import Beside, How, Job, Ran, World


def evaluate(state: State, how: How, world: World) -> State:
    """Commands, searches, and beside them an agent that judges only the rules that no check speaks of."""
    text = world.artifact() or ""
    checks = due(state)
    commands = [check["command"] for check in checks if check["type"] == "executable"]
    allowed = commands if commands and world.runnable(commands) else []
    rules = _open(state, checks, bool(allowed))
    ran: list[Ran] = []
    judged: dict[str, Finding] = {}
    if allowed and (how.sequential or not rules):
        ran += world.execute(state, allowed)
    if rules:
        beside = Beside(allowed, ran.extend) if allowed and not ran else None
        state = asked(state, world, (_judge(state, text, rules, how, world, judged),), beside)
        if state.status != RUNNING:
            return state
    findings = _findings(checks, ran, text, world)
    findings |= {name: _both(findings.get(name), verdict) for name, verdict in judged.items()}
    return settled(state, findings, world.digest(text))


def due(state: State) -> list[Json]:
    """The prepared checks of the rules that are active."""
    checks: list[Json] = state.prepared_checks["checks"] if state.prepared_checks else []
    active = [rule["id"] for rule in state.active]
    return [check for check in checks if check["rule_id"] in active]


def _open(state: State, checks: list[Json], runs: bool) -> list[Json]:
    """The rules that are left to an agent: no check speaks of them, or one does that is not run."""
    spoken = {check["rule_id"] for check in checks}
    unrun = set() if runs else {check["rule_id"] for check in checks if check["type"] == "executable"}
    return [rule for rule in state.active if rule["id"] not in spoken or rule["id"] in unrun]


def _judge(state: State, text: str, rules: list[Json], how: How, world: World, judged: dict[str, Finding]) -> Job:
    def take(now: State, verdicts: dict[str, tuple[bool, str]]) -> State:
        judged.update({name: Finding(name, *verdict) for name, verdict in verdicts.items()})
        return now

    read = json_of(partial(contract.verdicts, wanted=[rule["id"] for rule in rules]), how)
    return Job("EVALUATE", world.compose("EVALUATE", inputs.evaluate(state, text, rules)), read, take)


def _both(checked: Finding | None, judged: Finding) -> Finding:
    """A rule that checks and an agent speak of holds if both say so."""
    return checked if checked and not checked.holds else judged


def _findings(checks: list[Json], ran: Sequence[Ran], text: str, world: World) -> dict[str, Finding]:
    """What the checks say, rule by rule: the first that does not hold, else the first."""
    commands = [check for check in checks if check["type"] == "executable"]
    said = [(check, _finding(check, each.holds, each.details)) for check, each in zip(commands, ran, strict=False)]
    said += [(check, _searched(check, text, world)) for check in checks if check["type"] == "content"]
    found: dict[str, list[Finding]] = {}
    for check, finding in said:
        found.setdefault(check["rule_id"], []).append(finding)
    return {name: next((each for each in all_ if not each.holds), all_[0]) for name, all_ in found.items()}


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
    return followed(state, what)
