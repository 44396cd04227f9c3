"""Calls that a crash cut off: what they cost is spent, though nobody lived to write it down."""

import json
import os
from collections.abc import Iterator

from rooda.model import Json
from rooda.policy.goal_effects import Told
from rooda.terms import Agent
from rooda.world import files, goal_reply, runfolder
from rooda.world.agents.understanding import cut_off
from rooda.world.journal import NAME


def unpaid(workspace: str, name: str, agent: Agent, per_call: float) -> list[Told]:
    """Those of the latest session that began after its state was written last, read from their transcripts."""
    calls: list[Json] = []
    for record in _records(os.path.join(runfolder.latest(workspace, name) or "", NAME)):
        if record.get("event") == "state.saved":
            calls = []
        elif record.get("event") == "agent.started":
            calls.append(record)
    return [goal_reply.told(agent, cut_off(call, agent), 0, per_call, {}) for call in calls]


def _records(path: str) -> Iterator[Json]:
    try:
        for line in files.lines(path, 1 << 62, 4_194_304):
            try:
                record = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(record, dict):
                yield record
    except OSError:
        return
