"""Checks that an installed CLI does what rooda relies on, using a scripted model server instead of an account."""

import json
import os
import shlex
import signal
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from rooda.agentkit.server import clis
from rooda.agents import outcome
from rooda.agents.reader import of_program
from rooda.agents.records import Agent
from rooda.base import clock, dirs, files
from rooda.base.json import Json
from rooda.base.text import telling_line
from rooda.errors import RoodaError
from rooda.processes import detach, ending, supervise, table
from rooda.processes.signals import Signals
from rooda.processes.supervise import Periodic, ProcessResult, Spec
from rooda.run import events, folder
from rooda.settings.layers import Settings, ancestors, merge

PATIENCE = 120.0  # seconds per run
NO_TOOLS = "this CLI offers the model no tools"
LONGEST = 200  # characters of an agent's text that a check shows
READY = 15.0  # seconds until the server is ready
MADE, LAST = "from the model\n", "All done."
WORK = "".join(f"{n}. Nothing is to be done about line {n}, “quotes” and \\n included.\n" for n in range(300))
VARIABLES = ("PATH", "LANG", "LC_ALL", "TZ", "PYTHONPATH", "ROODA_LOOP_SANDBOX")  # passed on to the run; no keys


def shipped() -> dict[str, Any]:
    """Return the `test` tables of the agents that ship with rooda, keyed by agent name."""
    import tomllib

    tables: Json = tomllib.loads(files.text(dirs.shipped("config", "agents-test.toml")))["agents"]
    return {name: table["test"] for name, table in tables.items()}


class Subject(NamedTuple):
    """An agent to test."""

    name: str
    command: str
    table: Mapping[str, Any]  # the agent's settings, without those of the test
    test: Mapping[str, Any]  # how the CLI is pointed at the model server

    @property
    def is_text(self) -> bool:
        return bool(self.table.get("output", "text") == "text")

    @property
    def answer(self) -> str:
        """Return the answer that makes a CLI without tools for the model write a file; "" for any other CLI."""
        return str(self.test.get("answer", ""))

    @property
    def runs_commands(self) -> bool:
        return not self.answer and of_program(os.path.basename(self.command.split()[0])).runs_commands


def subject(settings: Settings, agent: Agent, program: str) -> Subject | None:
    """Return the subject for an agent; None if no setting says how to point the agent's CLI at the server."""
    table = settings.agents().get(agent.name, {})
    ours, test = shipped(), table.get("test", {})
    for name in ancestors(settings.table("agents"), agent.name):
        test = merge(ours.get(name, {}), test)
    if not test:
        return None
    words = shlex.split(agent.command)
    if os.sep in words[0]:  # relative to the workspace or to the settings file; the test runs elsewhere
        words[0] = os.path.abspath(program)
    kept = {key: value for key, value in table.items() if key not in ("test", "like", "fallback")}
    return Subject(agent.name, shlex.join(words), kept, test)


class Check(NamedTuple):
    """The result of one check."""

    what: str
    ok: bool | None  # None: there is nothing to check
    detail: str = ""


