"""Tries an unknown agent CLI, to find out how it takes its prompt and which reader understands its output."""

import os
import shlex
from collections.abc import Iterator
from typing import Any, NamedTuple

from rooda.agentkit.check import LAST, WORK, Harness, Subject, turns_of, why_undone
from rooda.agentkit.server.clis import ANY_API
from rooda.agents import outcome, transcript
from rooda.agents.reader import OUTPUTS, reader
from rooda.base.json import Json
from rooda.processes.signals import Signals
from rooda.settings.toml import toml_key, toml_value

HINT = "If the CLI needs other settings to find the server, write [agents.NAME] and [agents.NAME.test] yourself."


class Try(NamedTuple):
    """One way to pass the prompt to the CLI. `problem` says why it failed; "" if the CLI did its work."""

    way: str
    problem: str
    subject: Subject  # settings of the agent, with the reader that was found


def ways(command: str) -> tuple[str, ...]:
    """Return the ways to pass the prompt to the CLI, in the order in which rooda tries them."""
    return ("argument", "file") if "{prompt}" in command else ("stdin", "argument")


def tries(name: str, command: str, folder: str, signals: Signals) -> Iterator[Try]:
    """Try each way to pass the prompt until one works, and yield each result. A signal ends the trials."""
    for way in ways(command):
        if signals.count:
            return
        subject = Subject(name, command, {"prompt": way, "output": "text"}, {"env": ANY_API})
        harness = Harness(os.path.join(folder, way), subject, signals)
        done = harness.run(turns_of(harness), WORK)
        problem = why_undone(harness, done)
        yield Try(way, problem, subject if problem else subject._replace(table=_read(subject, harness)))
        if not problem:
            return


def _read(subject: Subject, harness: Harness) -> dict[str, Any]:
    """Return the subject's settings with the reader that understands the transcript best; `text` if none does."""
    path, code = str(harness.event("agent.started").get("transcript")), harness.event("agent.ended").get("exit_code")
    found = [(score, output) for output in OUTPUTS if (score := _score(output, path, int(code or 0)))]
    if not found:
        return {**subject.table, "output": "text"}
    _, output = max(found, key=lambda each: each[0])
    facts = transcript.facts_of(output, path)
    known = [what for what, value in (("usage", facts.usage), ("cost", facts.cost)) if value is not None]
    return {**subject.table, "output": output, **({"known": known} if known else {})}


def _score(output: str, path: str, code: int) -> int:
    """Return the number of facts that a reader finds in a transcript; 0 if it can't read how the call ended."""
    if reader(output).record is None:  # plain text, which any reader of lines would accept
        return 0
    facts = transcript.facts_of(output, path)
    if outcome.judge(facts, "exit", code).kind != outcome.OK or LAST not in facts.final:
        return 0
    return 1 + sum(map(bool, (facts.usage, facts.cost, facts.session, facts.model, facts.turns, facts.tools)))


def table_text(subject: Subject, command: str) -> str:
    """Return the settings of the agent as TOML, including those that `rooda agents test` needs."""
    rows: Json = {"command": command, **subject.table}
    if rows["output"] == "text":
        del rows["output"]
    if rows["prompt"] == ("argument" if "{prompt}" in command else "stdin"):
        del rows["prompt"]
    head = f"agents.{toml_key(subject.name)}"
    lines = [f"[{head}]", *(f"{key} = {toml_value(value)}" for key, value in rows.items())]
    lines += ["", f"[{head}.test.env]", *(f"{key} = {toml_value(v)}" for key, v in ANY_API.items())]
    return "\n".join(lines) + "\n"


def absolute(command: str, folder: str) -> str:
    """Return the command. If its program is a path relative to `folder`, make that path absolute."""
    program, *words = shlex.split(command)
    if os.sep not in program or os.path.isabs(program):
        return command
    return shlex.join([os.path.join(folder, program), *words])
