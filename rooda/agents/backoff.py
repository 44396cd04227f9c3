"""Parses the reset time of a usage limit from a CLI's message, and computes waits; reads no clock itself."""

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
    """A wall-clock time parsed from a message; year and month are 0 if it names none."""

    year: int
    month: int
    day: int
    hour: int
    minute: int
    zone: str


ToEpoch = Callable[[Moment], float | None]  # the next Unix time at which a clock in that zone shows this
LATEST = 4_102_444_800  # the year 2100
_EPOCH = re.compile(r"\|\s*(\d{10})\b")  # "usage limit reached|1770000000"


def parse_reset(text: str, now: float, to_epoch: ToEpoch) -> float | None:
    """Return the Unix time of the reset that the text names; None if it names none, or one outside of 1970–2100."""
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
    """Parse a duration such as `1h30m0s`, `2 days, 3 hours and 5 minutes` or `6344717ms`."""
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
TOLERANCE = 1.0  # seconds by which the clocks may drift apart
MARGIN = 15.0  # seconds to wait after the reset time, since clocks differ


def backoff(first: float, failures: int) -> float:
    """Return the seconds to wait after a failure: `first`, doubled for each further failure in a row."""
    return min(first * 2.0 ** min(max(failures - 1, 0), 30), max(LONGEST, first))


def usable_at(until: float, noted: float, now: float, waited: float | None) -> float:
    """Return the time at which a recorded limit ends, by the current clock; 0 if it is over.

    The clock may have been set since, so a limit never lasts longer than it would have when it was recorded. `waited`:
    seconds since then by a clock that can't be set; None after a reboot.
    """
    if waited is None:
        return until if now >= noted else 0.0
    left = until - noted - waited
    return until if until - now <= left + TOLERANCE else now + left


def until_reset(reset_at: float | None, now: float) -> float:
    """Return the seconds until a usage limit is over."""
    return UNKNOWN_LIMIT if reset_at is None else max(reset_at - now, 0.0) + MARGIN
