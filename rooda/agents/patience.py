"""How long to wait before the next call."""

LONGEST = 300.0  # between tries after passing faults
UNKNOWN_LIMIT = 900.0  # when nobody says when a usage limit ends
TOLERANCE = 1.0  # between two clocks, neither of which was set
MARGIN = 15.0  # after the time that was named: clocks differ


def backoff(first: float, failures: int) -> float:
    """After the n-th failure in a row: first, twice that, four times, …"""
    return min(first * 2.0 ** min(max(failures - 1, 0), 30), max(LONGEST, first))


def free_at(until: float, noted: float, now: float, waited: float | None) -> float:
    """When a limit that was noted is over, by the clock as it is now; 0: it is none.

    The clock may have been set since, so no limit holds longer than it seemed to. `waited`: seconds since it was noted,
    of a clock that can't be set; None where there is none, after a reboot.
    """
    if waited is None:
        return until if now >= noted else 0.0
    left = until - noted - waited
    return until if until - now <= left + TOLERANCE else now + left


def until_reset(reset_at: float | None, now: float) -> float:
    """Seconds until a usage limit is over."""
    return UNKNOWN_LIMIT if reset_at is None else max(reset_at - now, 0.0) + MARGIN
