"""The runs as a table. Pure."""

from collections.abc import Sequence
from typing import NamedTuple

from rooda.base.text import columns, format_seconds
from rooda.run.spending import dollars

HEAD = ("NAME", "KIND", "ITERATION", "STATUS", "ELAPSED", "FAILURES", "TOKENS", "COST", "PID", "WAITS FOR")
NUMBERS = (2, 4, 5, 6, 7, 8)
NOTHING = "-"


class Row(NamedTuple):
    """One run: all its sessions since it was begun."""

    workspace: str
    loop: str
    name: str
    run: str  # id of the newest session
    status: str
    running: bool = False
    pid: int | None = None
    phase: str = ""
    since: str = ""
    iteration: int | None = None  # as the loop's files count
    display: int | None = None  # as the screen counts: the one at work
    max_iterations: int | None = None
    failures: str = ""
    elapsed: float = 0.0
    calls: int = 0
    tokens: int = 0
    cost: float | None = None
    calls_of_unknown_cost: int = 0
    suspended: bool = False
    waits_for: str = ""
    seconds_left: float | None = None
    reason: str = ""  # why it paused


def unreadable(workspace: str, why: str) -> Row:
    """In the place of the rows of a workspace that can't be looked at."""
    return Row(workspace, loop="", name="", run="", status="unreadable", waits_for=f"a person: {why}", reason=why)


def table(rows: Sequence[Row], workspaces: bool) -> list[str]:
    """One line a run below the head; `workspaces`: in groups below the folder they belong to."""
    head, *lines = columns([HEAD, *(_cells(row) for row in rows)], NUMBERS)
    if not workspaces:
        return [head, *lines]
    groups: dict[str, list[str]] = {}
    for row, line in zip(rows, lines, strict=True):
        groups.setdefault(row.workspace, []).append(line)
    return [head, *(line for workspace, group in groups.items() for line in (workspace, *group))]


def _cells(row: Row) -> tuple[str, ...]:
    count = NOTHING if row.display is None else str(row.display)
    status = "standing still" if row.suspended else row.phase or row.status if row.running else row.status
    left = "" if row.seconds_left is None else f", {format_seconds(row.seconds_left)} left"
    return (
        row.name or NOTHING,
        "procedure" if row.loop == "ooda" else row.loop or NOTHING,
        f"{count}/{row.max_iterations}" if row.max_iterations else count,
        status,
        format_seconds(row.elapsed),
        row.failures or NOTHING,
        f"{row.tokens:,}",
        _cost(row),
        NOTHING if row.pid is None else str(row.pid),
        f"{row.waits_for}{left}" or NOTHING,
    )


def _cost(row: Row) -> str:
    if row.cost is None:
        return "unknown" if row.calls else NOTHING
    return f"{dollars(row.cost)}{'+' if row.calls_of_unknown_cost else ''}"
