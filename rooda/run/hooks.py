"""Runs hooks: sends an event to a shell command or a URL. A failed hook is reported and has no other effect.

During a run each hook runs under a small supervisor process, so that the loop never waits for it. At the end of the
run rooda waits for the hooks, within their timeouts.
"""

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from rooda.agents.context import CallContext
from rooda.base import clock, files
from rooda.base.json import Json
from rooda.base.text import counted
from rooda.git import traces
from rooda.processes import ending, supervise
from rooda.processes.signals import Signals, SignalsFromNow, SignalSource
from rooda.run.ended import moments
from rooda.run.setup import Hook

# Runs in a separate process: the loop itself opens no connection and loads no HTTP library. The URL is passed in the
# environment, since every user can read a command line. A redirect is an error: only the configured host may get the
# event.
_POST = """
import base64, os, sys, urllib.parse, urllib.request
address = urllib.parse.urlsplit(os.environ["ROODA_HOOK_URL"])
person, _, host = address.netloc.rpartition("@")
url = urllib.parse.urlunsplit(address._replace(netloc=host))
request = urllib.request.Request(url, sys.stdin.buffer.read(), {"Content-Type": sys.argv[2]})
if person:
    words = urllib.parse.unquote_to_bytes(person if ":" in person else person + ":")
    request.add_unredirected_header("Authorization", "Basic " + base64.b64encode(words).decode())
class Direct(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, request, fp, code, *rest):
        raise SystemExit(f"HTTP Error {code}: redirects are not followed; name the final address")
urllib.request.build_opener(Direct).open(request, timeout=float(sys.argv[1])).read()
"""
_SUPERVISOR = """
import sys
about, *sys.path[:] = sys.argv[1:]
from rooda.run.hooks import supervise_hook
supervise_hook(about)
"""
SHOWN = 200  # characters of a hook's output in a warning
KEPT = 65_536  # bytes of a hook's output on disk
GRACE = 1.0  # seconds between SIGTERM and SIGKILL
SLACK = 3.0  # seconds that the supervisor process may take to start and to end


class Hooks:
    """The hooks of one session."""

    def __init__(
        self,
        hooks: Mapping[str, Hook],
        moments_by_reason: Mapping[str, str],
        context: CallContext,
        loop: str,
        cost: Callable[[], float | None],
    ) -> None:
        """`loop`: the loop's name on the screen. `cost`: returns the run's cost so far, None if unknown."""
        self._hooks, self._moments_by_reason, self._context = hooks, moments_by_reason, context
        self._loop, self._cost = loop, cost
        self._counts = dict.fromkeys(hooks, 0)
        self._running: dict[int, tuple[str, float]] = {}  # report file and deadline of each supervisor, keyed by PID

    def run(self, record: Json) -> Iterator[str]:
        """Start the hooks for an event; yield the failures of all hooks that have ended since the last call."""
        names = [name for name in moments(record, self._moments_by_reason) if name in self._hooks]
        yield from self.finish() if record["event"] == "run.ended" else ()
        for facts in (self._facts(name, record) for name in names):
            if record["event"] != "run.ended":
                self._begin(facts)
            elif problem := _problem(facts, SignalsFromNow(self._context.signals)):
                yield problem
        yield from self._reap()

    def finish(self) -> Iterator[str]:
        """Wait for all hooks to end, unless a signal arrives; yield their failures."""
        signals = self._context.signals
        while pids := [pid for pid in self._running if not _has_exited(pid)]:
            left = max(self._running[pid][1] for pid in pids) - clock.monotonic()
            if left <= 0 or signals.count:
                break
            signals.wait(left)
        yield from self._reap()
        ending.spared.difference_update(self._running)  # hooks that still run are ended with all other processes
        self._running.clear()

    def _facts(self, name: str, record: Json) -> Json:
        """Return the data that the supervisor process needs to run one hook."""
        hook, context = self._hooks[name], self._context
        self._counts[name] += 1
        stem = f"hook-{name}" if self._counts[name] == 1 else f"hook-{name}-{self._counts[name]}"
        posted = [sys.executable, "-IS", "-c", _POST, "30", _TYPES.get(hook.format, _JSON)]
        words = ["/bin/sh", "-c", hook.command] if hook.command else posted
        event = self._described(name, record)
        stdin = context.folder.write(f"{stem}.json", _body(hook.format, event).encode("utf-8", "replace") + b"\n")
        env = {**context.env, **({"ROODA_HOOK_URL": hook.url} if hook.url else {})}
        facts = {"argv": words, "cwd": context.workspace, "env": env, "timeout": hook.timeout}
        return {"name": name, "stdin": stdin, "output": stdin.removesuffix("json") + "out", **facts}

    def _described(self, name: str, record: Json) -> Json:
        """Return the event with fields about the run, and with `text`, a sentence for readers."""
        workspace, cost = self._context.workspace, self._cost()
        facts: Json = {"moment": name, "workspace": workspace, "host": os.uname().nodename}
        facts |= {"branch": traces.head_branch(workspace), "cost": None if cost is None else round(cost, 6)}
        return {**record, **facts, "text": _sentence(self._loop, {**record, **facts})}

    def _begin(self, facts: Json) -> None:
        report = facts["stdin"].removesuffix("json") + "said"
        about = self._context.folder.write(
            f"{os.path.basename(report)}.json", json.dumps({**facts, "env": None}).encode()
        )
        folders = [os.path.abspath(folder) for folder in sys.path]
        argv = [sys.executable, "-IS", "-c", _SUPERVISOR, about, *folders]
        try:
            pid = supervise.start_background(supervise.Spec(argv, facts["cwd"], facts["env"], report))
        except (OSError, ValueError):
            return
        ending.spared.add(pid)
        self._running[pid] = report, clock.monotonic() + facts["timeout"] + GRACE + SLACK

    def _reap(self) -> Iterator[str]:
        for pid in [pid for pid in self._running if _has_exited(pid)]:
            report, _ = self._running.pop(pid)
            ending.spared.discard(pid)
            if text := _last_line(report):
                yield text


