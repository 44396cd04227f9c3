"""What a person confirms before the first iteration: the criteria, and the number of iterations."""

from typing import NamedTuple

import click

from rooda.base.text import visible
from rooda.errors import Undecided, UsageProblem
from rooda.loops.reflex.drafting import Drafted, parsed
from rooda.loops.reflex.rules import LEVELS, Criteria
from rooda.loops.reflex.scoring import written
from rooda.run import questions

LONGEST = 100  # digits of a limit that is typed; there are too many for a number
YES, EDIT = ("y", "yes"), ("e", "edit")


class Proposal(NamedTuple):
    """Everything that a new loop will be."""

    task: str
    ideal: str
    alias: str
    criteria: Criteria
    origin: str
    max_iterations: int


class Given(NamedTuple):
    """Confirmations that were typed as options."""

    criteria: bool = False
    max_iterations: int | None = None


def confirmed(proposal: Proposal, given: Given, aside: bool) -> Proposal:
    """The proposal as the person confirms it, both parts of it; Undecided for anything else than two yeses."""
    while True:
        show(proposal, aside)
        if not given.criteria:
            answer = _asked("Use these success criteria, rules and thresholds? [y/N, e = edit] ", aside)
            if answer in EDIT:
                proposal = edited(proposal)
                continue
            if answer not in YES:
                raise _unconfirmed("success criteria were")
        wanted = _iterations(proposal, given, aside)
        if wanted == proposal.max_iterations:
            return proposal
        proposal = proposal._replace(max_iterations=wanted)


def _iterations(proposal: Proposal, given: Given, aside: bool) -> int:
    """The number in force if it was confirmed or named, another if the person named that."""
    number = proposal.max_iterations
    if given.max_iterations is not None:
        if given.max_iterations == number:
            return number
        raise Undecided(
            f"--confirm-max-iterations {given.max_iterations} does not confirm the number in force, {number}.",
            f"Nothing was started. Set the number with --max-iterations {given.max_iterations}.",
        )
    answer = _asked(f"Maximum iterations: {number}. Use this limit? [y/N, or another number] ", aside)
    if answer in YES:
        return number
    if answer in EDIT:
        answer = _asked("Another number: ", aside)
    if answer and answer.isascii() and answer.isdecimal() and len(answer) <= LONGEST and int(answer):
        return int(answer)
    raise _unconfirmed("maximum number of iterations was")


def _asked(question: str, aside: bool) -> str | None:
    click.echo(question, nl=False, err=aside)
    answer = questions.typed_answer("")
    if not questions.at_terminal():
        click.echo(answer or "", err=aside)
    return None if answer is None else answer.strip().lower()


def _unconfirmed(what: str) -> Undecided:
    return Undecided(
        f"The {what} not confirmed. Nothing was started.",
        "Answer y to both questions, or confirm with --confirm-criteria and --confirm-max-iterations N.",
    )


def show(proposal: Proposal, aside: bool) -> None:
    rules = proposal.criteria.rules
    width = max(len(rule.id) for rule in rules)
    rows = [
        f"Task: {' '.join(proposal.task.split())}",
        f"Loop: {proposal.alias}",
        f"Ideal result: {' '.join(proposal.ideal.split())}",
        f"Success criteria: {proposal.criteria.name} ({proposal.origin})",
    ]
    for level in LEVELS:
        rows.append(f"  Phase {level}, threshold {written(proposal.criteria.thresholds[level])}")
        for rule in rules:
            if rule.phase == level:
                weight = f"{rule.severity}, phase {rule.phase}, weight {written(rule.weight)}"
                rows.append(f"    {rule.id:<{width}}  {weight}: {' '.join(rule.description.split())}")
                rows.append(f"      check: {' '.join(rule.check.split())}")
    rows.append(f"Maximum iterations: {proposal.max_iterations}")
    click.echo("\n".join(map(visible, rows)), err=aside)


def edited(proposal: Proposal) -> Proposal:
    """The draft in the person's editor."""
    import os

    import tomli_w

    if not (questions.at_terminal() or os.environ.get("VISUAL") or os.environ.get("EDITOR")):
        raise Undecided("There is no editor here. Nothing was started.", "Write the rules to a file: --rules FILE")
    criteria = proposal.criteria
    draft = {
        "ideal_result": proposal.ideal,
        "name": criteria.name,
        "thresholds": dict(criteria.thresholds),
        "rules": [rule._asdict() for rule in criteria.rules],
    }
    head = "# The success criteria of this loop. Save and leave the editor; you will be asked again.\n"
    text = _edit(head + tomli_w.dumps(draft))
    while text is not None:
        try:
            found: Drafted = parsed(text, "the edited draft", toml=True)
        except UsageProblem as problem:
            click.echo(f"WARNING: {problem}", err=True)
            if not questions.at_terminal() or not click.confirm("Edit it again?", err=True):
                raise
            text = _edit(text)
            continue
        return proposal._replace(criteria=found.criteria, ideal=found.ideal or proposal.ideal, origin="edited")
    return proposal


def _edit(text: str) -> str | None:
    try:
        return click.edit(text, extension=".toml", require_save=False)
    except click.ClickException as problem:
        raise Undecided(
            f"{problem.format_message()}. Nothing was started.",
            "Name another editor in the variable EDITOR, or write the rules to a file: --rules FILE",
        ) from None
