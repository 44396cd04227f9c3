"""docs/troubleshooting.md quotes messages that the program has, word for word."""

import re

import pytest

from tests.kit.messages import said
from tests.kit.pages import ROOT
from tests.kit.workspace import Workspace

TEXT = (ROOT / "docs" / "troubleshooting.md").read_text()
QUOTED = re.findall(r"^\| `(.+?)` \|", TEXT, re.MULTILINE)


def test_forty_messages_are_explained() -> None:
    """Each is there once."""
    assert len(set(QUOTED)) == len(QUOTED) >= 40


@pytest.mark.parametrize("message", QUOTED)
def test_a_quoted_message_is_in_the_code(message: str) -> None:
    """With `…` in the place of each value."""
    assert said(message)


def test_a_message_that_nobody_prints_is_seen() -> None:
    """Other words, and values in other places, are noticed."""
    assert not said("Procedure … is already walking here (pid …)")
    assert not said("AI … binary not found: …")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("build",), "no AI command configured"),
        (("build", "--ai-cmd", "no-such-agent"), "AI command binary not found: …"),
        (("build", "--agent", "clod"), "unknown agent …; available: …"),
        (("buidl",), "Unknown procedure '…'. Run 'rooda list' to see available procedures."),
        (("resume",), "Nothing to resume here."),
        (("diff",), "… is not in a git work tree"),
        (("logs", "biuld"), "No runs of '…' recorded here. No procedure has this name either."),
        (("--config", "no.toml", "build"), "--config …: no such file"),
    ],
)
def test_a_message_is_printed_as_it_is_quoted(words: tuple[str, ...], message: str, bare: Workspace) -> None:
    """A new user's mistakes produce it, with values in place of `…`."""
    assert message in QUOTED
    assert re.search(re.escape(message).replace("…", ".+"), bare.rooda(*words).err)
