"""The blocks of docs/fleet.md: what faults did, the figures of one worker, and what saturates first."""

from typing import Any

from benchmarks import results
from rooda.fleet.port import BEATS

Found = dict[str, Any]
HEARTBEAT, TURN, TURNS = 60.0, 600.0, 5  # seconds, and turns of a task, for which loads are calculated
PUSHES = (TURNS + 2) / TURNS  # a turn: those of its task, the ticket and one claim, shared by its turns
GITHUB = 6  # pushes a minute to one repository, as GitHub recommends
SIZES = (1_000, 10_000)
COUNTED = (
    "A take-over lasts from the fault to the task's next call. After the first heartbeat, time in which no worker had "
    "a free place, or in which Temporal or the git server was away, is not counted."
)


def faults(found: Found, folder: str) -> str:
    """One line for each fault, with the fence on, and for random schedules."""
    parts = results.read(folder, "fleet.json")
    lines = [
        "| fault | turns, each once | calls repeated | take-over, s: least / median / most | lost |",
        "|---|---|---|---|---|",
    ]
    for name in ("faults, fence on", "faults, fence off", "random"):
        part = parts.get(name, {"rows": []})
        lines += [_fault(row, " (no fence)" if name.endswith("off") else "") for row in part["rows"]]
    if len(lines) == 2:
        return "Not measured yet: `python -m benchmarks.fleet`."
    part = parts.get("faults, fence on") or parts["random"]
    how = f"{part['tasks']} tasks of {part['turns']} turns, agents that work {part['turn']:g} s"
    how += f"; three workers with {part['slots']} slots, heartbeat {part['heartbeat']} s."
    return "\n".join([*lines, "", f"{how} {COUNTED}"])


def _fault(row: Found, more: str) -> str:
    times = row["takeovers"]
    taken = f"{times[0]:.1f} / {times[len(times) // 2]:.1f} / {times[-1]:.1f}" if times else "none"
    once = f"{row['turns'] - row['doubled']} of {row['wanted']}"
    return f"| {row['fault']}{more} | {once} | {row['repeated']} | {taken} | {len(row['lost'])} |"


def figures(found: Found, folder: str) -> str:
    rows = results.read(folder, "fleet.json").get("figures", {}).get("rows", [])
    lines = [f"| {each['what']} | {each['measured']:.2f} | {_bound(each)} |" for each in rows]
    publishing = found["parts"].get("publishing", {}).get("rows", [])
    lines += [f"| {each['what']} | {results.shown(each, 'measured')} | {_limit(each)} |" for each in publishing]
    if not lines:
        return "Not measured yet: `python -m benchmarks.fleet figures`, `python -m benchmarks publishing`."
    return "\n".join(["| what | measured | goal |", "|---|---|---|", *lines])


def _bound(row: Found) -> str:
    missed = "" if row["met"] else " (missed)"
    return f"at {'least' if row['more'] else 'most'} {row['goal']:g}{missed}"


def _limit(row: Found) -> str:
    missed = "" if row["met"] else " (missed)"
    return f"at most {results.shown(row, 'limit')}{missed}" if row["limit"] is not None else ""


def saturation(found: Found, folder: str) -> str:
    """Calculated loads; the capacity of a git server as it was measured by publishing."""
    head = ["what", *(f"{size:,} loops" for size in SIZES), "capacity"]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    pushes = [size / TURN * PUSHES for size in SIZES]
    rows = [
        ("accounts of the model services", [f"{n:,} calls at once" for n in SIZES], "by contract; the others wait"),
        (
            "pushes to one repository on GitHub",
            [f"{each * 60:,.0f} a minute" for each in pushes],
            f"{GITHUB} a minute: {GITHUB * TURN / 60 / PUSHES:.0f} loops; then use a state repository",
        ),
        ("pushes to a git server of your own", [f"{each:.1f} a second" for each in pushes], _git_server(found)),
        (
            "Temporal",
            [f"{n / TURN / TURNS:.1f} legs, {n / HEARTBEAT * BEATS:,.0f} proofs of life a second" for n in SIZES],
            "a cluster's; a longer `heartbeat` asks for less",
        ),
    ]
    return "\n".join([*lines, *(f"| {what} | {' | '.join(loads)} | {most} |" for what, loads, most in rows)])


def _git_server(found: Found) -> str:
    series = found["parts"].get("publishing", {}).get("series", {})
    told = [
        f"{1 / series[name]['wall']['median']:.0f} with {size:,} tasks' refs"
        for size in SIZES
        if (name := f"git push by hand, {size:,} refs") in series
    ]
    return f"one after the other {', '.join(told)} a second; prune, or use two" if told else "not measured yet"
