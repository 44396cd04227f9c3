"""The stamp in front of a line."""

from rooda.base import clock


class Stamp:
    """`log_timestamp_format`: time, time-ms, relative, iso or none."""

    def __init__(self, form: str) -> None:
        self._form = form
        self._began = clock.monotonic()

    def __call__(self) -> str:
        """The stamp with its trailing blank, now."""
        now = clock.now()
        if self._form == "none":
            return ""
        if self._form == "relative":
            return f"[+{clock.monotonic() - self._began:.3f}s] "
        if self._form == "iso":
            return f"[{clock.rfc3339_milli(now)}] "
        local = clock.local(now)
        time = f"{local.tm_hour:02d}:{local.tm_min:02d}:{local.tm_sec:02d}"
        return f"[{time}.{int(now % 1 * 1000):03d}] " if self._form == "time-ms" else f"[{time}] "
