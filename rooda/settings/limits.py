"""The limits of cost, tokens and time that are in force."""

from rooda.model import Budget
from rooda.settings.kinds import DURATION
from rooda.settings.lookup import Lookup


def limits(look: Lookup) -> Budget:
    duration = look.value("max_duration", 0)
    seconds = DURATION.read(duration) if isinstance(duration, str) else duration
    return Budget(float(look.value("max_cost", 0)), look.value("max_tokens", 0), float(seconds))
