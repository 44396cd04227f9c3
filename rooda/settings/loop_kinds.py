"""The settings of [reflex], [flow] and [goal]: a kind's own, and what it shares with [loop]."""

from rooda.settings import flow_keys, goal_keys, reflex_keys
from rooda.settings.schema import SHARED

OWN = {"reflex": reflex_keys.OWN, "flow": flow_keys.OWN, "goal": goal_keys.OWN}
TABLES = ("loop", "procedures", *OWN, "agents", "models", "prices", "ai_cmd_aliases", "hooks")
KINDS = {kind: {**own, **SHARED, **own} for kind, own in OWN.items()}
