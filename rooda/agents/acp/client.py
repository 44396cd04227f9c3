"""Implements a client of the Agent Client Protocol, version 1: opens one session with an agent, sends one prompt.

The client offers the agent neither files nor terminals, and answers permission requests based on the tool rules. It
writes a transcript of everything that the agent reports; `rooda/agents/clis/acp.py` reads this transcript.
"""

import json
import re
from collections.abc import Callable
from typing import Any, NamedTuple

from rooda import __version__
from rooda.agents.acp import rules
from rooda.agents.gathered import inner, listed
from rooda.agents.records import ToolRules
from rooda.base import clock
from rooda.base.json import Json, loads
from rooda.processes.dialogue import ENDED, ERROR_LINE, LATE, SIGNAL, Dialogue

VERSION = 1
PATIENCE = 120.0  # seconds to wait for each answer before the prompt is sent
SHUTDOWN = 2.0  # seconds from the last answer to SIGTERM, and from SIGTERM to SIGKILL
NOT_OFFERED, AUTH_REQUIRED = -32601, -32000  # error codes of JSON-RPC and of the protocol
LONGEST_TEXT = 4_000  # characters kept of a line that is not a message
SILENT = ("available_commands_update", "config_option_update", "session_info_update")  # not in the transcript
_KEY = re.compile(r"api[-_ ]?key", re.I)


class Turn(NamedTuple):
    """Prompt, workspace, model and tool rules of one call."""

    prompt: str
    workspace: str
    program: str
    model: str = ""
    rules: ToolRules = ToolRules()


class Refused(Exception):
    """Raised if the agent rejects a request or can't be used; `error` has the form of a JSON-RPC error object."""

    def __init__(self, error: Json) -> None:
        super().__init__(str(error.get("message")))
        self.error = error


class Ended(Exception):
    """Raised if the agent exits, or a signal ends the call, before the answer."""


