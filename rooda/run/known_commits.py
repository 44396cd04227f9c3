"""Remembers which commits of a repository's branches and tags were not made by processes in a sandbox.

An agent may create a branch in one call and merge it in the next; that must not count as a merge of the user's commits.
"""

import json
import os
from contextlib import suppress

from rooda.base import dirs, files
from rooda.base.json import parse_object
from rooda.git import traces
from rooda.run.private_homes import key_of


class KnownCommits:
    """Tips of branches and tags that existed before the first round of processes or appeared between two rounds.

    A record in the user's state carries them over to later sessions; it is open while a session runs.
    """

    def __init__(self, common: str) -> None:
        self._common = common  # the repository's common git folder; "" without a repository
        self.commits = frozenset[str]()
        self._after: frozenset[str] | None = None  # tips when the last call ended

    def begin(self) -> None:
        """Add the tips that appeared since the last round of processes or, before the first, since the last session."""
        if not self._common:
            return
        now = traces.tips(self._common)
        if self._after is not None:
            self.commits |= now - self._after
            return
        known, after = self._recorded()
        if known is None:
            self.commits = now
        else:  # if a session was cut off, nobody knows who made the new ones
            self.commits = (known & now) | (now - after if after is not None else frozenset())
        self._record(None)

    def end(self) -> None:
        if self._common:
            self._after = traces.tips(self._common)

    def close(self) -> None:
        if self._after is not None:
            self._record(self._after)

    def _path(self) -> str:
        return os.path.join(dirs.make_state("commits"), key_of(self._common))

    def _recorded(self) -> tuple[frozenset[str] | None, frozenset[str] | None]:
        """Return the known commits and the tips at the end of the last session; None for each that was not recorded."""
        try:
            record = parse_object(files.read_ours(self._path()))
            after = record["after"]
            return frozenset(map(str, record["known"])), None if after is None else frozenset(map(str, after))
        except (OSError, ValueError, KeyError, TypeError):
            return None, None

    def _record(self, after: frozenset[str] | None) -> None:
        tips = None if after is None else sorted(after)
        record = {"folder": self._common, "known": sorted(self.commits), "after": tips}
        with suppress(OSError):
            files.replace(self._path(), json.dumps(record).encode(), 0o600, synced=False)
