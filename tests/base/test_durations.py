"""Durations: the formats of the state file and the screen, and those that Go programs write."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rooda.base.text import format_number, format_seconds, format_tenths, parse_seconds, timing_text
from rooda.loops.procedure.state import timing


@pytest.mark.parametrize(
    "value, short, long",
    [
        (45.2, "45.2s", "45s"),
        (42, "42.0s", "42s"),
        (0.04, "0.0s", "0s"),
        (59.96, "1m0.0s", "1m0s"),
        (75.3, "1m15.3s", "1m15s"),
        (136, "2m16.0s", "2m16s"),
        (3605, "1h0m5.0s", "1h0m5s"),
        (3723.04, "1h2m3.0s", "1h2m3s"),
        (-1, "0.0s", "0s"),
    ],
)
def test_forms(value: float, short: str, long: str) -> None:
    """Iterations have one decimal, totals whole seconds."""
    assert (format_tenths(value), format_seconds(value)) == (short, long)


@given(st.floats(min_value=0, max_value=10**6))
def test_a_formatted_duration_can_be_parsed(value: float) -> None:
    """Parsing a formatted duration returns it to a tenth of a second."""
    assert abs(parse_seconds(format_tenths(value)) - value) <= 0.0506  # it is rounded to milliseconds first


@pytest.mark.parametrize(
    "text, value",
    [("1h2m3.5s", 3723.5), ("250ms", 0.25), ("12µs", 12e-6), ("12us", 12e-6), (".5s", 0.5), ("0", 0), ("3ns", 3e-9)],
)
def test_go_forms(text: str, value: float) -> None:
    """Every unit of Go durations is parsed."""
    assert parse_seconds(text) == pytest.approx(value)


@pytest.mark.parametrize("text", ["", "5", "s", "5 s", "1.2.3s", "5x", "--5s", "5s-3s", "1h 2m", "٣s", "nan", "infs"])
def test_invalid_durations_are_rejected(text: str) -> None:
    """Anything else is rejected."""
    with pytest.raises(ValueError):
        parse_seconds(text)


@given(st.lists(st.floats(min_value=0, max_value=1e5), min_size=1, max_size=50))
def test_statistics_agree_with_the_textbook(values: list[float]) -> None:
    """Welford's running values equal those computed from the whole list."""
    import statistics

    facts = timing(values)
    assert facts["count"] == len(values)
    assert facts["mean"] == pytest.approx(statistics.fmean(values), abs=0.01)
    if len(values) > 1:
        assert facts["stddev"] == pytest.approx(statistics.pstdev(values), abs=0.01)
    else:
        assert "stddev" not in facts


def test_timing_text() -> None:
    """The statistics line of --verbose."""
    assert timing_text(timing([1.0, 2.0])) == "count=2 min=1.0s max=2.0s mean=1.5s stddev=0.5s"
    assert timing([]) == {}


def test_plain() -> None:
    """Configured seconds are shown as written."""
    assert [format_number(value) for value in (300.0, 0.5, 86400.0, 1e7)] == ["300", "0.5", "86400", "10000000"]


@given(st.floats(0, 100_000))
def test_a_duration_looks_the_same_after_an_event_has_rounded_it(value: float) -> None:
    """State files get the exact duration, lines the one of an event."""
    assert format_tenths(value) == format_tenths(round(value, 3))
