"""Limits on time and output: what counts as idle, what ends a call, what an agent may leave running."""

import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.kit.processes import switches
from tests.kit.workspace import Workspace, alive, until

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
IDLE = 0.8
BUSY = 'until [ -e "$FAKE/enough" ]; do :; done'


def ended(ws: Workspace) -> list[Any]:
    """How each call ended."""
    return [event["ended"] for event in ws.events() if event["event"] == "agent.ended"]


WORKING = {
    "computes": BUSY,
    "child-computes": f"sh -c '{BUSY}'",
    "child-of-another-session-computes": f"setsid sh -c '{BUSY}' & wait",
    "daemon-computes": f"(setsid sh -c '{BUSY}; touch \"$FAKE/done\"' &); "
    'until [ -e "$FAKE/done" ]; do sleep 0.5; done',
    "prints": 'until [ -e "$FAKE/enough" ]; do echo .; sleep 0.1; done',
}


@pytest.mark.parametrize("work", WORKING.values(), ids=WORKING)
def test_OU_05_an_agent_at_work_is_not_idle(ws: Workspace, work: str) -> None:
    """For three idle timeouts it or a descendant computes without output, or prints without computing."""
    ws.procedure(keys=f"idle_timeout = {IDLE}\n")
    ws.side(1, work)
    running = ws.start("build", "-n", "1")
    ws.wait_calls(1)
    time.sleep(3 * IDLE)
    assert ended(ws) == [], running.both
    Path(ws.fake, "enough").touch()
    assert running.finish() == 0
    assert ended(ws) == ["exit"]


def test_OU_05_a_silent_sleeper_is_idle(ws: Workspace) -> None:
    """Neither output nor computing: the call is ended with all that it started, and is a failure."""
    ws.procedure(keys=f"idle_timeout = {IDLE}\n")
    ws.side(1, 'setsid sleep 1000 & echo $! >"$FAKE/child"; sleep 1001')
    ran = ws.rooda("build", "-n", "1")
    assert (ran.code, ended(ws)) == (1, ["idle"])
    assert not alive(int(Path(ws.fake, "child").read_text()))
    assert "consecutive failures: 1/3" in ran.out


def test_OU_05_the_wall_time_of_a_call_is_limited(ws: Workspace) -> None:
    """However busy it is and whatever it ignores."""
    ws.procedure(keys="iteration_timeout = 0.3\nkill_grace = 0.1\n")
    ws.side(1, "trap '' TERM; while :; do echo .; done")
    ran = ws.rooda("build", "-n", "1")
    assert (ran.code, ended(ws)) == (1, ["timeout"])
    assert not alive(ws.calls[0].pid)


def claude(ws: Workspace, shell: str, keys: str) -> None:
    """An agent `mine` that speaks as claude does."""
    ws.sections["agents"] = f'\n[agents.mine]\ncommand = "sh {ws.write("../mine", shell)}"\n{keys}'
    ws.procedure(keys='agent = "mine"\n', loop={"ai_cmd": None})


def test_an_agent_that_has_finished_but_stays(ws: Workspace) -> None:
    """After its final message it has `exit_grace` to go; ended then, the call is a success."""
    result = '{"type":"result","subtype":"success","is_error":false,"result":"done"}'
    claude(ws, f"echo '{result}'\nexec sleep 1000\n", 'output = "claude"\nexit_grace = 0.2\n')
    ran = ws.rooda("build", "-n", "2")
    assert ran.code == 0, ran.both
    assert "WARNING" not in ran.both
    assert ended(ws) == ["exit", "exit"]


def test_an_agent_that_has_not_finished_may_stay(ws: Workspace) -> None:
    """Without a final message `exit_grace` means nothing, however long it is silent."""
    claude(
        ws,
        """echo '{"type":"assistant","message":{"content":[]}}'\nuntil [ -e "$FAKE/enough" ]; do sleep 0.05; done\n"""
        """echo '{"type":"result","subtype":"success","is_error":false,"result":"done"}'\n""",
        'output = "claude"\nexit_grace = 0.1\n',
    )
    running = ws.start("build", "-n", "1")
    until(lambda: any(event["event"] == "agent.started" for event in ws.events()))
    time.sleep(0.5)
    assert ended(ws) == []
    Path(ws.fake, "enough").touch()
    assert running.finish() == 0


@pytest.mark.parametrize("keep", [False, True])
def test_processes_left_running_by_an_agent(ws: Workspace, keep: bool) -> None:
    """Ended before the gates run; with `keep_background` it lives through gates and calls, until the run ends."""
    shell = (
        'if [ -e "$FAKE/server" ]; then kill -0 "$(cat "$FAKE/server")" && touch "$FAKE/seen-by-agent"; exit 0; fi\n'
        'setsid sleep 1000 & echo $! >"$FAKE/server"\n'
    )
    ws.sections["agents"] = (
        f'\n[agents.mine]\ncommand = "sh {ws.write("../mine", shell)}"\nkeep_background = {str(keep).lower()}\n'
    )
    gate = 'if kill -0 "$(cat "$FAKE/server")"; then touch "$FAKE/seen-by-gate"; fi'
    ws.procedure(keys='agent = "mine"\n', loop={"ai_cmd": None}, gates={"look": gate})
    assert ws.rooda("build", "-n", "2").code == 0
    for seen in ("seen-by-gate", "seen-by-agent"):
        assert Path(ws.fake, seen).exists() == keep
    assert not alive(int(Path(ws.fake, "server").read_text()))


