"""The screen of a goal: its lines as they are, or in ASCII."""

import sys
from io import TextIOWrapper

from rooda.base.json import Json
from rooda.loops.goal.view import plain
from rooda.views.lines import Line
from rooda.views.screen import Look, Screen


class GoalScreen(Screen):
    """Its lines are a format of their own, so nothing stands before them unless [goal] says so."""

    def __init__(self, look: Look, ascii_only: bool = False) -> None:
        super().__init__(look)
        self._ascii = ascii_only
        if isinstance(sys.stdout, TextIOWrapper) and sys.stdout.errors != "replace":
            sys.stdout.reconfigure(errors="replace")  # a C locale would refuse what it does not have

    def line(self, line: Line) -> None:
        super().line(plain(line) if self._ascii else line)

    def show(self, record: Json) -> None:
        """Where a person types, no status line stands."""
        super().show(record)
        if record["event"] == "question.asked":
            self.close()
