"""Keeps a page's pieces of HTML, each with the version in which it changed, and builds messages for browsers. Pure."""

from collections.abc import Mapping
from json import dumps

from rooda.page.html import Html


class Pieces:
    """The HTML pieces of one page, keyed by `container/name`, or by `container` if the container has only one piece.

    `first`: the number of the page's first version, larger than the version numbers of earlier pages at this address.
    """

    def __init__(self, first: int = 0) -> None:
        self._first = self.version = first
        self.html: dict[str, Html] = {}
        self._changed: dict[str, int] = {}  # version in which a piece changed
        self._ordered: dict[str, int] = {}  # version in which the list of a container's pieces changed last
        self._messages: dict[int, bytes] = {}  # messages for listeners that have seen a certain version

    def update(self, now: Mapping[str, Html]) -> bool:
        """Replace the pieces; return True if something has changed."""
        before, next_ = self.html, self.version + 1
        changed = {key: next_ for key, html in now.items() if before.get(key) != html}
        orders, past = _orders(now), _orders(before)
        ordered = {name: next_ for name in {**orders, **past} if orders.get(name) != past.get(name)}
        if not changed and not ordered:
            return False
        kept = {key: version for key, version in self._changed.items() if key in now}
        self.version, self.html, self._messages = next_, dict(now), {}
        self._changed, self._ordered = kept | changed, self._ordered | ordered
        return True

    def message(self, seen: int) -> bytes:
        """Return the event for a browser that has version `seen`; b"" if `seen` is the newest."""
        if seen == self.version:
            return b""
        seen = seen if self._first < seen < self.version else self._first
        if seen not in self._messages:
            orders = _orders(self.html)
            data = {
                "order": {name: orders.get(name, []) for name, version in self._ordered.items() if version > seen},
                "pieces": {key: html for key, html in self.html.items() if self._changed[key] > seen},
            }
            self._messages[seen] = event("pieces", data, self.version)
        return self._messages[seen]


def _orders(pieces: Mapping[str, Html]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for key in pieces:
        found.setdefault(key.partition("/")[0], []).append(key)
    return found


def event(name: str, data: object, version: int = -1) -> bytes:
    """Return a server-sent event with this name and data."""
    number = f"id: {version}\n" if version >= 0 else ""
    return f"{number}event: {name}\ndata: {dumps(data)}\n\n".encode()