class Harness:
    """A model server, and a workspace in which rooda runs."""

    def __init__(self, folder: str, subject: Subject, signals: Signals) -> None:
        self.work, self.home = os.path.join(folder, "work"), os.path.join(folder, "home")
        self.subject, self._folder, self._signals = subject, folder, signals
        self.server, self.url = 0, ""  # PID, address
        for place in (self.work, os.path.join(self.home, "tmp")):
            files.make_folder(place)

    def run(self, turns: list[Json], prompt: str, until: Callable[[], bool] | None = None) -> ProcessResult:
        """Run a procedure with one iteration; if `until` is given, send SIGTERM to rooda once `until` returns True."""
        self._serve({"turns": turns, "consume": "all" if self.subject.answer else "tools"})
        self._write_files(prompt)
        pids: list[int] = []

        def end_it() -> None:
            if pids and until and until():
                ending.signal_all((pids.pop(),), signal.SIGTERM)

        spec = Spec(
            argv=[*detach.rooda_command(), "-C", self.work, "check", "-n", "1"],
            cwd=self.work,
            env=self._environment(),
            output=os.path.join(self._folder, "rooda.out"),
            timeout=PATIENCE,
            grace=20.0,
            keep=True,  # don't end the server; processes that the run leaves are checked later
            on_start=pids.append,
        )
        return supervise.run(spec, self._signals, Periodic(0.1, end_it))

    def _serve(self, scenario: Json) -> None:
        """Start the server."""
        script, port = os.path.join(self._folder, "scenario.json"), os.path.join(self._folder, "port")
        files.write(script, json.dumps(scenario).encode())
        argv = [*detach.rooda_command("rooda.agentkit.server"), script, "--port-file", port]
        argv += ["--log", os.path.join(self._folder, "requests.jsonl"), *self._api()]
        output = os.path.join(self._folder, "server.out")
        self.server = supervise.start_background(Spec(argv, self._folder, self._environment(), output))
        deadline = clock.monotonic() + READY
        while not os.path.exists(port):
            if clock.monotonic() > deadline or ending.has_exited(self.server) or self._signals.count:
                said = files.tail(output, 500).decode("utf-8", "replace")
                raise RoodaError(f"The model server did not start: {said}")
            self._signals.wait(0.02)
        self.url = f"http://127.0.0.1:{files.text(port)}"

    def _api(self) -> list[str]:
        api = self.subject.test.get("api")
        return ["--api", api] if api else []

    def _write_files(self, prompt: str) -> None:
        """Write the CLI's files to its private HOME, and the run's settings to the workspace."""
        import tomli_w

        setup, table = clis.setup(self.subject.test, self.url), self.subject.table
        for name, text in setup.files.items():
            path = os.path.join(self.home, name)
            files.make_folder(os.path.dirname(path))
            files.write(path, text.encode())
        agent = {**table, "command": self.subject.command, "env": {**table.get("env", {}), **setup.env}}
        if model := self.subject.test.get("model"):
            agent["model"] = model
        made = "test -f made.txt" + (" && test -f shell.txt" if self.subject.runs_commands else "")
        gate, name = {"name": "files", "command": made}, self.subject.name
        loop = {"agent": name, "quality_gates": [gate], "token_budget": 0, "retry_wait": 0}
        phases = {phase: {"content": phase} for phase in ("orient", "decide", "act")}
        procedure = {"observe": {"content": prompt}, **phases}
        reach = {"hosts": [self.url.partition("//")[2]], "environment": ["PYTHONPATH"]}
        tree_ = {"loop": loop, "agents": {name: agent}, "procedures": {"check": procedure}, "sandbox": reach}
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

    def has_begun(self) -> bool:
        """True once the scenario's shell command runs; if the CLI runs no commands, once it has sent a request."""
        if self.subject.runs_commands:
            return os.path.exists(os.path.join(self.work, "begun"))
        from urllib.request import urlopen

        with urlopen(f"{self.url}/_server/requests", timeout=READY) as answer:
            return any(request.get("turn") for request in json.load(answer))

    def asked(self) -> list[Json]:
        """Return the requests that the server has answered."""
        log = os.path.join(self._folder, "requests.jsonl")
        return [json.loads(line) for line in files.lines(log, 1 << 28, 1 << 28)] if os.path.exists(log) else []

    def prompt_arrived(self) -> bool:
        """True if a request contained the whole prompt."""
        prompt, bodies = _words(self.prompt()), (_words(" ".join(_texts(each.get("body")))) for each in self.asked())
        return bool(prompt) and any(prompt in body for body in bodies)

    def has_written(self) -> bool:
        """True if the CLI wrote the file that the model asked for."""
        return self._content("made.txt").strip() == MADE.strip()

    def has_run(self) -> bool:
        """True if the CLI ran the shell command that the model asked for."""
        return self._content("shell.txt") == "hi\n"

    def _content(self, name: str) -> str:
        try:
            return files.text(os.path.join(self.work, name))
        except OSError:
            return ""

    def _runs(self) -> list[str]:
        return folder.all_of(self.work, None)


def turns_of(harness: Harness) -> list[Json]:
    """Return the scripted answers that make the CLI write a file and run a command."""
    if harness.subject.answer:
        return [{"text": harness.subject.answer}]
    write = {"path": os.path.join(harness.work, "made.txt"), "content": MADE}
    finish = harness.subject.test.get("finish")
    return [{"write": write}, {"shell": "echo hi > shell.txt"}, {"shell": finish} if finish else {"text": LAST}]