def test_OA_17_the_output_of_a_gate_is_capped(ws: Workspace) -> None:
    """A gate that prints 100 MB and continues finds its output file cut; what it prints then is kept."""
    mine = "$(echo .rooda/runs/*/0001-gate-1.out)"
    gate = f'yes | head -c 100000000; until [ "$(wc -c <"{mine}")" -lt 1000000 ]; do sleep 0.05; done; echo last word'
    ws.procedure(keys="max_output_buffer = 1000000\n", gates={"loud": gate})
    assert ws.rooda("build", "-n", "1").code == 0
    (output,) = Path(ws.path).glob(".rooda/runs/*/0001-gate-1.out")
    assert output.stat().st_size < 1_000_000
    assert output.read_text().endswith("last word\n")


def test_no_process_wakes_while_an_agent_works(ws: Workspace) -> None:
    """Guardian and loop sleep through two seconds of an agent's work, and the guardian is small."""
    ws.side(1, 'for i in 1 2 3 4 5 6 7 8 9; do echo $i >>"$FAKE/progress"; sleep 0.25; done; sleep 1000')
    running = ws.start("build", "-n", "1")
    progress = Path(ws.fake, "progress")
    until(lambda: progress.exists() and len(progress.read_text().split()) >= 2, what="the agent to work")
    pids = [running.pid, ws.calls[0].ppid]
    before = [switches(pid) for pid in pids]
    until(lambda: len(progress.read_text().split()) == 9, what="the agent to go on")
    assert [switches(pid) for pid in pids] == before
    rollup = Path(f"/proc/{running.pid}/smaps_rollup").read_text().splitlines()
    assert sum(int(line.split()[1]) for line in rollup if line.startswith("Private_")) < 6_000
    running.signal(signal.SIGTERM)
    assert running.finish() == 143


def test_orphans_do_not_pile_up(ws: Workspace) -> None:
    """Daemons that an agent starts and that end while it works are buried while it works."""
    ws.side(1, 'for i in 1 2 3 4 5 6 7 8 9 10 11 12; do (setsid true &); done; : >"$FAKE/forked"; sleep 1000')
    running = ws.start("build", "-n", "1")
    until(lambda: Path(ws.fake, "forked").exists(), what="the agent to have forked")
    loop = ws.calls[0].ppid
    children = Path(f"/proc/{loop}/task/{loop}/children")
    until(lambda: children.read_text().split() == [str(ws.calls[0].pid)], what="the orphans to be buried")
    running.signal(signal.SIGTERM)
    assert running.finish() == 143


def test_agents_inherit_nothing_but_their_streams(ws: Workspace) -> None:
    """No descriptor of lock, lifeline or journal reaches an agent or a gate, nor one that rooda was given open."""
    ws.procedure(loop={"ai_cmd": "ls /proc/self/fd"}, gates={"look": "exec ls /proc/self/fd"})
    real = ws.command
    ws.command = lambda *words: ["sh", "-c", 'exec "$@" 7<.', "sh", *real(*words)]  # type: ignore[method-assign]
    for words, cwd in ((["build"], ws.path), (["build", "-C", ws.path], ws.root)):
        assert ws.rooda(*words, "-n", "1", cwd=cwd).code == 0
        for name in ("0001-iteration.out", "0001-gate-1.out"):
            output = max(Path(ws.path).glob(f".rooda/runs/*/{name}"))
            assert output.read_text().split() == ["0", "1", "2", "3"], name  # 3: the folder that is listed


@pytest.mark.parametrize("elsewhere", [False, True])
def test_an_agent_is_looked_for_on_its_own_path(ws: Workspace, elsewhere: bool) -> None:
    """The PATH that the settings give it, also where that is not rooda's; one that has gone is named."""
    tool = Path(ws.root, "tools", "an-agent")
    tool.parent.mkdir()
    tool.write_text('#!/bin/sh\npwd >found; rm "$0"\n')
    tool.chmod(0o755)
    path = f"{tool.parent}:{ws.env['PATH']}"
    mine = f'env = {{ PATH = "{path}" }}\n' if elsewhere else ""
    phases = "".join(f'{phase} = "text"\n' for phase in ("observe", "orient", "decide", "act"))
    ws.config(f'[agents.mine]\ncommand = "an-agent"\n{mine}[procedures.p]\n{phases}')
    ws.rooda("p", "-n", "2", "--agent", "mine", env={} if elsewhere else {"PATH": path})
    assert ws.read("found") == f"{ws.path}\n"
    assert notes(ws) == ["", "an-agent: No such file or directory"]


def test_a_script_without_its_interpreter_is_named(ws: Workspace) -> None:
    """The kernel finds the script, and not what it wants."""
    script = Path(ws.file("agent"))
    script.write_text("#!/no/such/thing\n")
    script.chmod(0o755)
    ws.rooda("build", "-n", "1", "--ai-cmd", "./agent")
    assert notes(ws) == ["./agent: No such file or directory"]


def notes(ws: Workspace) -> list[str]:
    return [event["note"] for event in ws.events() if event["event"] == "agent.ended"]


def test_no_variable_is_lost(ws: Workspace) -> None:
    """Names that no shell can have reach the agent too."""
    ws.side(1, 'tr "\\0" "\\n" </proc/$$/environ >"$FAKE/environ"')
    assert ws.rooda("build", "-n", "1", env={"npm_config_@x:registry": "here"}).code == 0
    assert "npm_config_@x:registry=here" in Path(ws.fake, "environ").read_text().splitlines()
