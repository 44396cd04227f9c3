"""What `rooda.startup` decides from the command line before click reads it."""

import pytest

from rooda import startup


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("build", True),
        ("-C folder build", True),
        ("resume build", True),
        ("resume --all", False),
        ("status", False),
        ("build --dry-run", False),
        ("build -n 3 -d", False),
        ("build --context --dry-run", True),  # the value of an option
        ("build -- --dry-run", True),
    ],
)
def test_which_commands_get_a_guardian(line: str, expected: bool) -> None:
    assert startup.starts_a_loop(line.split()) is expected
