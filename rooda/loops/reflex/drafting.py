"""Gets the criteria of a new loop from a rules file, a template or an agent, and asks the user to confirm them."""

import json
import os
import re
from collections.abc import Callable
from typing import Any, NamedTuple

from rooda.agents.backoff import backoff
from rooda.agents.outcome import in_words, refusal
from rooda.agents.records import Call, Reply
from rooda.base import files, workspace_files
from rooda.base.dirs import shipped
from rooda.base.json import Json, loads
from rooda.base.text import counted, escape_line
from rooda.errors import Interrupted, RoodaError, Undecided, UsageProblem
from rooda.loops.reflex import contract, rules
from rooda.loops.reflex.contract import Breach, has_lone_surrogate, unique_keys
from rooda.loops.reflex.events import KIND
from rooda.loops.reflex.phases import CALLS, TRIES
from rooda.loops.reflex.prompts import again
from rooda.loops.reflex.rules import LEVELS, Criteria
from rooda.loops.reflex.scoring import number_text
from rooda.loops.reflex.setup import Prepared
from rooda.processes.signals import Signals
from rooda.run import questions
from rooda.run.event_records import Problem
from rooda.run.placeholders import substitute
from rooda.run.prompts import Measure
from rooda.run.records import Owner
from rooda.run.session import Session
from rooda.run.setup import Setup
from rooda.settings.toml import parse
from rooda.settings.where import Where
from rooda.views.say import say

_DECODER = json.JSONDecoder(object_pairs_hook=unique_keys)
TEMPLATES = ("api", "code", "docs", "config")


class Drafted(NamedTuple):
    """Criteria for a new loop, with their origin and an optional ideal result."""

    criteria: Criteria
    origin: str
    ideal: str = ""


def from_file(workspace: str, path: str) -> Drafted:
    """Read a rules file: TOML if its name ends in .toml, else JSON."""
    try:
        text = files.to_text(workspace_files.read_typed(workspace, os.path.abspath(path)))
    except OSError as problem:
        raise UsageProblem(f"--rules {path}: {problem.strerror or problem}") from None
    return parsed(text, path, toml=path.endswith(".toml"))


def existing(workspace: str, path: str) -> str:
    """Read the artifact that a loop begins with."""
    try:
        text = files.to_text(workspace_files.read_typed(workspace, os.path.abspath(path)))
    except OSError as problem:
        raise UsageProblem(f"--from {path}: {problem.strerror or problem}") from None
    if not text.strip():
        raise UsageProblem(f"--from {path}: the file is empty.", "Start without --from, or give another file.")
    return text.replace("\r\n", "\n").removesuffix("\n") + "\n"


def parsed(text: str, where: str, toml: bool) -> Drafted:
    """Parse criteria; raise one UsageProblem that lists all faults."""
    try:
        data = _toml(text) if toml else loads(text.removeprefix("\ufeff"), _DECODER.decode)
    except ValueError as problem:
        raise UsageProblem(f"{where}: invalid {'TOML' if toml else 'JSON'} ({problem})") from None
    if not toml and has_lone_surrogate(data):
        raise UsageProblem(f"{where}: a string has an unpaired surrogate (\\ud…)")
    return accepted(data, where)


def accepted(data: Any, where: str) -> Drafted:
    draft = rules.drafted(data)
    if draft.faults:
        raise UsageProblem("\n".join(f"{where}: {fault}" for fault in draft.faults))
    ideal = data.get("ideal_result", "") if isinstance(data, dict) else ""
    if not isinstance(ideal, str):
        raise UsageProblem(f"{where}: ideal_result must be a string, got {ideal!r}")
    if draft.unknown:
        words = ", ".join(draft.unknown)
        say(f"WARNING: {where}: unknown keys of rules are ignored: {words}", to_stderr=True)
    return Drafted(draft.criteria, where, ideal.strip())


def _toml(text: str) -> Json:
    return parse(text)[0]


def template(name: str) -> Json:
    return _toml(files.text(shipped("config", os.path.join("reflex", f"{name}.toml"))))


def from_template(name: str) -> Drafted:
    return accepted(template(name), f"template {name}")


def detected(task: str) -> str:
    """Return the template whose keywords occur most often in the task; "" for none or a tie."""
    words = re.findall(r"[a-z]+", task.lower())
    found = {name: sum(words.count(word) for word in template(name)["keywords"]) for name in TEMPLATES}
    most = max(found.values())
    best = [name for name, count in found.items() if count == most]
    return best[0] if most and len(best) == 1 else ""


