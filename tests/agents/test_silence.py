"""Agents that print nothing for a long time: what is reported, and what their own log says."""

import os
from pathlib import Path
from typing import Any

import pytest

from rooda.agents.hang_detection import SilenceWatch
from tests.kit.processes import until
from tests.kit.workspace import Workspace

STREAM_ERROR = 'timestamp=2026-11-20T00:31:37.283Z level=ERROR run=b1 message="stream error" error.error="{}"\n'
AGENT = """
[agents.silent]
command = "sh silent.sh"
output = "opencode"
log = "~/silent.log"
"""


def call(ws: Workspace, own: str, loop: str = "") -> dict[str, Any]:
    """The event with which a call of the silent agent ends."""
    ws.procedure("ship", f'agent = "silent"\nfailure_threshold = 1\nretry_wait = 0\non_limit = "stop"\n{loop}')
    ws.config(f"{ws.read('rooda.toml')}\n{AGENT}{own}")
    ws.rooda("ship", "-n", "1")
    return [event for event in ws.events() if event["event"] == "agent.ended"][-1]


@pytest.mark.parametrize(
    ("said", "outcome"),
    [("AI_APICallError: Usage limit reached. Resets in 2h", "usage_limit"), ("AI_APICallError: Too many", "timeout")],
)
def test_A_06_the_own_log_says_why_an_agent_was_silent(bare: Workspace, said: str, outcome: str) -> None:
    """Its last error since the call began decides, not what an earlier call left there; the agent's timeout applies."""
    log = Path(bare.home, "silent.log")
    log.write_text(STREAM_ERROR.format("AI_APICallError: Usage limit reached"))
    bare.write("silent.sh", f"echo '{STREAM_ERROR.format(said).strip()}' >>{log}; sleep 60\n")
    ended = call(bare, "idle_timeout = 1")
    assert (ended["ended"], ended["limit"], ended["agent_outcome"]) == ("idle", 1.0, outcome)
    assert said in ended["message"] or outcome == "timeout"


def test_A_06_the_setting_of_the_loop_replaces_that_of_the_agent(bare: Workspace) -> None:
    """Also 0: no limit."""
    bare.write("silent.sh", "sleep 3\n")
    assert call(bare, "idle_timeout = 1", "idle_timeout = 0\n")["ended"] == "exit"


def test_A_06_a_silence_is_reported_once(tmp_path: Path) -> None:
    """With its beginning and the log; after new output, the next silence is reported again."""
    output, told = tmp_path / "output", []
    output.write_text("begun\n")
    silences = SilenceWatch(lambda since, log: told.append((since, log)), after=0.2)
    silences.watch(str(output), "/log")
    work = silences.periodic(None).work

    def reported(count: int) -> bool:
        work()
        return len(told) == count

    until(lambda: reported(1), what="the report")
    assert told[0][1] == "/log" and told[0][0] - os.stat(output).st_mtime < 5
    output.write_text("begun\nmore\n")
    until(lambda: reported(2), what="the report of the next silence")


def test_A_06_the_line_says_since_when_and_where() -> None:
    """On the screen and in the log of the run."""
    from rooda.views.lines import lines

    record = {"event": "agent.silent", "since": "2026-11-20T00:31:37Z", "log": "/home/user/own.log"}
    (line,) = lines(record, {})
    assert line.text.startswith("WARNING: The agent has printed nothing since 2026-11-")
    assert line.text.endswith("; its own log may say why: /home/user/own.log")
