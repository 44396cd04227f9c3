"""Sensors measured by rooda itself: the command of each agent file is run, exit 0 is a pass."""

import os
import re
from collections.abc import Sequence

from rooda.base import files
from rooda.errors import Interrupted
from rooda.loops.flow.artifacts import header, put
from rooda.loops.flow.model import FAIL, PASS, NodeFailed
from rooda.loops.flow.prompts import Told
from rooda.loops.flow.yaml import lenient
from rooda.run.records import Command, Ran
from rooda.run.session import Session

KEPT = 16_384  # bytes of output that go into a sensor's file


def command_of(text: str) -> str:
    """`command:` of the front matter, else the block behind "Run the following command:"; nothing if there is none."""
    if said := lenient(text).get("command"):
        return str(said).strip()
    found = re.search(r"run the following command:?\**[ \t]*\n\s*\n?((?:(?: {4}|\t)[^\n]*\n?)+)", text, re.I)
    if found:
        return "\n".join(row.strip() for row in found[1].splitlines()).strip()
    fenced = re.search(r"run the following command:?\**[ \t]*\n\s*(`{3,})\w*\n(.*?)\n[ \t]*+\1", text, re.I | re.DOTALL)
    return fenced[2].strip() if fenced else ""


def measure(session: Session, told: Sequence[Told], project: str, number: int, timeout: float) -> None:
    """One after the other, in the flow's order."""
    for place, each in enumerate(told, 1):
        command = command_of(each.text)
        if not command:
            raise NodeFailed(f"the sensor {each.name} names no command for rooda to run")
        ran = session.run((Command(command, f"sensor-{place}-{each.name}", timeout, number),))[0]
        if ran.ended == "interrupted":
            raise Interrupted(session.signalled())
        put(os.path.join(project, each.output), session.clean(report(each.name, command, ran)))


def report(name: str, command: str, ran: Ran) -> str:
    """The sensor's file, as an agent would write it."""
    try:
        output = files.tail(ran.output, KEPT).decode("utf-8", "replace")
    except OSError:
        output = ""
    how = "" if ran.ended == "exit" else f" ({ran.ended})"
    left_out = f"(the last {KEPT} of {ran.size} bytes)\n\n" if ran.size > KEPT else ""
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", output + command)), default=0))
    return (
        header({"sensor": name, "status": PASS if ran.code == 0 and ran.ended == "exit" else FAIL})
        + f"# Sensor Output: {name}\n\n## Command\n\n{fence}sh\n{command}\n{fence}\n\nExit code: {ran.code}{how}\n\n"
        + f"## Output\n\n{left_out}{fence}\n{output.rstrip()}\n{fence}\n"
    )
