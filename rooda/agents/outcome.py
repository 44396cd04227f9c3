"""Judges how an agent call ended, based on transcript, process and exit code; reads the agent's own verdict."""

import errno
import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from rooda.agents.records import Facts, Reply
from rooda.base.json import Json
from rooda.base.text import format_number

OK, AGENT_ERROR, AUTH, RATE_LIMIT, USAGE_LIMIT = "ok", "agent_error", "auth", "rate_limit", "usage_limit"
CONTEXT, DENIED, CONFIG, TIMEOUT, KILLED = "context_overflow", "permission_denied", "config", "timeout", "killed"
RESOURCES = "resources"

FATAL = (AUTH, CONTEXT, CONFIG)  # the next call would fail in the same way
TEMPORARY = frozenset(  # errors of starting a process that may be temporary
    getattr(errno, name, 0)
    for name in ("EIO", "ENOSPC", "EDQUOT", "EMFILE", "ENFILE", "EAGAIN", "ENOMEM", "ETXTBSY", "EINTR", "ESTALE")
) - {0}

_EXPLAINING = (
    r"(?i)error|no api key|set an auth|not found|limit|quota|denied|invalid|unknown|no auth|failed|^not |can't|cannot"
)
_PROGRAM = (  # a line of a test or a compiler, not of the CLI itself
    r"^\s*(?:FAILED|not ok|E\s|raise |throw |assert|Traceback|TODO|docs:)|AssertionError"
    r"|\w\.(?:py|[jt]sx?|go|rs|c|cpp|h|java|rb|php|cs|md|json|toml|ya?ml|txt|sh)\b"
)
_STATUS = r"(?i)(?:^\s*|\bstatus:?\s*|\berror:?\s*|\bcode\"?:\s*)\(?([45]\d\d)\b|\(([45]\d\d)\)"


def refusal(reply: Reply) -> str:
    """Return why every further call will fail until the user acts; "" if a further call may succeed."""
    if reply.ended == "not-started" and not reply.retryable and not reply.outcome:
        return reply.ended
    return reply.outcome if reply.outcome in FATAL else ""


def in_words(call: Reply | Json, words: Mapping[str, str]) -> str:
    """Return a sentence that says why a call failed, from its reply or its event; "" if it succeeded.

    `words` has a sentence for each way to fail: timeout, idle, resources, interrupted, not-started, exit (the exit code
    is not 0), outcome (the output reports a failure), and "" for all others. A sentence may use {limit} in seconds,
    {code}, {ended}, {outcome}, {message}, {note}, and what is derived from them: {named} ("auth, "), {detail} (": auth:
    first line of the message"), {summary} and {reason} (the best explanation known).
    """
    facts = call._asdict() if isinstance(call, Reply) else {**call, "outcome": call.get("agent_outcome", "")}
    ended, code, outcome = facts.get("ended", "exit"), facts.get("exit_code", 0), facts["outcome"]
    failed = "" if outcome == OK else outcome
    way = ended if ended != "exit" else "exit" if code else "outcome" if failed else ""
    if not way:
        return ""
    message, note = facts.get("message", ""), facts.get("note", "")
    return words.get(way, words[""]).format(
        limit=format_number(facts.get("limit", 0.0)),
        code=code,
        ended=ended,
        outcome=outcome,
        message=message,
        note=note,
        named=f"{failed}, " if failed else "",
        detail=f": {outcome}: {message.splitlines()[0][:300]}" if outcome and message else "",
        summary=f"{outcome}: {message}".strip(": ") if outcome or message else note or f"exit {code}",
        reason=message or note or f"exit code {code}",
    )


class Outcome(NamedTuple):
    """The name of a call's outcome, and the message that explains it."""

    kind: str
    message: str = ""
    retryable: bool = False  # the same call may succeed a little later
    once: bool = False  # retry only once: a second such failure shows that it will always fail


def judge(facts: Facts, ended: str, exit_code: int, status_of_exit: int | None = None) -> Outcome:
    """Judge a call by its transcript, end and exit code. `status_of_exit`: HTTP status that the exit code means."""
    if ended in ("timeout", "idle"):
        return _timed_out(facts)
    if ended == "resources":
        return Outcome(RESOURCES)
    if ended == "interrupted":
        return Outcome(KILLED)
    if facts.limited:
        return Outcome(USAGE_LIMIT, facts.message)
    if facts.error or facts.message:
        return _error(facts.message, facts.error, facts.status or _status(facts.message) or status_of_exit)
    if facts.denied and facts.tools_failed >= facts.tools and exit_code == 0:
        return Outcome(DENIED, f"every tool was denied: {', '.join(dict.fromkeys(facts.denied))}")
    if facts.denied and not facts.ended and exit_code == 0:
        return Outcome(DENIED, f"it ended after a tool was denied: {facts.denied[-1]}")
    if not facts.ended:
        return _no_final_record(facts, exit_code, status_of_exit)
    return Outcome(OK) if exit_code == 0 else Outcome(AGENT_ERROR, f"exit {exit_code} after its final message")


