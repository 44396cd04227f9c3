"""`rooda worker`: reads its settings, and starts the worker with its guardian, processes/dead_man."""

import os
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Any, NamedTuple

from rooda.errors import UsageProblem
from rooda.fleet.port import Address, Land, Place, Work, parse_address
from rooda.processes import dead_man
from rooda.settings.layers import Settings
from rooda.settings.schema import FLEET

HEARTBEAT = 60.0  # seconds


class Fleet(NamedTuple):
    """[fleet] of the user's settings, with the address that this command uses."""

    address: Address
    heartbeat: float = HEARTBEAT
    insecure: bool = False


def require_engine() -> None:
    """Raise UsageProblem if the extra `fleet` is not installed."""
    try:
        is_there = find_spec("temporalio") is not None
    except (ImportError, ValueError):  # a broken or hidden installation
        is_there = False
    if not is_there:
        hint = "Install it: pip install 'rooda[fleet]' (in a checkout of rooda: pip install '.[fleet]')"
        raise UsageProblem("The fleet needs rooda's extra `fleet`.", hint)


def fleet_of(table: Mapping[str, Any], typed: str | None = None) -> Fleet:
    """Return [fleet] with the address `typed` on the command line, else its own. Raises UsageProblem without both."""
    text = typed or table.get("address", "")
    if not text:
        what = "No fleet is set."
        raise UsageProblem(what, "Give --fleet temporal://HOST:7233/NAMESPACE, or set address in [fleet].")
    heartbeat = float(FLEET["heartbeat"].converted(table.get("heartbeat", HEARTBEAT)))
    return Fleet(parse_address(str(text)), heartbeat, bool(table.get("insecure", False)))


def hands(found: Settings, place: Place, say: Callable[[str], None], fleet: Fleet) -> tuple[Work, Land]:
    """Return the functions that run tasks and landings on this machine."""
    from rooda.fleet import leg, policy

    environ = policy.taken(os.environ)
    return leg.make(found, place, say, environ), leg.make_land(found, place, say, fleet, environ)


def run(fleet: Fleet, place: Place, work: Work, land: Land | None, say: Callable[[str], None]) -> int:
    """Run the fleet's tasks until drained; return the exit code."""
    if not dead_man.is_guarded():
        dead_man.start()
    from rooda.fleet.engine import connection
    from rooda.fleet.serve import Host, serve

    connection(fleet.address, fleet.insecure)  # refused before anything begins
    fenced = os.environ.get(dead_man.FENCE) != "off"
    say(f"Worker {place.name}: pool {place.pool}, {place.slots} at once, {fleet.address}")
    return serve(fleet.address, fleet.insecure, Host(place, work, say, land, dead_man.prove, fenced))
