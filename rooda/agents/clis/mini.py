"""Reads the trajectory file that `mini -o` writes. mini's printed output is not parsed, except for retries.

mini exits with 0 unless it crashes.
"""

import re

from rooda.agents.gathered import Gathered, inner, listed, money, number
from rooda.agents.reader import Reader, Report
from rooda.agents.records import Usage
from rooda.base.json import Json

DONE = "Submitted"
_AGAIN = re.compile(r"Retrying .{0,80} in \S+ seconds as it raised (.+)")


def line(text: str, into: Gathered) -> None:
    if again := _AGAIN.match(text):
        into.retry("", again[1])
    into.unparsed(text.encode())


def _report(record: Json, into: Gathered) -> None:
    info = inner(record, "info")
    for message in listed(record, "messages"):
        _message(message, into)
    into.cost = money(inner(info, "model_stats").get("instance_cost")) or None
    into.retry_succeeded()
    status = str(info.get("exit_status") or "")
    into.ended = status == DONE
    if into.ended:
        into.add_message(info.get("submission"))
    elif status:
        into.fail(into.memory.get("why") or status, status)


def _message(message: Json, into: Gathered) -> None:
    extra = inner(message, "extra")
    if message.get("role") == "exit":
        into.memory["why"] = message.get("content")
    if message.get("role") != "assistant":
        return
    into.turns += 1
    into.add_message(message.get("content"))
    for action in listed(extra, "actions"):
        into.add_tool_call("bash", action.get("command"))
    response = inner(extra, "response")
    into.model = str(response.get("model") or into.model)
    if usage := inner(response, "usage"):
        cached = number(inner(usage, "prompt_tokens_details"), "cached_tokens")
        into.add_usage(
            Usage(max(0, number(usage, "prompt_tokens") - cached), number(usage, "completion_tokens"), cached)
        )


READER = Reader(line=line, report=Report("", _report), shell=("bash",))
