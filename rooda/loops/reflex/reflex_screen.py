"""The screen of a reflex loop: the same lines, and a live status that tells phases, tokens and cost."""

import sys

from rooda.base import clock
from rooda.base.json import Json
from rooda.views.live import Live
from rooda.views.screen import Look, Screen


class ReflexLive(Live):
    """Which phases are at work, for how long, and what the loop has used in this session."""

    def __init__(self) -> None:
        super().__init__(sys.stdout)
        self._tokens, self._cost, self._unknown = 0, 0.0, False

    def note(self, record: Json) -> None:
        event = record["event"]
        if event == "reflex.phase":
            self._where = f"Iteration {record['display']} · phase {record['level']} · {' ‖ '.join(record['steps'])}"
            self._since, self._detail = clock.monotonic(), self._used()
        elif event == "agent.ended":
            self._add(record)
        elif event == "reflex.checks":
            self._where = f"Iteration {record['display']} · checks"
            self._since = clock.monotonic()
        elif event == "run.ended":
            self._where = ""

    def _add(self, record: Json) -> None:
        if usage := record.get("usage"):
            self._tokens += usage["input"] + usage["output"]
        if (cost := record.get("cost")) is not None:
            self._cost += cost
        else:
            self._unknown = True
        self._detail = self._used()

    def _used(self) -> str:
        parts = [f"{self._tokens:,} tokens"] if self._tokens else []
        if self._cost:
            parts.append(f"${self._cost:.2f}" + ("+" if self._unknown else ""))
        return " · ".join(parts)


class ReflexScreen(Screen):
    """A screen with the live status above."""

    def __init__(self, look: Look) -> None:
        super().__init__(look)
        if self._live:
            self._live = ReflexLive()
