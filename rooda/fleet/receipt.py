"""Reads from a loop's events what the loop has done since its last turn (an iteration) was published."""

import os
from collections.abc import Iterator
from typing import NamedTuple

from rooda.base import json
from rooda.base.json import Json
from rooda.run import folder as run_folder
from rooda.run import history
from rooda.run.events import NAME

LONGEST = 500  # characters of the agent's last words


class Receipt(NamedTuple):
    """The facts about one turn that its record in git contains."""

    loop: str = ""
    name: str = ""
    iteration: int = 0
    outcome: str = ""
    failures: int = 0
    ending: str = ""  # reason for the loop's end
    cost: float = 0.0  # of the calls whose cost is known
    tokens: int = 0
    unknown: int = 0  # calls of unknown cost
    gates: tuple[Json, ...] = ()
    seconds: float = 0.0
    message: str = ""


class Receipts:
    """Reads the event logs of a workspace turn by turn."""

    def __init__(self, workspace: str) -> None:
        """Start at the end of the logs: earlier events are already published, or belong to another worker."""
        self._workspace = workspace
        self._offsets = {path: os.path.getsize(path) for path in self._logs()}

    def next(self) -> Receipt:
        """Return the facts from the events that were added to the logs since the last call."""
        found = Receipt()
        for record in self._records():
            found = with_event(found, record)
        return found

    def _logs(self) -> list[str]:
        paths = (os.path.join(each, NAME) for each in run_folder.all_of(self._workspace, None))
        return [path for path in paths if os.path.isfile(path)]

    def _records(self) -> Iterator[Json]:
        for path in self._logs():
            for end, line in history.lines(path, self._offsets.get(path, 0)):
                self._offsets[path] = end
                try:
                    yield json.parse_object(line)
                except ValueError:
                    continue  # a line that a kill cut off


def with_event(found: Receipt, record: Json) -> Receipt:
    """Return the receipt with the facts from one more event of the turn."""
    event = record.get("event")
    found = found._replace(loop=str(record.get("loop", found.loop)), name=_name(record) or found.name)
    if "display" in record:
        found = found._replace(iteration=int(record["display"]))
    if event == "agent.ended":
        return _with_call(found, record)
    if event == "gate.ended":
        gate = {key: record.get(key) for key in ("gate", "verdict", "elapsed")}
        return found._replace(gates=(*found.gates, gate))
    if event == "run.ended":
        return found._replace(ending=str(record.get("reason", "")))
    if "outcome" in record and event != "gates.ended":
        return found._replace(
            outcome=str(record["outcome"]),
            failures=int(record.get("consecutive_failures") or 0),
            message=str(record.get("said") or record.get("message") or "")[:LONGEST],
        )
    return found


def _with_call(found: Receipt, record: Json) -> Receipt:
    used = history.call_of(record, record)
    if used is None:
        return found._replace(unknown=found.unknown + 1)
    return found._replace(
        cost=round(found.cost + (used.cost or 0.0), 9),
        unknown=found.unknown + (used.cost is None),
        tokens=found.tokens + used.tokens,
        seconds=round(found.seconds + used.seconds, 3),
    )


def _name(record: Json) -> str:
    return str(record.get("procedure") or record.get("name") or "")
