#!/usr/bin/env python3
"""A scripted agent that speaks the Agent Client Protocol on stdin and stdout.

`$FAKE/acp.json` has its script; every message that it receives is appended to `$FAKE/acp.jsonl`, signals too. Keys:
`initialize`, `session/new`, `session/set_model` …: the result of that request, or {"error": {…}} (a list: one for each
request); `turns`: a list of steps for each prompt; `deaf`: it ends neither at TERM nor when stdin is closed.

A step is one of {"update": {…}}, {"say": text}, {"ask": a tool call}, {"request": method}, {"sh": command},
{"print": text}, {"complain": text on stderr}, {"exit": code}, {"await": method}, {"result": {…}}, {"error": {…}}.
"""

import json
import os
import signal
import subprocess
import sys
from typing import Any

FAKE = os.environ.get("FAKE", "")
OPTIONS = [
    {"optionId": "always", "name": "Always", "kind": "allow_always"},
    {"optionId": "once", "name": "Once", "kind": "allow_once"},
    {"optionId": "no", "name": "No", "kind": "reject_once"},
]
SESSION = "session-1"


def note(what: Any) -> None:
    """Append a line to the record of what arrived."""
    with open(os.path.join(FAKE, "acp.jsonl"), "a", encoding="utf-8") as file:
        file.write(json.dumps(what) + "\n")


def send(message: Any) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


class Agent:
    """The script, and what is pending."""

    def __init__(self, script: dict[str, Any]) -> None:
        self.script, self.count = script, 0

    def receive(self) -> dict[str, Any]:
        """The next message; the end of stdin ends the agent."""
        line = sys.stdin.readline()
        if not line:
            note({"closed": True})
            while self.script.get("deaf"):
                signal.pause()
            sys.exit(0)
        message: dict[str, Any] = json.loads(line)
        note(message)
        return message

    def serve(self) -> None:
        """Answer one request after the other."""
        while True:
            message = self.receive()
            if "method" not in message or "id" not in message:
                continue
            method = message["method"]
            if method == "session/prompt":
                self.turn(message["id"])
                continue
            standard: Any = {"initialize": {"protocolVersion": 1}, "session/new": {"sessionId": SESSION}}.get(
                method, {}
            )
            answer = self.script.get(method, standard)
            answer = answer.pop(0) if isinstance(answer, list) else answer
            send({"id": message["id"], **(answer if "error" in answer else {"result": answer})})

    def turn(self, number: int) -> None:
        """Play the steps of the next turn."""
        turns = self.script.get("turns") or [[]]
        for step in turns.pop(0):
            ((kind, what),) = step.items()
            if kind in ("result", "error"):
                send({"id": number, kind: what})
                return
            getattr(self, f"do_{kind}")(what)
        send({"id": number, "result": {"stopReason": "end_turn"}})

    def do_update(self, update: Any) -> None:
        send({"method": "session/update", "params": {"sessionId": SESSION, "update": update}})

    def do_say(self, text: str) -> None:
        self.do_update({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}})

    def do_ask(self, call: Any) -> None:
        """Ask for permission as agents do, and run `sh` of the call if it is granted."""
        self.count += 1
        command, call = call.get("sh", "true"), {key: value for key, value in call.items() if key != "sh"}
        call = {"toolCallId": f"call-{self.count}", **call}
        self.do_update({"sessionUpdate": "tool_call", "status": "pending", **call})
        params = {"sessionId": SESSION, "toolCall": call, "options": OPTIONS}
        send({"id": f"ask-{self.count}", "method": "session/request_permission", "params": params})
        while "result" not in (answer := self.receive()):
            pass
        allowed = answer["result"]["outcome"].get("optionId") in ("always", "once")
        if allowed:
            self.do_sh(command)
        done = {"toolCallId": call["toolCallId"], "status": "completed" if allowed else "failed"}
        self.do_update({"sessionUpdate": "tool_call_update", **done})

    def do_request(self, method: str) -> None:
        send({"id": "request", "method": method, "params": {"path": "/etc/passwd"}})
        self.receive()

    def do_sh(self, command: str) -> None:
        subprocess.run(["sh", "-c", command], check=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)

    def do_print(self, text: str) -> None:
        print(text, flush=True)

    def do_complain(self, text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()

    def do_exit(self, code: int) -> None:
        sys.exit(code)

    def do_await(self, method: str) -> None:
        while self.receive().get("method") != method:
            pass


def main() -> None:
    """Play `$FAKE/acp.json`; the turns that are left are for the next start."""
    path = os.path.join(FAKE, "acp.json")
    with open(path, encoding="utf-8") as file:
        script = json.load(file)
    with open(path, "w", encoding="utf-8") as file:
        json.dump({**script, "turns": (script.get("turns") or [])[1:]}, file)
    note({"pid": os.getpid(), "session": os.getsid(0), "argv": sys.argv[1:]})
    signal.signal(signal.SIGTERM, lambda *_: (note({"signal": "TERM"}), script.get("deaf") or sys.exit(143)))
    signal.signal(signal.SIGINT, lambda *_: note({"signal": "INT"}))
    Agent(script).serve()


if __name__ == "__main__":
    main()