# The agent's own verdict: a tag alone on a line. The agent may be wrong.
SUCCESS = b"<promise>SUCCESS</promise>"
FAILURE = b"<promise>FAILURE</promise>"
_MARKS = b"`~-=*#> "
_WORDS = {SUCCESS: "SUCCESS", FAILURE: "FAILURE"}


def claims(lines: Iterable[bytes]) -> list[tuple[str, bytes]]:
    """Return each verdict tag that is alone on a line, with the last line of text before it."""
    found = []
    before = b""
    for line in lines:
        stripped = line.strip()
        if stripped in _WORDS:
            found.append((_WORDS[stripped], before))
        if stripped.translate(None, _MARKS):  # a code fence before the tag can't identify an echo, so it is skipped
            before = stripped
    return found


def verdict(said: list[tuple[str, bytes]], prompt: bytes) -> str:
    """Return SUCCESS, FAILURE or "". A tag that follows the same line as in the prompt is an echo of the prompt."""
    echoes = set(claims(prompt.split(b"\n")))  # split like a transcript: a lone \r ends no line
    own = {word for word, before in said if (word, before) not in echoes}
    return "FAILURE" if "FAILURE" in own else "SUCCESS" if own else ""


# The agent's question to a person: a tag alone on a line, under the same rules.
ASKING = (
    "If you cannot go on without a decision of the user, put <question>your question</question> alone on a line of "
    "your final message: the loop then waits for the answer."
)
_QUESTION = rb"<question>[ \t]*(\S.*?)[ \t]*</question>"
LONGEST_QUESTION = 2_000  # characters


def questions(lines: Iterable[bytes]) -> list[tuple[bytes, bytes]]:
    """Return each question that is alone on a line, with the last line of text before it."""
    found, before = [], b""
    for line in lines:
        stripped = line.strip()
        if stripped.startswith(b"<question>") and (asked := re.fullmatch(_QUESTION, stripped)):
            found.append((asked[1], before))
        if stripped.translate(None, _MARKS):
            before = stripped
    return found


def question(said: list[tuple[bytes, bytes]], prompt: bytes) -> str:
    """Return the agent's questions as one line; "" if there are none. Ignore echoes of the prompt, like `verdict`."""
    echoes = set(questions(prompt.split(b"\n")))
    own = dict.fromkeys(text.decode("utf-8", "replace") for text, before in said if (text, before) not in echoes)
    return " ".join(own)[:LONGEST_QUESTION]


def _timed_out(facts: Facts) -> Outcome:
    """Judge a call that rooda ended on a timeout; the CLI's last unresolved error, if any, is the cause."""
    if facts.limited:
        return Outcome(USAGE_LIMIT, facts.message)
    if not facts.message or facts.error.startswith("aborted"):  # the CLI's reaction to our signal
        return Outcome(TIMEOUT)
    found = _error(facts.message, facts.error, facts.status or _status(facts.message))
    known = found.kind in (AUTH, CONTEXT, RATE_LIMIT, USAGE_LIMIT)
    return found if known else Outcome(TIMEOUT, facts.message, found.retryable and not found.once)


def _error(message: str, error: str, status: int | None) -> Outcome:
    """Classify an error that the CLI reports, by HTTP status and codes if there are any, else by its wording."""
    from rooda.agents import error_text
    from rooda.agents.error_text import Kind

    kind = error_text.kind_of(message, error, status, delay_of(message))
    if kind is Kind.REQUEST:
        return Outcome(AGENT_ERROR, message, retryable=True, once=True)
    named = {
        Kind.CONTEXT: CONTEXT,
        Kind.DENIED: DENIED,
        Kind.THROTTLE: RATE_LIMIT,
        Kind.MONEY: AUTH,
        Kind.LOGIN: AUTH,
        Kind.LIMIT: USAGE_LIMIT,
        Kind.CONFIG: CONFIG,
    }.get(kind, AGENT_ERROR)
    return Outcome(named, message, retryable=kind in (Kind.THROTTLE, Kind.SERVICE))


def delay_of(message: str) -> float | None:
    """Return the wait in seconds that a message names; None if it names none.

    A time of day or a date counts as a wait of one day.
    """
    from rooda.agents.backoff import parse_reset

    return parse_reset(message, 0.0, lambda _: 86_400.0)


def _no_final_record(facts: Facts, exit_code: int, status: int | None) -> Outcome:
    """Judge a call without a final record, by its unparsed lines and exit code."""
    from rooda.agents.error_text import only_warns

    telling = [line[:300] for line in facts.unparsed.splitlines() if re.search(_EXPLAINING, line)]
    for line in telling if exit_code else ():
        if re.search(_PROGRAM, line) or only_warns(line):
            continue
        found = _error(line, "", status or _status(line))
        if found.kind != AGENT_ERROR or found.retryable:
            return found
    if exit_code and status:
        return _error(f"exit {exit_code}", "", status)
    what = f"it ended without its final message (exit {exit_code})"
    return Outcome(AGENT_ERROR, f"{what}: {telling[0]}" if telling else what)


def _status(text: str) -> int | None:
    found = re.search(_STATUS, text)
    return int(found[1] or found[2]) if found else None
