"""Simulates the model APIs that agent CLIs use, with scripted answers, on one loopback port.

  Anthropic  POST /v1/messages, /v1/messages/count_tokens
  OpenAI     POST /v1/responses, /v1/chat/completions     (with or without /v1)
  Gemini     POST /v1beta/models/M:generateContent, :streamGenerateContent, :countTokens
and GET /v1/models; an answer is streamed if the request asks for that.

In a test:     with ModelServer({"turns": [{"text": "hi"}]}) as server: run(cli, server.url); server.requests
As a command:  python -m rooda.agentkit.server SCENARIO.json --log requests.jsonl [--port 0] [--port-file p]
While it runs: POST /_server/scenario starts another scenario; GET /_server/requests returns the requests so far

scenario.py describes scenarios.
"""

import gzip
import http.server
import json
import socket
import sys
import threading
import time
from collections.abc import Iterable
from types import ModuleType
from typing import Any

from rooda.agentkit.server import anthropic, chat, gemini, responses
from rooda.agentkit.server.scenario import CALLING, Event, Json, Reply, Script, Taken, kind, new_id
from rooda.agentkit.server.tools import Tool, choose, least, least_call

APIS: dict[str, ModuleType] = {
    "anthropic": anthropic,
    "chat": chat,
    "responses": responses,
    "gemini": gemini,
}
NAMED = {"openai": "chat", "anthropic": "anthropic", "responses": "responses"}  # names of APIs in the settings
MODELS = ("claude-sonnet-4-5", "gpt-5", "gemini-2.5-pro")
NOTHING_FITS = "No tool on offer fits this turn."


class ModelServer:
    """A model server that runs inside a `with` block. `requests` returns the requests that it has received."""

    def __init__(
        self, scenario: Json | None = None, port: int = 0, log: str = "", bodies: bool = True, api: str = ""
    ) -> None:
        self.apis = {NAMED[api]} if api else {*APIS}
        self.script, self.log, self.closing = Script(scenario or {}), Log(log, bodies), threading.Event()
        handler = type("BoundHandler", (Handler,), {"server_of": self})
        self._http = _Http(("127.0.0.1", port), handler)
        self.port: int = self._http.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"

    @property
    def requests(self) -> list[Json]:
        """Return the requests so far; those still being answered have no `seconds` yet."""
        return self.log.requests

    def play(self, scenario: Json) -> None:
        """Switch to another scenario, at its first turn."""
        self.script = Script(scenario)

    def __enter__(self) -> "ModelServer":
        threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *problem: object) -> None:
        self.closing.set()
        self._http.shutdown()
        self._http.server_close()


class _Http(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], ConnectionError | TimeoutError):  # clients may disconnect at any time
            super().handle_error(request, client_address)


class ConnectionCut(Exception):
    """Raised if the scenario's turn says to cut the connection."""


