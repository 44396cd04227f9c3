"""Builds events from a goal's state, and prompts for the agent."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rooda.agents.outcome import ASKING
from rooda.loops.goal import criteria
from rooda.loops.goal.criteria import Criterion
from rooda.loops.goal.events import IterationEnded, IterationStarted, RunEnded
from rooda.loops.goal.rules import Pause, needs_cause, waits_for_cause
from rooda.loops.goal.scoring import WORKFLOW_NAMES
from rooda.loops.goal.state import CONFIRM, SATISFY, GoalState, cost_text, criteria_of_step, money
from rooda.loops.goal.world import CallResult, World
from rooda.run.placeholders import substitute
from rooda.run.records import Ending
from rooda.run.spending import cause_facts

FIND_CAUSE = "Find the root cause"


def with_notes(prompt: str, notes: Sequence[str]) -> str:
    """Prepend the notes that the user gave with `rooda say`, if any, to the prompt."""
    lines = [f"- {' '.join(note.split())}" for note in notes]
    return "\n".join(["## STATUS", "", "Notes from the user:", *lines, "", prompt]) if lines else prompt


def iteration_started(state: GoalState) -> IterationStarted:
    return IterationStarted(
        iteration=state.iteration,
        max_iterations=state.limit,
        cost=cost_text(state.spent, state.blind),
        budget=money(state.budget),
        step=state.step,
    )


def iteration_ended(before: GoalState, after: GoalState, accepted: bool, result: CallResult) -> IterationEnded:
    names = [each.name for each in after.brief.criteria]
    return IterationEnded(
        iteration=before.iteration,
        step=before.step,
        accepted=accepted,
        done=after.done,
        total=len(after.steps),
        next_step=after.steps[after.done] if after.done < len(after.steps) else "none",
        exit_signal=after.exit_signal,
        criteria={name: mark.met for name, mark in zip(names, after.marks, strict=True)},
        stuck=after.stuck,
        next=next_action(after),
        outcome="success" if accepted else "failure",
        elapsed=round(result.seconds, 3),
        cost=cost_text(after.spent, after.blind),
        claimed=after.claim.exit,
        edits=dict(result.edits),
        no_cause=needs_cause(after),
    )


def next_action(state: GoalState) -> str:
    """Return the next action: the one that the agent named, else the next step, else the first unmet criterion."""
    if state.exit_signal:
        return "none"
    if state.claim.next and state.claim.next.lower() != "none":
        return state.claim.next
    if waits_for_cause(state):
        return FIND_CAUSE
    if state.done < len(state.steps):
        return state.steps[state.done]
    return f"{SATISFY}{state.unmet[0]}" if state.unmet else CONFIRM


def g2_question(before: GoalState, after: GoalState, accepted: bool) -> str:
    if accepted:
        return f"Step {before.step} complete. Continue?"
    if waits_for_cause(after):
        return f"Step {before.step} not complete (no root cause yet). Continue?"
    open_ = [name for name in criteria_of_step(before, before.step) if name in after.unmet] or list(after.unmet)
    why = f" (unmet: {', '.join(open_)})" if open_ else ""
    return f"Step {before.step} not complete{why}. Continue?"


def run_ended(state: GoalState, ending: Ending) -> RunEnded:
    brief = state.brief
    return RunEnded(
        reason=ending.kind,
        note=ending.note,
        **cause_facts(ending.cause),
        status=state.status,
        exit_code=ending.code,
        signal=ending.signal,
        iterations=state.iteration,
        max_iterations=state.limit,
        cost=cost_text(state.spent, state.blind),
        budget=money(state.budget),
        allowance=money(brief.allowance),
        done=state.done,
        remaining=len(state.steps) - state.done,
        criteria={each.name: mark.met for each, mark in zip(brief.criteria, state.marks, strict=True)},
        claimed=list(criteria.claimed(brief.criteria, state.marks)),
        verdict=criteria.verdict(brief.criteria, state.marks, brief.reversibility),
        verified=criteria.used(state.marks),
        confidence=state.confidence,
        type=brief.reversibility,
        points=brief.points,
        alt=state.alt or brief.alt,
        risk=state.risk or brief.risk,
        tests_changed=list(state.tests_changed),
        **_asked(ending),
    )


def _asked(ending: Ending) -> dict[str, Any]:
    return {"question": ending.note} if ending.kind == Pause.QUESTION else {}


def feedback(before: GoalState, after: GoalState, result: CallResult, violations: tuple[str, ...]) -> tuple[str, ...]:
    """Return notes on this call for the next prompt, without the names of holdout criteria."""
    hidden = {each.name for each in after.brief.criteria if each.holdout}
    open_ = [name for name in after.unmet if name not in hidden]
    found = [f"A mustNot entry is violated: {text}." for text in violations]
    if not result.ok:
        found.append(f"The last call ended badly ({result.how}){f': {result.error}' if result.error else ''}.")
    if after.claim.fault:
        found.append(f"About the last call: {after.claim.fault}. Without a whole status block nothing is claimed.")
    held = [name for name in open_ if name not in before.unmet]
    if held:
        found.append(f"These criteria held before the last call and do not hold now: {', '.join(held)}.")
    if after.claim.exit and not after.exit_signal:
        found.append(f"The last call claimed completion. That was not accepted{_why_not(after, open_)}.")
    if needs_cause(after) and before.done == after.done:
        found.append("No root cause is known yet, so no step is accepted and the goal can't be complete.")
        found.append("Say the root cause that you found on a line of its own: `ROOT_CAUSE: cause, and the evidence`.")
    if not after.unmet and not after.exit_signal and not needs_cause(after):
        found.append("All criteria are verified. If nothing is missing, print EXIT_SIGNAL: true; if not, do what is.")
    return tuple(found)


def _why_not(state: GoalState, open_: Sequence[str]) -> str:
    """Return why a claim of completion was not accepted; `open_`: the unmet criteria that the agent may see."""
    if not state.unmet:
        return ": no root cause is known yet" if needs_cause(state) else ""
    return f": these criteria do not hold: {', '.join(open_)}" if open_ else ", since not all of it holds"


def step_prompt(state: GoalState, world: World) -> str:
    """Return the prompt for the current step."""
    brief = state.brief
    seen = visible_criteria(brief.criteria)
    own = [each for each in seen if each.name in criteria_of_step(state, state.step)]
    met = {each.name: mark.met for each, mark in zip(brief.criteria, state.marks, strict=True)}
    notes = [*state.feedback, *cause(state)]
    must_not = [each.text for each in brief.mustNot]
    last = state.done + 1 >= len(state.steps)
    values = {
        "spec": quoted(brief.spec),
        "asking": section("STATUS", ASKING if world.may_ask() else ""),
        "clarified": section("What the user added", quoted(brief.clarified) if brief.clarified else ""),
        "amendments": section("So that it is not misread", bullets(brief.amendments)),
        "steps": step_list(state),
        "step": step_words(state),
        "asked": section("What the user asks for", asked(state)),
        "tied": section("It is done when", bullets([f"{c.name}: {method(c)}" for c in own])),
        "failing": section("What failed the last time", evidence(state, world, [c.name for c in own])),
        "notes": section("To know", bullets(notes)),
        "workflow": section("How to work", workflow(state, world, last)),
        "must_not": section("What must never become true", bullets(must_not)),
        "standing": criteria_list(seen, met),
        "criteria": claim_form(seen),
        "extra": "\nBefore the block: a line `ROOT_CAUSE: the cause, and the evidence for it`."
        if needs_cause(state)
        else "",
    }
    return filled(world.template, "step", values)


def step_words(state: GoalState) -> str:
    """Return the current step's name; after the last step, an instruction to check the whole work."""
    if state.done >= len(state.steps):
        return "All steps are done. Check the whole work against the specification; do what is missing, if anything is."
    return step_name(state, state.step)


