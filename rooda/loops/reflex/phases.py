"""The phases of an iteration: PLAN, PRODUCE and PREPARE, EVALUATE, CRITIQUE, REFINE."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from rooda.base.json import Json
from rooda.loops.reflex import contract, prompts, scoring
from rooda.loops.reflex.contract import Breach
from rooda.loops.reflex.events import ReflexBreach
from rooda.loops.reflex.scoring import Finding, Position
from rooda.loops.reflex.state import (
    EVALUATE,
    PLAN,
    PREPARE,
    PRODUCE_PREPARE,
    REFINE,
    RUNNING,
    WRITERS,
    State,
    after_evaluation,
    ended,
)
from rooda.loops.reflex.world import (
    Answer,
    CallFailed,
    CheckResult,
    Concurrent,
    LoopOptions,
    PhaseRequest,
    Query,
    World,
)
from rooda.run.event_records import Problem

TRIES = 2  # answers per phase: rooda asks once more after one that breaks the contract
CALLS = 3  # failed calls of a phase that end the session; rooda repeats earlier ones after growing pauses


def plan(state: State, options: LoopOptions, world: World) -> State:
    def apply(now: State, steps: list[str]) -> State:
        return now._replace(plan=tuple(steps), current_step=PRODUCE_PREPARE)

    prompt = world.compose("PLAN", prompts.plan(state, world.recent_history(state), world.fixes(state)))
    return ask_agents(state, world, (PhaseRequest("PLAN", prompt, json_parser("plan", contract.plan, options), apply),))


def produce_and_prepare(state: State, options: LoopOptions, world: World) -> State:
    """Run PRODUCE and PREPARE; after an interruption or the switch to phase B, run only the one that is missing."""
    requests = []
    if state.current_step == PRODUCE_PREPARE:
        requests.append(_produce(state, world))
    if state.current_step == PREPARE or state.prepared_checks is None:
        requests.append(_prepare(state, options, world))
    for group in [(request,) for request in requests] if options.sequential else [tuple(requests)]:
        if state.status == RUNNING:
            state = ask_agents(state, world, group)
            state = world.save(state) if options.sequential else state
    return state


def _produce(state: State, world: World) -> PhaseRequest:
    def apply(now: State, text: str) -> State:
        world.stage_artifact(text)
        return now._replace(current_step=PREPARE if now.prepared_checks is None else EVALUATE)

    previous = world.read_artifact() if state.iteration > 1 else None
    prompt = world.compose("PRODUCE", prompts.produce(state, previous))
    return PhaseRequest("PRODUCE", prompt, contract.markdown, apply)


def _prepare(state: State, options: LoopOptions, world: World) -> PhaseRequest:
    def apply(now: State, checks: list[Json]) -> State:
        step = EVALUATE if now.current_step == PREPARE else now.current_step
        return now._replace(prepared_checks={"checks": checks}, current_step=step)

    active = [rule["id"] for rule in state.active]
    check = partial(contract.checks, active=active, artifact=options.artifact, roots=options.roots)
    prompt = world.compose("PREPARE", prompts.prepare(state, options.artifact))
    return PhaseRequest("PREPARE", prompt, json_parser("checks", check, options), apply)


def evaluate(state: State, options: LoopOptions, world: World) -> State:
    """Run the prepared checks; an agent judges the rules that have none, in parallel with the checks' commands."""
    text = world.read_artifact() or ""
    checks = active_checks(state)
    commands = [check["command"] for check in checks if check["type"] == "executable"]
    allowed = commands if commands and world.may_run(commands) else []
    rules = _rules_without_checks(state, checks, bool(allowed))
    results: list[CheckResult] = []
    judged: dict[str, Finding] = {}
    if allowed and (options.sequential or not rules):
        results += world.run_checks(state, allowed)
    if rules:
        concurrent = Concurrent(allowed, results.extend) if allowed and not results else None
        state = ask_agents(state, world, (_judge(state, text, rules, options, world, judged),), concurrent)
        if state.status != RUNNING:
            return state
    findings = _findings(checks, results, text, world)
    findings |= {name: _combined(findings.get(name), verdict) for name, verdict in judged.items()}
    return with_evaluation(state, findings, world.hash_artifact(text))


