"""The web server of `rooda page`: its answers, its start and its end. Loaded only by that command."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from json import dumps, loads
from socket import socket
from threading import Lock

import uvicorn
from sse_starlette import EventSourceResponse
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rooda.base import files, secrets
from rooda.errors import RoodaError
from rooda.loops.metrics import Metrics
from rooda.page import actions, board_view, order, run_view, shell
from rooda.page.guard import HEADERS, METRICS, Asked, Guard
from rooda.page.texts import text_of
from rooda.page.watch import Channel, Watch, in_thread
from rooda.processes.detach import rooda_command
from rooda.settings.where import Where
from rooda.tasks import started
from rooda.tasks.store import place_of

STATIC = os.path.join(os.path.dirname(os.path.abspath(__file__)), "static")
TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
LARGEST = 100_000  # bytes of a request's body
ENDINGS = (2, 15, 1)  # SIGINT, SIGTERM, SIGHUP
GRACE = 0.3  # seconds that open requests have to end
PING = 25  # seconds between two signs of life on a stream without events


class Stream(EventSourceResponse):
    """A stream of events that ends when the page's generator ends, without polling for a shutdown."""

    @staticmethod
    async def _listen_for_exit_signal() -> None:
        await asyncio.Event().wait()


class Page:
    """Answers the requests of browsers."""

    def __init__(self, here: Where, watch: Watch, guard: Guard) -> None:
        self._watch, self._guard = watch, guard
        self._numbers, self._scraped = Metrics(here), Lock()

    def app(self) -> ASGIApp:
        base, run = self._guard.base, f"{self._guard.base}run/{{key}}/{{run}}/"
        routes = [
            Route(base, self.overview),
            Route(f"{base}events", self.events),
            Route(f"{base}data", self.data),
            Route(run, self.run),
            Route(f"{run}events", self.events),
            Route(f"{run}data", self.data),
            Route(f"{run}file", self.file),
            Route(f"{base}do", self.act, methods=["POST"]),
            Route(f"{base}static/{{name}}", self.static),
            Route(METRICS, self.metrics),
            Route(f"{base}metrics", self.metrics),
        ]
        return Guarded(Starlette(routes=routes), self._guard)

    async def overview(self, request: Request) -> Response:
        channel = await self._watch.channel()
        assert channel
        body = board_view.body(channel.pieces.html)
        sums = [*run_view.of(channel.pieces.html, "sums")]
        return HTMLResponse(shell.overview(body, sums, channel.pieces.version))

    async def run(self, request: Request) -> Response:
        channel = await self._channel(request)
        if channel is None or channel.run is None:
            return HTMLResponse(shell.missing(), 404)
        body = run_view.body(channel.pieces.html, shell.words())
        return HTMLResponse(shell.run(body, channel.run.facts["row"], channel.pieces.version))

    async def _channel(self, request: Request) -> Channel | None:
        return await self._watch.channel(request.path_params.get("key", ""), request.path_params.get("run", ""))

    async def events(self, request: Request) -> Response:
        channel = await self._channel(request)
        if channel is None:
            return PlainTextResponse("There is no such run.", 404)
        asked = request.query_params
        seen = _number(request.headers.get("last-event-id") or asked.get("seen", ""))
        found = self._watch.stream(channel, seen, asked.get("call", ""), _number(asked.get("count", "")))
        return Stream(_pieces(found), ping=PING, send_timeout=PING)

    async def data(self, request: Request) -> Response:
        """Return the page's data as JSON: the same objects that the commands print with --json."""
        channel = await self._channel(request)
        if channel is None:
            return PlainTextResponse("There is no such run.", 404)
        board = self._watch.board
        rows = {"open": [each.row for each in board.open], "finished": [each.row for each in board.finished]}
        return Response(
            dumps(channel.run.facts if channel.run else rows, ensure_ascii=False), media_type="application/json"
        )

    async def file(self, request: Request) -> Response:
        """Return a file of a run, or the diff of an iteration, as plain text with secrets masked."""
        channel = await self._channel(request)
        if channel is None or channel.run is None:
            return PlainTextResponse("There is no such run.", 404)
        run, asked = channel.run, dict(request.query_params)
        hidden = self._watch.board.keys(run.here)
        try:
            return PlainTextResponse(await in_thread(lambda: text_of(run.facts, run.here, asked, hidden)))
        except (RoodaError, OSError, LookupError) as problem:
            return PlainTextResponse(f"This can't be read: {problem}", 404)

    async def act(self, request: Request) -> Response:
        """Carry out an action by starting a `rooda` command."""
        try:
            typed = loads(await _body(request))
            words = {str(key): str(value) for key, value in typed.items()}
        except (ValueError, AttributeError, RecursionError):
            return _said(400, "The request is invalid.")
        await self._watch.channel()
        board = self._watch.board
        entry = board.entry(words.get("id", ""))
        if entry is None or words.get("do") not in actions.ACTIONS:
            return _said(404, "This loop or task is no longer open.")
        try:
            argv = actions.command(entry, words["do"], words, rooda_command(), _again(entry.here))
        except RoodaError as problem:
            return _said(422, str(problem))
        work = asyncio.ensure_future(order.carry_out(argv, entry.here.workspace))
        done = await self._watch.unless_stopped(work)
        if done is None:
            return _said(202, "The page ends; the command continues.")
        self._watch.forget_looks()
        text = secrets.hide(done.said, board.keys(entry.here))
        if done.code is None:
            return _said(202, f"{text}\nThe command continues in the background.")
        if done.code == 0:
            return _said(200, actions.ACTIONS[words["do"]].done or text or "Done.")
        return _said(409, text or f"The command failed with exit code {done.code}.")

    async def static(self, request: Request) -> Response:
        name = request.path_params["name"]
        kind = TYPES.get(os.path.splitext(name)[1])
        if kind is None or name not in os.listdir(STATIC):
            return PlainTextResponse("There is nothing here.", 404)
        return Response(files.read_ours(os.path.join(STATIC, name)), media_type=kind)

    async def metrics(self, request: Request) -> Response:
        """Return metrics; at the address that needs no token, without the names of loops and workspaces."""
        named = request.url.path != METRICS
        return PlainTextResponse(await in_thread(lambda: self._metrics(named)), media_type=METRICS_TYPE)

    def _metrics(self, named: bool) -> str:
        with self._scraped:
            return self._numbers.text(named)


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else 0


