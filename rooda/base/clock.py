"""Provides all access to clocks; no other module reads them."""

import time
from functools import lru_cache

monotonic = time.monotonic
now = time.time
sleep = time.sleep
cpu_time = time.process_time


_stopped: list[float] = []  # durations in seconds for which this process was stopped


def running_time() -> float:
    """Return the monotonic time, excluding time during which Ctrl+Z or `rooda pause` had stopped this process."""
    return monotonic() - sum(_stopped)


def add_stopped_since(since: float) -> None:
    _stopped.append(monotonic() - since)


def uptime() -> float:
    """Return the seconds since boot, including suspend where the system counts it; setting the clock has no effect."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def rfc3339(seconds: float) -> str:
    """Format a time as UTC with whole seconds and a Z, as in state files."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def rfc3339_local(seconds: float) -> str:
    """Format a time as local time with the UTC offset, for the end of a usage limit."""
    import datetime

    return datetime.datetime.fromtimestamp(int(seconds), datetime.UTC).astimezone().isoformat()


def local(text: str) -> str:
    """Convert the time of an event to local date and time for display; return any other text unchanged."""
    import datetime

    try:
        return datetime.datetime.fromisoformat(text).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    except (ValueError, OverflowError):
        return text


def local_time(seconds: float) -> time.struct_time:
    """Convert a time to local time, for display."""
    return time.localtime(seconds)


def local_date(seconds: float) -> str:
    """Format a time as its local calendar day."""
    return time.strftime("%Y-%m-%d", time.localtime(seconds))


def day_start(seconds: float) -> float:
    """Return the time at which the local calendar day that contains `seconds` began."""
    day = time.localtime(seconds)
    return time.mktime((day.tm_year, day.tm_mon, day.tm_mday, 0, 0, 0, 0, 0, -1))


def rfc3339_milli(seconds: float) -> str:
    """Format a time as UTC with milliseconds, as in events."""
    return f"{_whole(int(seconds))}.{int(seconds % 1 * 1000):03d}Z"


@lru_cache(1)  # many events have the same second
def _whole(seconds: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))


def file_stamp(seconds: float) -> str:
    """Format a time as UTC for use in a file name."""
    return time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(seconds))


def parse_time(text: str) -> float | None:
    """Parse a time given by the user: 2026-03-01, 2026-03-01T12:00 (UTC by default), or an age such as 7d, 12h, 30m."""
    import datetime

    unit = {"d": 86_400.0, "h": 3600.0, "m": 60.0}.get(text[-1:])
    if unit and text[:-1].isdecimal() and len(text) < 20:
        return max(now() - int(text[:-1]) * unit, 0.0)
    try:
        found = datetime.datetime.fromisoformat(text)
        return max((found if found.tzinfo else found.replace(tzinfo=datetime.UTC)).timestamp(), 0.0)
    except (ValueError, OverflowError):
        return None


WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


def next_occurrence(
    present: float, year: int, month: int, day: int, hour: int, minute: int, zone: str, on: str = ""
) -> float | None:
    """Return the next time at which a clock in `zone` shows this date and time; None if there is none.

    Month 0 means today or tomorrow, year 0 this year or the next. The zone is a name or an offset such as `+02:00`.
    `on` is "today", "tomorrow" or a weekday such as "mon", instead of a date.
    """
    import datetime
    import zoneinfo

    try:
        offset = datetime.datetime.strptime(zone, "%z").tzinfo if zone[:1] in ("+", "-") else None
        place = offset or (zoneinfo.ZoneInfo(zone) if zone else None)
        today = datetime.datetime.fromtimestamp(present, place)
        shown = today.replace(hour=hour, minute=minute, second=0, microsecond=0)
        if month:
            shown = shown.replace(year=year or today.year, month=month, day=day)
        if month and not year and shown.timestamp() < present - 86_400:
            shown = shown.replace(year=today.year + 1)  # ValueError, thus None, if next year has no 29 February
        if on == "tomorrow" or on in WEEKDAYS:
            shown += datetime.timedelta(days=1 if on == "tomorrow" else (WEEKDAYS.index(on) - today.weekday()) % 7)
            shown += datetime.timedelta(days=7 if shown.timestamp() + 60 < present else 0)
        elif not month and not on:  # in autumn one hour occurs twice: use the first that is not over
            choices = (shown.replace(fold=0), shown.replace(fold=1), shown + datetime.timedelta(days=1))
            shown = next(each for each in choices if each.timestamp() + 60 > present)
        return shown.timestamp()  # raises OverflowError for the year 1
    except (ValueError, OSError, OverflowError, LookupError):
        return None
