"""Telling somebody else: a command or an address gets the event. What goes wrong there is said, and nothing more.

While the run goes on a hook works beside it, in the hands of a process of its own that minds its limits: nothing waits
for it. At the run's end it is waited for, within the same limits.
"""

import json
import os
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from rooda.agents.context import CallContext
from rooda.base import clock, files
from rooda.base.json import Json
from rooda.processes import ending, supervise
from rooda.processes.signals import Signals, SignalsFromNow, SignalSource
from rooda.run.ended import moments
from rooda.run.setup import Hook

# A process of its own: the loop's never opens a connection, nor loads what that takes.
# Its words are there for everybody to see, its environment is not; and a password goes to no other host.
_POST = """
import base64, os, sys, urllib.parse, urllib.request
address = urllib.parse.urlsplit(os.environ["ROODA_HOOK_URL"])
person, _, host = address.netloc.rpartition("@")
url = urllib.parse.urlunsplit(address._replace(netloc=host))
request = urllib.request.Request(url, sys.stdin.buffer.read(), {"Content-Type": "application/json"})
if person:
    words = urllib.parse.unquote_to_bytes(person if ":" in person else person + ":")
    request.add_unredirected_header("Authorization", "Basic " + base64.b64encode(words).decode())
urllib.request.urlopen(request, timeout=float(sys.argv[1])).read()
"""
_BESIDE = """
import sys
about, *sys.path[:] = sys.argv[1:]
from rooda.run.hooks import beside
beside(about)
"""
SHOWN = 200  # characters of what it said
KEPT = 65_536  # bytes of it
GRACE = 1.0  # seconds between asking it to end and killing it
SLACK = 3.0  # seconds that the process beside us may take to begin and to end


class Hooks:
    """The hooks of one session."""

    def __init__(self, hooks: Mapping[str, Hook], moments_by_reason: Mapping[str, str], context: CallContext) -> None:
        self._hooks, self._moments_by_reason, self._context = hooks, moments_by_reason, context
        self._counts = dict.fromkeys(hooks, 0)
        self._beside: dict[int, tuple[str, float]] = {}  # by pid: what it says goes where, and when it must be over

    def run(self, record: Json) -> Iterator[str]:
        """Run the hooks for this event; yields what went wrong with them and with earlier ones that have ended."""
        names = [name for name in moments(record, self._moments_by_reason) if name in self._hooks]
        yield from self.finish() if record["event"] == "run.ended" else ()
        for facts in (self._facts(name, record) for name in names):
            if record["event"] != "run.ended":
                self._begin(facts)
            elif problem := _problem(facts, SignalsFromNow(self._context.signals)):
                yield problem
        yield from self._over()

    def finish(self) -> Iterator[str]:
        """Until the last is over; after a signal nobody waits."""
        ears = self._context.signals
        while pids := [pid for pid in self._beside if not _has_exited(pid)]:
            left = max(self._beside[pid][1] for pid in pids) - clock.monotonic()
            if left <= 0 or ears.count:
                break
            ears.wait(left)
        yield from self._over()
        ending.spared.clear()  # whoever is left is ended with the rest
        self._beside.clear()

    def _facts(self, name: str, record: Json) -> Json:
        """All that it takes to run one, also for a process that knows nothing of the session."""
        hook, context = self._hooks[name], self._context
        self._counts[name] += 1
        stem = f"hook-{name}" if self._counts[name] == 1 else f"hook-{name}-{self._counts[name]}"
        posted = [sys.executable, "-IS", "-c", _POST, "30"]
        words = ["/bin/sh", "-c", hook.command] if hook.command else posted
        data = json.dumps({**record, "moment": name}, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
        stdin = context.folder.write(f"{stem}.json", data)
        env = {**context.env, **({"ROODA_HOOK_URL": hook.url} if hook.url else {})}
        facts = {"argv": words, "cwd": context.workspace, "env": env, "timeout": hook.timeout}
        return {"name": name, "stdin": stdin, "output": stdin.removesuffix("json") + "out", **facts}

    def _begin(self, facts: Json) -> None:
        said = facts["stdin"].removesuffix("json") + "said"
        about = self._context.folder.write(
            f"{os.path.basename(said)}.json", json.dumps({**facts, "env": None}).encode()
        )
        folders = [os.path.abspath(folder) for folder in sys.path]
        argv = [sys.executable, "-IS", "-c", _BESIDE, about, *folders]
        try:
            pid = supervise.start_background(supervise.Spec(argv, facts["cwd"], facts["env"], said))
        except (OSError, ValueError):
            return
        ending.spared.add(pid)
        self._beside[pid] = said, clock.monotonic() + facts["timeout"] + GRACE + SLACK

    def _over(self) -> Iterator[str]:
        for pid in [pid for pid in self._beside if _has_exited(pid)]:
            said, _ = self._beside.pop(pid)
            ending.spared.discard(pid)
            if text := _last_line(said):
                yield text


def beside(path: str) -> None:
    """The process beside a loop: one hook, its limits, and a sentence on stdout if it went wrong."""
    facts = json.loads(files.read(path))
    with Signals() as signals:
        problem = _problem({**facts, "env": dict(os.environ)}, signals)
    os.write(1, problem.encode("utf-8", "replace"))


def _problem(facts: Json, ears: SignalSource) -> str:
    """What went wrong, or ""."""
    given: dict[str, Any] = {key: facts[key] for key in ("argv", "cwd", "env", "output", "stdin", "timeout")}
    spec = supervise.Spec(**given, grace=GRACE, cap=KEPT, keep=True)  # a notifier may stay until the run's end
    done = supervise.run(spec, ears)
    said = _last_line(facts["output"])[:SHOWN]
    if done.size > KEPT:
        files.write(facts["output"], said.encode("utf-8", "replace") + b"\n")
    if done.ended == "exit" and not done.code:
        return ""
    why = f"no end within {facts['timeout']:g}s" if done.ended == "timeout" else f"exit {done.code}"
    return f"the hook {facts['name']!r} failed ({why}){f': {said}' if said else ''}"


def _last_line(path: str) -> str:
    try:
        return files.to_text(files.tail(path, KEPT)).strip().rpartition("\n")[2]
    except OSError:
        return ""


def _has_exited(pid: int) -> bool:
    try:
        return ending.has_exited(pid)
    except ChildProcessError:  # buried already
        return True
