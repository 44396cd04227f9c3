"""The tutorial and the how-to pages can be typed as they are written, and print what they show."""

import os
from pathlib import Path

import pytest

from tests.kit import typed
from tests.kit.pages import ROOT, blocks, name_of
from tests.kit.workspace import Workspace

EACH_PAGE = pytest.mark.parametrize("page", typed.typed_pages(), ids=name_of)


@EACH_PAGE
def test_a_page_can_be_typed(page: Path, bare: Workspace) -> None:
    """Each `sh` block exits with 0, and each command of a `console` block prints what is below it."""
    for step, printed, code in typed.typed(page, bare):
        if step.shown is None:
            assert code == 0, f"$ {step.command}{printed}"
        elif not typed.fits(step.shown, printed):
            assert typed.masked(printed) == typed.masked(step.shown), f"python -m tests.kit.typed {name_of(page)}"
            raise AssertionError(step.command)


@EACH_PAGE
def test_what_is_not_typed_says_why(page: Path) -> None:
    """Only a block that needs something that tests don't have is left out, and at least one block is typed."""
    assert set(typed.not_run(page)) <= typed.NEEDS
    assert typed.steps(page)
    assert page.read_text().count("<!-- not run") == len(typed.not_run(page))


def test_an_output_that_differs_is_seen() -> None:
    """Times, IDs and durations may differ, omitted lines may be anything; other words may not."""
    printed = "[10:00:01] Iteration 1/5 completed in 0.2s\nrun 20260206T100000Z-build-4711\nExtra\nEnd of it\n"
    assert typed.fits("[10:00:09] Iteration 1/5 completed in 1m2s\n…\nEnd …\n", printed)
    assert not typed.fits("[10:00:09] Iteration 2/5 completed in 1m2s\n…\nEnd …\n", printed)
    assert not typed.fits("[10:00:09] Iteration 1/5 completed in 1m2s\nEnd …\n", printed)


def test_each_tutorial_command_is_shown_or_checked() -> None:
    """No block of the tutorial has a language that is neither typed nor only shown."""
    text = (ROOT / "docs" / "tutorial.md").read_text()
    assert len(blocks(ROOT / "docs" / "tutorial.md", "console")) >= 8
    assert set(os.linesep.join(line for line in text.splitlines() if line.startswith("```")).split()) <= {
        "```",
        "```sh",
        "```console",
    }
