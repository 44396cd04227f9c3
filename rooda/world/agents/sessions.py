"""What a call used, out of the file that its CLI keeps of each session: for a transcript that does not tell.

A CLI that was killed has told no usage, some never tell it, and codex never tells its model. Anything unexpected in
these files, which are nobody's promise, means unknown.
"""

import fnmatch
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple, TypeAlias

from rooda.kernel.loads import loads
from rooda.model import Json, Usage
from rooda.world import files
from rooda.world.agents.gathered import Gathered, inner, number

LARGEST = 67_108_864  # bytes of a session that are read; of a larger one nothing is
LONGEST = 4_194_304
NEWEST = "newest"  # stands for the last two names of a folder, as those of dates sort
_SESSION = re.compile(r"[0-9A-Za-z][0-9A-Za-z_-]{7,99}")

Spent: TypeAlias = dict[str, Usage]  # by model


class Kept(NamedTuple):
    """Where a CLI keeps its sessions, and what a record of one adds."""

    home: tuple[str, str]  # a variable that moves its folder, and what comes below that
    folder: str  # its folder else, in HOME
    place: tuple[str, ...]  # in it; {session} is the id, {short} its beginning, a pattern is any that fits
    telling: tuple[bytes, ...]  # one of these is in each line that matters
    take: Callable[[Json, Gathered], None]


def spent(output: str, session: str, env: Mapping[str, str]) -> Spent:
    """The usage of a session, model by model; {} where that is not known."""
    if not _SESSION.fullmatch(session):
        return {}
    for kept in KEPT.get(output, ()):
        for path in _paths(kept, session, env):
            try:
                return _read(path, kept)
            except (OSError, ValueError):
                return {}
    return {}


def total(shares: Spent) -> Usage | None:
    """All of it; None if there is none."""
    return Usage(*map(sum, zip(*shares.values(), strict=True))) if shares else None


def _paths(kept: Kept, session: str, env: Mapping[str, str]) -> Iterator[str]:
    moved = env.get(kept.home[0])
    home = env.get("HOME") or os.path.expanduser("~")
    root = os.path.join(moved, kept.home[1]) if moved else os.path.join(home, kept.folder)
    parts = [part.format(session=session, short=session[:8]) for part in kept.place]
    yield from (path for path in _matching(root, parts) if _is_readable(path))


def _matching(folder: str, parts: list[str]) -> Iterator[str]:
    if not parts:
        yield folder
        return
    first, rest = parts[0], parts[1:]
    names = [first]
    if first == NEWEST or "*" in first:
        names = sorted(files.entries(folder), reverse=True)
        names = names[:2] if first == NEWEST else fnmatch.filter(names, first)
    for name in names:
        yield from _matching(os.path.join(folder, name), rest)


def _is_readable(path: str) -> bool:
    try:
        facts = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISREG(facts.st_mode) and facts.st_size <= LARGEST


def _read(path: str, kept: Kept) -> Spent:
    into = Gathered()
    for line in files.lines(path, LARGEST, LONGEST):
        record = loads(line) if any(word in line for word in kept.telling) else None
        if isinstance(record, dict):
            kept.take(record, into)
    return into.shares


def _claude(record: Json, into: Gathered) -> None:
    """An answer of several parts is several records with one id; the last has its whole usage."""
    message = inner(record, "message")
    usage = inner(message, "usage")
    names = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    if record.get("type") == "assistant" and usage:
        _once(message.get("id"), message.get("model"), Usage(*(number(usage, name) for name in names)), into)


def _codex(record: Json, into: Gathered) -> None:
    """A model is named before its answers; each usage is the sum so far."""
    payload = inner(record, "payload")
    if record.get("type") == "turn_context":
        into.model = str(payload.get("model") or "")
    total = inner(payload, "thread_token_usage") or inner(payload, "info", "total_token_usage")
    if total and into.model:
        cached, written = number(total, "cached_input_tokens"), number(total, "cache_write_input_tokens")
        fresh = max(0, number(total, "input_tokens") - cached - written)
        sums = Usage(fresh, number(total, "output_tokens"), cached, written)
        before = into.usage or Usage()
        into.share(into.model, Usage(*(max(0, now - then) for now, then in zip(sums, before, strict=True))))
        into.usage = sums


def _copilot(record: Json, into: Gathered) -> None:
    usage = inner(record, "data", "usage")
    if record.get("type") == "session.usage_record" and usage:
        cached, written = number(usage, "cacheReadTokens"), number(usage, "cacheWriteTokens")
        fresh = max(0, number(usage, "inputTokens") - cached - written)
        into.share(str(usage.get("model") or ""), Usage(fresh, number(usage, "outputTokens"), cached, written))


def _gemini(record: Json, into: Gathered) -> None:
    """An answer is written once more when its tools have run."""
    tokens = inner(record, "tokens")
    if record.get("type") == "gemini" and tokens:
        cached, out = number(tokens, "cached"), number(tokens, "output") + number(tokens, "thoughts")
        usage = Usage(max(0, number(tokens, "input") - cached), out, cached, 0)
        _once(record.get("id"), record.get("model"), usage, into)


def _qwen(record: Json, into: Gathered) -> None:
    usage = inner(record, "usageMetadata")
    if record.get("type") == "assistant" and usage:
        cached, out = number(usage, "cachedContentTokenCount"), number(usage, "candidatesTokenCount")
        fresh = max(0, number(usage, "promptTokenCount") - cached)
        _once(record.get("uuid"), record.get("model"), Usage(fresh, out, cached, 0), into)


def _once(answer: object, model: object, usage: Usage, into: Gathered) -> None:
    """The last word on an answer counts; one without tokens was none."""
    seen = into.memory.setdefault(str(answer), Usage())
    if any(usage):
        into.share(str(model or ""), Usage(*(now - then for now, then in zip(usage, seen, strict=True))))
        into.memory[str(answer)] = usage


KEPT: dict[str, tuple[Kept, ...]] = {
    "claude": (
        Kept(("CLAUDE_CONFIG_DIR", ""), ".claude", ("projects", "*", "{session}.jsonl"), (b'"usage"',), _claude),
        Kept(("QWEN_HOME", ""), ".qwen", ("projects", "*", "chats", "{session}.jsonl"), (b'"usageMetadata"',), _qwen),
    ),
    "codex": (
        Kept(
            ("CODEX_HOME", ""),
            ".codex",
            ("sessions", NEWEST, NEWEST, NEWEST, "rollout-*-{session}.jsonl"),
            (b'"turn_context"', b'token_usage"'),
            _codex,
        ),
    ),
    "copilot": (
        Kept(
            ("COPILOT_HOME", ""),
            ".copilot",
            ("session-state", "{session}", "events.jsonl"),
            (b'"session.usage_record"',),
            _copilot,
        ),
    ),
    "gemini": (
        Kept(
            ("GEMINI_CLI_HOME", ".gemini"),
            ".gemini",
            ("tmp", "*", "chats", "session-*-{short}.jsonl"),
            (b'"tokens"',),
            _gemini,
        ),
    ),
}
