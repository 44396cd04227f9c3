"""Usage limits of accounts: when each may be asked again. One small file each, shared by all loops of this user.

It outlives runs, restarts and reboots, so that nobody asks before the time has come.
"""

import json
import os

from rooda.terms import Agent
from rooda.world import clock, files
from rooda.world.agents import preflight


def account(agent: Agent) -> str:
    """Whose limit it is: the CLI, and the key or subscription that pays."""
    return f"{agent.name} ({preflight.who_pays(agent, preflight.environ(agent))})"


def until(who: str) -> float:
    """When the account may be used again, in seconds since 1970; 0 if nothing is known against it."""
    path = _path(who)
    try:
        found = json.loads(files.read_ours(path)) if path else {}
        return clock.moment(str(found["until"])) or 0.0
    except (OSError, ValueError, TypeError, KeyError, RecursionError, OverflowError):
        return 0.0


def note(who: str, moment: float, message: str) -> None:
    """Best effort: a limit that can't be noted is met again."""
    path = _path(who)
    if path:
        record = {"account": who, "until": clock.rfc3339_local(moment), "message": message}
        try:
            files.folder(os.path.dirname(path))
            files.replace(path, json.dumps(record, indent=2).encode() + b"\n", 0o600)
        except OSError:
            pass


def _path(who: str) -> str:
    for variable, below in (("ROODA_STATE_HOME", ""), ("XDG_STATE_HOME", "rooda"), ("HOME", ".local/state/rooda")):
        home = os.environ.get(variable, "")
        if os.path.isabs(home):
            return os.path.join(home, below, "limits", f"{files.sha256(who.encode())[:16]}.json")
    return ""
