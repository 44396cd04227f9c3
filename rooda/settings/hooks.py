"""[hooks]: what is done when a run comes to a certain point."""

from typing import Any

from rooda.run.setup import Hook
from rooda.settings.kinds import COMMAND, SECONDS, Fault, Kind, shown, simple
from rooda.settings.layers import Settings
from rooda.settings.types import Key, table_faults

_URL = simple("must be an http or https address", lambda value: isinstance(value, str) and value.startswith("http"))
HOOK = {
    "command": Key(COMMAND, "a shell command that gets the event on stdin"),
    "url": Key(_URL, "an address that the event is posted to"),
    "timeout": Key(SECONDS, "seconds after which it is ended; 10 when left out"),
}


def _faults(value: Any) -> list[Fault]:
    if isinstance(value, str):
        return COMMAND.faults(value)
    if not isinstance(value, dict):
        return [Fault((), f"must be a command, or a table with command or url, got {shown(value)}")]
    faults = table_faults(value, HOOK)
    if ("command" in value) == ("url" in value):
        faults.append(Fault((), "must have exactly one of command and url"))
    return faults


_KIND = Kind("must be a command, or a table with command or url", _faults)
HOOKS = {
    "done": Key(_KIND, "the run ended as asked"),
    "failed": Key(_KIND, "the run ended with a failure: too many in a row, or one that would only repeat"),
    "paused": Key(_KIND, "the run ended short of its goal and can go on (exit 4)"),
    "stopped": Key(_KIND, "a signal ended the run"),
    "stuck": Key(_KIND, "the run ended without progress: failures in a row, a breaker, stagnation, an error of a node"),
    "limit": Key(_KIND, "the run waits for the usage limit of an account, or ended at one"),
    "budget": Key(_KIND, "the run ended at a limit of money, tokens or time"),
    "needs_person": Key(_KIND, "a question waits on the terminal, or the run ended and only a person can go on"),
}


def hooks(settings: Settings) -> dict[str, Hook]:
    return {moment: _hook(value) for moment, value in settings.table("hooks").items()}


def _hook(value: Any) -> Hook:
    table = {"command": value} if isinstance(value, str) else value
    return Hook(table.get("command", ""), table.get("url", ""), float(table.get("timeout", 10)))