def critique(state: State, options: LoopOptions, world: World) -> State:
    def apply(now: State, issues: list[Json]) -> State:
        return now._replace(critique={"issues": issues}, current_step=REFINE)

    failing = [entry["id"] for entry in (*state.evaluation["failed"], *state.evaluation["warnings"])]
    parse = json_parser("issues", partial(contract.issues, failing=failing), options)
    prompt = world.compose("CRITIQUE", prompts.critique(state, world.read_artifact() or ""))
    return ask_agents(state, world, (PhaseRequest("CRITIQUE", prompt, parse, apply),))


def refine(state: State, options: LoopOptions, world: World) -> State:
    """Replace the artifact and begin the next iteration."""

    def apply(now: State, text: str) -> State:
        world.stage_artifact(text)
        return now._replace(
            iteration=now.iteration + 1, current_step=PLAN, plan=(), prepared_checks=None, critique=None
        )

    prompt = world.compose("REFINE", prompts.refine(state, world.read_artifact() or ""))
    return ask_agents(state, world, (PhaseRequest("REFINE", prompt, contract.markdown, apply),))


# Asking agents: if an answer breaks its contract, the agent is asked once more.


def ask_agents(
    state: State, world: World, requests: Sequence[PhaseRequest], concurrent: Concurrent | None = None
) -> State:
    """Ask agents and apply their answers. If an answer breaks its contract, ask again; a second breach ends the loop.

    A call that fails is repeated; raise CallFailed after the last try.
    """
    over = [request.phase for request in requests if len(world.breaches(state, request.phase)) >= TRIES]
    if over:  # rooda was killed after the last try, before it recorded the loop's end
        return ended(state, "phase_error", f"{', '.join(over)}: the contract was broken {TRIES} times")
    pending, failures = list(requests), dict.fromkeys((request.phase for request in requests), 0)
    while pending:
        broken: list[tuple[PhaseRequest, Breach, str]] = []
        repeated: list[PhaseRequest] = []
        failed: list[tuple[str, Answer]] = []
        queries = [_query(state, world, each, failures[each.phase]) for each in pending]
        answers, concurrent = world.ask(queries, concurrent), None
        for request, answer in zip(pending, answers, strict=True):
            if answer.unasked or answer.failed:
                repeated.append(request)
                failed += [(request.phase, answer)] if answer.failed else []
                continue
            try:
                state = request.apply(state, _parsed(request, answer))
            except Breach as problem:
                broken.append((request, problem, answer.text))
        if broken or failed or 0 < len(repeated) < len(pending):
            state = _with_breaches(world.save(state), world, broken)
        pending = [*repeated, *(request for request, _, _ in broken)] if state.status == RUNNING else []
        if pending:
            _count_failures(failed, failures, world)
    return state


def _count_failures(failed: Sequence[tuple[str, Answer]], failures: dict[str, int], world: World) -> None:
    """Report and count failed calls; raise CallFailed if one of them must not be repeated."""
    for phase, answer in failed:
        failures[phase] += 1
        if answer.final or failures[phase] >= CALLS:
            raise CallFailed(f"{phase}: {answer.failed}")
        world.emit(Problem(text=f"{phase}: {answer.failed}; call {failures[phase]} of {CALLS} failed; retrying"))


def json_parser(key: str, check: Callable[[Json], Any], options: LoopOptions) -> Callable[[str], Any]:
    return lambda text: check(contract.one_object(text, options.extraction, key))


def _query(state: State, world: World, request: PhaseRequest, failures: int) -> Query:
    errors = world.breaches(state, request.phase)
    prompt = prompts.again(request.prompt, errors[-1]) if errors else request.prompt
    return Query(request.phase, state.iteration, state.phase, prompt, len(errors) + 1, failures)


def _parsed(request: PhaseRequest, answer: Answer) -> Any:
    if answer.problem:
        raise Breach(answer.problem)
    return request.parse(answer.text)


