"""Sums up a run's cost and tokens so far for the live status; reads the tokens of running calls from transcripts."""

from rooda.base import files
from rooda.base.json import Json
from rooda.run.spending import dollars

CHUNK = 65_536
MOST = 4_194_304  # bytes of a transcript that one call of `read` reads; later calls read the rest


class Meter:
    """Cost and tokens of the run's calls, and the tool that a running call used last."""

    def __init__(self) -> None:
        self._cost, self._unknown, self._tokens = 0.0, False, 0
        self._running: dict[str, _Transcript] = {}  # keyed by path

    def update(self, record: Json) -> None:
        if record["event"] == "run.used":
            self._cost, self._tokens = float(record["cost"]), int(record["tokens"])
            self._unknown = bool(record["unknown"])
        elif record["event"] == "agent.started" and record["output"] != "text":
            self._running[record["transcript"]] = _Transcript(record["transcript"], record["output"])
        elif record["event"] == "agent.ended":
            self._running.pop(record["transcript"], None)
            usage, cost = record.get("usage") or {}, record.get("cost")
            self._tokens += sum(usage.values())
            self._cost += cost or 0.0
            self._unknown = self._unknown or cost is None

    def read(self) -> None:
        """Read what the running agents wrote since the last read."""
        for transcript in self._running.values():
            transcript.read()

    @property
    def tool(self) -> str:
        return next((each.into.last_tool for each in self._running.values() if each.into.last_tool), "")

    @property
    def used(self) -> list[str]:
        """The known cost and tokens so far, such as ["$0.42", "12,345 tokens"]."""
        tokens = self._tokens + sum(each.into.tokens_so_far for each in self._running.values())
        cost = f"{dollars(self._cost)}{'+' if self._unknown else ''}" if self._cost else ""
        return [part for part in (cost, f"{tokens:,} tokens" if tokens else "") if part]


class _Transcript:
    """A transcript that an agent is writing."""

    def __init__(self, path: str, output: str) -> None:
        from rooda.agents.gathered import Gathered
        from rooda.agents.reader import reader

        self.into = Gathered()
        self._path, self._reader = path, reader(output)
        self._offset, self._rest = 0, b""

    def read(self) -> None:
        from rooda.agents.transcript import LONGEST, take_line

        try:
            with files.reading(self._path) as file:
                file.seek(self._offset)
                last = self._offset + MOST
                while self._offset < last and (chunk := file.read(CHUNK)):
                    self._offset += len(chunk)
                    *lines, rest = (self._rest + chunk).split(b"\n")
                    self._rest = rest[-LONGEST:]
                    for line in lines:
                        take_line(self._reader, line, self.into)
                        self.into.shown.clear()
        except OSError:
            return
