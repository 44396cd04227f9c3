"""Parses the reset time of a usage limit from a CLI's message, and computes waits; reads no clock itself."""

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

# The patterns are strings, since compiling them takes 6 ms that a loop without usage limits should not pay.
_UNIT = r"(?:ms|milliseconds?|w(?:eeks?)?|d(?:ays?)?|h(?:(?:ou)?rs?)?|m(?:in(?:ute)?s?)?|s(?:ec(?:ond)?s?)?)(?![a-z])"
_PART = rf"(?i)(\d+(?:\.\d+)?)\s*({_UNIT})"
_SECONDS = {"w": 604_800.0, "d": 86_400.0, "h": 3600.0, "m": 60.0, "s": 1.0}  # by the first letter of the unit
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
# A time counts only after a word such as "resets" or "until"; filler words may be between the two.
_AHEAD = (
    r"(?i)\b(?:resets?(?:_?(?:in|at))?|reset time|again|renew(?:s|al)?|refresh(?:es)?|restored?|resumes?|available"
    r"|lifted|retry(?:ing)?"
    r"|retry[-_ ]?(?:after|delay|in)|expires?|wait|come back|until|after|in)(?=[\W\d_])"
)
_FILLER = (
    r"""(?:[\s,:=·"'~-]|at|on|after|in|by|for|until|another|about|around"""
    r"|approximately|roughly|the|limit|will|be|is|date|next)*"
)
_SPAN = rf"(?i){_FILLER}((?:\d+(?:\.\d+)?\s*{_UNIT}(?:,?\s*(?:and\s+)?))+)"
_ONE = rf"(?i){_FILLER}(?:less than |under )?(?:an?|one|1) (minute|hour|day|week)(?!s?,? (?:and )?\d|\w)"
_HEADER = r"(?i)retry[-_ ]?(?:after|delay)[-_ ]?(ms|seconds|s)?[\"']?\s*[:=]\s*[\"']?(\d+(?:\.\d+)?)(?![\d.]*\s*[a-z-])"
_IN_SECONDS = r"(?i)(?:resets?|retry)_in_seconds[\"']?\s*[:=]\s*(\d+)"
_TIME = r"(?P<hour>\d{1,2})(?::(?P<minute>\d\d)(?::\d\d)?)?\s*(?P<half>[ap]\.?m\b\.?)?"
_PLACES = {
    **dict.fromkeys(("PT", "PST", "PDT", "PACIFIC"), "America/Los_Angeles"),
    **dict.fromkeys(("MST", "MDT"), "America/Denver"), **dict.fromkeys(("CST", "CDT"), "America/Chicago"),
    **dict.fromkeys(("ET", "EST", "EDT"), "America/New_York"), **dict.fromkeys(("CET", "CEST"), "Europe/Berlin"),
    "BST": "Europe/London", "JST": "Asia/Tokyo", "Z": "UTC", "UTC": "UTC", "GMT": "UTC",
}  # fmt: skip
_ZONE = (
    rf"(?:\s*(?:\((?P<zone>[\w/+-]+)\)|\(?(?P<place>{'|'.join(_PLACES)})(?![a-z])\)?))?"
    r"(?P<offset>[+-]\d\d?(?::?\d\d)?\b)?"
)
_WEEKDAY = "mon(?:day)?|tue(?:s(?:day)?)?|wed(?:nesday)?|thu(?:r(?:s(?:day)?)?)?|fri(?:day)?|sat(?:urday)?|sun(?:day)?"
_ON = rf"(?P<on>today|tomorrow|{_WEEKDAY})\b"
_BEFORE = rf"{_FILLER}(?:(?:{_WEEKDAY})[.,]?\s+)?"  # before a date, which says the same
_AT = r"(?:,?\s+(?:at\s+)?"
_MONTH = r"(?P<month>[A-Z][a-z]{2})[a-z]*\.?"
_NAMED_DAY = rf"{_MONTH}\s+(?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?:,?\s+(?P<year>\d{{4}}))?"
_DAY_FIRST = rf"(?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?: of)?\s+{_MONTH}(?:,?\s+(?P<year>\d{{4}}))?"
_YEAR_FIRST = r"(?P<year>\d{4})[-/](?P<month>\d\d)[-/](?P<day>\d\d)"
_DATES = tuple(
    f"(?i){pattern}"
    for pattern in (
        rf"{_BEFORE}{_YEAR_FIRST}(?:[T ]{_TIME})?(?:\.\d+)?{_ZONE}",
        rf"{_BEFORE}(?P<month>\d{{1,2}})/(?P<day>\d{{1,2}})/(?P<year>\d{{4}}){_AT}{_TIME})?{_ZONE}",
        rf"{_BEFORE}(?P<day>\d{{1,2}})\.(?P<month>\d{{1,2}})\.(?P<year>\d{{4}}){_AT}{_TIME})?{_ZONE}",
        rf"{_BEFORE}{_NAMED_DAY}{_AT}{_TIME})?{_ZONE}",
        rf"{_BEFORE}{_DAY_FIRST}{_AT}{_TIME})?{_ZONE}",
        rf"{_FILLER}{_ON}{_AT}{_TIME})?{_ZONE}",
        rf"{_FILLER}{_TIME}{_ZONE}(?:,? (?:on )?{_ON})?",
    )
)