def step_name(state: GoalState, step: str) -> str:
    """Return the step's name, or a substitute if it contains the name of a holdout criterion."""
    hidden = [each.name for each in state.brief.criteria if each.holdout]
    if step.startswith(SATISFY) and any(name in step for name in hidden):
        return "Something that the specification asks for does not hold yet. Find it and fix it."
    return step


def step_list(state: GoalState) -> str:
    """Return all steps as a numbered list that marks each as done, this step or later."""
    words = ["done"] * state.done + ["this step"] + ["later"] * len(state.steps)
    return "\n".join(
        f"{place}. ({word}) {step_name(state, step)}"
        for place, (step, word) in enumerate(zip(state.steps, words, strict=False), 1)
    )


def asked(state: GoalState) -> str:
    """Return the user's answers to "What is missing?" as an instruction for the agent; "" if there are none."""
    head = "The user has looked at the work and asks for this. Do it, as a part of the specification:\n\n"
    return head + bullets(state.instructions) if state.instructions else ""


def workflow(state: GoalState, world: World, last: bool) -> str:
    text = world.template(f"workflow-{state.brief.workflow.lower()}").strip()
    return f"{text}\n\n{world.template('last-step').strip()}" if last else text


def cause(state: GoalState) -> list[str]:
    """Return prompt lines with the workflow's gate evidence and the root cause, if known."""
    brief = state.brief
    found = [f"{WORKFLOW_NAMES[brief.workflow]}: {brief.evidence}"] if brief.evidence else []
    return found + ([f"Root cause: {state.root_cause}"] if state.root_cause else [])


