"""The opt-in opening of a prompt."""

import pytest

from rooda.loops.procedure.model import Procedure
from rooda.loops.procedure.prompts import preamble

BUILD = Procedure("build", (), display="Build", max_iterations=10)


def test_OU_09_says_procedure_iteration_role_and_ending() -> None:
    """All four parts are there."""
    text = preamble(BUILD, 3)
    assert text.startswith("Procedure: Build\nIteration: 3 of 10\n\nYour Role: ")
    assert "\n\nSuccess Signaling: " in text


def test_OU_09_unlimited_and_without_a_display_name() -> None:
    """A procedure without a limit says so, and one without a display name shows its name."""
    text = preamble(BUILD._replace(max_iterations=0, display=""), 12)
    assert text.startswith("Procedure: build\nIteration: 12 (unlimited)\n")


@pytest.mark.parametrize("on", [True, False])
def test_the_signal_is_explained_only_where_it_counts(on: bool) -> None:
    """And never on a line of its own, so that a quoted preamble is not a signal."""
    lines = preamble(BUILD._replace(promise_signals=on), 1).splitlines()
    assert any("<promise>SUCCESS</promise>" in line for line in lines) is on
    assert not any(line.strip().startswith("<promise>") for line in lines)
