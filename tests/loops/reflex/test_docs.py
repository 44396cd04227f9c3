"""docs/reflex.md: what it says is what the program does."""

import json
import re
from pathlib import Path

from rooda.loops.reflex.rules import drafted
from rooda.loops.reflex.scoring import STATUS_OF
from tests.kit.reflex import Kit

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "reflex.md").read_text()


def test_reasons_and_exit_codes() -> None:
    """Each reason has its status and its code."""
    codes = {"completed": "0", "stopped": "4", "failed": "1"}
    for reason, status in STATUS_OF.items():
        assert re.search(rf"^\| .*`{reason}`.* \| `{status}` \| {codes[status]} \|$", PAGE, re.MULTILINE), reason


def test_the_rules_of_the_page_are_accepted(kit: Kit) -> None:
    """The example is a rules file."""
    (example,) = re.findall(r"^```json\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert drafted(json.loads(example)).faults == ()


def test_every_mode_has_a_row(kit: Kit) -> None:
    """Commands of `rooda reflex --help` are those of the page's table."""
    modes = re.findall(r"^  (\w+) {2,}", kit.reflex("--help").out.partition("Commands:")[2], re.MULTILINE)
    assert set(re.findall(r"^\| `rooda reflex (\w+)", PAGE, re.MULTILINE)) == set(modes)
