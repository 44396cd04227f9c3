"""One reading of every transcript: bytes in, facts out, whatever the bytes are."""

from collections.abc import Callable, Iterable, Iterator

from rooda.kernel.loads import loads
from rooda.model import Facts, Json
from rooda.world import files
from rooda.world.agents.gathered import Gathered
from rooda.world.agents.readers import aider, claude, codex, copilot, droid, gemini, opencode, pi

LONGEST = 4_194_304  # of a longer line only the beginning is read, and that is no JSON

RECORDS: dict[str, Callable[[Json, Gathered], None]] = {
    "claude": claude.take,
    "codex": codex.take,
    "gemini": gemini.take,
    "opencode": opencode.take,
    "copilot": copilot.take,
    "droid": droid.take,
    "pi": pi.take,
}
LINES: dict[str, Callable[[str, Gathered], None]] = {"aider": aider.line}
NOISE: dict[str, Callable[[str, Gathered], None]] = {"gemini": gemini.noise}  # what is no record, but tells something


def is_read(output: str) -> bool:
    """False for `text`: then the exit code is all that is known."""
    return output in RECORDS or output in LINES


def facts_of(output: str, path: str, limit: int = 1 << 62) -> Facts:
    """The facts of a transcript, of its last `limit` bytes if it is longer; empty ones when it can't be read."""
    return gathered(output, path, limit).facts()


def gathered(output: str, path: str, limit: int = 1 << 62) -> Gathered:
    """The same, before it is put into one record."""
    into, count = Gathered(), 0
    try:
        for line in files.lines(path, limit, LONGEST):
            count += 1
            take_line(output, line, into)
            into.cut = into.cut or len(line) >= LONGEST
            into.shown.clear()
        if not into.ended and count > 1 and output in RECORDS:
            for record in _records(files.beginning(path, LONGEST)):  # one object, or a list of them, on several lines
                RECORDS[output](record, into)
                into.shown.clear()
    except OSError:
        pass
    return into


def take_line(output: str, line: bytes, into: Gathered) -> None:
    """One line of a transcript. What is no record is kept as noise: the reason of a failure is often there."""
    if output in LINES:
        LINES[output](line.decode("utf-8", "replace"), into)
        return
    records = _records(line) if output in RECORDS else []
    for record in records:
        RECORDS[output](record, into)
    if not records:
        into.noise(line)
        if output in NOISE:
            NOISE[output](line[:2000].decode("utf-8", "replace"), into)


def _records(text: bytes) -> list[Json]:
    """An object; or a list of them, as claude and qwen print it where all is wanted at the end."""
    if text.lstrip()[:1] not in (b"{", b"["):
        return []
    try:
        found = loads(text)
    except ValueError:
        return []
    return [each for each in (found if isinstance(found, list) else [found]) if isinstance(each, dict)]


def rendered(output: str, lines: Iterable[bytes], into: Gathered) -> Iterator[str]:
    """The readable lines of --verbose: words and tools, not raw JSON."""
    for line in lines:
        take_line(output, line, into)
        yield from into.shown
        into.shown.clear()