_SAID = {
    "done": "is done",
    "failed": "failed",
    "paused": "paused and can be resumed",
    "stopped": "was stopped",
    "stuck": "makes no progress",
    "limit": "waits for a usage limit",
    "budget": "reached its limit",
    "needs_person": "needs you",
}
_JSON, _PLAIN = "application/json", "text/plain; charset=utf-8"
_TYPES = {"text": _PLAIN, "ntfy": _PLAIN}
_FIELDS = {"slack": "text", "discord": "content"}  # key of the sentence in the JSON message of each service
LONGEST = 1500  # characters of a sentence without `[host:workspace]`; Discord accepts 2,000 in all


def _sentence(loop: str, event: Json) -> str:
    """Return one line about an event: the loop, what happened, why, and where."""
    cost = f", ${event['cost']:.2f}" if event["cost"] else ""
    count = event.get("iterations")
    done = f" after {counted(count, 'iteration')}" if isinstance(count, int) else ""
    why = " ".join(_why(event).split())
    branch = f" ({event['branch']})" if event["branch"] else ""
    text = f"{loop} {_SAID[event['moment']]}{done}{cost}{f': {why}' if why else ''}"
    return f"{text[:LONGEST]} [{event['host']}:{event['workspace']}{branch}]"


def _why(event: Json) -> str:
    """Return why an event happened: its note, the red gates, or its reason with spaces for hyphens."""
    red = event.get("last", {}).get("gates_failed") or ", ".join(event.get("red", ()))
    return str(event.get("note") or (red and f"red gates: {red}") or str(event.get("reason") or "").replace("-", " "))


def _body(format: str, event: Json) -> str:
    """Return the hook's input: the event as JSON, or its sentence as text or as a message for a service."""
    if format in _TYPES:
        return str(event["text"])
    return json.dumps({_FIELDS[format]: event["text"]} if format in _FIELDS else event, ensure_ascii=False)


def supervise_hook(path: str) -> None:
    """Main function of the supervisor process of one hook: run the hook, and print a sentence if it fails."""
    facts = json.loads(files.read_ours(path))
    with Signals() as signals:
        problem = _problem({**facts, "env": dict(os.environ)}, signals)
    os.write(1, problem.encode("utf-8", "replace"))


def _problem(facts: Json, signals: SignalSource) -> str:
    """Run a hook and return an error message; "" if it succeeds."""
    given: dict[str, Any] = {key: facts[key] for key in ("argv", "cwd", "env", "output", "stdin", "timeout")}
    spec = supervise.Spec(
        **given, grace=GRACE, cap=KEPT, keep=True
    )  # a process left by the hook, such as a desktop notifier, may live until the end of the run
    done = supervise.run(spec, signals)
    said = _last_line(facts["output"])[:SHOWN]
    if done.size > KEPT:
        files.write(facts["output"], said.encode("utf-8", "replace") + b"\n")
    if done.ended == "exit" and not done.code:
        return ""
    why = f"timed out after {facts['timeout']:g}s" if done.ended == "timeout" else f"exit {done.code}"
    return f"the hook {facts['name']!r} failed ({why}){f': {said}' if said else ''}"


def _last_line(path: str) -> str:
    try:
        return files.to_text(files.tail(path, KEPT)).strip().rpartition("\n")[2]
    except OSError:
        return ""


def _has_exited(pid: int) -> bool:
    try:
        return ending.has_exited(pid)
    except ChildProcessError:  # already reaped
        return True
