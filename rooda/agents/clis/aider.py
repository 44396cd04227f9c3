"""Reads aider's plain output. aider's exit code means nothing, so errors are recognized by their text."""

import math
import re

from rooda.agents.gathered import Gathered, money, number
from rooda.agents.reader import Reader
from rooda.agents.records import Usage

_TOKENS = re.compile(r"^Tokens: ([\d.]+[kM]?) sent, (?:[\d.]+[kM]? cache \w+, )*([\d.]+[kM]?) received\.")
_COST = re.compile(r"\$([\d.]+) session")
_EDIT = re.compile(r"^Applied edit to (.+)$")
_ERROR = re.compile(r"litellm\.(?:exceptions\.)?(\w+(?:Error|Exceeded|Exception)): (.*)")
WIDTH = 80  # columns at which it wraps its lines
LONGEST = 65_536  # at least this many characters at the end of the final message are kept
_SCALE = {"k": 1_000, "M": 1_000_000}


def line(text: str, into: Gathered) -> None:
    if edit := _EDIT.match(text):
        into.add_tool_call("edit", edit[1], edit[1])
    elif tokens := _TOKENS.match(text):
        into.ended = True
        into.error = into.message = ""
        into.add_usage(Usage(_count(tokens[1]), _count(tokens[2])))
        if cost := _COST.search(text):
            into.cost = money(_number(cost[1].rstrip(".")))
    elif "has hit a token limit" in text:
        into.fail(f"{text} (context window)", "context_window")
    elif error := _ERROR.search(text):
        into.fail(f"{error[1]}: {error[2]}"[:500], error[1])
    elif into.memory.pop("wrapped", False) and into.message:
        into.message = f"{into.message.rstrip()} {text}"[:500]
    else:
        into.continue_message(f"\n{text}")
        into.memory["size"] = size = into.memory.get("size", 0) + len(text) + 1
        if size > 2 * LONGEST:
            into.final, into.cut = into.final[-LONGEST:], True
            into.memory["size"] = LONGEST
        into.unparsed(text.encode())
    into.memory["wrapped"] = bool(into.message) and (text.endswith(" ") or len(text) >= WIDTH - 1)


def _count(text: str) -> int:
    return number({"count": _number(text.rstrip("kM")) * _SCALE.get(text[-1:], 1)}, "count")


def _number(text: str) -> float:
    """Parse a number; return NaN if the text isn't one."""
    try:
        return float(text)
    except ValueError:
        return math.nan


READER = Reader(line=line, runs_commands=False)