def why_undone(harness: Harness, done: ProcessResult) -> str:
    """Return why a run of the CLI did not do its work; "" if it succeeded."""
    if not harness.asked():
        return f"it sent no request to the server ({_ending(harness.event('agent.ended'), done)})"
    if not harness.prompt_arrived():
        return "the prompt did not arrive whole"
    if not any(request.get("tools") for request in harness.asked()):
        return "it offers the model no tools"
    if not harness.has_written() or not harness.has_run():
        return f"it did not {'run a shell command' if harness.has_written() else 'write a file'}"
    return "" if done.code == 0 else _ending(harness.event("agent.ended"), done)


def _ending(ended: Json, done: ProcessResult) -> str:
    if not ended:
        return f"rooda ended with {done.code} ({done.ended})"
    said = telling_line(f"{ended.get('head', '')}{ended.get('tail', '')}")[:LONGEST]
    return f"exit {ended['exit_code']}, {ended['ended']}{f': {said}' if said else ''}"


def examine(subject: Subject, folder: str, signals: Signals) -> Iterator[Check]:
    """Run all checks, and yield each result as soon as it is known. A signal ends the checks."""
    first = Harness(os.path.join(folder, "work"), subject, signals)
    yield from _of_work(first)
    if not signals.count:
        second = Harness(os.path.join(folder, "stop"), subject, signals)
        yield from _of_stopping(second, (first.server,))


def _of_work(harness: Harness) -> Iterator[Check]:
    subject = harness.subject
    done = harness.run(turns_of(harness), WORK)
    ended = harness.event("agent.ended")
    yield Check(
        "the prompt arrives whole", harness.prompt_arrived(), f"{len(files.to_bytes(harness.prompt())):,} bytes"
    )
    yield Check("a file is written", harness.has_written())
    ran = Check("a shell command runs", harness.has_run())
    yield ran if subject.runs_commands else ran._replace(ok=None, detail=NO_TOOLS)
    yield _understood(subject, ended, done)
    known = subject.table.get("known", ())
    yield _reported("tokens are read", ended.get("usage"), "usage" in known, _tokens)
    yield _reported("its cost is read", ended.get("cost"), "cost" in known, lambda cost: f"${cost:.4f}")
    yield Check("rooda's gate turns green", done.code == 0 and harness.event("gates.ended").get("outcome") == "success")


def _of_stopping(harness: Harness, servers: tuple[int, ...]) -> Iterator[Check]:
    began, commands = clock.monotonic(), harness.subject.runs_commands
    turn: Json = {"shell": "echo begun > begun; sleep 300"} if commands else {"text": "Too late.", "delay": 300}
    done = harness.run([turn], "Begin.", harness.has_begun)
    seconds = f"{clock.monotonic() - began:.1f} s"
    begun, what = harness.has_begun(), "command" if commands else "answer"
    detail = seconds if begun else f"the {'shell command' if commands else what} never began"
    yield Check(f"TERM ends it in the middle of {'a' if commands else 'an'} {what}", begun and done.code == 143, detail)
    left = set(table.descendants(os.getpid())) - {*servers, harness.server}
    yield Check("TERM leaves nothing running", not left, ", ".join(map(str, sorted(left))))


def _understood(subject: Subject, ended: Json, done: ProcessResult) -> Check:
    """Check whether rooda can read how the call ended. With plain-text output, rooda learns only the exit code."""
    what = "its transcript is understood"
    if subject.is_text and ended.get("exit_code") == 0:
        return Check(what, None, "output = text: only the exit code is known")
    return Check(what, ended.get("agent_outcome") == outcome.OK, _outcome(ended, done))


def _outcome(ended: Json, done: ProcessResult) -> str:
    if not ended:
        return f"rooda ended with {done.code} ({done.ended})"
    return f"{ended.get('agent_outcome') or 'exit code only'} {ended.get('message') or ''}".strip()


def _reported(what: str, value: Any, known: bool, shown: Any) -> Check:
    """Check that a value is present, if this CLI is known to report it."""
    if value is None and not known:
        return Check(what, None, "not reported by this CLI")
    return Check(what, value is not None, "" if value is None else shown(value))


def _tokens(usage: Json) -> str:
    return ", ".join(f"{usage[key]:,} {key}" for key in ("input", "cached", "written", "output"))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _texts(each)


def _words(text: str) -> str:
    return " ".join(text.split())
