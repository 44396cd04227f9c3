"""Formats the table of `rooda status`. Pure."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from rooda.base.text import columns, format_seconds, width
from rooda.run.spending import dollars

HEAD = ("NAME", "KIND", "ITERATION", "STATUS", "ELAPSED", "FAILURES", "TOKENS", "COST", "PID", "WAITS FOR")
NUMBERS = (2, 4, 5, 6, 7, 8)
EXPENDABLE = (8, 5, 6, 1)  # columns that a narrow terminal lacks, in this order: PID, FAILURES, TOKENS, KIND
NOTHING = "-"


class Progress(NamedTuple):
    """A loop's iteration, iteration limit and failures."""

    iteration: int | None = None  # as counted in the loop's files
    max_iterations: int | None = None
    display: int | None = None  # the current iteration, as counted on the screen
    failures: str = ""
    started_at: str = ""  # times in the loop's files, "" if they have none
    last: str = ""
    over: bool = False  # it ended and can't be resumed


class Row(NamedTuple):
    """One row of the table: a run with all its sessions."""

    workspace: str
    loop: str
    name: str
    run: str  # id of the newest session
    state: str  # one of those in run/ended.py, or `damaged`, `foreign` or `unreadable`
    running: bool = False
    pid: int | None = None
    phase: str = ""
    since: str = ""
    iteration: int | None = None
    display: int | None = None
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
    reason: str = ""  # why the run is paused
    started_at: str = ""
    last: str = ""  # time of the last event, else of the last change recorded in the loop's files
    next: str = ""  # command that continues it; "" if it needs none or there is none


def unreadable(workspace: str, why: str) -> Row:
    """Return the row of a workspace that can't be read."""
    return Row(workspace, loop="", name="", run="", state="unreadable", waits_for=f"you: {why}", reason=why)


def table(rows: Sequence[Row], noun: Callable[[str], str], workspaces: bool, room: int = 0) -> list[str]:
    """Return a header line and a line for each run; with `workspaces`, group them by workspace.

    `noun` returns the word for a kind of loop. `room` is the width of the terminal, 0 = unlimited: a wider table loses
    its less important columns.
    """
    head, *lines = _fitting([HEAD, *(_cells(row, noun(row.loop)) for row in rows)], room)
    if not workspaces:
        return [head, *lines]
    groups: dict[str, list[str]] = {}
    for row, line in zip(rows, lines, strict=True):
        groups.setdefault(row.workspace, []).append(line)
    return [head, *(line for workspace, group in groups.items() for line in (workspace, *group))]


def _fitting(cells: Sequence[Sequence[str]], room: int) -> list[str]:
    """Format all columns, or only as many as fit into `room` characters; 0 = no limit."""
    kept = [*range(len(HEAD))]
    for place in (None, *EXPENDABLE):
        if place is not None:
            kept.remove(place)
        numbers = [at for at, each in enumerate(kept) if each in NUMBERS]
        lines = columns([[row[each] for each in kept] for row in cells], numbers)
        if not room or max(map(width, lines)) <= room:
            break
    return lines


def _cells(row: Row, noun: str) -> tuple[str, ...]:
    count = NOTHING if row.display is None else str(row.display)
    left = "" if row.seconds_left is None else f", {format_seconds(row.seconds_left)} left"
    return (
        row.name or NOTHING,
        noun or NOTHING,
        f"{count}/{row.max_iterations}" if row.max_iterations else count,
        row.state,
        format_seconds(row.elapsed),
        row.failures or NOTHING,
        f"{row.tokens:,}",
        _cost(row),
        NOTHING if row.pid is None else str(row.pid),
        f"{row.waits_for}{left}" or row.phase or NOTHING,
    )


def _cost(row: Row) -> str:
    if row.cost is None:
        return "unknown" if row.calls else NOTHING
    return f"{dollars(row.cost)}{'+' if row.calls_of_unknown_cost else ''}"
