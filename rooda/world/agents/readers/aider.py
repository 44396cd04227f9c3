"""aider's plain output. Its exit code says nothing; its words do."""

import re

from rooda.model import Usage
from rooda.world.agents.gathered import Gathered

_TOKENS = re.compile(r"^Tokens: ([\d.]+[kM]?) sent, (?:[\d.]+[kM]? cache \w+, )*([\d.]+[kM]?) received\.")
_COST = re.compile(r"\$([\d.]+) session")
_EDIT = re.compile(r"^Applied edit to (.+)$")
_ERROR = re.compile(r"litellm\.(?:exceptions\.)?(\w+(?:Error|Exceeded|Exception)): (.*)")
LONGEST = 65_536  # characters of its words that are kept at least
_SCALE = {"k": 1_000, "M": 1_000_000}


def line(text: str, into: Gathered) -> None:
    if edit := _EDIT.match(text):
        into.tool("edit", edit[1], edit[1])
    elif tokens := _TOKENS.match(text):
        into.ended = True
        into.error = into.message = ""
        into.add(Usage(_count(tokens[1]), _count(tokens[2])))
        if cost := _COST.search(text):
            into.cost = float(cost[1].rstrip("."))
    elif "has hit a token limit" in text:
        into.fail(f"{text} (context window)", "context_window")
    elif error := _ERROR.search(text):
        into.fail(f"{error[1]}: {error[2]}"[:500], error[1])
    else:
        into.goes_on(f"\n{text}")
        into.memory["size"] = size = into.memory.get("size", 0) + len(text) + 1
        if size > 2 * LONGEST:
            into.final, into.cut = into.final[-LONGEST:], True
            into.memory["size"] = LONGEST
        into.noise(text.encode())


def _count(text: str) -> int:
    scale = _SCALE.get(text[-1:], 1)
    try:
        return int(float(text.rstrip("kM")) * scale)
    except ValueError:
        return 0
