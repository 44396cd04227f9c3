"""The only reader of clocks."""

import time

monotonic = time.monotonic
now = time.time
sleep = time.sleep


_stopped: list[float] = []  # seconds of each time in which we stood still


def running_time() -> float:
    """As `monotonic`, without the time in which this process stood still by Ctrl+Z or `rooda pause`."""
    return monotonic() - sum(_stopped)


def add_stopped_since(since: float) -> None:
    _stopped.append(monotonic() - since)


def uptime() -> float:
    """Seconds since the machine's start, those in which it slept too, if the system counts them. Nobody can set it."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def rfc3339(seconds: float) -> str:
    """UTC with whole seconds and a Z, the form of every state file."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def rfc3339_local(seconds: float) -> str:
    """Local time with its distance to UTC, for times in the future that people wait for."""
    import datetime

    return datetime.datetime.fromtimestamp(int(seconds), datetime.UTC).astimezone().isoformat()


def local_time(seconds: float) -> time.struct_time:
    """Local time, for lines that people read."""
    return time.localtime(seconds)


def rfc3339_milli(seconds: float) -> str:
    """UTC with milliseconds, the form of events."""
    whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(int(seconds)))
    return f"{whole}.{int(seconds % 1 * 1000):03d}Z"


def file_stamp(seconds: float) -> str:
    """UTC as part of a file name."""
    return time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(seconds))


def parse_time(text: str) -> float | None:
    """A time as people type it: 2026-03-01, 2026-03-01T12:00 (UTC unless a zone is named), or 7d, 12h, 30m ago."""
    import datetime

    unit = {"d": 86_400.0, "h": 3600.0, "m": 60.0}.get(text[-1:])
    if unit and text[:-1].isdecimal() and len(text) < 20:
        return max(now() - int(text[:-1]) * unit, 0.0)
    try:
        found = datetime.datetime.fromisoformat(text)
        return max((found if found.tzinfo else found.replace(tzinfo=datetime.UTC)).timestamp(), 0.0)
    except (ValueError, OverflowError):
        return None


def next_occurrence(present: float, year: int, month: int, day: int, hour: int, minute: int, zone: str) -> float | None:
    """Next time a clock shows this; month 0: today or tomorrow, year 0: this year or the next."""
    import datetime
    import zoneinfo

    try:
        place = zoneinfo.ZoneInfo(zone) if zone else None
        today = datetime.datetime.fromtimestamp(present, place)
        shown = today.replace(hour=hour, minute=minute, second=0, microsecond=0)
        if month:
            shown = shown.replace(year=year or today.year, month=month, day=day)
        if month and not year and shown.timestamp() < present - 86_400:
            shown = shown.replace(year=today.year + 1)  # no 29th of February there: nothing is known
        if not month:  # in autumn an hour comes twice; the present minute is the one that is meant
            choices = (shown.replace(fold=0), shown.replace(fold=1), shown + datetime.timedelta(days=1))
            shown = next(each for each in choices if each.timestamp() + 60 > present)
        return shown.timestamp()  # the year 1 is too early for it
    except (ValueError, OSError, OverflowError, LookupError):
        return None
