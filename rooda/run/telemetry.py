"""Feeds the events of a session to the exporter (`rooda/otel`), and gives agents the context of their span.

The exporter is a separate process, so that the loop waits for no collector, loads no library and opens no connection.
"""

import json
import os
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit, urlunsplit

from rooda import __version__
from rooda.agents import command
from rooda.agents.reader import PROGRAMS, Reader, of_program, reader
from rooda.agents.records import Agent
from rooda.base.json import Json
from rooda.base.text import counted
from rooda.processes import detach
from rooda.processes.feed import ENDED, LATE, Feed
from rooda.run import history, trace_ids
from rooda.run.records import OPENING, Owner
from rooda.run.setup import OTLP_ENDPOINT
from rooda.run.tally import is_below_top, outcome_of

PATIENCE = 0.8  # seconds that the end of a run may wait for the exporter
MOST_TEXT = 200  # characters of a field
MISSING = (
    "Telemetry is on, but its extra is not installed. To install it: pip install 'rooda[otel]'"
    " (in a checkout of rooda: pip install '.[otel]')"
)
_FIELDS = (  # all that leaves the loop: no prompt, no answer, no text that an agent wrote
    *("event", "ts", "call", "agent", "output", "model", "exit_code", "ended", "seconds", "agent_outcome", "outcome"),
    *("usage", "cost", "cost_source", "turns", "tools", "gate", "criterion", "verdict", "elapsed", "state", "reason"),
)
_EVENTS = ("iteration.started", "agent.started", "agent.ended", "gate.ended", "criterion.verified", "run.ended")
_NAMES = ("transcript", "output")  # of these only the file's name
Warn = Callable[[str], None]


class Session(NamedTuple):
    """Facts about the session that is exported."""

    workspace: str
    owner: Owner
    run: str
    endpoint: str


def without_keys(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment for agents and commands without the keys of the collector."""
    kept = {key: value for key, value in environ.items() if not (key.startswith("OTEL_") and key.endswith("_HEADERS"))}
    return {key: without_user(value) if key.startswith(OTLP_ENDPOINT[:-8]) else value for key, value in kept.items()}


def without_user(url: str) -> str:
    """Return a URL without user and password."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def start(session: Session, warn: Warn) -> "Telemetry | None":
    """Start the exporter. If that is not possible, warn once and return None; the loop runs without it."""
    if problem := _problem(session.endpoint):
        warn(problem)
        return None
    try:
        return Telemetry(session, warn)
    except (OSError, ValueError) as reason:
        warn(f"Telemetry can't be exported: {reason}")
        return None


def _problem(endpoint: str) -> str:
    from importlib.util import find_spec

    try:
        parts = urlsplit(endpoint)
        is_url = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        is_url = is_url and re.fullmatch(r"[!#-~]+", endpoint) is not None
    except ValueError:
        is_url = False
    if not is_url:
        return f"Telemetry can't be exported: {OTLP_ENDPOINT} must be an http or https address"
    found = find_spec("opentelemetry")
    places = (found and found.submodule_search_locations) or ()
    return "" if any(os.path.isdir(os.path.join(place, "proto", "collector")) for place in places) else MISSING


class Telemetry:
    """The export of one session."""

    def __init__(self, session: Session, warn: Warn) -> None:
        owner, kind = session.owner, session.owner.kind
        self._warn, self._kind, self._endpoint = warn, kind, session.endpoint
        workspace, self._run = os.path.realpath(session.workspace), session.run
        earlier = _earlier(session) if owner.resumed else []
        begun = earlier[0] if earlier else session.run
        parent = trace_ids.parent_of(os.environ.get("TRACEPARENT", ""))
        self._trace = parent.trace if parent else trace_ids.trace_id(workspace, begun)
        self._flags, self._workspace = parent.flags if parent else "01", workspace
        about = {
            "workspace": os.path.basename(workspace) or workspace,
            "place": workspace,
            "session": session.run,
            "begun": begun,
            "before": earlier[-1] if earlier and not parent else "",
            "kind": kind.name,
            "name": owner.name,
            "trace": self._trace,
            "parent": parent.span if parent else "",
            "flags": self._flags,
            "version": __version__,
            "endpoint": session.endpoint,
        }
        env = {**os.environ, OTLP_ENDPOINT: session.endpoint}
        self._feed = Feed(detach.rooda_command("rooda.otel"), session.workspace, env)
        self._send(about)
        self.events = {*_EVENTS, *OPENING, *kind.turn_ends, *kind.turn_events}

    def add(self, record: Json) -> None:
        """Send an event to the exporter."""
        ends, number = self._kind.turn_of(record["event"], record)
        facts: Json = {key: _short(record[key]) for key in _FIELDS if key in record}
        facts |= {key: os.path.basename(str(record[key])) for key in _NAMES if "/" in str(record.get(key, ""))}
        facts |= {"ends": ends} if ends else {}
        facts |= {"number": number} if number is not None else {}
        if record["event"] in self._kind.turn_ends and not is_below_top(record):
            facts |= {"turn_end": True, "outcome": outcome_of(record)}
        if isinstance(summary := record.get("summary"), dict):
            facts |= {key: summary[key] for key in ("iterations", "cost") if key in summary}
        self._send(facts)

    def _send(self, facts: Json) -> None:
        self._feed.send(json.dumps(facts).encode())

    def environment(self, agent: Agent, transcript: str, env: Mapping[str, str]) -> dict[str, str]:
        """Return the variables with which an agent's own telemetry becomes part of this trace.

        The switches of the agent's CLI are set only where `env` does not set them.
        """
        span = trace_ids.span_id(self._workspace, self._run, os.path.basename(transcript))
        switches = _reader(agent).telemetry
        found = {key: self._filled(value) for key, value in switches.items() if key not in env}
        return {**found, "TRACEPARENT": trace_ids.traceparent(self._trace, span, self._flags)}

    def options(self, agent: Agent) -> list[str]:
        """Return the options that switch on the telemetry of an agent's CLI."""
        return [self._filled(word) for word in _reader(agent).telemetry_options]

    def _filled(self, text: str) -> str:
        return text.replace("{endpoint}", without_user(self._endpoint).rstrip("/"))

    def close(self) -> None:
        """End the exporter, and report what could not be sent."""
        self._send({"event": "closed"})
        how, said = self._feed.finish(PATIENCE)
        if how != ENDED:
            said = "the collector did not answer in time" if how == LATE else "its process was killed or failed"
        elif self._feed.dropped and not said:
            said = f"{counted(self._feed.dropped, 'event')} came too fast"
        if said:
            self._warn(f"Telemetry for {without_user(self._endpoint)} is incomplete: {said}")


def _reader(agent: Agent) -> Reader:
    """Return the reader of an agent's CLI, found by its program, else by the format of its output."""
    try:
        words = command.argv(agent)
    except ValueError:
        words = []
    name = os.path.basename(words[0]) if words else ""
    return of_program(name) if name in PROGRAMS else reader(agent.output)


def _earlier(session: Session) -> list[str]:
    """Return the IDs of the run's earlier sessions, oldest first."""
    found = history.of_run(session.workspace, session.owner.name, session.owner.kind.name)
    return [each.run for each in found if each.run != session.run]


def _short(value: Any) -> Any:
    return value[:MOST_TEXT] if isinstance(value, str) else value
