"""What a run may use of money, tokens and time."""

from rooda.settings.kinds import DURATION
from rooda.settings.lookup import Lookup
from rooda.terms import Budget


def budget(look: Lookup) -> Budget:
    duration = look.value("max_duration", 0)
    seconds = DURATION.read(duration) if isinstance(duration, str) else duration
    return Budget(float(look.value("max_cost", 0)), look.value("max_tokens", 0), float(seconds))