def _with_breaches(state: State, world: World, broken: Sequence[tuple[PhaseRequest, Breach, str]]) -> State:
    """Record breaches of contract; a phase's second breach ends the loop."""
    over = []
    for request, problem, text in broken if state.status == RUNNING else ():
        phase, error = request.phase, world.redacted(str(problem))
        attempt = len(world.breaches(state, phase)) + 1
        excerpt = "" if phase in WRITERS else world.redacted(text)[:200]  # the history never quotes the artifact
        world.record_breach(state, phase, attempt, error, excerpt)
        world.emit(ReflexBreach(step=phase, attempt=attempt, error=error, last=attempt >= TRIES))
        if attempt >= TRIES:
            over.append(f"{phase}: {error}")
    return ended(state, "phase_error", "; ".join(over)) if over else state


# Evaluating: prepared checks, an agent's judgement, and the state that follows from both.


def active_checks(state: State) -> list[Json]:
    """Return the prepared checks of the active rules."""
    checks: list[Json] = state.prepared_checks["checks"] if state.prepared_checks else []
    active = [rule["id"] for rule in state.active]
    return [check for check in checks if check["rule_id"] in active]


def with_evaluation(state: State, findings: Mapping[str, Finding], digest: str) -> State:
    """Return the state after an evaluation: ended, in phase B, or at CRITIQUE."""
    rules = state.active
    found = scoring.evaluation(rules, findings, state.threshold)
    before = scoring.exact_score(state.rules, state.evaluation)
    now = scoring.exact_score(rules, found)
    position = Position(
        state.phase, state.iteration, state.max_iterations, state.stagnation_count, before, state.strict
    )
    step, count = scoring.next_step(position, now, found["passed"], bool(found["failed"]))
    state = state._replace(
        evaluation={**found, "artifact_hash": digest}, last_score=found["score"], stagnation_count=count
    )
    return after_evaluation(state, step)


def _rules_without_checks(state: State, checks: list[Json], runs: bool) -> list[Json]:
    """Return the active rules that an agent must judge: they have no check, or one whose command isn't run."""
    checked = {check["rule_id"] for check in checks}
    not_run = set() if runs else {check["rule_id"] for check in checks if check["type"] == "executable"}
    return [rule for rule in state.active if rule["id"] not in checked or rule["id"] in not_run]


def _judge(
    state: State, text: str, rules: list[Json], options: LoopOptions, world: World, judged: dict[str, Finding]
) -> PhaseRequest:
    def apply(now: State, verdicts: dict[str, tuple[bool, str]]) -> State:
        judged.update({name: Finding(name, *verdict) for name, verdict in verdicts.items()})
        return now

    parse = json_parser("rule_results", partial(contract.verdicts, wanted=[rule["id"] for rule in rules]), options)
    return PhaseRequest("EVALUATE", world.compose("EVALUATE", prompts.evaluate(state, text, rules)), parse, apply)


def _combined(checked: Finding | None, judged: Finding) -> Finding:
    """Combine the results of a rule's checks and of an agent's judgment: the rule holds if both pass."""
    return checked if checked and not checked.holds else judged


def _findings(checks: list[Json], results: Sequence[CheckResult], text: str, world: World) -> dict[str, Finding]:
    """Return one finding per checked rule: that of its first failed check, else of its first check."""
    commands = [check for check in checks if check["type"] == "executable"]
    all_ = [_finding(check, each.holds, each.details) for check, each in zip(commands, results, strict=False)]
    all_ += [_searched(check, text, world) for check in checks if check["type"] == "content"]
    by_rule: dict[str, list[Finding]] = {}
    for finding in all_:
        by_rule.setdefault(finding.id, []).append(finding)
    return {name: next((each for each in found if not each.holds), found[0]) for name, found in by_rule.items()}


def _finding(check: Json, holds: bool, facts: str) -> Finding:
    return Finding(check["rule_id"], holds, f"{facts}; expected: {check['expected']}" if check["expected"] else facts)


def _searched(check: Json, text: str, world: World) -> Finding:
    """Search the artifact for a check's pattern, literally and then as a regular expression."""
    pattern, absent = check["search"], check.get("absent", False)
    result = "found" if pattern in text else world.search(pattern, text)
    holds = result == ("missing" if absent else "found")
    return _finding(check, holds, f"{'search timed out' if result == 'timed out' else result}: {pattern}")