class Client:
    """One conversation with an agent; `tell` writes a record to the transcript."""

    def __init__(self, dialogue: Dialogue, turn: Turn, tell: Callable[[Json], None]) -> None:
        self._dialogue, self._turn, self._tell = dialogue, turn, tell
        self._count = 0  # requests sent
        self._session = ""
        self._cancelled = False
        self._tools: dict[str, Json] = {}  # kind and all titles of each tool call, by its ID
        self._asked: set[str] = set()  # IDs of tool calls for which the agent asked for permission

    def run(self) -> bool:
        """Send the prompt, wait for the answer, and write the last record; return False if the agent did not answer."""
        try:
            self._start()
            prompt = [{"type": "text", "text": self._turn.prompt}]
            answer = self._ask("session/prompt", {"sessionId": self._session, "prompt": prompt}, None)
        except Refused as refused:
            self._tell({"type": "error", "cancelled": self._cancelled, "error": refused.error})
            return False
        except Ended:
            return False
        cut = {"cancelled": True} if self._cancelled else {}
        self._tell({"type": "result", **{key: answer.get(key) for key in ("stopReason", "usage", "_meta")}, **cut})
        return True

    def _start(self) -> None:
        """Initialize, log in with an API key if the agent requires one, begin a session, and set its model and mode."""
        offered = {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False}
        client = {"name": "rooda", "title": "rooda", "version": __version__}
        asked = {"protocolVersion": VERSION, "clientCapabilities": offered, "clientInfo": client}
        agent = self._ask("initialize", asked)
        if agent.get("protocolVersion") != VERSION:
            raise Refused({"message": f"unsupported protocol version {agent.get('protocolVersion')}, not {VERSION}"})
        session = self._new_session(agent)
        self._session = str(session.get("sessionId") or "")
        model = self._choose_model(session)
        self._choose_mode(session)
        self._tell({"type": "init", "session": self._session, "model": model, "program": self._turn.program})

    def _new_session(self, agent: Json) -> Json:
        asked = {"cwd": self._turn.workspace, "mcpServers": []}
        try:
            return self._ask("session/new", asked)
        except Refused as refused:
            methods = [each for each in listed(agent, "authMethods") if _takes_key(each)]
            if refused.error.get("code") != AUTH_REQUIRED or not methods:
                raise
        self._ask("authenticate", {"methodId": methods[0].get("id")})
        return self._ask("session/new", asked)

    def _choose_mode(self, session: Json) -> None:
        """Select a mode: if the rules restrict tools, one that asks for permission, else one that never asks."""
        modes = inner(session, "modes")
        known = [each.get("id") for each in listed(modes, "availableModes")]
        wanted = next((each for each in rules.modes(self._turn.rules) if each in known), None)
        if wanted in (None, modes.get("currentModeId")):
            return
        try:
            self._ask("session/set_mode", {"sessionId": self._session, "modeId": wanted})
        except Refused:
            if self._turn.rules.restrict:
                raise

    def _choose_model(self, session: Json) -> str:
        """Make the session use the call's model, if the call names one; return the model that the session uses."""
        wanted = self._turn.model
        for option in listed(session, "configOptions"):
            if "model" in (option.get("category"), option.get("id")):
                if wanted and wanted != option.get("currentValue"):
                    self._set("session/set_config_option", {"configId": option.get("id"), "value": wanted})
                return wanted or str(option.get("currentValue") or "")
        models = inner(session, "models")
        if wanted and wanted != models.get("currentModelId"):
            self._set("session/set_model", {"modelId": wanted})
        return wanted or str(models.get("currentModelId") or "")

    def _set(self, method: str, what: Json) -> None:
        try:
            self._ask(method, {"sessionId": self._session, **what})
        except Refused as refused:
            why = f"invalid model {self._turn.model!r}: {refused.error.get('message')}"
            raise Refused({**refused.error, "message": why}) from None

    def _ask(self, method: str, params: Json, patience: float | None = PATIENCE) -> Json:
        """Send a request and return its result; until it arrives, serve the agent's own requests.

        Raises Refused if the agent answers with an error, or not within `patience` seconds. None means no time limit.
        """
        self._count += 1
        own = self._count
        self._send({"id": own, "method": method, "params": params})
        deadline = None if patience is None else clock.monotonic() + patience
        while True:
            heard = self._dialogue.hear(deadline)
            if heard.kind == LATE:
                raise Refused({"message": f"it did not answer {method} within {patience:g} seconds"})
            if heard.kind == SIGNAL:
                self._cancel()
                continue
            if heard.kind == ENDED:
                raise Ended
            message = _message(heard.text) if heard.kind != ERROR_LINE else {}
            if not message:
                self.tell_text(heard.text)
            elif "method" in message:
                self._serve(message)
            elif message.get("id") == own:
                if "error" in message:
                    raise Refused(inner(message, "error"))
                return inner(message, "result")

    def tell_text(self, line: bytes) -> None:
        """Record a line that is not a JSON-RPC message; it may explain a failure."""
        self._tell({"type": "text", "text": line.decode("utf-8", "replace")[:LONGEST_TEXT]})

    def _send(self, message: Json) -> None:
        self._dialogue.send(json.dumps({"jsonrpc": "2.0", **message}).encode())

    def _cancel(self) -> None:
        """Ask the agent to cancel the turn. Raises Ended if rooda has already asked, or if there is no session yet."""
        if self._cancelled or not self._session:
            raise Ended
        self._cancelled = True
        self._send({"method": "session/cancel", "params": {"sessionId": self._session}})

    def _serve(self, message: Json) -> None:
        """Handle a notification or a request from the agent."""
        method, params = message["method"], inner(message, "params")
        if method == "session/update":
            self._update(inner(params, "update"))
        elif "id" not in message:
            return
        elif method == "session/request_permission":
            self._send({"id": message["id"], "result": self._permission(params)})
        else:
            error = {"code": NOT_OFFERED, "message": f"rooda does not offer {method}"}
            self._send({"id": message["id"], "error": error})

    def _update(self, update: Json) -> None:
        kind = update.get("sessionUpdate")
        if kind not in SILENT:
            self._tell({"type": "update", "update": update})
        if kind in ("tool_call", "tool_call_update"):
            tool = self._merged(update)
            if update.get("status") == "completed" and str(update.get("toolCallId")) not in self._asked:
                self._check(*_kind_and_titles(tool))

    def _merged(self, call: Json) -> Json:
        """Merge an update, which has only the changed fields, into the tool call; return the tool call."""
        known = self._tools.setdefault(str(call.get("toolCallId")), {"titles": []})
        known["kind"] = call.get("kind") or known.get("kind")
        known["titles"] += [call["title"]] if call.get("title") else []
        return known

    def _check(self, kind: str, titles: list[str]) -> None:
        if not self._cancelled and rules.breaks(self._turn.rules, kind, titles):
            self._cancel()
            why = f"unsupported restriction: the agent ran a tool of a denied kind, {kind!r}, without asking"
            raise Refused({"message": why})

    def _permission(self, params: Json) -> Json:
        call, options = inner(params, "toolCall"), listed(params, "options")
        self._asked.add(str(call.get("toolCallId")))
        kind, titles = _kind_and_titles(self._merged(call))
        answer = rules.outcome(options, rules.allows(self._turn.rules, kind, titles) and not self._cancelled)
        allowed = rules.is_allowing(answer, options)
        self._tell({"type": "permission", "title": titles[-1] if titles else "", "kind": kind, "allowed": allowed})
        return answer


def _kind_and_titles(tool: Json) -> tuple[str, list[str]]:
    """Return a tool call's kind and all its titles: the first often names the tool; later ones describe its action."""
    return str(tool.get("kind") or "other"), [str(title) for title in tool["titles"]]


def _takes_key(method: Json) -> bool:
    """True for a login with an API key from the environment; other logins may open a browser and wait."""
    return method.get("type") == "env_var" or bool(_KEY.search(str(method.get("id"))))


def _message(line: bytes) -> Json:
    """Parse a line as a JSON-RPC message; {} if it is something else."""
    try:
        found: Any = loads(line)
    except ValueError:
        return {}
    return found if isinstance(found, dict) and ("method" in found or "id" in found) else {}
