"""Tools of today beside rooda, each with a real agent CLI and a scripted model: turns, memory, SIGKILL, limits."""

import hashlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import pairwise
from statistics import median
from typing import Any, NamedTuple

from benchmarks import processes
from benchmarks.bench import Bench, write
from benchmarks.measure import Failed, Series, spread, start, until
from benchmarks.peers.install import Installed, installed
from benchmarks.peers.today import OURS, PLAN, TOOLS, Tool, Words
from benchmarks.verdict import Measured
from rooda.agentkit.check import shipped
from rooda.agentkit.server import clis
from rooda.agentkit.server.server import ModelServer

UNMET = json.dumps({"ok": False, "reason": "There is no file x."})  # what a model that judges says
USAGE = {"input": 100_000, "output": 1_000}
# One tool ends when its agent says the same twice.
TURNS = [{"text": f"{n} {hashlib.sha256(b'%d' % n).hexdigest()}"} for n in range(1000)]
COMMAND = "tail -f /dev/null"  # of the agent; a long `sleep` one CLI refuses
FIRST = 240.0  # seconds until the first call of the model: one tool starts three servers before
SOON = 5.0  # seconds after the kill in which what is left may still end
QUIET = 8.0  # seconds without a call after which no more come


class Site(NamedTuple):
    """A workspace with a HOME, where a tool works with the model of `server`."""

    path: str
    env: dict[str, str]
    server: ModelServer

    def turns(self) -> list[dict[str, Any]]:
        """The calls of the model so far that offer it tools: those of the agent, and of no judge."""
        return [call for call in self.server.requests if call.get("turn")]

    def processes(self) -> list[int]:
        """What the tool has started and is alive, by its environment or the folder it works in."""
        there = os.path.join(self.path, "")
        found = set(processes.marked(f"BENCH_SITE={self.path}"))
        for entry in filter(str.isdigit, os.listdir("/proc")):
            with suppress(OSError):
                if os.path.join(os.readlink(f"/proc/{entry}/cwd"), "").startswith(there):
                    found.add(int(entry))
        return sorted(found)

    def begin(self, tool: Tool, words: Words, command: str, is_limited: bool = False) -> int:
        argv = words(command, is_limited)
        argv[0] = shutil.which(argv[0], path=self.env["PATH"]) or argv[0]
        with suppress(FileNotFoundError):
            os.unlink(os.path.join(self.path, "tool.pid"))
        return start(argv, self.env, self.path)

    def tool(self, pid: int) -> int:
        """The process of the tool itself, where a client of ours has started it."""
        with suppress(FileNotFoundError), open(os.path.join(self.path, "tool.pid"), encoding="ascii") as file:
            return int(file.read())
        return pid

    def kill(self) -> None:
        """Everything, by SIGKILL; what has been ours is reaped."""
        deadline = time.monotonic() + 10
        while (alive := self.processes()) and time.monotonic() < deadline:
            for pid in alive:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            with suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            time.sleep(0.05)


def today(bench: Bench) -> Measured:
    if not processes.readable():
        return Measured([], {})
    notes: dict[str, str] = {}
    series: Series = {}
    agents = {tool.agent: installed(tool).command for tool in TOOLS if tool.agent == tool.program}
    for tool in (OURS, *TOOLS):
        there = Installed(bench.rooda, "") if tool is OURS else installed(tool)
        if not (there.command and agents.get(tool.agent)):
            notes[tool.title] = f"{tool.version}: could not be installed: {there.why}"
            continue
        notes[tool.title] = f"{there.version}"
        found = series.setdefault(tool.title, {})
        for measure in (_turns, _waiting, _killed, _limited):
            if tool.tasks and measure in (_turns, _limited):
                continue
            print(f"    {tool.title}: {measure.__name__.strip('_')}", flush=True)
            try:
                figures = measure(bench, tool, there.command, agents[tool.agent])
            except Failed as problem:
                notes[tool.title] += f"; {str(problem).splitlines()[0]}"
                continue
            found.update({name: spread([value]) for name, value in figures.items()})
    return Measured([], series, {"tools": notes})


@contextmanager
def _site(bench: Bench, tool: Tool, agent: str, *turns: dict[str, Any]) -> Iterator[Site]:
    """A fresh one, in a repository of its own; everything in it is killed in the end."""
    with ModelServer(_scenario(turns), bodies=False) as server:
        place = bench.workspace("today", 400, loop=f'agent = "{tool.agent}"\n')
        setup = clis.setup(shipped()[tool.agent], server.url)
        mine = {**setup.env, "HOME": place.path, "IS_SANDBOX": "1", "BENCH_SITE": place.path}
        for name, text in setup.files.items():
            os.makedirs(os.path.dirname(os.path.join(place.path, name)), exist_ok=True)
            write(os.path.join(place.path, name), text)
        folder = os.path.join(bench.root, f"bin-{os.path.basename(place.path)}")
        os.mkdir(folder)
        exports = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in mine.items())
        script = os.path.join(folder, tool.agent)
        write(script, f'#!/bin/sh\n{exports}exec {shlex.quote(agent)} "$@"\n')
        os.chmod(script, 0o755)
        _repository(place.path)
        path = os.pathsep.join([folder, os.path.dirname(bench.python), place.env["PATH"]])
        site = Site(place.path, {**place.env, **mine, "PATH": path}, server)
        try:
            yield site
        finally:
            site.kill()


