"""What a running loop is doing at this moment, from the last events of its run."""

import os

from rooda.cli.follow import parsed
from rooda.model import Json
from rooda.policy.durations import whole
from rooda.policy.spending import dollars, total
from rooda.world import accounts, clock, descent, files, runfolder
from rooda.world.journal import NAME

RECENT = 65_536  # bytes of events that are looked at
_PHASES = {"agent.started": "agent", "gate.started": "gate", "resting": "waiting", "iteration.started": "prompt"}


def at_work(workspace: str, loop: str, name: str, pid: object) -> Json:
    """Phase and since when, what it waits for, whether it stands still, and what its name has used in all its runs."""
    folder = runfolder.latest(workspace, name)
    found: Json = {"phase": "", "since": "", "waits_for": "", "suspended": _suspended(pid)}
    for record in _last(os.path.join(folder or "", NAME)):
        phase = _PHASES.get(record.get("event", ""), "")
        if phase:
            found |= {"phase": phase, "since": record["ts"], "waits_for": ""}
        elif record.get("event") in ("agent.ended", "gate.ended", "rested"):
            found |= {"phase": "between", "since": record["ts"], "waits_for": ""}
        if phase == "waiting":
            found["waits_for"] = f"{record.get('account') or 'a fault to pass'} until {record['until']}"
    spent = total(accounts.used(workspace, name, loop))
    cost = None if spent.unknown == spent.calls else round(spent.cost, 6)
    return {**found, "calls": spent.calls, "tokens": spent.tokens, "cost": cost, "calls_of_unknown_cost": spent.unknown}


def text(found: Json) -> str:
    """One line below the state."""
    parts = ["standing still (rooda continue)"] if found["suspended"] else []
    if found["waits_for"]:
        parts.append(f"waits for {found['waits_for']}")
    elif found["phase"]:
        began = clock.moment(found["since"].replace("Z", "+00:00")) or clock.now()
        parts.append(f"{found['phase']} for {whole(clock.now() - began)}")
    cost = "cost unknown" if found["cost"] is None else dollars(found["cost"])
    return "  " + ", ".join([*parts, f"{found['calls']} calls in all", f"{found['tokens']:,} tokens", cost])


def _suspended(pid: object) -> bool:
    kin = descent.kin_of(pid) if isinstance(pid, int) else None
    return kin is not None and kin.state in (b"T", b"t")


def _last(path: str) -> list[Json]:
    try:
        lines = files.tail(path, RECENT).split(b"\n")[1 if os.path.getsize(path) > RECENT else 0 :]
    except OSError:
        return []
    return [record for line in lines if (record := parsed(line))]
