"""Sends encoded requests to a collector over HTTP, in a separate thread with a bounded queue."""

import gzip
import http.client
import os
import re
import ssl
import threading
import time
import urllib.error
import urllib.request
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

from rooda.otel.spans import Span

MOST = 2048  # spans that may wait; after that the oldest are dropped
AT_ONCE = 512  # spans of one request
PAUSE = 1.0  # seconds between two requests, so that spans that end together are sent together
FIRST_RETRY, LONGEST_RETRY = 1.0, 30.0
TIMEOUT, LONGEST_TIMEOUT = 10.0, 3600.0
BUSY = (429, 502, 503, 504)  # status codes after which another attempt may succeed
PREFIX = "OTEL_EXPORTER_OTLP_"


class Collector:
    """The address, headers and certificates for one kind of data, from OpenTelemetry's environment variables."""

    def __init__(self, signal: str, endpoint: str, environ: Mapping[str, str]) -> None:
        own = f"{PREFIX}{signal.upper()}_"

        def given(name: str) -> str:
            return environ.get(own + name, "").strip() or environ.get(PREFIX + name, "").strip()

        url = environ.get(f"{own}ENDPOINT", "").strip() or f"{endpoint.rstrip('/')}/v1/{signal}"
        self.url, self._user = _without_user(url)
        self._headers = _pairs(given("HEADERS"))
        self._gzip = given("COMPRESSION") == "gzip"
        self._timeout = _seconds(given("TIMEOUT"))
        self._opener = urllib.request.build_opener(_Direct, *no_proxy(self.url), *_https(url, given))

    def post(self, data: bytes) -> None:
        """Send a request, without following redirects. Raises OSError if the collector does not accept it."""
        headers = {"Content-Type": "application/x-protobuf", "User-Agent": "rooda", **self._user, **self._headers}
        if self._gzip:
            data, headers = gzip.compress(data), {**headers, "Content-Encoding": "gzip"}
        request = urllib.request.Request(self.url, data, headers)
        try:
            with self._opener.open(request, timeout=self._timeout) as answer:
                answer.read(65_536)
        except http.client.HTTPException as problem:  # a gRPC port, for example
            raise OSError(0, f"its answer is not HTTP ({type(problem).__name__})") from None


class _Direct(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None  # so that the headers with keys reach no other host


def no_proxy(url: str) -> list[Any]:
    """Return a handler that disables proxies if the collector is on this machine; otherwise no handler."""
    host = urlsplit(url).hostname or ""
    is_here = host in ("localhost", "::1") or re.fullmatch(r"127(\.\d{1,3}){3}", host) is not None
    return [urllib.request.ProxyHandler({})] if is_here else []


def _https(url: str, given: Callable[[str], str]) -> list[Any]:
    if not url.startswith("https:"):
        return []
    context = ssl.create_default_context(cafile=given("CERTIFICATE") or None)
    if certificate := given("CLIENT_CERTIFICATE"):
        context.load_cert_chain(certificate, given("CLIENT_KEY") or None)
    return [urllib.request.HTTPSHandler(context=context)]


def _without_user(url: str) -> tuple[str, dict[str, str]]:
    """Return the URL without user and password, and the authorization header that holds them."""
    parts = urlsplit(url)
    user, at, host = parts.netloc.rpartition("@")
    if not at:
        return url, {}
    import base64

    words = base64.b64encode(unquote(user if ":" in user else f"{user}:").encode()).decode()
    return urlunsplit(parts._replace(netloc=host)), {"Authorization": f"Basic {words}"}


def _pairs(text: str) -> dict[str, str]:
    """Parse `key=value,key=value`, in which values are percent-encoded."""
    pairs = (each.partition("=") for each in text.split(",") if "=" in each)
    return {unquote(key).strip(): unquote(value).strip() for key, _, value in pairs if key.strip()}


def resource(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the attributes in OTEL_RESOURCE_ATTRIBUTES."""
    return _pairs(environ.get("OTEL_RESOURCE_ATTRIBUTES", ""))


def _seconds(milliseconds: str) -> float:
    try:
        seconds = float(milliseconds) / 1000 if milliseconds else TIMEOUT
    except ValueError:
        return TIMEOUT
    return seconds if 0.001 <= seconds <= LONGEST_TIMEOUT else TIMEOUT


class Sender(threading.Thread):
    """Sends spans as they arrive. After `finish` it makes one attempt to send each remaining request."""

    def __init__(self, collector: Collector, encode: Callable[[list[Span]], bytes]) -> None:
        super().__init__(daemon=True)
        self._collector, self._encode = collector, encode
        self._waiting: deque[Span] = deque(maxlen=MOST)
        self._wake, self._closing = threading.Event(), threading.Event()
        self.problem = ""
        self.taken = self.sent = 0

    def add(self, span: Span) -> None:
        self.taken += 1
        self._waiting.append(span)
        self._wake.set()

    def finish(self) -> None:
        self._closing.set()
        self._wake.set()

    def run(self) -> None:
        retry = FIRST_RETRY
        while True:
            self._wake.wait()
            if not self._closing.is_set():
                self._closing.wait(PAUSE)
            self._wake.clear()
            while self._waiting:
                some = [self._waiting.popleft() for _ in range(min(AT_ONCE, len(self._waiting)))]
                again = self._send(some)
                if not again:
                    retry = FIRST_RETRY
                elif self._closing.is_set():
                    return
                else:
                    self._put_back(some)
                    self._closing.wait(retry)
                    retry = min(2 * retry, LONGEST_RETRY)
            if self._closing.is_set():
                return

    def _send(self, some: list[Span]) -> bool:
        """Send spans; return True if that failed but another attempt may succeed."""
        try:
            self._collector.post(self._encode(some))
        except urllib.error.HTTPError as problem:
            self.problem = f"HTTP {problem.code}"
            return problem.code in BUSY
        except (OSError, ValueError) as problem:
            reason = getattr(problem, "reason", problem)
            self.problem = str(getattr(reason, "strerror", "") or reason)
            return isinstance(problem, OSError)
        self.sent += len(some)
        return False

    def _put_back(self, some: list[Span]) -> None:
        for span in reversed(some[-(MOST - len(self._waiting)) :] if len(self._waiting) < MOST else []):
            self._waiting.appendleft(span)


def now() -> int:
    """Return the time in nanoseconds since 1970."""
    return time.time_ns()


def leave() -> None:
    """Exit at once, even if threads are still waiting."""
    os._exit(0)
