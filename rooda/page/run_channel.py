"""Follows one run for the browsers that show it: provides pieces of HTML, and the words of the working agent."""

from urllib.parse import urlencode

from rooda.base import clock, files
from rooda.base.json import Json
from rooda.base.text import plain
from rooda.page import actions, run_facts, run_view
from rooda.page.board import Board, running_runs
from rooda.page.html import Html, tag
from rooda.run import folder
from rooda.run.past_runs import PastRun
from rooda.settings.where import Where
from rooda.views.agent_output import END, START, Tail

WORDS = 65_536  # number of characters of the agent's words that are kept
SHARE = 10  # at most this part of the time is spent on reading a log again


class Words:
    """The latest words of the working agent. A browser that has seen some of them gets only the rest."""

    def __init__(self) -> None:
        self.call = ""  # transcript of the call; "" before the first
        self.count = 0  # characters so far
        self.text = ""
        self._tail = Tail(self._write)

    def follow(self, call: Json | None, place: str, hidden: tuple[str, ...]) -> None:
        """Read what the agent has written since the last read. `call`: the agent call in progress, if any."""
        name = f"{call['session']}/{call['transcript']}" if call else ""
        if call and name != self.call:
            path = folder.transcript_in(folder.folder_of(place, call["session"]), call["transcript"])
            self.call, self.count, self.text, self._tail = name, 0, "", Tail(self._write, WORDS)
            self._tail.hidden = hidden
            self._tail.update({"event": "agent.started", "transcript": path, "output": call["output"] or "text"})
        if call:
            self._tail.read()
        elif self.call:
            self._tail.update({"event": "agent.ended"})

    def _write(self, text: str) -> None:
        shown = plain(text.removeprefix(START).removesuffix(END))
        self.count += len(shown)
        self.text = (self.text + shown)[-WORDS:]

    def since(self, call: str, count: int) -> Json | None:
        """Return the words for a browser that has seen `count` characters of `call`; None if it has seen all."""
        if (call, count) == (self.call, self.count):
            return None
        lacks = self.count - count
        if call == self.call and 0 <= lacks <= len(self.text):
            return {"call": self.call, "count": self.count, "text": self.text[len(self.text) - lacks :]}
        return {"call": self.call, "count": self.count, "text": self.text, "whole": True}


class RunChannel:
    """The data of one run that a browser shows."""

    def __init__(self, here: Where, run: str) -> None:
        self.here, self.run = here, run
        self.words = Words()
        self.facts: Json = {}
        self._seen: object = None
        self._made_of: object = None
        self._pieces: dict[str, Html] = {}
        self._next = 0.0  # time before which the log is not read again

    def look(self, board: Board) -> dict[str, Html] | None:
        """Return the pieces of the run; None if there is no such run."""
        found = board.run(self.here, self.run)
        if found is None:
            return None
        running = found.last.run in running_runs(self.here.workspace)
        hidden = board.keys(self.here)
        self._read(found, running, hidden)
        calls = [call for each in self.facts["iterations"] for call in each["calls"]]
        working = running and calls and not calls[-1]["outcome"]
        self.words.follow(calls[-1] if working else None, self.here.workspace, hidden)
        entry = board.entry_of(self.here.workspace, found.loop, found.name)
        if entry and entry.row["run"] == found.last.run:
            return self._rendered(actions.bar(entry, "answer"), _form(entry.id) if entry.question else "")
        return self._rendered("", "")

    def _rendered(self, controls: str, asking: str) -> dict[str, Html]:
        """Return the pieces; make them again only if something has changed."""
        made_of = (id(self.facts), controls, asking)
        if made_of != self._made_of:
            self._made_of, self._pieces = made_of, run_view.pieces(self.facts, show, controls, asking)
        return self._pieces

    def _read(self, run: PastRun, running: bool, hidden: tuple[str, ...]) -> None:
        """Read the log again if it has grown, but not too often."""
        seen = (running, *((session.run, files.size(session.path)) for session in run.sessions))
        begun = clock.monotonic()
        if seen == self._seen or (begun < self._next and self.facts and running):
            return
        self.facts = run_facts.facts(run, self.here, running, hidden)
        self._seen, self._next = seen, clock.monotonic() + SHARE * (clock.monotonic() - begun)


def show(title: str, ref: Json) -> Html:
    """Return an element that loads its content when the user opens it."""
    source = f"file?{urlencode({key: value for key, value in ref.items() if value not in (None, '')})}"
    place = tag("pre", "", tabindex="0", data_keep=True, aria_live="off")
    return tag("details", tag("summary", title), place, data_src=source, data_what=ref["what"])


def _form(id_: str) -> Html:
    """Return the form in which the user answers the agent's question."""
    field = tag("textarea", name="text", rows="3", required=True, aria_label="Your answer", data_keep=True)
    send = tag("button", "Answer", class_="primary")
    return tag("form", field, send, data_do="answer", data_id=id_)
