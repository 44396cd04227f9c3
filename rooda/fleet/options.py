"""Reads [fleet], which rooda takes only from the user's own settings."""

import os
from typing import NamedTuple

from rooda.fleet import ticket
from rooda.fleet.policy import Policy
from rooda.settings.layers import Settings
from rooda.settings.schema import FLEET

KEEP = 14 * 86_400.0  # seconds


class FleetSettings(NamedTuple):
    """The `[fleet]` settings that tasks and workers need, and `branch_prefix` of `[tasks]`, which a ticket contains."""

    state: str = ""
    ref_prefix: str = ticket.REFS
    logs: str = "worker"
    keep: float = KEEP
    insecure: bool = False
    branch_prefix: str = "rooda"
    policy: Policy = Policy()


def fleet_settings(found: Settings) -> FleetSettings:
    table = found.table("fleet")
    prefix = str(table.get("ref_prefix", ticket.REFS))
    return FleetSettings(
        state=ticket.without_password(os.path.expanduser(str(table.get("state", "")))),
        ref_prefix=prefix if prefix.endswith("/") else f"{prefix}/",
        logs=str(table.get("logs", "worker")),
        keep=float(FLEET["keep"].converted(table.get("keep", KEEP))),
        insecure=bool(table.get("insecure", False)),
        branch_prefix=str(found.table("tasks").get("branch_prefix", "rooda")).strip("/"),
        policy=_policy(found),
    )


def _policy(found: Settings) -> Policy:
    table = found.table("fleet")
    own, agent = table.get("worker", {}), found.table("loop").get("agent", "")
    return Policy(
        repositories=tuple(own.get("repositories", ())),
        agents=tuple(own.get("agents", ())) or tuple(filter(None, (str(agent),))),
        max_cost=float(own.get("max_cost", 0.0)),
        prepare=str(own.get("prepare", "")),
        ticket_commands=bool(own.get("ticket_commands", False)),
        insecure=bool(table.get("insecure", False)),
        state=os.path.expanduser(str(table.get("state", ""))),
    )
