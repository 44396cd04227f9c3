"""Stores the usage limits of accounts, one small file each, for all loops of the user.

The files survive runs, restarts and reboots, so that no loop calls an agent before its limit resets.
"""

import json
import os
from typing import NamedTuple

from rooda.agents import preflight
from rooda.agents.backoff import parse_reset, usable_at
from rooda.agents.records import Agent
from rooda.base import clock, dirs, files
from rooda.base.json import Json
from rooda.processes import table


def reset_time(text: str) -> float | None:
    """Return the Unix time at which the usage limit that `text` reports resets; None if it names no time."""
    present = clock.now()
    return parse_reset(text, present, lambda moment: clock.next_occurrence(present, *moment))


class Limit(NamedTuple):
    """A usage limit, recorded with both clock time and uptime, since the clock can be set."""

    until: float
    noted: float
    uptime: float
    boot: str

    def usable_at(self) -> float:
        """Return when the account is usable again, by the current clock; a past time or 0 if it is usable now."""
        waited = clock.uptime() - self.uptime if self.boot == table.boot() else None
        return usable_at(self.until, self.noted, clock.now(), waited)


def new_limit(until: float) -> Limit:
    """Return the record of a limit that was reached just now."""
    return Limit(until, clock.now(), clock.uptime(), table.boot())


def account(agent: Agent) -> str:
    """Return the account that a limit applies to: the CLI, and the key or subscription that pays."""
    payer = preflight.who_pays(agent, preflight.agent_environment(agent))
    return f"{agent.name} ({payer})" if payer else agent.name


def limited_until(who: str) -> float:
    """Return the Unix time at which the account is usable again; a past time or 0 if it is usable now."""
    return _read(_path(who))[1]


def known() -> dict[str, float]:
    """Return the Unix time at which the last recorded limit of each account ends; it may be a past time."""
    home = dirs.state("limits")
    found = dict(_read(os.path.join(home, name)) for name in (files.list_if_readable(home) if home else ()))
    return {who: until for who, until in found.items() if until}


def _read(path: str) -> tuple[str, float]:
    """Return a limit's account and end from a file; the end may be past, and is 0 if the file is damaged."""
    try:
        found = json.loads(files.read_ours(path)) if path else {}
        noted = clock.parse_time(str(found.get("noted"))) or 0.0
        uptime, boot = float(found.get("uptime", 0.0)), str(found.get("boot", ""))
        met = Limit(clock.parse_time(str(found["until"])) or 0.0, noted, uptime, boot)
        at = max(met.usable_at(), 0.0) if uptime == uptime else 0.0  # NaN, in a damaged file, means no limit
        return str(found.get("account", "")), at
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError):
        return "", 0.0


def record_limit(who: str, met: Limit, message: str) -> None:
    """Record a limit. Errors are ignored: the next call would just reach the limit again."""
    path = _path(who)
    if path:
        record: Json = {"account": who, "until": clock.rfc3339_local(met.until), "message": message}
        record |= {"noted": clock.rfc3339_milli(met.noted), "boot": met.boot, "uptime": round(met.uptime, 3)}
        try:
            files.make_folder(os.path.dirname(path))
            files.replace(path, json.dumps(record, indent=2).encode() + b"\n", 0o600)
        except OSError:
            pass


def _path(who: str) -> str:
    return dirs.state("limits", f"{files.sha256(who.encode())[:16]}.json")
