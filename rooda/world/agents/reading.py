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
    into = Gathered()
    try:
        for line in files.lines(path, limit, LONGEST):
            take_line(output, line, into)
            into.cut = into.cut or len(line) >= LONGEST
            into.shown.clear()
        if not into.ended and output in RECORDS and (whole := _record(files.beginning(path, LONGEST))):
            RECORDS[output](whole, into)  # one object on several lines
            into.shown.clear()
    except OSError:
        pass
    return into


def take_line(output: str, line: bytes, into: Gathered) -> None:
    """One line of a transcript. What is no record is kept as noise: the reason of a failure is often there."""
    if output in LINES:
        LINES[output](line.decode("utf-8", "replace"), into)
        return
    record = _record(line)
    if record is not None and output in RECORDS:
        RECORDS[output](record, into)
    else:
        into.noise(line)
        if output in NOISE:
            NOISE[output](line[:2000].decode("utf-8", "replace"), into)


def _record(line: bytes) -> Json | None:
    if line.lstrip()[:1] != b"{":
        return None
    try:
        record = loads(line)
    except ValueError:
        return None
    return record if isinstance(record, dict) else None


def rendered(output: str, lines: Iterable[bytes], into: Gathered) -> Iterator[str]:
    """The readable lines of --verbose: words and tools, not raw JSON."""
    for line in lines:
        take_line(output, line, into)
        yield from into.shown
        into.shown.clear()
