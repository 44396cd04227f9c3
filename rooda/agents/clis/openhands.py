"""Reads the output of `openhands --headless --json`: one record per line, between boxes drawn for the terminal.

openhands exits with 0 even after an error of the service; the error is then its last record. When the context is full,
openhands condenses the conversation and asks the model again; if that does not help, it repeats this endlessly.
"""

import re

from rooda.agents.gathered import Gathered, inner, listed, number
from rooda.agents.reader import Reader, SessionFiles
from rooda.agents.records import Usage
from rooda.base.json import Json

EDITING = ("create", "str_replace", "insert")
OVERFLOW = "context_window"  # error code for a full context, which openhands does not report
KINDS = (
    *("SystemPromptEvent", "MessageEvent", "ActionEvent", "ObservationEvent", "AgentErrorEvent", "PauseEvent"),
    *("ConversationErrorEvent", "ConversationStateUpdateEvent", "Condensation", "CondensationRequest"),
)
_ID = re.compile(r"Conversation ID: (\w+)")


def take(record: Json, into: Gathered) -> None:
    kind = record.get("kind")
    if kind == "ActionEvent" or (kind == "MessageEvent" and record.get("source") == "agent"):
        _progress(into)
    if kind == "MessageEvent" and record.get("source") == "agent":
        into.add_message(_words(inner(record, "llm_message"), "content"))
        into.ended = True
    elif kind == "ActionEvent":
        _action(record, into)
    elif kind == "AgentErrorEvent" or inner(record, "observation").get("is_error"):
        into.tool_failed()
    elif kind == "ConversationErrorEvent":
        into.ended = False
        into.fail(record.get("detail"), record.get("code"))
    elif kind == "CondensationRequest":
        into.memory["overflows"] = into.memory.get("overflows", 0) + 1
        if into.memory["overflows"] > 1:
            into.fail("It condenses the conversation again and again; the context stays too full.", OVERFLOW)


def _progress(into: Gathered) -> None:
    """Record that the model has answered, so condensing the conversation has helped."""
    into.memory["overflows"] = 0
    if into.error == OVERFLOW:
        into.error = into.message = ""


def _action(record: Json, into: Gathered) -> None:
    action, name = inner(record, "action"), record.get("tool_name")
    into.turns += 1
    into.add_message(_words(record, "thought"))
    into.ended = name == "finish"
    if name == "finish":
        into.add_message(action.get("message"))
        return
    path = action.get("path")
    into.add_tool_call(name, path or action.get("command"), path if action.get("command") in EDITING else None)


def _words(record: Json, key: str) -> str:
    return "".join(str(part.get("text") or "") for part in listed(record, key))


def unparsed(text: str, into: Gathered) -> None:
    if found := _ID.search(text):
        into.session = found[1]


def _session(record: Json, into: Gathered) -> None:
    """Count the tokens in the state of a conversation. Its dollars are ignored: they are a library's estimates."""
    for each in inner(record, "stats", "usage_to_metrics").values():
        found = inner(each, "accumulated_token_usage")
        cached, written = number(found, "cache_read_tokens"), number(found, "cache_write_tokens")
        fresh = max(0, number(found, "prompt_tokens") - cached - written)
        usage = Usage(fresh, number(found, "completion_tokens"), cached, written)
        if any(usage):
            into.add_share(str(found.get("model") or "").rpartition("/")[2], usage)


READER = Reader(
    record=take,
    unparsed=unparsed,
    kinds=KINDS,
    kind="kind",
    sessions=(
        SessionFiles(
            home=("OPENHANDS_PERSISTENCE_DIR", ""),
            folder=".openhands",
            place=("conversations", "{session}", "base_state.json"),
            markers=(),
            take=_session,
            whole=True,
        ),
    ),
    shell=("terminal",),
    compacts_forever=True,
)
