"""Whole `rooda build` runs with a real CLI against the model server, and what has to hold at the end of each."""

import contextlib
import json
import os
import signal
import subprocess
import time
from typing import Any, NamedTuple

from rooda.agentkit.server.scenario import Json
from rooda.agentkit.server.server import ModelServer
from rooda.agents import sessions, transcript

from ..processes import marked
from ..workspace import Running, Workspace, until
from . import homes as clis
from . import install, record
from .cases import FAMILY, SKIP_FLAG

PATIENCE = 60.0  # seconds, for a busy machine
PAID = {  # dollars for one answer of the scripted model, and where they come from
    "claude": (0.00554, "reported"), "codex": (0.00272, "computed"), "copilot": (0.004185, "computed"),
    "gemini": (0.0010275, "computed"), "opencode": (0.004185, "reported"), "pi": (0.00411, "reported"),
    "qwen": (None, "unknown"), "droid": (None, "unknown"),
}  # fmt: skip
KEEPING = ("claude", "codex", "gemini", "qwen")  # keep a file of each session, and tell which from the start
ROUTING = 0.000461  # gemini asks a small model for the way first


class Case(NamedTuple):
    """One situation, and what `rooda build` makes of it."""

    turns: list[Json]
    outcome: str  # of the agent's last call
    code: int = 1  # of rooda
    says: str = ""  # on the screen
    ended: str = "exit"  # how the call came to its end
    answers: int = 0  # of the model, that are paid for
    routed: bool = True  # is gemini's question for the way among the costs?
    source: str = ""  # of the dollars, where it is not the CLI's usual one; "any": they depend on the moment
    retryable: bool = False
    edits: bool = False  # was the file made?
    calls: int = 1  # of the agent
    settings: dict[str, Any] = {}  # noqa: RUF012
    env: dict[str, str] = {}  # noqa: RUF012
    when: str = ""  # then the signal is sent: "tool" runs, rooda is "resting"
    signal: str = ""  # to rooda; KILL: to the CLI
    reset_in: int = 0  # seconds to the moment that the service names
    unsafe: bool = True  # is it started with the flag that lets it use its tools?


class Built(NamedTuple):
    """What is left to look at when a run has ended."""

    code: int
    both: str
    events: list[Json]

    def last(self, name: str) -> Json:
        """The last event of this name."""
        return [event for event in self.events if event["event"] == name][-1]


def prepare(ws: Workspace, cli: str, url: str, case: Case) -> dict[str, str]:
    """Settings, the CLI's files in the workspace's HOME, and the environment that rooda gets."""
    told = clis.setup(cli, url)
    for path, text in told.files.items():
        place = os.path.join(ws.home, path)
        os.makedirs(os.path.dirname(place), exist_ok=True)
        with open(place, "w", encoding="utf-8") as file:
            file.write(text)
    loop = {"agent": cli, "failure_threshold": 1, "retry_wait": 0, "token_budget": 0, "kill_grace": 3}
    loop |= {"model": clis.MODELS[cli]} if cli in clis.MODELS else {}
    lines = [f"{key} = {json.dumps(value)}" for key, value in {**loop, **case.settings}.items()]
    gate = '[[loop.quality_gates]]\nname = "made"\ncommand = "grep -q model made.txt"\n'
    ws.config("[loop]\n" + "\n".join(lines) + f"\n{gate}" + ("" if case.unsafe else _without_flag(cli)))
    env = {**told.env, **case.env, "TZ": "UTC"}
    if not case.unsafe and cli == "opencode":
        asking = {**json.loads(env["OPENCODE_CONFIG_CONTENT"]), "permission": {"edit": "ask", "bash": "ask"}}
        env["OPENCODE_CONFIG_CONTENT"] = json.dumps(asking)
    path = os.pathsep.join((install.commands(cli), ws.env["PATH"]))
    return {**{key: value for key, value in env.items() if value}, "PATH": path}


def _without_flag(cli: str) -> str:
    """The agent's command without what lets it act unasked."""
    words = record.agent(cli, "")[1]["command"].split()
    words.remove(SKIP_FLAG[cli])
    return f"[agents.{cli}]\ncommand = {json.dumps(' '.join(words))}\n"


