"""Decides whether a goal is complete: final check, judges, observations, unchanged tests, the user's confirmation."""

from collections.abc import Callable
from functools import partial
from typing import TypeAlias, TypeVar

from rooda.loops.goal import answers, prompts, scoring
from rooda.loops.goal.answers import Claim
from rooda.loops.goal.criteria import ASSUMPTION, OBSERVATION, REVIEW, Criterion
from rooda.loops.goal.rules import Pause, add_cost, claims, mark_verified, runnable, updated_mark
from rooda.loops.goal.state import COMPLETED, GoalState
from rooda.loops.goal.world import Question, Violations, World
from rooda.run.event_records import Problem

YES = ("", "y", "yes")
LONGEST_QUOTE = 80  # characters
T = TypeVar("T")
Read: TypeAlias = Callable[[str], tuple[T, str]]  # returns the ruling in an answer, and why the answer can't be used


def conclude(state: GoalState, world: World, claim: Claim, iteration: int) -> GoalState:
    """Check all criteria once more; return the state of the goal: completed, paused or still in progress."""
    found = world.verify(runnable(state.brief.criteria), iteration)
    state = mark_verified(state, found, iteration)
    late = [each for each in state.brief.criteria if each.kind == REVIEW and state.mark(each.name).valid < iteration]
    state = judge(state, world, late, iteration)
    if world.signalled() or any(not state.mark(each.name).met for each in runnable(state.brief.criteria)):
        return state
    if claim.exit:
        state = observe(state, world, claim, iteration, final=True)
    if (open_ := unconfirmed(state)) and claims_all(claim, open_):
        return state._replace(pause=Pause.OBSERVE, reason=f"needs observation: {', '.join(open_)}")
    if state.unmet or not (claim.exit or state.brief.exit_signal_source == "verified"):
        return state
    return confirm(state, world)


def unconfirmed(state: GoalState) -> list[str]:
    """Return the names of criteria left to the user: assumptions, and observations that are not confirmed yet."""
    pairs = zip(state.brief.criteria, state.marks, strict=True)
    return [each.name for each, mark in pairs if each.kind == ASSUMPTION or (each.kind == OBSERVATION and not mark.met)]


def claims_all(claim: Claim, names: list[str]) -> bool:
    return all(claims(claim, name) for name in names)


def confirm(state: GoalState, world: World) -> GoalState:
    """Complete the goal; ask the user first if gates are on, tests have changed, or mustNot entries are unchecked."""
    changed = world.changed_files(state.tests)
    state = state._replace(tests_changed=changed)
    doubtful = bool(changed or state.untold)
    if not doubtful and not state.has_gates:
        return completed(state)
    answer = world.ask_user(closing_question(state, world))
    if answer is None:
        return paused(state, Pause.G3 if state.has_gates else pause_for_doubt(state))
    if scoring.skips_gates(answer):
        state = state._replace(gates_off=True)
        if doubtful:  # an answer that skips gates doesn't accept changed tests
            return paused(state, pause_for_doubt(state))
        return completed(state)
    if answer.strip().lower() in YES:
        return completed(state)
    missing = world.ask_user(Question("missing", "What is missing?", hint=""))
    asked = (*state.instructions, missing) if missing else state.instructions
    return state._replace(denied=True, instructions=asked, feedback=("The user says that it is not done yet.",))


def pause_for_doubt(state: GoalState) -> str:
    return Pause.TESTS if state.tests_changed else Pause.UNTOLD


def paused(state: GoalState, kind: str) -> GoalState:
    words = {Pause.G3: "gate G3", Pause.TESTS: f"tests changed: {', '.join(state.tests_changed)}"}
    words |= {Pause.UNTOLD: f"mustNot could not be checked: {', '.join(state.untold)}"}
    return state._replace(pause=kind, reason=words[kind], gate="close")


def closing_question(state: GoalState, world: World) -> Question:
    changed = tuple(f"Changed since the start: {path}" for path in state.tests_changed)
    untold = tuple(f"mustNot could not be checked: {text}" for text in state.untold)
    if state.has_gates:
        base = state.brief.base
        seen = prompts.shown_work(state, world, base)
        return Question("G3", "All criteria met. Confirm done?", (*seen, *changed, *untold), base=base)
    why = "Files that verify this work were changed." if changed else "mustNot entries could not be checked."
    return Question("tests", f"{why} Accept it as done?", (*changed, *untold), "[y/N]")


def completed(state: GoalState) -> GoalState:
    return state._replace(exit_signal=True, status=COMPLETED, gate="", pause="", reason="", feedback=())


def observe(state: GoalState, world: World, claim: Claim, iteration: int, final: bool = False) -> GoalState:
    """Confirm claimed observations by asking the user, or by a file that the agent names and wrote during this call."""
    names = [
        each.name
        for each in state.brief.criteria
        if each.kind == OBSERVATION and state.mark(each.name).valid < iteration and claims(claim, each.name)
    ]
    for name in names:
        if not final and state.mark(name).met:
            continue
        how = observed_by(state, world, claim, name)
        note = f"observed: {how or 'no'}\n"
        path = world.write_note(f"{iteration}-{name}", note)
        state = with_mark(state, name, bool(how), OBSERVATION, path, iteration)
    return state


