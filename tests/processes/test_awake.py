"""`keep_awake`: the machine does not sleep while a run works."""

import os
import sys

import pytest

from tests.kit.workspace import Workspace


@pytest.mark.skipif(sys.platform == "darwin", reason="macOS has another program for it")
def test_E_34_a_run_keeps_the_machine_awake(ws: Workspace) -> None:
    """systemd-inhibit runs beside every iteration, and ends with the run; without it, nothing is said."""
    ws.procedure(loop={"keep_awake": True})
    ws.env["PATH"] = f"{ws.root}/bin:{ws.env['PATH']}"
    ws.write("../bin/systemd-inhibit", '#!/bin/sh\necho $$ "$@" >>"$FAKE/awake"\nexec sleep 300\n', 0o755)
    ws.side("iteration", 'until [ -s "$FAKE/awake" ]; do sleep 0.01; done')
    ws.side("iteration", 'kill -0 "$(cut -d" " -f1 "$FAKE/awake")" && echo awake >>seen')
    ran = ws.rooda("build", "-n", "2")
    assert ran.code == 0
    (line,) = ws.read("../fake/awake").splitlines()
    assert "--what=sleep:idle" in line and ws.read("seen") == "awake\nawake\n"
    assert ws.leftovers() == []
    os.unlink(ws.file("../bin/systemd-inhibit"))
    ran = ws.rooda("build", "-n", "1", env={"PATH": f"{os.path.dirname(sys.executable)}:/usr/bin:/bin"})
    assert ran.code == 0
