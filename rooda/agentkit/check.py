"""Checks that an installed CLI does what rooda relies on, using a scripted model server instead of an account."""

import json
import os
import signal
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from rooda.agents.reader import PROGRAMS, of_program
from rooda.base import clock, files
from rooda.base.json import Json
from rooda.errors import RoodaError
from rooda.processes import detach, ending, supervise, table
from rooda.processes.signals import Signals
from rooda.processes.supervise import Periodic, ProcessResult, Spec
from rooda.run import events, folder

PATIENCE = 120.0  # seconds per run
READY = 15.0  # seconds until the server is ready
MADE = "from the model\n"
VARIABLES = ("PATH", "LANG", "LC_ALL", "TZ", "PYTHONPATH")  # variables passed to the run; no keys, no accounts


def testable() -> list[str]:
    """Return the names of the agents whose model API the scripted server can simulate."""
    return sorted(name for name in PROGRAMS if of_program(name).testable)


class Check(NamedTuple):
    """The result of one check."""

    what: str
    ok: bool | None  # None: nothing to check
    detail: str = ""


class Harness:
    """A model server and a workspace to run rooda in."""

    def __init__(self, folder: str, name: str, table: Mapping[str, Any], signals: Signals) -> None:
        self.work, self.home = os.path.join(folder, "work"), os.path.join(folder, "home")
        self._folder, self._name, self._table, self._signals = folder, name, table, signals
        self.server = 0  # PID
        for place in (self.work, os.path.join(self.home, "tmp")):
            files.make_folder(place)

    def run(self, turns: list[Json], prompt: str, until: str = "") -> ProcessResult:
        """Run a procedure with one iteration; if `until` is given, send SIGTERM to rooda once that file exists."""
        setup = self._serve({"turns": turns})
        self._write_files(setup, prompt)
        pids: list[int] = []

        def end_it() -> None:
            if pids and until and os.path.exists(os.path.join(self.work, until)):
                ending.signal_all((pids.pop(),), signal.SIGTERM)

        spec = Spec(
            argv=[*detach.rooda_command(), "-C", self.work, "check", "-n", "1"],
            cwd=self.work,
            env=self._environment(),
            output=os.path.join(self._folder, "rooda.out"),
            timeout=PATIENCE,
            grace=20.0,
            keep=True,  # keep the server; processes that the run leaves are checked later
            on_start=pids.append,
        )
        return supervise.run(spec, self._signals, Periodic(0.1, end_it))

    def _serve(self, scenario: Json) -> Json:
        """Start the server and return how to connect the CLI to it."""
        script, setup = os.path.join(self._folder, "scenario.json"), os.path.join(self._folder, "setup.json")
        files.write(script, json.dumps(scenario).encode())
        argv = [*detach.rooda_command("rooda.agentkit.server"), script, "--for", self._name, "--told", setup]
        argv += ["--log", os.path.join(self._folder, "requests.jsonl")]
        output = os.path.join(self._folder, "server.out")
        self.server = supervise.start_background(Spec(argv, self._folder, self._environment(), output))
        deadline = clock.monotonic() + READY
        while not os.path.exists(setup):
            if clock.monotonic() > deadline or ending.has_exited(self.server) or self._signals.count:
                said = files.tail(output, 500).decode("utf-8", "replace")
                raise RoodaError(f"The model server did not start: {said}")
            self._signals.wait(0.02)
        answer: Json = json.loads(files.read(setup))
        return answer

    def _write_files(self, setup: Json, prompt: str) -> None:
        """Write the CLI's files to its private HOME, and the settings of the run."""
        import tomli_w

        for name, text in setup["files"].items():
            path = os.path.join(self.home, name)
            files.make_folder(os.path.dirname(path))
            files.write(path, text.encode())
        agent = {**self._table, "env": {**self._table.get("env", {}), **setup["env"]}}
        if setup["model"]:
            agent["model"] = setup["model"]
        gate = {"name": "files", "command": "test -f made.txt && test -f shell.txt"}
        loop = {"agent": self._name, "quality_gates": [gate], "token_budget": 0, "retry_wait": 0}
        phases = {phase: {"content": phase} for phase in ("orient", "decide", "act")}
        procedure = {"observe": {"content": prompt}, **phases}
        tree_ = {"loop": loop, "agents": {self._name: agent}, "procedures": {"check": procedure}}
        files.write(os.path.join(self.work, "rooda.toml"), tomli_w.dumps(tree_).encode())

    def _environment(self) -> dict[str, str]:
        inherited = {key: os.environ[key] for key in VARIABLES if key in os.environ}
        folders = {"HOME": self.home, "TMPDIR": os.path.join(self.home, "tmp"), "ROODA_CONFIG_HOME": self.home}
        return {**inherited, **folders, "ROODA_CACHE_HOME": os.path.join(self.home, "cache")}

    def event(self, name: str) -> Json:
        """Return the last event with this name; {} if there is none."""
        found: Json = {}
        for run in self._runs():
            for line in files.lines(os.path.join(run, events.NAME), 1 << 24, 1 << 20):
                record = json.loads(line)
                found = record if record["event"] == name else found
        return found

    def prompt(self) -> str:
        """Return the prompt that rooda assembled; "" if there is none."""
        places = [os.path.join(folder, "0001-prompt.md") for folder in self._runs()]
        return files.text(places[0]) if places and os.path.exists(places[0]) else ""

    def asked(self) -> list[Json]:
        """Return the requests that the server received."""
        log = os.path.join(self._folder, "requests.jsonl")
        return [json.loads(line) for line in files.lines(log, 1 << 28, 1 << 28)] if os.path.exists(log) else []

    def _runs(self) -> list[str]:
        return folder.all_of(self.work, None)