def _again(here: Where) -> list[str]:
    """Return the options of the last `rooda tasks run` if it was cut off, else []."""
    try:
        return [str(word) for word in started.cut_off(place_of(here.workspace)).get("words", ())]
    except RoodaError:
        return []


async def _pieces(found: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield b"retry: 2000\n\n"
    async for each in found:
        yield each


async def _body(request: Request) -> bytes:
    """Return the body of a request. Raises ValueError if it is too large, or if its type is not JSON."""
    if request.headers.get("content-type", "").partition(";")[0] != "application/json":
        raise ValueError("type")
    found = b""
    async for part in request.stream():
        found += part
        if len(found) > LARGEST:
            raise ValueError("size")
    return found


def _said(status: int, text: str) -> Response:
    return Response(dumps({"said": text}), status, media_type="application/json")


class Guarded:
    """Middleware that lets the guard check each request, and adds headers to every answer."""

    def __init__(self, app: ASGIApp, guard: Guard) -> None:
        self._app, self._guard = app, guard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1008})
            return
        answer = self._answer(_asked(scope)) or self._app
        await answer(scope, receive, _with_headers(send))

    def _answer(self, asked: Asked) -> Response | None:
        refused = self._guard.refusal(asked)
        if refused:
            retry = refused.status == 401 and asked.path == self._guard.base and asked.query == "opened"
            return HTMLResponse(shell.refused(refused.text, retry), refused.status)
        if self._guard.is_first_visit(asked):
            return RedirectResponse(f"{self._guard.base}?opened", 303, {"set-cookie": self._guard.cookie})
        return None


def _asked(scope: Scope) -> Asked:
    headers = Headers(scope=scope)
    query = scope["query_string"].decode("latin-1")
    return Asked(scope["method"], scope["path"], query, {key: headers[key] for key in headers})


def _with_headers(send: Send) -> Send:
    extra = [(key.encode(), value.encode()) for key, value in HEADERS.items()]

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            kept = [pair for pair in message["headers"] if pair[0].lower().decode("latin-1") not in HEADERS]
            message = {**message, "headers": [*kept, *extra]}
        await send(message)

    return sending


class Server(uvicorn.Server):
    """A server that sleeps until a signal ends it, instead of checking ten times a second whether to end."""

    def __init__(self, config: uvicorn.Config, watch: Watch) -> None:
        super().__init__(config)
        self._watch, self._ended = watch, asyncio.Event()
        for number in ENDINGS:
            asyncio.get_running_loop().add_signal_handler(number, self._ended.set)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def main_loop(self) -> None:
        looking = asyncio.get_running_loop().create_task(self._watch.run())
        await self._ended.wait()
        self._watch.stop()
        looking.cancel()


def serve(here: Where, guard: Guard, listening: socket, when_ready: Callable[[], object]) -> None:
    """Answer requests until a signal arrives."""

    async def run() -> None:
        watch = Watch(here)
        config = uvicorn.Config(
            Page(here, watch, guard).app(),
            log_config=None,
            log_level="critical",
            access_log=False,
            lifespan="off",
            http="h11",
            ws="none",
            proxy_headers=False,
            server_header=False,
            date_header=False,
        )
        config.timeout_graceful_shutdown = GRACE  # type: ignore[assignment]
        server = Server(config, watch)
        when_ready()
        await server.serve([listening])

    asyncio.run(run())