class Handler(http.server.BaseHTTPRequestHandler):
    """Handles the requests of one connection."""

    protocol_version = "HTTP/1.1"
    server_version = "model-server/1"
    server_of: ModelServer

    def log_message(self, *arguments: Any) -> None:
        """Do nothing: the server has its own log."""

    def setup(self) -> None:
        super().setup()
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def do_HEAD(self) -> None:
        self._send({})

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if path == "/_server/requests":
            return self._send(self.server_of.requests)
        if not path.rstrip("/").endswith("/models"):
            return self._unknown(path)
        self.server_of.log.answered(self._arrived(status=200))
        models = [{"id": name, "name": f"models/{name}", "object": "model", "type": "model"} for name in MODELS]
        self._send({"object": "list", "data": models, "models": models, "has_more": False})

    def do_POST(self) -> None:
        body = self._body()
        path = self.path.partition("?")[0]
        if path == "/_server/scenario":
            self.server_of.play(body)
            return self._send({"ok": True})
        api, verb, model = route(path)
        if api not in self.server_of.apis:
            return self._unknown(path, body)
        if verb == "count":
            self.server_of.log.answered(self._arrived(api=api, body=body, status=200))
            return self._send({"input_tokens": 1000, "totalTokens": 1000})
        stream = verb == "stream" or bool(body.get("stream"))
        self._answer(api, str(model or body.get("model") or "some-model"), stream, body)

    def _answer(self, api: str, model: str, stream: bool, body: Json) -> None:
        tools: list[Tool] = APIS[api].offered(body)
        forced = next((tool for tool in tools if tool.name == APIS[api].forced(body)), None)
        taken = self._side(api, body) if forced else self._take(api, body, tools)
        record = self._arrived(api=api, stream=stream, model=model, body=body, turn=taken.number)
        record |= {"tools": [tool.name for tool in tools], "answer": kind(taken.turn), "status": 200}
        try:
            self._wait(taken.turn.get("delay", 0))
            if "error" in taken.turn:
                record["status"] = taken.turn["error"]
                problem = taken.turn.get("body") or APIS[api].error(taken.turn)
                self._send(problem, record["status"], taken.turn.get("headers"))
            else:
                reply = self._reply(taken.turn, model, tools, record)
                reply = reply._replace(text="", call=least_call(forced)) if forced else reply
                self._say(APIS[api], reply, taken.turn, stream)
        except ConnectionError:
            record["client_gone"] = self.close_connection = True
        except ConnectionCut:
            record["cut"] = True
        self.server_of.log.answered(record)

    def _take(self, api: str, body: Json, tools: list[Tool]) -> Taken:
        script = self.server_of.script
        if tools or script.takes_all:
            return script.take()
        return self._side(api, body)

    def _side(self, api: str, body: Json) -> Taken:
        """Answer a request that is not part of the task, such as one for a title; it uses no turn of the scenario."""
        schema = APIS[api].wanted(body)
        side = json.dumps(least(schema)) if schema else "an answer by the way"
        return Taken(0, {"text": self.server_of.script.scenario.get("side", side)})

    def _reply(self, turn: Json, model: str, tools: list[Tool], record: Json) -> Reply:
        call = choose(turn, tools) if kind(turn) in CALLING else None
        text = turn.get("say", "") if call else turn.get("text", NOTHING_FITS)
        if call is None and kind(turn) in CALLING:
            record["note"] = NOTHING_FITS
        return Reply(
            model=model,
            text=text,
            call=call,
            usage=self.server_of.script.usage(turn),
            thinking=turn.get("thinking", ""),
            stop_reason=turn.get("stop_reason", ""),
            stream_error=turn.get("stream_error"),
        )

    def _say(self, api: ModuleType, reply: Reply, turn: Json, stream: bool) -> None:
        if not stream:
            self._after_first(turn)
            return self._send(api.plain(reply), 200, turn.get("headers"))
        streamed = {"content-type": "text/event-stream", "transfer-encoding": "chunked"}
        self._head(200, {**streamed, **turn.get("headers", {})})
        for number, event in enumerate(api.stream(reply)):
            self._chunk(event)
            if number == 0:
                self._after_first(turn)
        self.wfile.write(b"0\r\n\r\n")

    def _after_first(self, turn: Json) -> None:
        self._wait(turn.get("stall", 0))
        if turn.get("drop"):
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            raise ConnectionCut

    def _wait(self, seconds: float) -> None:
        if seconds and self.server_of.closing.wait(seconds):
            raise ConnectionAbortedError("the server closes")

    def _arrived(self, **facts: Any) -> Json:
        request = {"at": time.time(), "method": self.command, "path": self.path, "headers": shown(self.headers.items())}
        return self.server_of.log.arrived({**request, **facts})

    def _unknown(self, path: str, body: Json | None = None) -> None:
        self.server_of.log.answered(self._arrived(status=404, body=body))
        self._send({"error": {"type": "not_found_error", "message": f"no such place: {path}"}}, 404)

    def _head(self, status: int, headers: Json) -> None:
        self.send_response(status)
        for key, value in {"request-id": new_id("req_"), "cache-control": "no-cache", **headers}.items():
            self.send_header(key, str(value))
        self.end_headers()

    def _send(self, answer: Any, status: int = 200, headers: Json | None = None) -> None:
        data = json.dumps(answer).encode()
        self._head(status, {"content-type": "application/json", "content-length": len(data), **(headers or {})})
        if self.command != "HEAD":
            self.wfile.write(data)

    def _chunk(self, event: Event) -> None:
        data = event.data if isinstance(event.data, str) else json.dumps(event.data)
        head = f"event: {event.name}\n" if event.name else ""
        raw = f"{head}data: {data}\n\n".encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(raw), raw))

    def _body(self) -> Json:
        raw = self._chunked() if "chunked" in self.headers.get("transfer-encoding", "") else self._sized()
        if self.headers.get("content-encoding") == "gzip":
            raw = gzip.decompress(raw)
        try:
            body = json.loads(raw or b"{}")
        except ValueError:
            body = None
        return body if isinstance(body, dict) else {"raw": raw[:2000].decode("utf-8", "replace"), "size": len(raw)}

    def _sized(self) -> bytes:
        return self.rfile.read(int(self.headers.get("content-length") or 0))

    def _chunked(self) -> bytes:
        raw = b""
        while size := int(self.rfile.readline().partition(b";")[0] or b"0", 16):
            raw += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return raw


def route(path: str) -> tuple[str, str, str]:
    """Return the API ("" if unknown), the kind of request (answer, stream, count), and the model in the path."""
    verbs = {"generateContent": "answer", "streamGenerateContent": "stream", "countTokens": "count"}
    model, _, verb = path.rpartition("/")[2].partition(":")
    if verb in verbs:
        return "gemini", verbs[verb], model
    if path.endswith("/messages/count_tokens"):
        return "anthropic", "count", ""
    ends = {"/messages": "anthropic", "/chat/completions": "chat", "/responses": "responses"}
    return next((api for end, api in ends.items() if path.endswith(end)), ""), "answer", ""


SECRET = ("authorization", "x-api-key", "x-goog-api-key")


class Log:
    """The log of requests. In memory, they are in the order of arrival; in the file, in the order of completion."""

    def __init__(self, path: str = "", bodies: bool = True) -> None:
        self.requests: list[Json] = []
        self._path, self._bodies, self._lock = path, bodies, threading.Lock()

    def arrived(self, record: Json) -> Json:
        """Add the record of a request and return it; `answered` completes it."""
        with self._lock:
            self.requests.append(record)
        return record

    def answered(self, record: Json) -> None:
        """Complete the record of a request and write it to the file."""
        record["seconds"] = round(time.time() - record["at"], 3)
        if not self._path:
            return
        kept = {key: value for key, value in record.items() if self._bodies or key != "body"}
        with self._lock, open(self._path, "a", encoding="utf-8") as file:
            file.write(json.dumps(kept) + "\n")


def shown(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the headers with API keys shortened, but still recognizable."""
    lowered = ((key.lower(), value) for key, value in headers)
    return {key: value[:14] + "..." if key in SECRET and len(value) > 14 else value for key, value in lowered}
