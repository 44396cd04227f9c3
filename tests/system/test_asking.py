"""A running loop asks the user: it sleeps until an answer, a signal or the end of input comes."""

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from tests.kit.four import KINDS, Four
from tests.kit.processes import switches
from tests.kit.swarm import loop_of
from tests.kit.workspace import until

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")


@pytest.mark.parametrize("ending", ["answer", "signal", "end of input"])
def test_no_process_wakes_while_a_question_is_open(tmp_path: Path, ending: str) -> None:
    """The question of a goal, on a terminal."""
    four = Four(KINDS["goal"], str(tmp_path))
    terminal = four.ws.terminal(*four.kind.begin)
    until(lambda: "[Y/n]" in terminal.out, 20, "the question")
    loop = loop_of(terminal.pid)
    until(lambda: Path(f"/proc/{loop}/stat").read_text().rpartition(") ")[2][0] == "S", what="the loop to sleep")
    before = switches(loop)
    time.sleep(0.5)  # time for what should not happen
    assert switches(loop) == before
    if ending == "signal":
        os.kill(terminal.pid, signal.SIGTERM)
        assert terminal.finish() == 143
    else:
        terminal.type("n\n" if ending == "answer" else "\x04")
        assert terminal.finish(60) == 0, terminal.out
    four.ws.close()
