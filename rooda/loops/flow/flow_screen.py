"""The screen of a flow: the same lines, and below them a live tree of the nodes."""

import sys
from typing import TextIO

from rooda.base import clock
from rooda.base.json import Json
from rooda.base.text import cut, padded, whole
from rooda.views.live import Live, size
from rooda.views.screen import Look, Screen


class FlowLive(Live):
    """A row per node: where it is, what its sensors say, who works at it and for how long."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._nodes: dict[str, Json] = {}
        self._busy = self._at = ""
        self._rows = 0

    def note(self, record: Json) -> None:
        event = record["event"]
        if event in ("run.started", "run.resumed"):
            self._nodes = {path: {} for path in record["nodes_paths"]}
            self._where = record["name"]
        elif event in ("node.entered", "node.boundary"):
            self._nodes[record["node"]] = record
            self._at, self._busy = record["node"], ""
        elif event == "agent.started":
            self._busy, self._since = str(record["call"]), clock.monotonic()
            self._at = record.get("node") or self._at
        elif event == "agent.ended":
            self._busy = ""
        elif event == "run.ended":
            self._where = ""

    def draw(self) -> None:
        self.clear()
        if not self._where:
            return
        room = size(self._stream)[0] - 1
        rows = [cut(self._row(path, facts), room) for path, facts in self._nodes.items()]
        self._write("\n".join(rows))
        self._rows, self._shown = len(rows), True

    def clear(self) -> None:
        if self._shown:
            up = f"\x1b[{self._rows - 1}A" if self._rows > 1 else ""
            self._write(f"\r{up}\x1b[J")
            self._shown = False

    def _row(self, path: str, facts: Json) -> str:
        depth = path.count("/")
        name = f"{'  ' * depth}{'└ ' if depth else ''}{path.rpartition('/')[2]}"
        parts = [padded(name, 24)]
        if facts:
            parts.append(f"{facts['label']}/{facts['max_iterations']}")
            parts.append(", ".join(f"{each}: {status}" for each, status in facts["sensors"].items()))
            parts.append("" if facts["status"] == "running" else str(facts["status"]))
        if path == self._at and self._busy:
            parts.append(f"{self._busy} {whole(clock.monotonic() - self._since)}")
        return "  ".join(part for part in parts if part)


class FlowScreen(Screen):
    """A screen with the live tree."""

    def __init__(self, look: Look) -> None:
        super().__init__(look)
        if self._live:
            self._live = FlowLive(sys.stdout)