def chosen(task: str) -> Drafted:
    """Return the criteria of the template that fits the task; if none fits, ask the user at the terminal."""
    name = detected(task)
    if name:
        return from_template(name)
    if not questions.at_terminal():
        raise UsageProblem(
            "rooda can't tell from the task what kind of artifact this is; nothing was started.",
            f"Choose one with --template {'|'.join(TEMPLATES)}, or use your own rules with --rules FILE.",
        )
    rows = "\n".join(f"  {each:<8} {template(each)['summary']}" for each in TEMPLATES)
    while (answer := questions.typed_answer(f"What kind of artifact is this?\n{rows}\nTemplate: ")) is not None:
        if answer.strip() in TEMPLATES:
            return from_template(answer.strip())
    raise UsageProblem("No template was chosen; nothing was started.")


def from_agent(answer: str) -> Drafted:
    """Parse the criteria that an agent drafted; raise Breach or UsageProblem if they can't be used."""
    return accepted(contract.one_object(answer, key="rules"), "the agent's draft")


def draft(task: str, here: Where, made: Prepared) -> Drafted:
    """Ask the agent to propose criteria for a task (`--draft`)."""
    return _asked_agent(_text("draft", task=task), here, made, from_agent, "--template or --rules")


def for_task(general: Drafted, task: str, here: Where, made: Prepared) -> Drafted:
    """Ask the agent to make the checks of a template's rules specific to a task."""
    found = general.criteria.rules
    shown = [{key: getattr(rule, key) for key in ("id", "description", "severity", "check")} for rule in found]
    text = _text("checks", task=task, rules=json.dumps(shown, indent=1, ensure_ascii=False))

    def read(answer: str) -> Drafted:
        own, ideal = contract.own_checks(contract.one_object(answer, key="checks"), [rule.id for rule in found])
        criteria = general.criteria._replace(rules=tuple(rule._replace(check=own[rule.id]) for rule in found))
        return Drafted(criteria, f"{general.origin}, checks made for this task", ideal)

    return _asked_agent(text, here, made, read, "--generic, --template or --rules")


def _text(name: str, **values: str) -> str:
    return substitute(files.text(shipped("prompts", f"reflex/{name}.md")), values, f"builtin:reflex/{name}.md")


def _asked_agent(text: str, here: Where, made: Prepared, read: Callable[[str], Drafted], instead: str) -> Drafted:
    """Ask the agent for criteria before the loop begins; after an invalid answer, ask once more and quote the error."""
    setup, problem = made.setup, ""
    with Signals() as signals:
        owner = Owner(KIND, "draft", Setup(made.agent, bounds=setup.bounds, further=setup.further))
        session = Session(here.workspace, owner, signals, made.screen.show, made.screen.tick(), None)
        try:
            for attempt in range(1, TRIES + 1):
                reply = _reply(session, again(text, problem) if problem else text, attempt, made, instead)
                try:
                    return read(reply.answer.text)
                except (Breach, UsageProblem) as breach:
                    problem = str(breach)
        finally:
            made.screen.close()
            session.close()
    raise RoodaError(f"The agent's draft can't be used: {problem}", f"Try again, or use {instead}.")


def _reply(session: Session, text: str, attempt: int, made: Prepared, instead: str) -> Reply:
    """Call the agent, and retry failed calls; raise RoodaError if no retry can help or all have failed."""
    for failures in range(CALLS):
        label = f"draft-{attempt}-{failures + 1}"
        prompt = session.prompt(lambda: text, label, Measure("", made.setup.token_budget))
        reply = session.calls.ask(
            Call("draft", 1, made.agent, prompt, made.setup.bounds, label=label, wants_answer=True)
        )
        if reply.ended == "interrupted" or session.signalled():
            raise Interrupted(session.signalled())
        if reply.ok:
            return reply
        why = in_words(reply, {"": "The agent could not draft the rules: {reason}"})
        if refusal(reply) or failures + 1 == CALLS:
            break
        session.emit(Problem(text=f"{why}; call {failures + 1} of {CALLS} failed; retrying"))
        session.wait(backoff(made.setup.retry_wait, failures + 1, reply.retry_after))
    raise RoodaError(why, f"Try again, or use {instead}.")


# Confirmation of the criteria and the iteration limit by the user.
LONGEST = 100  # most digits accepted in a limit
YES, EDIT = ("y", "yes"), ("e", "edit")
WAYS = {
    "run": "are shown and run with your permissions; to be asked first, use --exec-checks ask",
    "ask": "are shown and run with your permissions if you agree",
    "skip": "are not run; an agent judges their rules",
}


Editor = Callable[[str], str | None]  # opens text in the user's editor; returns it, or None if it was not saved


class Proposal(NamedTuple):
    """A new loop before the user confirms it."""

    task: str
    ideal: str
    alias: str
    criteria: Criteria
    origin: str
    max_iterations: int
    exec_checks: str = ""  # run, ask or skip: for commands that the agent writes as checks
    artifact: str = ""  # text of an existing artifact to begin with; "" for none


