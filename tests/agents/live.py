"""Try `rooda build` with the installed agent CLIs, and print a table: `python -m tests.agents.live TABLE [NAME…]`.

TABLE is `builds` (a gate that is red at first), `failures` (each way in which a service refuses) or `stops` (INT, TERM
and a second INT in the middle of a command). NAME is an agent of tests/kit/clis/install.py, or that name and `-acp`:
the same CLI over the Agent Client Protocol. CLIs that are not installed are left out. Exit 1 if a line is wrong.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from rooda.agentkit.server.scenario import Json
from rooda.agentkit.server.server import ModelServer
from tests.kit.clis import homes, install
from tests.kit.clis.cases import FAILURES, cases
from tests.kit.processes import Running, until
from tests.kit.workspace import Workspace

OVER_ACP = {
    "gemini": "gemini --acp --skip-trust", "qwen": "qwen --acp", "opencode": "opencode acp", "copilot": "copilot --acp",
    "goose": "goose acp", "kimi": "kimi acp", "grok": "grok agent stdio", "vibe": "vibe-acp", "omp": "omp acp",
    "kilo": "kilo acp",
}  # fmt: skip
NAMES = (*install.NAMES, *(f"{name}-acp" for name in OVER_ACP))
PATIENCE = 300.0  # seconds for a run
IDLE, LONGEST = 8.0, 60.0  # seconds of silence, and of a call: some compute a little all the time, which counts as work
PAYMENT: list[Json] = [{"error": 402, "message": "Payment required: add credits to continue.", "times": -1}]
GATE = '[[loop.quality_gates]]\nname = "made"\ncommand = "grep -q model made.txt"\n'
NO_SERVER = "http://127.0.0.1:9"
TABLES = ("builds", "failures", "stops")
SIGNALS = {"INT": (signal.SIGINT,), "TERM": (signal.SIGTERM,), "INT INT": (signal.SIGINT, signal.SIGINT)}


class Trial(NamedTuple):
    """What a run of `rooda build` came to."""

    code: int
    seconds: float  # of the run, or from the first signal to its end
    events: list[Json]
    left: list[int]  # processes
    screen: str

    @property
    def gates(self) -> list[str]:
        """The outcome of the gates after each call."""
        return self.each("gates.ended", "outcome")

    def last(self, event: str) -> Json:
        """The last event of this name."""
        return [found for found in self.events if found["event"] == event][-1]

    def each(self, event: str, key: str) -> list[Any]:
        """A fact of each event of this name."""
        return [found[key] for found in self.events if found["event"] == event]


class Bench:
    """One agent with the model server, in a workspace of its own."""

    def __init__(self, name: str, root: str, server: ModelServer) -> None:
        self.name, self.cli, self._server = name, name.removesuffix("-acp"), server
        self.ws = Workspace(root)
        self._earlier = 0  # requests before the scenario began
        self.test = homes.BY_NAME[self.cli]

    def _prepare(self, url: str, settings: Json, model: str) -> dict[str, str]:
        made = homes.setup(self.cli, url)
        homes.home(self.cli, url, self.ws.home)
        loop = {"agent": self.name, "retry_wait": 0, "token_budget": 0, "kill_grace": 3, **settings}
        loop |= {"model": model} if model else {}
        lines = [f"{key} = {json.dumps(value)}" for key, value in loop.items()]
        text = "\n".join(["[loop]", *lines, GATE])
        if self.name != self.cli:
            rows = (f'like = "{self.cli}"', f'command = "{OVER_ACP[self.cli]}"', 'output = "acp"', 'version = ""', "")
            text += "\n".join((f"[agents.{self.name}]", *rows))
        self.ws.config(text)
        path = os.pathsep.join((install.commands(self.cli), self.ws.env["PATH"]))
        env = {"GOOSE_MODEL": model} if self.name == "goose-acp" else {}  # it starts no session without this variable
        return {**{key: value for key, value in made.env.items() if value}, **env, "PATH": path, "TZ": "UTC"}

    def start(self, turns: list[Json], settings: Json, url: str = "", model: str = "") -> Running:
        """Start the build."""
        self.play(turns)
        env = self._prepare(url or self._server.url, settings, model or homes.MODELS.get(self.cli, ""))
        return self.ws.start("build", "-n", "3", env=env)

    def play(self, turns: list[Json]) -> None:
        """Make these the model's next answers."""
        self._earlier = len(self._server.requests)
        self._server.play({"turns": turns, "consume": "all" if self.test.get("answer") else "tools"})

    def rests(self) -> bool:
        """Does rooda wait for the end of a limit?"""
        return any(event["event"] == "resting" and event["seconds"] > 60 for event in self.ws.events())

    def gates(self) -> int:
        """How often the gates have run."""
        return sum(event["event"] == "gates.ended" for event in self.ws.events())

    def finish(self, running: Running, began: float) -> Trial:
        """Wait for its end."""
        code = running.finish(PATIENCE)
        return Trial(code, time.monotonic() - began, self.ws.events(), self.ws.leftovers(), running.both)

    def forget(self, mark: str) -> None:
        """Remove a file and the runs so far, which a new one would continue."""
        if os.path.exists(mark):
            os.unlink(mark)
        shutil.rmtree(self.ws.file(".rooda"), ignore_errors=True)

    def asked(self) -> bool:
        """Was the model asked for an answer?"""
        return any(request.get("turn") for request in self._server.requests[self._earlier :])

    def says(self, text: str) -> Json:
        """A last answer of the model: some CLIs end by a command."""
        finish = self.test.get("finish")
        return {"shell": finish} if finish else {"text": text}

    def writes(self) -> list[Json]:
        """Answers that make the CLI write the file."""
        if answer := self.test.get("answer"):
            return [{"text": answer}]
        return [{"write": {"path": self.ws.file("made.txt"), "content": "from the model\n"}}, self.says("All done.")]


