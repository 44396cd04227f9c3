"""Collects the facts of a run for its summary: iterations, calls, and what changed in the work tree."""

from collections.abc import Iterator
from contextlib import suppress

from rooda.base.json import Json
from rooda.run import history
from rooda.run.event_records import Emit, RunUsed, WorkBegan
from rooda.run.history import SessionLog
from rooda.run.records import OPENING, Owner
from rooda.run.spending import total
from rooda.run.tally import EVENTS, Tally


class Summing:
    """Collects facts from the events of one session and, for a resumed run, from the logs of the earlier sessions."""

    def __init__(self, workspace: str, owner: Owner, run: str, emit: Emit) -> None:
        self._workspace, self._owner, self._run, self._emit = workspace, owner, run, emit
        self._tally = Tally(owner.kind.turn_ends, owner.kind.turn_part)
        self._began: Json = {}
        self.events = (*OPENING, *EVENTS, *owner.kind.turn_ends, owner.kind.turn_part)

    def add(self, record: Json) -> None:
        self._tally.add(record)
        if record["event"] in OPENING:
            earlier = self._earlier() if self._owner.resumed else []
            for session in earlier:
                self._add_session(session)
            if earlier:
                used = self._tally.used
                self._emit(RunUsed(calls=used.calls, cost=used.cost, unknown=used.unknown, tokens=used.tokens))
            self._began = next((each.work for each in earlier if each.work), {}) or _beginning(self._workspace)
            if self._began:
                self._emit(WorkBegan(**self._began))

    def facts(self) -> Json:
        """Return the facts of the whole run, including its earlier sessions."""
        changed = {}
        if self._began:
            from rooda.git import work_done

            changed = work_done.since(self._began, self._workspace)
        return {**self._tally.facts, **changed}

    def _earlier(self) -> list[SessionLog]:
        found = history.of_run(self._workspace, self._owner.name, self._owner.kind.name)
        return [session for session in found if session.run != self._run]

    def _add_session(self, session: SessionLog) -> None:
        """Add an earlier session. The usage of a call that a crash cut off is read from the call's transcript."""
        prices = self._owner.setup.agent.prices if self._owner.setup.agent else {}
        self._tally.add_spent(total(session.used(lambda: prices)))
        for record in _records(session):
            try:
                if record["event"] != "agent.ended":
                    self._tally.add(record)
            except (KeyError, TypeError, ValueError, AttributeError):
                continue  # the log was edited
        self._tally.cut()


def _records(session: SessionLog) -> Iterator[Json]:
    """Yield a session's events one by one, since all events of a long run may need too much memory."""
    with suppress(OSError):
        yield from history.records(session.path)


def _beginning(workspace: str) -> Json:
    from rooda.git.traces import head_commit

    if not head_commit(workspace):
        return {}
    from rooda.git import work_done

    return work_done.beginning(workspace)
