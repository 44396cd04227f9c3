"""How long to wait before the next call."""

LONGEST = 300.0  # between tries after passing faults
UNKNOWN_LIMIT = 900.0  # when nobody says when a usage limit ends
MARGIN = 15.0  # after the time that was named: clocks differ


def backoff(first: float, failures: int) -> float:
    """After the n-th failure in a row: first, twice that, four times, …"""
    return min(first * 2.0 ** min(max(failures - 1, 0), 30), max(LONGEST, first))


def until_reset(reset_at: float | None, now: float) -> float:
    """Seconds until a usage limit is over."""
    return UNKNOWN_LIMIT if reset_at is None else max(reset_at - now, 0.0) + MARGIN
