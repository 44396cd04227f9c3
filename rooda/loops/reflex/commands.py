"""Shell commands that an agent wrote as checks: run, ask the person, or leave their rules to an agent's judgement."""

from collections.abc import Sequence

import click

from rooda.base.text import visible
from rooda.processes.signals import Signals
from rooda.run import questions
from rooda.settings.lookup import Lookup

RUN, ASK, SKIP = "run", "ask", "skip"


def way_of(look: Lookup) -> str:
    """What was said; else a terminal is asked, and where nobody is nothing is run."""
    said = look.find("exec_checks")
    if said is None:
        return ASK if questions.at_terminal() else SKIP
    return SKIP if said.value == ASK and not questions.at_terminal() else str(said.value)


class Commands:
    """Remembers what was allowed in this session."""

    def __init__(self, way: str, signals: Signals) -> None:
        self._way, self._signals = way, signals
        self._allowed: set[str] = set()

    def decide(self, commands: Sequence[str]) -> str:
        """run or skip."""
        if not self.asks(commands):
            return RUN if self._way == ASK else self._way
        if not self._asked(commands):
            return SKIP
        self._allowed.update(commands)
        return RUN

    def asks(self, commands: Sequence[str]) -> bool:
        """Will a person be asked?"""
        return self._way == ASK and not set(commands) <= self._allowed

    def _asked(self, commands: Sequence[str]) -> bool:
        rows = "\n".join(f"  $ {visible(line)}" for command in commands for line in command.split("\n"))
        click.echo(f"The agent wrote these commands as checks; they run as you:\n{rows}", err=True)
        answer = questions.typed_answer("Run them? [y/N] ", self._signals)
        return answer is not None and answer.strip().lower() in ("y", "yes")
