"""Runs a task's loop, holds it after each iteration until that iteration is published, and passes on orders."""

import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from rooda.agents import command
from rooda.base import files, json
from rooda.base.json import Json
from rooda.fleet import preparation
from rooda.fleet.link import Server
from rooda.fleet.port import NOW, Desk, Lost
from rooda.loops import registry
from rooda.run import folder as run_folder
from rooda.run import messages
from rooda.tasks import editing
from rooda.tasks import orders as task_orders
from rooda.tasks.editing import Edit
from rooda.tasks.model import Limits

LOOK = 5.0  # longest sleep, in seconds, of the thread that reads orders
NOTES = ("say", "answer", "set")  # orders for the agent
TURN_ENDS = ("pause", "hold", "hand-back")  # orders that the loop obeys at the end of its turn


class Note(NamedTuple):
    """An order for the agent: a note or an answer from the user, or a change to the task."""

    id: int = 0
    text: str = ""
    fields: Any = None  # the task's fields that an order to change it sets


class HeldLoop:
    """A loop's process, with the socket for its questions and the thread that takes orders."""

    def __init__(self, desk: Desk, publish: Callable[[Json], None], kind: str) -> None:
        """`kind`: the loop's kind. A clone that was just restored has no lock file from which to read it."""
        self._desk, self._publish, self._kind = desk, publish, kind
        self.give_up = threading.Event()  # set once a push that does not succeed must no longer be retried
        self.handed_back = ""  # why the loop ends so that another worker continues it
        self.is_ended = False  # in the middle of its turn, not after it
        self.has_closed_turn = False  # a turn has ended but is not published
        self.failure: Exception | None = None  # why the loop was ended, other than by an order
        self.printed = 0  # size of the output before this start
        self.workspace = ""
        self._given = self._before = 0  # newest notes: given to the loop, and given before its current turn began
        self._exited = threading.Event()

    def run(self, argv: Sequence[str], env: Mapping[str, str], output: str) -> int:
        """Run the loop to its end; return its exit code, -N if signal N killed it."""
        self.printed = files.size(output)
        server = Server()
        try:
            pid = preparation.start(argv, self.workspace, {**env, command.IN_LEG: server.path}, output)
            orders = threading.Thread(target=self._follow_orders, daemon=True)
            orders.start()
            found: list[int] = []

            def wait() -> None:
                found.append(preparation.wait(pid))
                server.stop()

            waiting = threading.Thread(target=wait, daemon=True)
            waiting.start()
            server.serve(self._answer)
            waiting.join()
            self._exited.set()
            orders.join()
            return found[0]
        finally:
            server.close()

    def give(self, notes: Iterable[Note]) -> None:
        """Queue the user's notes, answers and limits for the loop's next turn."""
        newest = run_folder.latest(self.workspace, None)
        if not newest:
            return
        run = os.path.basename(newest)
        for note in notes:
            change = _change(note.fields or {})
            text = note.text or editing.note_of(change)
            if limits := editing.limits_of(change):
                messages.leave(self.workspace, run, self._kind, messages.LIMITS, limits=limits)
            if text and registry.KINDS[self._kind].hears_notes:
                messages.leave(self.workspace, run, self._kind, messages.NOTE, text[: messages.LONGEST])
            self._given = max(self._given, note.id)

    def heard(self) -> int:
        """Return the id of the newest note in the prompt of the turn that just ended. Later notes wait for the next."""
        heard, self._before = self._before, self._given
        return heard

    # Questions of the loop

    def _answer(self, question: Json) -> Json:
        if "money" in question:
            return self._desk.money(question["money"])
        self.has_closed_turn = True
        return self._hold() if "turn" in question else {}

    def _hold(self) -> Json:
        """Publish the turn while the loop waits; return the answer that lets the loop continue or end."""
        try:
            self._publish({})
        except Exception as problem:  # the leg raises it once the loop has ended
            self.failure = problem
            return {"end": "this task continues elsewhere, or needs the user"}
        finally:
            self.has_closed_turn = False
        return {"end": self.handed_back} if self.handed_back else {"go": True}

    # Orders

    def _follow_orders(self) -> None:
        try:
            while not self._exited.is_set():
                for order in self._desk.orders(LOOK):
                    self._follow(order)
        except Lost as lost:
            self.failure = lost
            self._end("")

    def _follow(self, order: Json) -> None:
        word, why = order.get("order"), str(order.get("why", ""))
        if word in NOTES:
            self.give([json.decode(Note, order)])
        elif word in TURN_ENDS:
            self.handed_back = why or word
            if order.get("at") == NOW:
                self.is_ended = True
                self._end(why)
        else:
            self._end(why)

    def _end(self, why: str) -> None:
        """End the loop as Ctrl+C does, and stop retrying a push."""
        self.give_up.set()
        task_orders.end_loops(self.workspace, why)


def _change(fields: Json) -> Edit:
    """Convert the fields of an order that changes a task into an Edit for the task's loop."""
    gates = tuple(map(str, fields["gates"])) if "gates" in fields else None
    return Edit(text=fields.get("text"), gates=gates, limits=Limits(**fields.get("limits", {})))
