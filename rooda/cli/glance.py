"""What a running loop is doing at this moment, in one line, and what a person has ordered of one that does not run."""

from rooda.base import clock
from rooda.base.json import Json
from rooda.base.text import whole
from rooda.run import folder as run_folder
from rooda.run.folder import folder_of
from rooda.run.history import seconds_of
from rooda.run.spending import dollars
from rooda.views.status_table import Row

NOW = ("phase", "since", "display", "waits_for", "seconds_left", "suspended", "elapsed")
SPENT = ("calls", "tokens", "cost", "calls_of_unknown_cost")


def now(row: Row) -> Json | None:
    """For programs; None for one that does not run."""
    return {key: getattr(row, key) for key in (*NOW, *SPENT)} if row.running else None


def line(row: Row) -> list[str]:
    """Below the state."""
    if not row.running:
        paused = [f"  paused: {row.reason}"] if row.reason and row.loop != "goal" else []  # a goal's own line says it
        return [*paused, *(_ordered(folder_of(row.workspace, row.run)) if row.run else [])]
    parts = ["standing still (rooda continue)"] if row.suspended else []
    if row.seconds_left is not None:
        parts.append(f"waits for {row.waits_for}, {whole(row.seconds_left)} left")
    elif row.phase:
        parts.append(f"{row.phase} for {whole(clock.now() - (seconds_of(row.since) or clock.now()))}")
    doubt = "+" if row.calls_of_unknown_cost else ""
    cost = "cost unknown" if row.cost is None else f"{dollars(row.cost)}{doubt}"
    calls = f"{row.calls} call{'' if row.calls == 1 else 's'}"
    return ["  " + ", ".join([*parts, calls, f"{row.tokens:,} tokens", cost])]


def _ordered(folder: str) -> list[str]:
    order = run_folder.order_of(folder)
    if order.get("order") != run_folder.STOP:
        return []
    why = " ".join(order["reason"].split())
    return [f"  stopped by a person at {order['at']}{f': {why}' if why else ''}"]
