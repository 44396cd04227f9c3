"""Reads and writes the record of the facts that the user trusts in a repository: `record.json` in the state folder."""

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rooda.base import dirs, files
from rooda.base.facts import Fact
from rooda.settings import trust_watch
from rooda.settings.trust_search import FILES, Identity, Seen

RECORD = "record.json"
PENDING = "pending.json"


class Record:
    """The facts that the user trusts in a folder, and the facts found at the last start there."""

    def __init__(self, top: str, part: str = "") -> None:
        self.top = top
        self.folder = os.path.join(home, part) if (home := trust_watch.record_folder(top)) else ""
        self.data = read(os.path.join(self.folder, RECORD)) if self.folder else {}
        self.known: set[Identity] = identities(self.data.get("known"))

    @property
    def exists(self) -> bool:
        return bool(self.data)

    @property
    def revoked(self) -> bool:
        return bool(self.data.get("revoked"))

    @property
    def restraints(self) -> list[Fact]:
        """Return the facts that restricted the agent at the last start."""
        return [fact for fact in self.last if fact.restrains]

    @property
    def last(self) -> list[Fact]:
        return facts(self.data.get("last"))

    def versions(self, name: str) -> tuple[str, ...]:
        """Return the commits in which others wrote a file, as known at the last start."""
        return tuple(table(self.data.get("versions")).get(name, ()))

    def settle(self, seen: Seen, versions: Mapping[str, Sequence[str]], revoked: bool = False) -> str:
        """Record these facts as trusted, or the trust as revoked; return an error if writing fails, else ""."""
        known = sorted(self.known | seen.identities)
        elsewhere = [fact for fact in self.last if not seen.covers(fact.file)]
        new = {
            "folder": self.top,
            "known": [] if revoked else [list(each) for each in known],
            "last": rows((*elsewhere, *seen.facts)),
            "versions": {**table(self.data.get("versions")), **{name: [*each] for name, each in versions.items()}},
            "revoked": revoked,
        }
        if revoked:
            trust_watch.forget(self.top)
        if new == self.data:
            return ""
        return trust_watch.write(self.folder, RECORD, new)

    # Facts of single files, which `rooda trust` shows and accepts after a start has asked about them

    def ask_later(self, seen: Seen) -> None:
        """Save the facts that the user was asked about, so that a later `rooda trust` can confirm exactly these."""
        trust_watch.write(self.folder, PENDING, {"facts": rows(seen.facts)})

    def pending(self) -> list[Fact]:
        """Return the facts that the user was last asked about and has not answered."""
        return facts(read(os.path.join(self.folder, PENDING)).get("facts")) if self.folder else []

    def forget_pending(self) -> None:
        trust_watch.remove(self.folder, PENDING)

    def accept_pending(self) -> None:
        self.known |= {fact.identity for fact in self.pending()}
        self.settle(Seen(self.top, tuple(self.pending()), {}, part=FILES), {})
        self.forget_pending()


def folders() -> Iterator[tuple[str, bool]]:
    """Yield each folder with a record, and whether it is trusted; False if trust was revoked."""
    home = dirs.state("trust")
    for name in sorted(files.list_folder(home)) if home else ():
        data = read(os.path.join(home, name, RECORD))
        if isinstance(data.get("folder"), str):
            yield data["folder"], not data.get("revoked")


def read(path: str) -> dict[str, Any]:
    """Return the contents of a file of the record; {} if the file is missing or damaged."""
    try:
        return table(json.loads(files.read_ours(path)))
    except (OSError, ValueError, RecursionError):
        return {}


def rows(listed: Iterable[Fact]) -> list[Any]:
    """Return the facts as JSON rows, to be stored."""
    return [[*fact.identity, fact.restrains, fact.label] for fact in listed]


def table(found: Any) -> dict[str, Any]:
    return found if isinstance(found, dict) else {}


def identities(found: Any) -> set[Identity]:
    listed = found if isinstance(found, list) else []
    return {(str(row[0]), str(row[1]), str(row[2])) for row in listed if isinstance(row, list) and len(row) >= 3}


def facts(found: Any) -> list[Fact]:
    listed = found if isinstance(found, list) else []
    whole = [row for row in listed if isinstance(row, list) and len(row) == 5]
    return [Fact(str(row[0]), str(row[1]), str(row[2]), str(row[4]), restrains=bool(row[3])) for row in whole]