def _scenario(turns: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return {"turns": [*turns], "after": "last", "side": UNMET, "usage": USAGE}


def _repository(path: str) -> None:
    write(os.path.join(path, "plan.yaml"), PLAN)
    git = ["git", "-C", path, "-c", "user.name=b", "-c", "user.email=b@c.invalid"]
    for words in (["init", "-q", "-b", "work"], ["add", "-A"], ["commit", "-q", "-m", "none"]):
        subprocess.run([*git, *words], check=True, capture_output=True)


def _turns(bench: Bench, tool: Tool, command: str, agent: str) -> dict[str, float]:
    """From the end of the model's answer that ends a turn to its first call in the next one."""
    count = 3 if bench.quick else 8  # Claude ends a goal whose turns change nothing after nine
    with _site(bench, tool, agent, *TURNS) as site:
        site.begin(tool, tool.begin, command)
        until(lambda: len(site.turns()) > count, FIRST, f"{count} turns of {tool.title}")
        calls = site.turns()[: count + 1]
    gaps = [after["at"] - before["at"] - before["seconds"] for before, after in pairwise(calls)]
    return {"gap": median(gaps)}


def _waiting(bench: Bench, tool: Tool, command: str, agent: str) -> dict[str, float]:
    """Private memory while the model thinks: of all processes, and of those that are not the agent's CLI."""
    with _site(bench, tool, agent, {"text": "", "delay": FIRST}) as site:
        pid = site.begin(tool, tool.begin, command)
        until(lambda: bool(site.turns()), FIRST, f"a turn of {tool.title}")
        time.sleep(1)  # what it does after the start of a turn shall be over
        client = {pid} - {site.tool(pid)}
        sizes = {each: processes.private(each) for each in site.processes() if each not in client}
        own = sum(size for each, size in sizes.items() if not _is_agent(each, tool.agent))
        return {"private": sum(sizes.values()), "own private": own}


def _is_agent(pid: int, agent: str) -> bool:
    """True for the agent's CLI, and for the script that some of them are started by."""
    with suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as file:
        words = file.read().decode(errors="replace").split("\0")[:2]
        return any(os.path.basename(word).startswith(agent) for word in words)
    return False


def _killed(bench: Bench, tool: Tool, command: str, agent: str) -> dict[str, float]:
    """Its process gets SIGKILL while the agent runs a command: what is alive then, and what the next start does."""
    with _site(bench, tool, agent, {"shell": COMMAND, "say": "I run it."}) as site:
        pid = site.begin(tool, tool.begin, command)
        until(lambda: any(_is_command(each) for each in site.processes()), FIRST, f"a command of {tool.title}")
        victims = {site.tool(pid)}
        if tool.agent == tool.program:  # it may be two processes: a script, and the program
            victims |= {each for each in site.processes() if _is_agent(each, tool.agent)}
        for each in victims:
            os.kill(each, signal.SIGKILL)
        left = _left(site)
        site.kill()
        before = len(site.turns())
        site.server.play(_scenario(TURNS))
        site.begin(tool, tool.again, command)
        after = _calls(site, before, enough=3, seconds=FIRST if tool.tasks else 4 * QUIET)
    return {"left alive": left, "turns after the next start": after}


def _is_command(pid: int) -> bool:
    with suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as file:
        return file.read().startswith(COMMAND.replace(" ", "\0").encode())
    return False


def _left(site: Site) -> int:
    deadline = time.monotonic() + SOON
    while True:
        with suppress(ChildProcessError):
            os.waitpid(-1, os.WNOHANG)
        alive = [pid for pid in site.processes() if not _is_zombie(pid)]
        if not alive or time.monotonic() > deadline:
            return len(alive)
        time.sleep(0.1)


def _is_zombie(pid: int) -> bool:
    with suppress(OSError), open(f"/proc/{pid}/stat", "rb") as file:
        return file.read().rpartition(b")")[2].split()[:1] == [b"Z"]
    return True


def _limited(bench: Bench, tool: Tool, command: str, agent: str) -> dict[str, float]:
    """The limit is below the cost of one turn: turns after that one, and after another start with the same limit."""
    with _site(bench, tool, agent, *TURNS) as site:
        site.begin(tool, tool.begin, command, True)
        until(lambda: bool(site.turns()), FIRST, f"a turn of {tool.title}")
        first = _calls(site, 0)
        site.kill()
        site.begin(tool, tool.again, command, True)
        again = _calls(site, first)
    return {"turns after the limit": first - 1, "turns after another start": again}


def _calls(site: Site, before: int, enough: int = 20, seconds: float = QUIET) -> int:
    """How many turns begin from now on, until there are enough, or none for some time."""
    count, quiet = before, time.monotonic() + seconds
    while time.monotonic() < quiet and count - before < enough:
        if (now := len(site.turns())) > count:
            count, quiet = now, time.monotonic() + seconds
        time.sleep(0.02)
    return min(count - before, enough)
