"""Gathers the facts about a call while the CLI's reader goes through the records of its transcript."""

from typing import Any

from rooda.agents.records import Facts, Usage
from rooda.base.json import Json

LATEST = 4_102_444_800  # the year 2100; a later reset time is invalid or not in seconds
MAX_UNPARSED = 40  # lines kept: the first half and the last half


class Gathered:
    """The facts that a reader has gathered from a transcript so far."""

    def __init__(self) -> None:
        self.session = self.model = ""
        self._message_parts: list[str] = []  # pieces of the final message: some CLIs print it word by word
        self.cut = False  # part of the output was too long to read, perhaps of the final message
        self.ended = False  # the CLI has printed its final record
        self.status: int | None = None  # HTTP status of the error, if the CLI reports it
        self.error = self.message = ""
        self.reset_at: float | None = None
        self.limited = False
        self.usage: Usage | None = None
        self.answers: dict[str, int] = {}  # tokens per answer so far, for CLIs that report the usage only at the end
        self.last_tool = ""  # name and subject of the last tool call
        self.cost: float | None = None
        self.retries = self.turns = self.tools = self.tools_failed = 0
        self.edited: dict[str, int] = {}  # number of edits per file
        self.denied: list[str] = []
        self.unparsed_lines: list[str] = []
        self.unknown_records = 0  # records of types that the reader does not know, as a newer CLI writes them
        self.shown: list[str] = []  # for --verbose; cleared by the viewer
        self.shares: dict[str, Usage] = {}  # usage per model, if the CLI reports that
        self.waiting: tuple[str, int | None] = ("", None)  # reason and status of a retry, until the next record arrives
        self.memory: dict[str, Any] = {}  # state that a reader keeps between records

    @property
    def final(self) -> str:
        """Return the final message so far."""
        if len(self._message_parts) > 1:
            self._message_parts = ["".join(self._message_parts)]
        return self._message_parts[0] if self._message_parts else ""

    @final.setter
    def final(self, text: str) -> None:
        self._message_parts, self.cut = [text], False

    def continue_message(self, text: str) -> None:
        """Append to the current message."""
        self._message_parts.append(text)

    def add_message(self, text: Any) -> None:
        """Record a message of the agent; the last one is its final message."""
        self.retry_succeeded()
        if isinstance(text, str) and text.strip():
            self.final = text
            self.shown.append(text)

    def add_tool_call(self, name: Any, about: Any = "", edits: Any = None) -> None:
        """Record a tool call, its subject (`about`) and the file that it writes (`edits`)."""
        self.retry_succeeded()
        self.tools += 1
        if isinstance(edits, str) and edits:
            self.edited[edits] = self.edited.get(edits, 0) + 1
        line = about if isinstance(about, str) else ""
        subject = line.strip().splitlines()[0] if line.strip() else ""
        self.last_tool = f"{name} {subject}".rstrip()
        self.shown.append(f"[{name}] {subject}".rstrip())

    def tool_failed(self) -> None:
        self.tools_failed += 1

    def deny(self, name: Any) -> None:
        self.denied.append(str(name))

    def retry(self, status: Any, text: Any = "") -> None:
        """Record that the CLI retries, and why; if no retry succeeds, this explains the failure."""
        self.retries += 1
        code = status if isinstance(status, int) and not isinstance(status, bool) else None
        self.waiting = (text if isinstance(text, str) and text else f"status {code}" if code else "", code)
        self.shown.append(f"[retry] {status or ''} {text or ''}".replace("  ", " ").rstrip())

    def retry_succeeded(self) -> None:
        """Forget the reason for the last retry, because the retry succeeded."""
        self.waiting = ("", None)

    def fail(self, message: Any, kind: Any = "", status: Any = None) -> None:
        """Record an error; it replaces an earlier one."""
        self.message = message if isinstance(message, str) and message else self.message or "unknown error"
        self.error = kind if isinstance(kind, str) and kind else self.error or "error"
        self.status = status if isinstance(status, int) else self.status
        self.shown.append(f"[error] {self.message}")

    def limit(self, reset_at: Any) -> None:
        """Record that the account's usage limit is reached, and when it resets if that is known."""
        self.limited = True
        if isinstance(reset_at, int | float) and not isinstance(reset_at, bool) and 0 < reset_at < LATEST:
            self.reset_at = float(reset_at)

    def unparsed(self, line: bytes) -> None:
        """Keep a line that is not a record: it may explain a failure."""
        text = line.decode("utf-8", "replace").strip()
        if text:
            place = len(self.unparsed_lines) if len(self.unparsed_lines) < MAX_UNPARSED else MAX_UNPARSED // 2
            self.unparsed_lines = [
                *self.unparsed_lines[:place],
                *self.unparsed_lines[place + (len(self.unparsed_lines) >= MAX_UNPARSED) :],
                text[:500],
            ]
            self.shown.append(text)

    @property
    def tokens_so_far(self) -> int:
        """The tokens of a call that has not ended, as far as the transcript reports them."""
        if self.usage:
            return sum(self.usage)
        return sum(self.answers.values()) or sum(map(sum, self.shares.values()))

    def add_usage(self, usage: Usage) -> None:
        self.usage = usage if self.usage is None else Usage(*map(sum, zip(self.usage, usage, strict=True)))

    def add_share(self, model: str, usage: Usage) -> None:
        """Add to the usage of one model."""
        self.shares[model] = Usage(*map(sum, zip(self.shares.get(model, Usage()), usage, strict=True)))

    def add_answer(self, name: object, model: object, usage: Usage) -> None:
        """Add the usage of an answer; a later record of the same answer, if it has tokens, replaces earlier ones."""
        seen = self.memory.setdefault(str(name), Usage())
        if any(usage):
            self.add_share(str(model or ""), Usage(*(now - then for now, then in zip(usage, seen, strict=True))))
            self.memory[str(name)] = usage

    def facts(self) -> Facts:
        failed_or_ended = bool(self.error or self.message or self.ended)
        message, status = (self.message, self.status) if failed_or_ended else self.waiting
        return Facts(
            session=self.session,
            model=self.model,
            final=self.final,
            ended=self.ended,
            status=status,
            error=self.error,
            message=message,
            limited=self.limited,
            reset_at=self.reset_at,
            usage=self.usage,
            cost=self.cost,
            turns=self.turns,
            tools=self.tools,
            tools_failed=self.tools_failed,
            retries=self.retries,
            edited=tuple(self.edited),
            denied=tuple(self.denied),
            unparsed="\n".join(self.unparsed_lines),
            unknown_records=self.unknown_records,
        )


def inner(record: Any, *keys: str) -> Json:
    """Return the object at this path of keys; {} if there is none."""
    for key in keys:
        record = record.get(key) if isinstance(record, dict) else None
    return record if isinstance(record, dict) else {}


def listed(record: Any, key: str) -> list[Json]:
    """Return the objects in the list under this key; [] if there are none."""
    found = record.get(key) if isinstance(record, dict) else None
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def number(record: Any, *keys: str) -> int:
    """Return the value of the first of these keys that holds a valid number, else 0."""
    for key in keys:
        value = record.get(key) if isinstance(record, dict) else None
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e15:
            return int(value)
    return 0


def money(value: Any) -> float | None:
    """Return the value as dollars; None if it isn't a valid amount."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and 0 <= value < 1e9 else None
