"""opencode's run --format json. It has no last record: the run is over when its last step says stop."""

from rooda.model import Json, Usage
from rooda.world.agents.gathered import Gathered, inner, money, number

EDITING = ("write", "edit", "patch", "multiedit")


def take(record: Json, into: Gathered) -> None:
    kind, part = record.get("type"), inner(record, "part")
    into.session = into.session or str(record.get("sessionID") or "")
    if kind == "text" and not part.get("synthetic"):
        into.say(part.get("text"))
    elif kind == "tool_use":
        _tool(part, into)
    elif kind == "step_finish":
        _step(part, into)
    elif kind == "error":
        error = inner(record, "error")
        data = inner(error, "data")
        into.ended = False
        into.fail(data.get("message") or error.get("name"), error.get("name"), data.get("statusCode"))


def _tool(part: Json, into: Gathered) -> None:
    given, name = inner(part, "state", "input"), part.get("tool")
    path = given.get("filePath") or given.get("path")
    into.tool(name, given.get("command") or path, path if name in EDITING else None)
    if inner(part, "state").get("status") == "error":
        into.tool_failed()


def _step(part: Json, into: Gathered) -> None:
    into.turns += 1
    into.ended = part.get("reason") == "stop"
    cost = money(part.get("cost"))
    if cost is not None:
        into.cost = (into.cost or 0.0) + cost
    tokens = inner(part, "tokens")
    cache = inner(tokens, "cache")
    out = number(tokens, "output") + number(tokens, "reasoning")
    into.add(Usage(number(tokens, "input"), out, number(cache, "read"), number(cache, "write")))