def observed_by(state: GoalState, world: World, claim: Claim, name: str) -> str:
    """Return the evidence for the observation: a file's path or "a person"; "" if it isn't confirmed."""
    if state.brief.observation_evidence == "file":
        fresh = world.written_since_call(claim.files)
        return fresh[0] if fresh else ""
    answer = world.ask_user(Question("observed", f"Observed: {name}?", hint="[y/N]"))
    return "a person" if answer is not None and answer.strip().lower() in ("y", "yes") else ""


def with_mark(state: GoalState, name: str, met: bool, achieved: str, evidence: str, iteration: int) -> GoalState:
    marks = list(state.marks)
    for place, criterion in enumerate(state.brief.criteria):
        if criterion.name == name:
            mark = updated_mark(marks[place], criterion, met, iteration, achieved)
            marks[place] = mark._replace(evidence=evidence, valid=iteration if met or achieved == REVIEW else 0)
    return state._replace(marks=tuple(marks))


def judge(state: GoalState, world: World, criteria: list[Criterion], iteration: int) -> GoalState:
    """Have an agent judge each criterion from the diff; without a quote from the diff, the criterion is not met."""
    for criterion in criteria:
        diff = diff_for_judge(state, world, criterion.name)
        values = {"criterion": criterion.name, "diff": prompts.diff_for_prompt(diff)}
        read = partial(read_verdict, diff)
        state, (met, _), said = ask_judge(state, world, iteration, "judge", values, criterion.name, read)
        path = world.write_note(f"{iteration}-{criterion.name}", f"judge: {said.strip()}\n")
        state = with_mark(state, criterion.name, bool(met), REVIEW, path, iteration)
    return state


def ask_judge(
    state: GoalState, world: World, iteration: int, template: str, values: dict[str, str], of: str, read: "Read[T]"
) -> "tuple[GoalState, tuple[T, str], str]":
    """Ask a judge, and again if the answer is unusable; return the state, the ruling with its fault, and the answer."""
    prompt = prompts.filled(world.template, template, values)
    for again in (False, True):
        result = world.ask("judge", iteration, prompt)
        state = add_cost(state, result)
        ruling, fault = read(result.text)
        if not result.ok and not ruling:  # a failed call can't clear an entry
            fault = fault or "its call failed"
        if not fault or world.signalled():
            break
        fault = f"{fault} ({result.how})" if result.how else fault
        more = "" if again else "; asking again"
        world.emit(Problem(text=f"The judge of {of} gave no usable answer: {fault}{more}"))
        prompt = f"{prompt}\n## Once more\n\nYour last answer could not be used: {fault}.\n"
    return state, (ruling, fault), result.text


def read_verdict(diff: str, text: str) -> tuple[bool, str]:
    """Read a judge's ruling on a criterion; return whether the criterion is met, and the answer's fault, "" if none."""
    answer = answers.find_json(text)
    if answer is None:
        return False, "it is not JSON"
    if not isinstance(answer.get("met"), bool):
        return False, "`met` is neither true nor false"
    quote = answer.get("quote")
    if not answer["met"]:
        return False, ""
    if not isinstance(quote, str) or not quote.strip():
        return False, "its quote is missing"
    if scoring.plain(quote) not in scoring.plain(diff):
        return False, f"its quote is not in the change: {' '.join(quote.split())[:LONGEST_QUOTE]!r}"
    return True, ""


def diff_for_judge(state: GoalState, world: World, of: str) -> str:
    """Return the diff since the start; warn if it is too long for a judge."""
    diff = world.diff(state.brief.base)
    if more := prompts.cut_characters(diff):
        world.emit(Problem(text=f"The diff is too long for the judge of {of}: {more} characters omitted."))
    return diff


def check_must_not(state: GoalState, world: World, iteration: int) -> tuple[GoalState, tuple[str, ...]]:
    """Check the mustNot entries; return the new state and the violated entries.

    Run the commands first. If no command finds a violation and judging is on, a judge checks the entries without one.
    """
    entries = [each for each in state.brief.mustNot if each.violated_if]
    violations = world.violations(entries, iteration) if entries else Violations()
    state = state._replace(untold=violations.unknown)
    plain = [each.text for each in state.brief.mustNot if not each.violated_if]
    if violations.true or not plain or not state.brief.must_not_judge:
        return state, violations.true
    diff = diff_for_judge(state, world, "mustNot")
    values = {"entries": prompts.bullets(plain), "diff": prompts.diff_for_prompt(diff)}
    read = partial(read_ruling, plain)
    state, (named, fault), _ = ask_judge(state, world, iteration, "judge-mustnot", values, "the mustNot entries", read)
    if not fault:
        return state, named
    return state._replace(untold=(*state.untold, *plain)), ()


def read_ruling(entries: list[str], text: str) -> tuple[tuple[str, ...], str]:
    """Read a judge's ruling on mustNot entries; return the violated entries, and the answer's fault, "" if none."""
    named = answers.read_ruling(text, entries)
    if named is None:
        return (), "it is not JSON" if answers.find_json(text) is None else "`violated` is not a list of the entries"
    return named, ""
