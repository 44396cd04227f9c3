"""Inputs that are large and simple, with an end to memory and time: no parser's work grows far beyond its input."""

import pytest

from tests.fuzz.fuzz_child import faults
from tests.fuzz.fuzz_table import TARGETS

LARGE, LARGER = 4_000, 1_000_000  # bytes
SECONDS = 0.5  # of a processor's time for one input: ten times what the slowest takes
SHARES = 2


@pytest.mark.timeout(600)
@pytest.mark.parametrize("share", range(SHARES))
def test_large_and_simple_inputs(share: int) -> None:
    """Runs of one character, nesting without end, and the kept inputs over and over."""
    assert faults([*TARGETS][share::SHARES], "big", LARGE, SECONDS) == []


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", TARGETS)
def test_larger_inputs(name: str) -> None:
    """The same with a megabyte each."""
    assert faults([name], "big", LARGER, 40.0) == []


def test_a_hang_and_a_hunger_are_found() -> None:
    """A target that runs or allocates without end is ended, and the next one is tried."""
    (told,) = faults(["hang", "since"], "big", 10, 0.3)
    assert "hang: took longer" in told and "since" not in told
    (told,) = faults(["hunger", "since"], "big", 10, 30.0)
    assert "MemoryError" in told and "since" not in told