def examine(name: str, table: Mapping[str, Any], folder: str, signals: Signals) -> Iterator[Check]:
    """Run all checks and yield each result at once. A signal ends them."""
    first = Harness(os.path.join(folder, "work"), name, table, signals)
    yield from _of_work(first, table)
    if not signals.count:
        second = Harness(os.path.join(folder, "stop"), name, table, signals)
        yield from _of_stopping(second, (first.server,))


def _of_work(harness: Harness, table: Mapping[str, Any]) -> Iterator[Check]:
    numbered = "".join(f"{n}. Nothing is to be done about line {n}, “quotes” and \\n included.\n" for n in range(300))
    turns: list[Json] = [
        {"write": {"path": os.path.join(harness.work, "made.txt"), "content": MADE}},
        {"shell": "echo hi > shell.txt"},
        {"text": "All done."},
    ]
    done = harness.run(turns, numbered)
    ended = harness.event("agent.ended")
    prompt, bodies = harness.prompt(), [_words(" ".join(_texts(each.get("body")))) for each in harness.asked()]
    arrived = bool(prompt) and any(_words(prompt) in body for body in bodies)
    yield Check("the prompt arrives whole", arrived, f"{len(files.to_bytes(prompt)):,} bytes")
    yield Check("a file is written", _content(harness, "made.txt").strip() == MADE.strip())
    yield Check("a shell command runs", _content(harness, "shell.txt") == "hi\n")
    yield Check("its transcript is understood", ended.get("agent_outcome") == "ok", _outcome(ended, done))
    known = table.get("known", ())
    yield _reported("tokens are read", ended.get("usage"), "usage" in known, _tokens)
    yield _reported("its cost is read", ended.get("cost"), "cost" in known, lambda cost: f"${cost:.4f}")
    yield Check("rooda's gate turns green", done.code == 0 and harness.event("gates.ended").get("outcome") == "success")


def _of_stopping(harness: Harness, servers: tuple[int, ...]) -> Iterator[Check]:
    began = clock.monotonic()
    done = harness.run([{"shell": "echo begun > begun; sleep 300"}], "Begin.", until="begun")
    seconds = f"{clock.monotonic() - began:.1f} s"
    begun = os.path.exists(os.path.join(harness.work, "begun"))
    detail = seconds if begun else "the shell command never began"
    yield Check("TERM ends it in the middle of a command", begun and done.code == 143, detail)
    left = set(table.descendants(os.getpid())) - {*servers, harness.server}
    yield Check("TERM leaves nothing running", not left, ", ".join(map(str, sorted(left))))


def _outcome(ended: Json, done: ProcessResult) -> str:
    if not ended:
        return f"rooda ended with {done.code} ({done.ended})"
    return f"{ended.get('agent_outcome') or 'exit code only'} {ended.get('message') or ''}".strip()


def _reported(what: str, value: Any, known: bool, shown: Any) -> Check:
    """Return a check that fails if a value is missing that this CLI is known to report."""
    if value is None and not known:
        return Check(what, None, "not reported by this CLI")
    return Check(what, value is not None, "" if value is None else shown(value))


def _tokens(usage: Json) -> str:
    return ", ".join(f"{usage[key]:,} {key}" for key in ("input", "cached", "written", "output"))


def _content(harness: Harness, name: str) -> str:
    try:
        return files.text(os.path.join(harness.work, name))
    except OSError:
        return ""


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _texts(each)


def _words(text: str) -> str:
    return " ".join(text.split())