def evidence(state: GoalState, world: World, names: list[str]) -> str:
    """Return the last output of each named criterion's failed check."""
    found = []
    for name in names:
        mark = state.mark(name)
        if not mark.met and mark.evidence and state.iteration:
            found.append(f"{name}:\n\n{quoted(tail(world.read_tail(mark.evidence)))}")
    return "\n\n".join(found)


# What the gates G2 and G3 show of the work.
MOST_WORDS, MOST_LINES = 600, 8


def last_words(text: str) -> str:
    """Return the last lines of an agent's message, short enough to show above a question."""
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    return "\n".join(lines[-MOST_LINES:])[-MOST_WORDS:]


def shown_work(state: GoalState, world: World, base: str, since: int = 0) -> tuple[str, ...]:
    """Return the lines above a question about the work: changed files, the agent's words, and the evidence.

    `since`: the first iteration whose evidence is included.
    """
    changed = world.diffstat(base) if base else ()
    said = [f"  {line}" for line in state.said.splitlines()]
    pairs = zip(state.brief.criteria, state.marks, strict=True)
    shown = [
        f"  {'✓' if mark.met else '✗'} {each.name} ({mark.verification}): {mark.evidence}"
        for each, mark in pairs
        if mark.evidence and _iteration_of(mark.evidence) >= since
    ]
    return (
        *(("Changed:", *changed) if changed else ("Changed: nothing",) if base else ()),
        *(("The agent says:", *said) if said else ()),
        *(("Evidence:", *shown) if shown else ()),
        *(("d shows the diff.",) if changed else ()),
    )


def _iteration_of(evidence: str) -> int:
    """Return the iteration in the name of an evidence file, such as `3-tests pass.txt`."""
    number = evidence.rpartition("/")[2].partition("-")[0]
    return int(number) if number.isdecimal() else 0


# Parts of prompts.
Template = Callable[[str], str]
LONGEST_TAIL = 4000
LONGEST_CHANGE = 100_000


def filled(template: Template, name: str, values: Mapping[str, str]) -> str:
    """Fill in a prompt template, and put a line above it that names the kind of call: `ROODA_CALL=KIND`."""
    kind = name.partition("-")[0]
    text = substitute(template(name), values, f"goal/{name}.md").strip("\n")
    return f"ROODA_CALL={kind}\n\n{squeezed(text)}\n"


def squeezed(text: str) -> str:
    """Collapse consecutive blank lines, which empty sections leave, into one."""
    lines: list[str] = []
    for line in text.split("\n"):
        if line.strip() or (lines and lines[-1].strip()):
            lines.append(line)
    return "\n".join(lines)


def section(title: str, body: str) -> str:
    return f"## {title}\n\n{body.strip()}\n" if body.strip() else ""


def bullets(texts: Sequence[str]) -> str:
    return "\n".join(f"- {text}" for text in texts)


def quoted(text: str) -> str:
    """Return the text in a code fence that is longer than any fence in it."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}\n{text.strip(chr(10))}\n{fence}"


def diff_for_prompt(diff: str) -> str:
    """Format the diff for a judge's prompt; cut a long diff, and note how many characters are missing."""
    more = cut_characters(diff)
    return f"{quoted(diff[:LONGEST_CHANGE])}\n\n(cut: {more} more characters are not shown)" if more else quoted(diff)


def cut_characters(diff: str) -> int:
    """Return how many characters of the diff are cut off for a judge."""
    return max(0, len(diff) - LONGEST_CHANGE)


def visible_criteria(criteria: Sequence[Criterion]) -> list[Criterion]:
    """Return the criteria that an agent may see: all but holdout criteria."""
    return [each for each in criteria if not each.holdout]


def method(criterion: Criterion) -> str:
    """Describe how the criterion is verified."""
    if criterion.command:
        expect = f", and its output must show {criterion.expect}" if criterion.expect else ""
        return f"verified by `{criterion.command}`{expect}"
    return f"verified by {criterion.verification}{f': {criterion.note}' if criterion.note else ''}"


def criteria_list(criteria: Sequence[Criterion], met: Mapping[str, bool]) -> str:
    """Return the criteria as a Markdown checklist that also says how each unmet criterion is verified."""
    return bullets([f"[x] {each.name}" if met[each.name] else f"[ ] {each.name}: {method(each)}" for each in criteria])


def claim_form(criteria: Sequence[Criterion]) -> str:
    """Return the status block's criteria as JSON, all false, for the agent to fill in."""
    return json.dumps({each.name: False for each in criteria}, ensure_ascii=False)


def tail(text: str) -> str:
    """Return the end of a command's output, where errors usually are."""
    return text if len(text) <= LONGEST_TAIL else f"…{text[-LONGEST_TAIL:]}"
