"""Where the criteria of a new loop come from: a rules file, a template, or an agent's draft."""

import json
import os
import re
from typing import Any, NamedTuple

import click

from rooda.base import files
from rooda.base.dirs import shipped
from rooda.base.json import Json, loads
from rooda.errors import RoodaError, UsageProblem
from rooda.loops.reflex import rules
from rooda.loops.reflex.contract import halves, no_twins
from rooda.loops.reflex.rules import Criteria
from rooda.run import questions
from rooda.settings.toml import parse

_DECODER = json.JSONDecoder(object_pairs_hook=no_twins)
TEMPLATES = ("api", "code", "docs", "config")


class Drafted(NamedTuple):
    """Criteria, where they come from, and perhaps what an ideal result is."""

    criteria: Criteria
    origin: str
    ideal: str = ""


def from_file(path: str) -> Drafted:
    """JSON, or TOML by the file's name."""
    try:
        text = files.text(path)
    except OSError as problem:
        raise UsageProblem(f"--rules {path}: {problem.strerror or problem}") from None
    return parsed(text, path, toml=path.endswith(".toml"))


def parsed(text: str, where: str, toml: bool) -> Drafted:
    """The criteria of a text; UsageProblem with everything that is wrong with it."""
    try:
        data = _toml(text) if toml else loads(text.removeprefix("\ufeff"), _DECODER.decode)
    except ValueError as problem:
        raise UsageProblem(f"{where}: it is not {'TOML' if toml else 'JSON'} ({problem})") from None
    if not toml and halves(data):
        raise UsageProblem(f"{where}: a text holds half a character (one \\ud… of two)")
    return accepted(data, where)


def accepted(data: Any, where: str) -> Drafted:
    draft = rules.drafted(data)
    if draft.faults:
        raise UsageProblem("\n".join(f"{where}: {fault}" for fault in draft.faults))
    ideal = data.get("ideal_result", "") if isinstance(data, dict) else ""
    if not isinstance(ideal, str):
        raise UsageProblem(f"{where}: ideal_result must be a text, got {ideal!r}")
    if draft.unknown:
        words = ", ".join(draft.unknown)
        click.echo(f"WARNING: {where}: keys that rules do not have are passed over: {words}", err=True)
    return Drafted(draft.criteria, where, ideal.strip())


def _toml(text: str) -> Json:
    return parse(text)[0]


def template(name: str) -> Json:
    return _toml(files.text(shipped("config", os.path.join("reflex", f"{name}.toml"))))


def from_template(name: str) -> Drafted:
    return accepted(template(name), f"template {name}")


def detected(task: str) -> str:
    """The template whose words the task uses most; "" when none or several do."""
    words = re.findall(r"[a-z]+", task.lower())
    found = {name: sum(words.count(word) for word in template(name)["keywords"]) for name in TEMPLATES}
    most = max(found.values())
    best = [name for name, count in found.items() if count == most]
    return best[0] if most and len(best) == 1 else ""


def chosen(task: str) -> Drafted:
    """By the task's words; a person at the terminal is asked where they do not tell."""
    name = detected(task)
    if name:
        return from_template(name)
    if not questions.at_terminal():
        raise UsageProblem(
            "The task does not tell what kind of artifact this is; nothing was started.",
            f"Say so with --template {'|'.join(TEMPLATES)}, or give rules of your own with --rules FILE.",
        )
    rows = "\n".join(f"  {each:<8} {template(each)['summary']}" for each in TEMPLATES)
    while (answer := questions.typed_answer(f"What kind of artifact is this?\n{rows}\nTemplate: ")) is not None:
        if answer.strip() in TEMPLATES:
            return from_template(answer.strip())
    raise UsageProblem("No template was chosen; nothing was started.")


def from_agent(answer: str) -> Drafted:
    """A draft by an agent; it is only a draft until a person confirms it."""
    from rooda.loops.reflex.contract import Breach, one_object

    try:
        return accepted(one_object(answer), "the agent's draft")
    except (Breach, UsageProblem) as problem:
        raise RoodaError(
            f"The agent's draft can't be used: {problem}",
            "Try again, or use --template or --rules.",
        ) from None
