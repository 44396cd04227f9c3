"""Parses the reset time of a usage limit from a CLI's message, and computes waits; reads no clock itself."""

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

_UNIT = r"(?:ms|milliseconds?|w(?:eeks?)?|d(?:ays?)?|h(?:(?:ou)?rs?)?|m(?:in(?:ute)?s?)?|s(?:ec(?:ond)?s?)?)(?![a-z])"
_PART = re.compile(rf"(\d+(?:\.\d+)?)\s*({_UNIT})", re.I)
_SECONDS = {"w": 604_800.0, "d": 86_400.0, "h": 3600.0, "m": 60.0, "s": 1.0}  # by the first letter of the unit
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
# A time counts only after a word such as "resets" or "until"; filler words may be between the two.
_AHEAD = re.compile(
    r"\b(?:resets?(?:_?(?:in|at))?|reset time|again|renew(?:s|al)?|refresh(?:es)?|restored?|resumes?|available"
    r"|lifted|retry(?:ing)?"
    r"|retry[-_ ]?(?:after|delay|in)|expires?|wait|come back|until|after|in)(?=[\W\d_])",
    re.I,
)
_FILLER = (
    r"""(?:[\s,:=·"'~-]|at|on|after|in|by|for|until|another|about|around"""
    r"|approximately|roughly|the|limit|will|be|is|date)*"
)
_SPAN = re.compile(rf"{_FILLER}((?:\d+(?:\.\d+)?\s*{_UNIT}(?:,?\s*(?:and\s+)?))+)", re.I)
_ONE = re.compile(rf"{_FILLER}(?:less than |under )?(?:an?|one|1) (minute|hour|day|week)(?!s?,? (?:and )?\d|\w)", re.I)
_HEADER = re.compile(
    r"retry[-_ ]?(?:after|delay)[-_ ]?(ms|seconds|s)?[\"']?\s*[:=]\s*[\"']?(\d+(?:\.\d+)?)(?![\d.]*\s*[a-z-])", re.I
)
_IN_SECONDS = re.compile(r"(?:resets?|retry)_in_seconds[\"']?\s*[:=]\s*(\d+)", re.I)
_TIME = r"(?P<hour>\d{1,2})(?::(?P<minute>\d\d)(?::\d\d)?)?\s*(?P<half>[ap]\.?m\b\.?)?"
_ZONE = r"(?:\s*(?:\((?P<zone>[\w/+-]+)\)|(?P<utc>Z|UTC|GMT)\b))?(?P<offset>[+-]\d\d:?\d\d\b)?"
_NAMED_DAY = r"(?P<month>[A-Z][a-z]{2})[a-z]*\.?\s+(?P<day>\d{1,2})(?:st|nd|rd|th)?(?:,?\s+(?P<year>\d{4}))?"
_CLOCK = re.compile(rf"{_FILLER}{_TIME}{_ZONE}", re.I)
_NAMED = re.compile(rf"{_FILLER}{_NAMED_DAY}(?:,?\s+(?:at\s+)?{_TIME})?{_ZONE}", re.I)
_DAY_FIRST = re.compile(
    rf"{_FILLER}(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\s+(?P<month>[A-Z][a-z]{{2}})[a-z]*\.?(?:,?\s+(?P<year>\d{{4}}))?"
    rf"(?:,?\s+(?:at\s+)?{_TIME})?{_ZONE}",
    re.I,
)
_ISO = re.compile(rf"{_FILLER}(?P<year>\d{{4}})-(?P<month>\d\d)-(?P<day>\d\d)(?:[T ]{_TIME})?(?:\.\d+)?{_ZONE}", re.I)
_SLASHED = re.compile(
    rf"{_FILLER}(?P<month>\d{{1,2}})/(?P<day>\d{{1,2}})/(?P<year>\d{{4}})(?:,?\s+{_TIME})?{_ZONE}", re.I
)


class Moment(NamedTuple):
    """A wall-clock time parsed from a message; year and month are 0 if it names none."""

    year: int
    month: int
    day: int
    hour: int
    minute: int
    zone: str


ToEpoch = Callable[[Moment], float | None]  # returns the next Unix time at which a clock in its zone shows the moment
LATEST = 4_102_444_800  # the year 2100
_EPOCH = re.compile(r"\|\s*(\d{10})\b")  # "usage limit reached|1770000000"


def parse_reset(text: str, now: float, to_epoch: ToEpoch) -> float | None:
    """Return the Unix time of the reset that the text names; None if it names no time, or one outside of 1970–2100."""
    found = _reset_time(text, now, to_epoch)
    return found if found is not None and 0 <= found < LATEST else None


