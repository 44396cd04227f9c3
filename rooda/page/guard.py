"""Decides which requests the page answers, based on the headers Host and Origin, and on the token or the cookie.

Other users can reach loopback, and browsers send requests for other sites. So every request except the one for metrics
needs the token in the printed address. The first visit exchanges the token for a cookie, which the browser sends only
to a random path, and never for another site.
"""

from collections.abc import Mapping
from hmac import compare_digest
from ipaddress import ip_address
from os import uname
from secrets import token_urlsafe
from typing import NamedTuple
from urllib.parse import parse_qsl

COOKIE = "rooda"
NAMES = ("localhost",)
METRICS = "/metrics"  # metrics without names; needs no token
SAFE = ("GET", "HEAD")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


class Refusal(NamedTuple):
    """The reason why a request is refused: status code and sentence."""

    status: int
    text: str


class Asked(NamedTuple):
    """The parts of a request that decide whether it is answered."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]  # names in lower case


class Guard:
    """The token, the cookie and the random path of one page."""

    def __init__(self, host: str, port: int, local: bool) -> None:
        self.base = f"/{token_urlsafe(12)}/"
        self.token, self._cookie = token_urlsafe(32), token_urlsafe(32)
        host = host if local or not _is_every(host) else uname().nodename
        self._host, self._port, self._local = host.lower(), port, local
        self.address = f"http://{_bracketed(host)}:{port}{self.base}"

    @property
    def door(self) -> str:
        """The address that `rooda page` prints."""
        return f"{self.address}?token={self.token}"

    @property
    def cookie(self) -> str:
        """The cookie that a browser gets at its first visit."""
        return f"{COOKIE}={self._cookie}; Path={self.base}; HttpOnly; SameSite=Strict"

    def is_first_visit(self, asked: Asked) -> bool:
        """True if the address has the token. The answer then sets the cookie and redirects to an address without it."""
        given = dict(parse_qsl(asked.query, max_num_fields=20)).get("token", "")
        return asked.method in SAFE and asked.path == self.base and _same(given, self.token)

    def refusal(self, asked: Asked) -> Refusal | None:
        """Return why a request is refused; None if it is answered."""
        origin = asked.headers.get("origin")
        if not self._is_here(asked.headers.get("host", "")):
            return Refusal(421, "This server is not the host that the request names.")
        if origin is None and asked.method not in SAFE:
            return Refusal(403, "The request does not say from which page it comes.")
        if origin is not None and not self._is_own(origin, asked.headers["host"]):
            return Refusal(403, "The request comes from another site.")
        if asked.path == METRICS or self.is_first_visit(asked):
            return None
        if not self._has_cookie(asked.headers.get("cookie", "")):
            return Refusal(401, "Open the address that `rooda page` printed: it contains the token.")
        if not asked.path.startswith(self.base):
            return Refusal(404, "There is nothing here.")
        return None

    def _is_here(self, host: str) -> bool:
        """True if the header names this server. A name that an attacker's DNS could point here does not count."""
        name, port = _split(host.lower())
        if port != str(self._port):
            return False
        if name in (*NAMES, self._host):
            return True
        try:
            address = ip_address(name)
        except ValueError:
            return False
        return address.is_loopback or not self._local

    def _is_own(self, origin: str, host: str) -> bool:
        return origin.lower() == f"http://{host.lower()}"

    def _has_cookie(self, header: str) -> bool:
        pairs = (part.strip().partition("=") for part in header.split(";"))
        found = [_same(value, self._cookie) for name, _, value in pairs if name == COOKIE]
        return True in found


def _split(host: str) -> tuple[str, str]:
    """Return the name and the port of a Host header; the default port is "80"."""
    name, colon, port = host.rpartition(":")
    if not colon or port.endswith("]"):
        name, port = host, "80"
    return name.removeprefix("[").removesuffix("]"), port


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _is_every(host: str) -> bool:
    """True if the address means all addresses of this machine. rooda then prints the machine's name."""
    try:
        return ip_address(host).is_unspecified
    except ValueError:
        return False


def _same(given: str, own: str) -> bool:
    return compare_digest(given.encode("utf-8", "replace"), own.encode())


def is_loopback(host: str) -> bool:
    """True if only programs on this machine can reach the address."""
    try:
        return host.lower() in NAMES or ip_address(host).is_loopback
    except ValueError:
        return False
