"""Defines scenarios, which script the model server's answers, and the records that the server's modules share.

A scenario is a JSON object:
  {"turns": [TURN, ...],        answered in order, one per model request that carries tools
   "consume": "tools" | "all",  "all": requests without tools use up turns as well (for CLIs that send none)
   "side": "text",              the answer to a request that uses no turn (titles, quota probes)
   "after": "last" | TURN,      the answer once the turns have run out; default: {"text": "done"}
   "usage": USAGE}              token counts of every turn

A TURN has one of:
  "text": "final words"
  "write": {"path": "/abs/file", "content": "x"}   a call of whichever file-writing tool is offered
  "shell": "echo hi > file"                        a call of whichever shell tool is offered
  "tool": "Name", "input": {...}                   a call of exactly this tool (a str is free-form input)
  "error": 429, "type", "code", "message", "headers", "body"
and may have:
  "say": text before a tool call     "thinking": text       "times": n (repeat; -1 forever)
  "delay": s before the status line  "stall": s after the first event
  "drop": true                       cut the connection after the first event or, without streaming, before the answer
  "stream_error": {"type": "overloaded_error", "message": "..."}   an error inside a 200 stream
  "stop_reason": text                "headers": {...} of the answer
  "usage": {"input": 1000, "output": 50, "cache_read": 200, "cache_write": 100, "reasoning": 0}
"input" counts fresh tokens only; each API's totals are computed as that API counts them.
"""

import threading
import uuid
from collections.abc import Mapping
from typing import Any, NamedTuple

Json = dict[str, Any]
CALLING = ("tool", "write", "shell")
KINDS = ("error", *CALLING, "text")
KEYS = {*KINDS, "input", "type", "code", "message", "headers", "body", "say", "thinking", "times", "delay", "stall",
        "drop", "stream_error", "stop_reason", "usage"}  # fmt: skip


class Usage(NamedTuple):
    """Token counts of one answer; `input` excludes cached tokens."""

    input: int = 1000
    output: int = 50
    cache_read: int = 200
    cache_write: int = 100
    reasoning: int = 0

    @property
    def prompt(self) -> int:
        """Return all input tokens, including cached ones, as OpenAI and Gemini count them."""
        return self.input + self.cache_read + self.cache_write


class Call(NamedTuple):
    """A tool call; `input` is a string for tools with free-form input."""

    name: str
    input: Any


class Reply(NamedTuple):
    """One answer of the model, before an API formats it."""

    model: str
    text: str = ""
    call: Call | None = None
    usage: Usage = Usage()
    thinking: str = ""
    stop_reason: str = ""
    stream_error: Json | None = None


class Event(NamedTuple):
    """One server-sent event."""

    data: Json | str
    name: str = ""


class Taken(NamedTuple):
    """A turn and its number, which is 0 for a request that uses no turn."""

    number: int
    turn: Json


class Script:
    """A scenario, and the current position in it."""

    def __init__(self, scenario: Json) -> None:
        turns = scenario.get("turns", [])
        for turn in turns:
            if unknown := set(turn) - KEYS:
                raise ValueError(f"unknown key in a turn: {', '.join(sorted(unknown))}")
        self.scenario = scenario
        self._left = [[turn, turn.get("times", 1)] for turn in turns]
        self._number = 0
        self._lock = threading.Lock()

    @property
    def takes_all(self) -> bool:
        """True if requests without tools also use up turns."""
        return self.scenario.get("consume") == "all"

    def take(self) -> Taken:
        """Return the next turn."""
        with self._lock:
            while self._left and self._left[0][1] == 0:
                self._left.pop(0)
            if not self._left:
                return Taken(self._number, self._after())
            self._left[0][1] -= 1
            self._number += 1
            return Taken(self._number, self._left[0][0])

    def _after(self) -> Json:
        after: Json | str | None = self.scenario.get("after")
        turns: list[Json] = self.scenario.get("turns", [])
        if after == "last" and turns:
            return turns[-1]
        return after if isinstance(after, dict) else {"text": "done"}

    def usage(self, turn: Json) -> Usage:
        """Return the turn's token counts; missing ones come from the scenario, else from the defaults."""
        return Usage(**{**self.scenario.get("usage", {}), **turn.get("usage", {})})


def kind(turn: Json) -> str:
    """Return the kind of a turn: error, tool, write, shell or text."""
    return next((name for name in KINDS if name in turn), "text")


def new_id(prefix: str) -> str:
    """Return a random ID in the format of the APIs."""
    return prefix + uuid.uuid4().hex[:24]


def message(turn: Mapping[str, Any]) -> str:
    """Return the message of an error turn."""
    return str(turn.get("message", f"scripted error {turn['error']}"))
