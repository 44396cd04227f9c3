"""Calls that a crash cut off: what they cost is spent, though nobody lived to write it down."""

import os

from rooda.agents.records import Agent
from rooda.agents.reply import cut_off
from rooda.loops.goal import goal_reply
from rooda.loops.goal.world import Told
from rooda.run import folder
from rooda.run.events import NAME
from rooda.run.history import SessionLog


def unpaid(workspace: str, name: str, agent: Agent, per_call: float) -> list[Told]:
    """Those of the latest session that began after its state was written last, read from their transcripts."""
    events = os.path.join(folder.latest(workspace, name) or "", NAME)
    calls = SessionLog(events).look().unsaved
    return [goal_reply.told(agent, cut_off(call, agent, answer=True), 0, per_call, {}) for call in calls]