class Given(NamedTuple):
    """Confirmations given as options."""

    criteria: bool = False
    max_iterations: int | None = None


def confirmed(proposal: Proposal, given: Given, to_stderr: bool, edit: Editor) -> Proposal:
    """Return the proposal once the user has confirmed criteria and limit; raise Undecided if the user does not."""
    while True:
        show(proposal, to_stderr)
        if not given.criteria:
            answer = _asked("Use these success criteria, rules and thresholds? [y/N, e = edit] ", to_stderr)
            if answer in EDIT:
                proposal = edited(proposal, edit)
                continue
            if answer not in YES:
                raise _unconfirmed("success criteria were")
        wanted = _iterations(proposal, given, to_stderr)
        if wanted == proposal.max_iterations:
            return proposal
        proposal = proposal._replace(max_iterations=wanted)


def _iterations(proposal: Proposal, given: Given, to_stderr: bool) -> int:
    """Return the iteration limit that the user confirms or enters."""
    number = proposal.max_iterations
    if given.max_iterations is not None:
        if given.max_iterations == number:
            return number
        limit = counted(number, "iteration")
        raise Undecided(
            f"--confirm-max-iterations {given.max_iterations} does not match the limit of {limit}.",
            f"Nothing was started. Set the limit with --max-iterations {given.max_iterations}.",
        )
    answer = _asked(f"Maximum iterations: {number}. Use this limit? [y/N, or another number] ", to_stderr)
    if answer in YES:
        return number
    if answer in EDIT:
        answer = _asked("Another number: ", to_stderr)
    if answer and answer.isascii() and answer.isdecimal() and len(answer) <= LONGEST and int(answer):
        return int(answer)
    raise _unconfirmed("maximum number of iterations was")


def _asked(question: str, to_stderr: bool) -> str | None:
    say(question, to_stderr=to_stderr, end="")
    answer = questions.typed_answer("")
    if not questions.at_terminal():
        say(answer or "", to_stderr=to_stderr)
    return None if answer is None else answer.strip().lower()


def _unconfirmed(what: str) -> Undecided:
    return Undecided(
        f"The {what} not confirmed. Nothing was started.",
        "Answer y to both questions, or confirm with --confirm-criteria and --confirm-max-iterations N.",
    )


def show(proposal: Proposal, to_stderr: bool) -> None:
    rules = proposal.criteria.rules
    width = max(len(rule.id) for rule in rules)
    rows = [
        f"Task: {' '.join(proposal.task.split())}",
        f"Loop: {proposal.alias}",
        f"Ideal result: {' '.join(proposal.ideal.split())}",
        f"Success criteria: {proposal.criteria.name} ({proposal.origin})",
    ]
    for level in LEVELS:
        rows.append(f"  Phase {level}, threshold {number_text(proposal.criteria.thresholds[level])}")
        for rule in rules:
            if rule.phase == level:
                weight = f"{rule.severity}, phase {rule.phase}, weight {number_text(rule.weight)}"
                rows.append(f"    {rule.id:<{width}}  {weight}: {' '.join(rule.description.split())}")
                rows.append(f"      check: {' '.join(rule.check.split())}")
    if proposal.exec_checks:
        rows.append(f"Checks: commands that the agent writes for these rules {WAYS[proposal.exec_checks]}")
    if proposal.criteria.strict:
        rows.append("Strict: the loop continues until the threshold is reached, even if only warnings remain")
    rows.append(f"Maximum iterations: {proposal.max_iterations}")
    say("\n".join(map(escape_line, rows)), to_stderr=to_stderr)


def edited(proposal: Proposal, edit: Editor) -> Proposal:
    """Let the user edit the criteria; return the proposal with the saved criteria."""
    import os

    import tomli_w

    if not (questions.at_terminal() or os.environ.get("VISUAL") or os.environ.get("EDITOR")):
        raise Undecided("No editor is set. Nothing was started.", "Write the rules to a file: --rules FILE")
    criteria = proposal.criteria
    draft = {
        "ideal_result": proposal.ideal,
        "name": criteria.name,
        "thresholds": dict(criteria.thresholds),
        "rules": [rule._asdict() for rule in criteria.rules],
    }
    head = "# The success criteria of this loop. Save and close the editor; you will be asked again.\n"
    text = edit(head + tomli_w.dumps(draft))
    while text is not None:
        try:
            found: Drafted = parsed(text, "the edited draft", toml=True)
        except UsageProblem as problem:
            say(f"WARNING: {problem}", to_stderr=True)
            if not questions.at_terminal() or questions.typed_answer("Edit it again? [y/N]: ") not in YES:
                raise
            text = edit(text)
            continue
        strict = criteria.strict
        return proposal._replace(
            criteria=found.criteria._replace(strict=strict), ideal=found.ideal or proposal.ideal, origin="edited"
        )
    return proposal