def _reset_time(text: str, now: float, to_epoch: ToEpoch) -> float | None:
    if epoch := _EPOCH.search(text):
        return float(epoch[1])
    if header := _HEADER.search(text):
        return now + float(header[2]) * (0.001 if header[1] == "ms" else 1.0)
    if seconds := _IN_SECONDS.search(text):
        return now + float(seconds[1])
    for word in _AHEAD.finditer(text):
        rest = text[word.end() : word.end() + 120]
        if (span := _seconds_ahead(rest)) is not None:
            return now + span
        found = (each.match(rest) for each in _dates_after(word[0].lower()))
        moment = next((made for match in found if match and (made := _moment(match))), None)
        if moment and (reset := to_epoch(moment)) is not None:
            return reset
    return None


def _dates_after(word: str) -> tuple["re.Pattern[str]", ...]:
    """Return the date and time patterns to try after a word; none after `in`, or `in 10 organizations` would match."""
    return () if word == "in" else (_ISO, _SLASHED, _NAMED, _DAY_FIRST, _CLOCK)


def _seconds_ahead(text: str) -> float | None:
    """Return the duration at the beginning of the text; None if there is none."""
    if one := _ONE.match(text):
        return _SECONDS[one[1][0].lower()]
    found = _SPAN.match(text)
    return _seconds(found[1]) or None if found else None


def _seconds(text: str) -> float:
    """Parse a duration such as `1h30m0s`, `2 days, 3 hours and 5 minutes` or `6344717ms`."""
    parts = [(float(amount), unit.lower()) for amount, unit in _PART.findall(text)]
    return sum(each * (0.001 if unit.startswith(("ms", "mil")) else _SECONDS[unit[0]]) for each, unit in parts)


def _moment(found: "re.Match[str]") -> Moment | None:
    """Return the time that a match names, None if it is invalid; a date without a time means its first minute."""
    groups = {"month": "", "day": "", "year": "", **found.groupdict()}
    time = _time_of_day(groups, has_date=bool(groups["day"]))
    month = _month(groups["month"])
    if time is None or month is None:
        return None
    zone = groups["zone"] or ("UTC" if groups["utc"] else groups["offset"] or "")
    return Moment(int(groups["year"] or 0), month, int(groups["day"] or 0), *time, zone)


def _time_of_day(groups: Mapping[str, str | None], has_date: bool) -> tuple[int, int] | None:
    """Return hour and minute; None if the number is not a time, as in `5 requests`."""
    half = (groups["half"] or "").lower()
    if groups["hour"] is None:
        return (0, 0) if has_date else None
    hour, minute = int(groups["hour"]), int(groups["minute"] or 0)
    if not (half or groups["minute"]) or minute > 59 or hour > (12 if half else 23) or (half and not hour):
        return None
    return (hour % 12 + (12 if half.startswith("p") else 0) if half else hour), minute


def _month(word: str | None) -> int | None:
    """Return the number of the month given by name or number; 0 if `word` is empty, None if it is not a month."""
    if not word:
        return 0
    if word.isdecimal():
        return int(word) if 1 <= int(word) <= 12 else None
    return _MONTHS.index(word.lower()) + 1 if word.lower() in _MONTHS else None


# Waiting before the next call.
LONGEST = 300.0  # seconds between attempts after temporary failures
UNKNOWN_LIMIT = 900.0  # seconds to wait if the reset time is unknown
TOLERANCE = 1.0  # seconds by which the clocks may drift apart
MARGIN = 15.0  # seconds added to the wait, since the service's clock may differ from ours


def backoff(first: float, failures: int, asked: float = 0.0) -> float:
    """Return the seconds to wait after a failure: `first`, doubled for each further failure in a row.

    If the service `asked` for a longer wait, that one is returned.
    """
    return max(min(first * 2.0 ** min(max(failures - 1, 0), 30), max(LONGEST, first)), asked)


def usable_at(until: float, noted: float, now: float, waited: float | None) -> float:
    """Return the time at which a recorded limit ends, by the current clock; 0 if it is over.

    The user may have set the clock since the limit was recorded at `noted`; it still lasts at most `until - noted`
    seconds. `waited`: seconds since `noted` by a clock that can't be set; None after a reboot.
    """
    if waited is None:
        return until if now >= noted else 0.0
    left = until - noted - waited
    return until if until - now <= left + TOLERANCE else now + left


def until_reset(reset_at: float | None, now: float) -> float:
    """Return the seconds until a usage limit is over."""
    return UNKNOWN_LIMIT if reset_at is None else max(reset_at - now, 0.0) + MARGIN
