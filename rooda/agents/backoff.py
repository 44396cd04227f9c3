"""Reads the end of a usage limit from a CLI's message, and computes waits. Pure: the current time is an argument."""

import re
from collections.abc import Callable
from typing import NamedTuple

_UNIT = r"(?:ms|milliseconds?|d(?:ays?)?|h(?:(?:ou)?rs?)?|m(?:in(?:ute)?s?)?|s(?:ec(?:ond)?s?)?)(?![a-z])"
_PART = re.compile(rf"(\d+(?:\.\d+)?)\s*({_UNIT})", re.I)
_SECONDS = {"d": 86_400.0, "h": 3600.0, "m": 60.0, "s": 1.0}  # by the first letter of the unit
_AFTER = re.compile(
    rf"(?:reset|try again|retry)(?:s|ing)?\s+(?:after|in)\s+(?:\d+(?:\.\d+)?\s*{_UNIT}(?:,?\s*(?:and\s+)?))+", re.I
)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_CLOCK = re.compile(
    r"(?:resets?|try again)\s+(?:at\s+)?"
    r"(?:(?P<month>[A-Z][a-z]{2})[a-z]*\.?\s+(?P<day>\d{1,2})(?:st|nd|rd|th)?,?\s+(?:(?P<year>\d{4})\s+)?(?:at\s+)?)?"
    r"(?P<hour>\d{1,2})(?::(?P<minute>\d\d))?\s*(?P<half>[ap]m)(?:\s*\((?P<zone>[\w/+-]+)\))?",
    re.I,
)


class Moment(NamedTuple):
    """A wall-clock time as read; year 0 and month 0 if the text names none."""

    year: int
    month: int
    day: int
    hour: int
    minute: int
    zone: str


ToEpoch = Callable[[Moment], float | None]  # the next time that a clock in that zone shows this
LATEST = 4_102_444_800  # the year 2100
_EPOCH = re.compile(r"\|\s*(\d{10})\b")  # "usage limit reached|1770000000"


def parse_reset(text: str, now: float, to_epoch: ToEpoch) -> float | None:
    """Return the reset time that the text names as Unix time; None if there is none or it can't be waited for."""
    found = _reset_time(text, now, to_epoch)
    return found if found is not None and 0 <= found < LATEST else None


def _reset_time(text: str, now: float, to_epoch: ToEpoch) -> float | None:
    if epoch := _EPOCH.search(text):
        return float(epoch[1])
    if after := _AFTER.search(text):
        span = _seconds(after[0])
        return now + span if span else None
    clock = _CLOCK.search(text)
    moment = clock and _moment(clock)
    return to_epoch(moment) if moment else None


def _seconds(text: str) -> float:
    """Sum all parts: `1h30m0s`, `2 days, 3 hours and 5 minutes`, `6344717ms`."""
    parts = [(float(amount), unit.lower()) for amount, unit in _PART.findall(text)]
    return sum(each * (0.001 if unit.startswith(("ms", "mil")) else _SECONDS[unit[0]]) for each, unit in parts)


def _moment(found: "re.Match[str]") -> Moment | None:
    hour, minute = int(found["hour"]), int(found["minute"] or 0)
    if not (1 <= hour <= 12 and minute < 60):
        return None
    hour = hour % 12 + (12 if found["half"].lower() == "pm" else 0)
    month = found["month"]
    if month and month.lower() not in _MONTHS:
        return None
    number = _MONTHS.index(month.lower()) + 1 if month else 0
    return Moment(int(found["year"] or 0), number, int(found["day"] or 0), hour, minute, found["zone"] or "")


# Waiting before the next call.
LONGEST = 300.0  # seconds between attempts after temporary failures
UNKNOWN_LIMIT = 900.0  # seconds to wait if the reset time is unknown
TOLERANCE = 1.0  # seconds that two clocks may differ if neither was set
MARGIN = 15.0  # seconds to wait after the reset time, since clocks differ


def backoff(first: float, failures: int) -> float:
    """Return the wait after the n-th failure in a row: `first`, doubled for each further one."""
    return min(first * 2.0 ** min(max(failures - 1, 0), 30), max(LONGEST, first))


def usable_at(until: float, noted: float, now: float, waited: float | None) -> float:
    """Time at which a recorded limit ends, by the current clock; 0 if it is over.

    The clock may have been set since, so no limit lasts longer than it did when it was recorded. `waited`: seconds
    since then by a clock that can't be set; None after a reboot.
    """
    if waited is None:
        return until if now >= noted else 0.0
    left = until - noted - waited
    return until if until - now <= left + TOLERANCE else now + left


def until_reset(reset_at: float | None, now: float) -> float:
    """Seconds until a usage limit is over."""
    return UNKNOWN_LIMIT if reset_at is None else max(reset_at - now, 0.0) + MARGIN