def build(ws: Workspace, cli: str, server: ModelServer, case: Case, more: str = "") -> Built:
    """The run, from its start to its end; at no time were two agents alive. `more`: further settings."""
    server.play({"turns": case.turns})
    env = prepare(ws, cli, server.url, case)
    ws.config(f"{ws.read('rooda.toml')}\n{more}")
    running = ws.start("build", "-n", "2", env=env)
    if case.signal:
        until(lambda: _ready(ws, cli, case) or running.process.poll() is not None, PATIENCE, case.when)
        _send(ws, running, case.signal)
    deadline = time.monotonic() + PATIENCE
    while running.process.poll() is None:
        assert len(at_work(ws)) <= 1, "two agents at once"
        assert time.monotonic() < deadline, f"not over:\n{running.both}"
        with contextlib.suppress(subprocess.TimeoutExpired):
            running.process.wait(0.05)
    return Built(running.finish(), running.both, ws.events())


def _ready(ws: Workspace, cli: str, case: Case) -> bool:
    """Does the tool run, or rooda rest? A CLI that will be killed has recorded its usage by then."""
    if case.when == "resting":
        return any(event["event"] == "resting" for event in ws.events())
    return ws.exists("started") and (case.signal != "KILL" or cli not in KEEPING or _kept(ws, cli) >= 50 * case.answers)


def _kept(ws: Workspace, cli: str) -> int:
    """Tokens of output in the file of its session."""
    output = record.agent(cli, "")[1]["output"]
    (started,) = (event for event in ws.events() if event["event"] == "agent.started")
    session = transcript.facts_of(output, started["transcript"]).session
    total = sessions.total(sessions.usage_of(output, session, {"HOME": ws.home}))
    return total.output if total else 0


def _send(ws: Workspace, running: Running, name: str) -> None:
    if name == "KILL":  # the CLI began first of all that it started
        os.killpg(min(agents(ws)), signal.SIGKILL)
    else:
        running.signal(signal.Signals[f"SIG{name}"])


def agents(ws: Workspace) -> set[int]:
    """The CLI and all that it started, as far as it is marked."""
    return set(marked(ws.mark)) & set(marked("ROODA_CALL=iteration"))


def at_work(ws: Workspace) -> list[int]:
    """The iterations that have an agent now: each was alive when the first look was over, and still is."""
    ours = agents(ws)
    return [number for number in (1, 2) if ours & set(marked(f"ROODA_ITERATION={number}"))]


def check(ws: Workspace, cli: str, case: Case, built: Built) -> None:
    """Outcome, exit code, message, cost and reset time are as expected, and no process is left."""
    ended = built.last("agent.ended")
    found = (ended["agent_outcome"], ended["ended"], ended["retryable"], built.code)
    assert found == (case.outcome, case.ended, case.retryable, case.code), f"{ended}\n{built.both}"
    assert case.says in built.both
    assert ws.exists("made.txt") == case.edits
    names = [event["event"] for event in built.events if event["event"] in ("agent.started", "agent.ended")]
    assert names == ["agent.started", "agent.ended"] * case.calls
    if case.outcome != "usage_limit":
        assert built.last("iteration.ended")["agent_outcome"] == case.outcome
    else:
        _check_reset(case, built, ended)
    _check_cost(cli, case, ended)
    run = built.events[0]["run"]
    assert (ws.leftovers(), marked(f"ROODA_RUN={run}")) == ([], [])


def _check_reset(case: Case, built: Built, ended: Json) -> None:
    """The wait is as long as the limit lasts, to a minute, and a little longer; without an end, a quarter hour."""
    waits = built.last("resting")["seconds"]
    assert (ended["reset_at"] is not None) == bool(case.reset_in)
    assert abs(waits - (case.reset_in or 900)) < 90, waits
    assert not case.reset_in or abs(ended["reset_at"] - time.time() - case.reset_in) < 90


def _check_cost(cli: str, case: Case, ended: Json) -> None:
    routed = cli == "gemini" and case.routed
    count, (each, source) = case.answers + routed, PAID[cli]
    if case.source == "any":
        assert (ended["cost"] is None) == (ended["cost_source"] == "unknown")
        return
    if not count:  # what is not known is not nothing; a CLI may say that nothing was used
        nothing = ended["usage"] and not any(ended["usage"].values())
        told = (0.0, "reported") if nothing and source == "reported" else (None, "unknown")
        assert (ended["cost"], ended["cost_source"]) == told and (nothing or ended["usage"] is None), ended
        return
    written = 100 if FAMILY[cli] == "anthropic" else 0
    unit = {"input": 1100 - written, "output": 50, "cached": 200, "written": written}
    assert ended["usage"] == {key: count * value for key, value in unit.items()}, ended
    cost = None if each is None else round(each * case.answers + ROUTING * routed, 9)
    assert (ended["cost"] and round(ended["cost"], 9), ended["cost_source"]) == (cost, case.source or source), ended
