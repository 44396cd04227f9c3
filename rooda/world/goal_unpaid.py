"""Calls that a crash cut off: what they cost is spent, though nobody lived to write it down."""

import os

from rooda.agents.records import Agent
from rooda.agents.reply import cut_off
from rooda.policy.goal_effects import Told
from rooda.world import goal_reply, runfolder
from rooda.world.history import SessionLog
from rooda.world.journal import NAME


def unpaid(workspace: str, name: str, agent: Agent, per_call: float) -> list[Told]:
    """Those of the latest session that began after its state was written last, read from their transcripts."""
    events = os.path.join(runfolder.latest(workspace, name) or "", NAME)
    calls = SessionLog(events).look().unsaved
    return [goal_reply.told(agent, cut_off(call, agent, answer=True), 0, per_call, {}) for call in calls]
