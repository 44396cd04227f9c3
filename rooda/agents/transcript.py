"""Reads the transcripts of all CLIs; tolerates any content."""

import os
from collections.abc import Iterable, Iterator

from rooda.agents.command import report_path
from rooda.agents.gathered import Gathered
from rooda.agents.reader import Reader, reader
from rooda.agents.records import Facts
from rooda.base import files
from rooda.base.json import Json, loads

LARGEST = 268_435_456  # bytes read at most, from the end, since a sparse file can have any size
LONGEST = 4_194_304  # bytes read of a line; a longer line is cut, which makes its JSON invalid


def facts_of(output: str, source: str | int, limit: int = LARGEST) -> Facts:
    """Return the facts about a call in the last `limit` bytes of its transcript; empty if it can't be read."""
    return read(output, source, limit).facts()


def read(output: str, source: str | int, limit: int = LARGEST) -> Gathered:
    """Read the last `limit` bytes of a transcript, given by path or descriptor, with its CLI's reader."""
    into, count, found = Gathered(), 0, reader(output)
    try:
        for line in files.lines(source, limit, LONGEST):
            count += 1
            take_line(found, line, into)
            into.cut = into.cut or len(line) >= LONGEST
            into.shown.clear()
        if not into.ended and count > 1 and found.record:
            for record in _records(files.head(source, LONGEST)):  # one JSON document on several lines
                _take(found, record, into)
                into.shown.clear()
    except OSError:
        pass
    return into


def take_report(output: str, transcript: str, into: Gathered) -> None:
    """Add the contents of the CLI's own report on the call, a file next to the transcript, if there is one."""
    report = reader(output).report
    if report is None:
        return
    path = report_path(transcript)
    try:
        record = loads(files.head(os.path.join(path, report.file) if report.file else path, LARGEST))
    except (OSError, ValueError):
        return
    if isinstance(record, dict):
        report.take(record, into)


def take_line(found: Reader, line: bytes, into: Gathered) -> None:
    """Read one line of a transcript; keep lines that aren't records, since they often explain a failure."""
    if found.line:
        found.line(line.decode("utf-8", "replace"), into)
        return
    if found.spread:
        line = _whole(line, into)
    records = _records(line) if found.record else []
    for record in records:
        _take(found, record, into)
    if not records:
        into.unparsed(line)
        if found.unparsed:
            found.unparsed(line[:2000].decode("utf-8", "replace"), into)


def _whole(line: bytes, into: Gathered) -> bytes:
    """Return a line; for a record on several lines, return b"" until its last line, then the whole record."""
    begun, stripped = into.memory.get("begun", b""), line.rstrip()
    if not begun and stripped != b"{":
        return line
    into.memory["begun"] = begun = begun + stripped + b"\n" if len(begun) < LONGEST else b""
    return into.memory.pop("begun") if stripped == b"}" and begun else b""


def _take(found: Reader, record: Json, into: Gathered) -> None:
    """Read one record. If its type is unknown, as in output of a newer version of the CLI, only count it."""
    kind = str(record.get(found.kind) or "")
    if found.kinds and kind not in found.kinds and f"{kind.partition('.')[0]}." not in found.kinds:
        into.unknown_records += 1
    if found.record:
        found.record(record, into)


def _records(text: bytes) -> list[Json]:
    """Return the JSON objects in a text, which is one object, or a list of objects such as claude and qwen print."""
    if text.lstrip()[:1] not in (b"{", b"["):
        return []
    try:
        found = loads(text)
    except ValueError:
        return []
    return [each for each in (found if isinstance(found, list) else [found]) if isinstance(each, dict)]


def readable_lines(output: str, lines: Iterable[bytes], into: Gathered) -> Iterator[str]:
    """Yield readable lines for --verbose: messages and tool calls instead of raw JSON."""
    found = reader(output)
    for line in lines:
        take_line(found, line, into)
        yield from into.shown
        into.shown.clear()