def build(bench: Bench) -> tuple[bool, list[str]]:
    """The gate is red after the first call and green after the second, and the loop goes on to its limit."""
    running, began = bench.start([{**bench.says("Nothing yet."), "times": -1}], {}), time.monotonic()
    until(lambda: bench.gates() or running.process.poll() is not None, PATIENCE, "the first gate")
    bench.play([*bench.writes(), {**bench.says("Still done."), "times": -1}])
    trial = bench.finish(running, began)
    outcomes = trial.each("agent.ended", "agent_outcome")
    good = trial.gates == ["failure", "success", "success"] and outcomes == ["ok"] * 3
    good = good and trial.code == 0 and not trial.left
    if not good:
        print(trial.screen, file=sys.stderr)
    tokens = [sum(usage.values()) if usage else None for usage in trial.each("agent.ended", "usage")]
    cells = [" ".join(trial.gates), " ".join(map(str, outcomes)), f"tokens {tokens}", f"{trial.seconds:.0f} s"]
    return good, [f"exit {trial.code}", *cells, _left(trial)]


def failures(bench: Bench) -> Iterator[tuple[bool, list[str]]]:
    """Each refusal is a failure of a known kind, and the call ends by itself or by a time limit."""
    found, model = cases(bench.cli, bench.ws.path, int(time.time())), homes.MODELS.get(bench.cli, "")
    settings = {"failure_threshold": 1, "idle_timeout": IDLE, "iteration_timeout": LONGEST}
    turns_of = {"payment": PAYMENT} | {name: case.turns for name, case in found.items()}
    for name in (name for name in FAILURES if name in turns_of):
        unknown = f"{model.partition('/')[0]}/no-such-model" if "/" in model and name == "unknown_model" else ""
        began = time.monotonic()
        running = bench.start(turns_of[name], settings, NO_SERVER if name == "no_network" else "", unknown)
        while running.process.poll() is None and not bench.rests():
            time.sleep(0.1)
        if running.process.poll() is None:
            running.signal(signal.SIGTERM)
        trial = bench.finish(running, began)
        end = trial.last("agent.ended")
        good = trial.code != 0 and end["agent_outcome"] not in ("ok", None, "") and not trial.left
        words = str(end.get("message") or "").partition("\n")[0][:90]
        yield good, [name, str(end["agent_outcome"]), end["ended"], f"{trial.seconds:.0f} s", _left(trial), words]


def stops(bench: Bench) -> Iterator[tuple[bool, list[str]]]:
    """In the middle of a command, or of an answer where there are none; nothing is left."""
    for name, sent in SIGNALS.items():
        mark = bench.ws.file("started")
        bench.forget(mark)
        late: Json = {"text": "Too late.", "delay": 900}
        hang = late if bench.test.get("answer") else {"shell": "touch started; sleep 900"}
        running = bench.start([hang], {"failure_threshold": 1})
        until(_begun(bench, mark, running), PATIENCE, "the command to begin")
        begun, began = running.process.poll() is None, time.monotonic()
        for number in sent:
            with contextlib.suppress(ProcessLookupError):  # it may have ended by the first
                running.signal(number)
            time.sleep(0.3 if len(sent) > 1 else 0)
        trial = bench.finish(running, began)
        good = begun and trial.code == 128 + sent[0] and not trial.left
        yield good, [name, f"exit {trial.code}", f"{trial.seconds:.1f} s", _left(trial)]


def _begun(bench: Bench, mark: str, running: Running) -> Callable[[], bool]:
    def begun() -> bool:
        asked = bool(bench.test.get("answer")) and bench.asked()
        return os.path.exists(mark) or asked or running.process.poll() is not None

    return begun


def _left(trial: Trial) -> str:
    return f"left: {trial.left}" if trial.left else "nothing left"


def tried(table: str, name: str) -> Iterator[tuple[bool, list[str]]]:
    """Yield the rows of one agent."""
    with tempfile.TemporaryDirectory(prefix="live-", ignore_cleanup_errors=True) as root, ModelServer() as server:
        bench = Bench(name, root, server)
        if table == "builds":
            yield build(bench)
        else:
            yield from {"failures": failures, "stops": stops}[table](bench)
        bench.ws.close()


def _print(table: str, name: str) -> bool:
    """Print the rows of one agent as they come; True if all are good."""
    good, start = True, f"{name:<12} {install.version(name.removesuffix('-acp')):<9}"
    try:
        for row, cells in tried(table, name):
            good = good and row
            print(f"{'ok  ' if row else 'FAIL'}  {start}  {'  '.join(cells)}", flush=True)
    except (AssertionError, OSError, subprocess.SubprocessError) as problem:
        good = False
        print(f"FAIL  {start}  {problem}", flush=True)
    return good


def main(words: list[str]) -> int:
    """Print the table, row by row."""
    table, names = (words or [""])[0], words[1:] or [*NAMES]
    if table not in TABLES or not set(names) <= set(NAMES):
        print(
            f"usage: python -m tests.agents.live {'|'.join(TABLES)} [NAME…]   names: {', '.join(NAMES)}",
            file=sys.stderr,
        )
        return 2
    good = True
    for name in names:
        if install.commands(name.removesuffix("-acp")):
            good = _print(table, name) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
