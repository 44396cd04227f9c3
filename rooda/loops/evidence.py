"""Makes the objects of `rooda why --json`: the decisions of a session, each with a line of a file as evidence."""

import os
from collections.abc import Iterator

from rooda.base import files, secrets, workspace_files
from rooda.base.json import Json
from rooda.loops import registry
from rooda.run import folder as run_folder
from rooda.run import history
from rooda.run.events import NAME
from rooda.views.why import Reason, reasons

SHOWN = 200  # characters shown of a line of evidence
LARGEST = 268_435_456  # bytes read from the end of a file
LONGEST = 1_048_576  # bytes read of each line


def decisions(workspace: str, folder: str, hidden: tuple[str, ...], live: bool) -> Iterator[Json]:
    """Yield the decisions of the session in `folder`. `live`: the session is running; `hidden`: secrets to mask."""
    log = _Log(folder)
    for each in [*reasons(log.records(), registry.view, live), *_cancelled(folder)]:
        yield _shown(each, log, workspace, hidden)


def _cancelled(folder: str) -> Iterator[Reason]:
    """Yield the reason why a run ended if the user cancelled it after its session."""
    if (because := run_folder.cancelled(folder)) is not None:
        rule = f"the user cancelled the run for good (rooda cancel){f': {because}' if because else ''}"
        yield Reason(run_folder.order_of(folder)["at"], 0, "ended", rule, run_folder.ORDER_FILE)


class _Log:
    """The event log of a run, with its raw lines."""

    def __init__(self, folder: str) -> None:
        self.path = os.path.join(folder, NAME)
        self.lines: list[bytes] = []
        self.outputs: dict[str, str] = {}  # output format of the agent, keyed by the name of the call's transcript

    def records(self) -> Iterator[Json]:
        """Yield the events, each with its line number as `line`."""
        for _, line in history.lines(self.path):
            self.lines.append(line[:SHOWN])
            if record := history.parsed(line):
                if record["event"] == "agent.started":
                    self.outputs[os.path.basename(str(record.get("transcript")))] = str(record.get("output"))
                yield {**record, "line": len(self.lines)}


def _shown(reason: Reason, log: _Log, workspace: str, hidden: tuple[str, ...]) -> Json:
    """Return a reason as JSON, with the line of the evidence file that proves it, else with the event's own line.

    `quote` is the line of the evidence file in readable form; "" for an event, which the rule already describes.
    """
    facts = reason._asdict()
    at, path = facts.pop("at"), _path(reason.evidence, os.path.dirname(log.path), workspace)
    number, line = _line(workspace, path, reason.words) if path else (0, b"")
    quote = _readable(line, log.outputs.get(os.path.basename(path), ""), reason.words)
    if not number:
        path, number, line = log.path, at, log.lines[at - 1] if at else b""
    text, quote = (secrets.hide(each.strip(), hidden)[:SHOWN] for each in (line.decode("utf-8", "replace"), quote))
    return {**facts, "evidence": path, "line": number, "text": text, "quote": quote}


def _readable(line: bytes, output: str, words: str) -> str:
    """Return a line of evidence as text; for an agent CLI's JSON record, only the line in it that contains `words`."""
    from rooda.agents.reader import is_read

    if not line or not is_read(output):
        return line.decode("utf-8", "replace")
    from rooda.agents.gathered import Gathered
    from rooda.agents.transcript import readable_lines

    into, first = Gathered(), words.partition("\n")[0]
    shown = [*readable_lines(output, [line], into), into.final, into.message]
    found = [each for text in shown for each in text.splitlines() if each.strip()]
    return next((each for each in found if first and first in each), found[-1] if found else first)


def _path(evidence: str, folder: str, workspace: str) -> str:
    """Return the path of the evidence file, which must be in the run's folder or the workspace; "" for any other."""
    if not evidence or "\0" in evidence:
        return ""
    own, path = run_folder.transcript_in(folder, evidence), os.path.join(workspace, evidence)
    if os.path.lexists(own):
        return own
    return path if os.path.abspath(path).startswith(f"{workspace}{os.sep}") else ""


def _line(workspace: str, path: str, words: str) -> tuple[int, bytes]:
    """Return the number and bytes of the first line with `words`, else of the last nonblank line.

    The number is 0 if there is no such line, or if the file can't be opened.
    """
    first, last = words.partition("\n")[0][:80], (0, b"")
    wanted = [text.encode("utf-8", "surrogatepass") for text in (first, secrets.in_json(first)) if text]
    try:
        source = workspace_files.open_file(workspace, path)
    except OSError:
        return 0, b""
    try:
        for number, line in enumerate(files.lines(source, LARGEST, LONGEST), 1):
            if line.strip():
                last = number, line
                if any(text in line for text in wanted):
                    break
    finally:
        os.close(source)
    return last
