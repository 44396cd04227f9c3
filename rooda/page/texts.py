"""Reads the texts of a run that the page loads on demand: outputs of gates, an agent's words, diffs."""

import os
from collections.abc import Mapping
from itertools import islice

from rooda.base import files, secrets
from rooda.base.json import Json
from rooda.base.text import plain
from rooda.page import order
from rooda.processes.detach import rooda_command
from rooda.run import folder
from rooda.settings.where import Where
from rooda.views.agent_output import readable

MOST = 500_000  # bytes that are read at the end of a file
LINES = 20_000
NO_SNAPSHOTS = """There are no snapshots of this run, so there is no diff.
Take them with safety = "snapshot" in [loop] of rooda.toml, or with the option --safety snapshot.
"""


def text_of(facts: Json, here: Where, asked: Mapping[str, str], hidden: tuple[str, ...]) -> str:
    """Return the text that a browser requested, with secrets masked. Raises LookupError if the run does not have it."""
    session = asked.get("session", "")
    if session not in facts["sessions"]:
        raise LookupError("the run has no such session")
    if asked.get("what") == "diff":
        return _diff(here, session, asked.get("number", ""), hidden) if facts["snapshots"] else NO_SNAPSHOTS
    kind = "gates" if asked.get("what") == "gate" else "calls"
    key = "output" if kind == "gates" else "transcript"
    for each in (each for one in facts["iterations"] for each in one[kind]):
        if (each["session"], each[key]) == (session, asked.get("file", "")):
            path = folder.transcript_in(folder.folder_of(here.workspace, session), each[key])
            return _words(each["output"] or "text", path, hidden) if kind == "calls" else _output(path, hidden)
    raise LookupError("the run has no such file")


def _output(path: str, hidden: tuple[str, ...]) -> str:
    text = files.to_text(files.tail(path, MOST))
    return _cut(path) + secrets.hide(plain(text), hidden) or "(it printed nothing)"


def _words(output: str, path: str, hidden: tuple[str, ...]) -> str:
    found = islice(readable(output, path, hidden, MOST), LINES)
    return _cut(path) + secrets.hide(plain("\n".join(found)), hidden) or "(it said nothing)"


def _cut(path: str) -> str:
    over = files.size(path) - MOST
    return f"… {over:,} bytes before this are left out; all of it: {os.path.basename(path)}\n" if over > 0 else ""


def _diff(here: Where, session: str, number: str, hidden: tuple[str, ...]) -> str:
    if not number.isdecimal():
        raise LookupError("the run has no such iteration")
    config = ["--config", here.config] if here.config else []
    words = ["diff", number, folder.loop_of(session), "--run", session]
    found = order.shown([*rooda_command(), "-C", here.workspace, *config, *words], here.workspace)
    return secrets.hide(plain(found.said), hidden) or "No changes."