class Moment(NamedTuple):
    """A wall-clock time parsed from a message; year and month are 0 if the message names none."""

    year: int
    month: int
    day: int
    hour: int
    minute: int
    zone: str
    on: str = ""  # "today", "tomorrow", or the first three letters of a weekday


ToEpoch = Callable[[Moment], float | None]  # returns the next Unix time at which a clock in its zone shows the moment
LATEST = 4_102_444_800  # the year 2100
_EPOCH = (  # "usage limit reached|1770000000", "resetsAt": 1770000000000
    r"(?i)(?:\||\bresets? at |(?:\b|[-_])resets?(?:_?at|_?time)?[\"']?\s*[:=]\s*[\"']?)\s*(\d{10})(?:\d{3})?(?!\d)"
)


def parse_reset(text: str, now: float, to_epoch: ToEpoch) -> float | None:
    """Return the Unix time of the reset that the text names; None if it names no time, or one outside of 1970–2100."""
    found = _reset_time(text, now, to_epoch)
    return found if found is not None and 0 <= found < LATEST else None


def _reset_time(text: str, now: float, to_epoch: ToEpoch) -> float | None:
    if epoch := re.search(_EPOCH, text):
        return float(epoch[1])
    if header := re.search(_HEADER, text):
        return now + float(header[2]) * (0.001 if header[1] == "ms" else 1.0)
    if seconds := re.search(_IN_SECONDS, text):
        return now + float(seconds[1])
    text = re.sub(r"\b(?:12 )?midnight\b", "00:00", re.sub(r"\b(?:12 )?noon\b", "12:00", text))
    for word in re.finditer(_AHEAD, text):
        rest = text[word.end() : word.end() + 120]
        if (span := _seconds_ahead(rest, word[0].lower())) is not None:
            return now + span
        found = (re.match(each, rest) for each in _dates_after(word[0].lower()))
        moment = next((made for match in found if match and (made := _moment(match))), None)
        if moment and (reset := to_epoch(moment)) is not None:
            return reset
    return None


def _dates_after(word: str) -> tuple[str, ...]:
    """Return the date and time patterns to try after a word; none after `in`: `in 10 organizations` would match."""
    return () if word == "in" else _DATES


def _seconds_ahead(text: str, word: str) -> float | None:
    """Return the seconds of the duration at the beginning of the text; None if there is none.

    `word`: the word before the text.
    """
    if word != "in" and (one := re.match(_ONE, text)):  # "10 requests in a day" is no reset
        return _SECONDS[one[1][0].lower()]
    found = re.match(_SPAN, text)
    return _seconds(found[1]) or None if found else None


def _seconds(text: str) -> float:
    """Parse a duration such as `1h30m0s`, `2 days, 3 hours and 5 minutes` or `6344717ms`."""
    parts = [(float(amount), unit.lower()) for amount, unit in re.findall(_PART, text)]
    return sum(each * (0.001 if unit.startswith(("ms", "mil")) else _SECONDS[unit[0]]) for each, unit in parts)


def _moment(found: "re.Match[str]") -> Moment | None:
    """Return the time that a match names; None if it is invalid. A date without a time means the date's midnight."""
    groups = {"month": "", "day": "", "year": "", "on": "", **found.groupdict()}
    on = (groups["on"] or "").lower()
    time = _time_of_day(groups, has_date=bool(groups["day"]) or on not in ("", "today"))
    month = _month(groups["month"])
    if time is None or month is None:
        return None
    on = on if on in ("today", "tomorrow") else on[:3]
    return Moment(int(groups["year"] or 0), month, int(groups["day"] or 0), *time, _zone(groups), on)


def _zone(groups: Mapping[str, str | None]) -> str:
    """Return a zone's name, or an offset in the form `+0200`; "" if the match has none."""
    if offset := groups["offset"]:
        digits = offset[1:].replace(":", "")
        return f"{offset[0]}{digits if len(digits) == 4 else f'{digits:0>2}00'}"
    zone = groups["zone"] or groups["place"] or ""
    return _PLACES.get(zone.upper(), zone)


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

    Doubling stops at LONGEST, or at `first` if that is longer. If the service `asked` for a longer wait, return that.
    """
    return max(min(first * 2.0 ** min(max(failures - 1, 0), 30), max(LONGEST, first)), asked)


def usable_at(until: float, noted: float, now: float, waited: float | None) -> float:
    """Return the time at which a recorded limit ends, by the current clock; a past time or 0 if it is over.

    `noted`: the clock's time when the limit was recorded. The user may have set the clock since then; the limit still
    lasts at most `until - noted` seconds. `waited`: the seconds since `noted`, measured by a clock that can't be set;
    None after a reboot.
    """
    if waited is None:
        return until if now >= noted else 0.0
    left = until - noted - waited
    return until if until - now <= left + TOLERANCE else now + left


def until_reset(reset_at: float | None, now: float) -> float:
    """Return the seconds until a usage limit is over."""
    return UNKNOWN_LIMIT if reset_at is None else max(reset_at - now, 0.0) + MARGIN
