"""Carries messages from other terminals to a loop: notes for the next prompt (`rooda say`), and limits (`rooda set`).

Each is a signed file in `messages/` of the run's folder. A note is given to the agent in one iteration, and again if
that iteration is repeated after a crash; a file next to the note has the number of the iteration.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from rooda.base import clock, dirs, files, json, signing
from rooda.base.json import Json
from rooda.run import folder as run_folder
from rooda.run.event_records import Emit, LimitsChanged, NotesGiven, Problem
from rooda.run.events import encoded
from rooda.run.folder import RunFolder
from rooda.run.records import Owner
from rooda.run.setup import Budget

FOLDER = "messages"
NOTE, LIMITS = "note", "limits"
ENDING, GIVEN = ".json", ".given"
NEVER = -1  # in place of an iteration: the note is never given, since its run was started over
LONGEST = 20_000  # characters of a note


class Message(NamedTuple):
    """A message that this user signed."""

    path: str
    loop: str
    kind: str  # note | limits
    text: str = ""
    limits: Mapping[str, float] = {}  # new values, keyed by `iterations` or a field of Budget


def leave(
    workspace: str, run: str, loop: str, kind: str, text: str = "", limits: Mapping[str, float] | None = None
) -> None:
    """Write a message for a session. Raises OSError or UsageProblem if its folder can't be written."""
    message = {"loop": loop, "kind": kind, "text": text, "limits": limits or {}, "at": clock.rfc3339(clock.now())}
    folder = os.path.join(run_folder.folder_of(workspace, run), FOLDER)
    dirs.make_home(os.path.join(workspace, ".rooda"), "runs", run, FOLDER)
    data = signing.signed(_purpose(folder), encoded(message).encode("utf-8", "replace")) + b"\n"
    while True:
        number = max((int(name[:4]) for name in files.list_folder(folder) if name[:4].isdecimal()), default=0) + 1
        try:
            return files.create_whole(os.path.join(folder, f"{number:04d}{ENDING}"), data, 0o600)
        except FileExistsError:  # another command has just used this name
            continue


def limits_in(folder: str) -> dict[str, float]:
    """Return the latest value of each limit that the user has set for the session that has this folder."""
    return _merged(_messages(folder, lambda _: None))


def has_note(folder: str) -> bool:
    """True if this session's folder has a note that has not been added to a prompt yet."""
    return any(each.kind == NOTE and _given(each) is None for each in _messages(folder, lambda _: None))


class Inbox:
    """The messages to one session, and the notes that the run's earlier sessions did not use."""

    def __init__(self, folder: RunFolder, workspace: str, owner: Owner, emit: Emit) -> None:
        self._own_folder = run_folder.folder_of(workspace, folder.run)  # even if the run uses a temporary folder
        self._loop, self._emit = owner.kind.name, emit
        self._ignored: set[str] = set()
        self._applied = 0
        self._last: dict[str, list[Message]] = {}  # the messages that were read last, keyed by folder
        self._given: list[str] = []  # notes of the current prompt
        earlier = [each for each in run_folder.all_of(workspace, owner.name) if os.path.basename(each) != folder.run]
        self._earlier = [each for each in earlier if os.path.isdir(os.path.join(each, FOLDER))]
        if not owner.resumed:
            for note in self._notes(self._earlier, NEVER):
                _mark(note, NEVER)
            self._earlier = []

    def notes(self, iteration: int) -> list[str]:
        """Return the notes for the prompt of an iteration, and mark them as given in this iteration only."""
        found = [*self._notes([*self._earlier, self._own_folder], iteration)] if self._has_any() else []
        for note in found:
            _mark(note, iteration)
        self._given = [note.path for note in found]
        if found:
            self._emit(NotesGiven(notes=[note.text for note in found]))
        return [note.text for note in found]

    def give_back(self) -> None:
        """Mark the notes of the current prompt as not given, since the agent was cut off. The next prompt has them."""
        for path in self._given:
            files.remove(path.removesuffix(ENDING) + GIVEN)

    def new_limits(self, report: bool = True) -> dict[str, float]:
        """Return the limits that the user has set during this session; {} if none."""
        found = [each for each in self._own() if each.kind == LIMITS]
        if report and len(found) > self._applied:
            self._emit(LimitsChanged(**_merged(found[self._applied :])))
            self._applied = len(found)
        return _merged(found)

    def with_limits(self, budget: Budget) -> Budget:
        """Return `budget` with its limits replaced by those that the user has set."""
        found = self.new_limits()
        return Budget(*(type(old)(found.get(key, old)) for key, old in budget._asdict().items()))

    def _has_any(self) -> bool:
        return bool(self._earlier) or bool(self._own())

    def _own(self) -> list[Message]:
        return self._read(self._own_folder)

    def _notes(self, folders: Sequence[str], iteration: int) -> Iterator[Message]:
        for folder in folders:
            for note in self._read(folder):
                if note.kind == NOTE and note.loop == self._loop and _given(note) in (None, iteration):
                    yield note

    def _read(self, folder: str) -> list[Message]:
        """Return a session's messages. If the disk fails, return those read last, to keep the user's limits."""
        try:
            self._last[folder] = _messages(folder, self._refuse)
        except OSError:
            pass
        return self._last.get(folder, [])

    def _refuse(self, path: str) -> None:
        if path not in self._ignored:
            self._ignored.add(path)
            self._emit(Problem(text=f"{path} is not signed by you; ignoring it"))


def _messages(folder: str, refuse: Callable[[str], None]) -> list[Message]:
    """Return the signed messages in a session's folder, oldest first.

    Call `refuse` with the path of each file that is not a valid signed message.
    """
    place, found = os.path.join(folder, FOLDER), list[Message]()
    if not os.access(place, os.F_OK):  # nearly always, and cheaper than a listing that fails
        return found
    for name in sorted(files.list_folder(place)):
        path = os.path.join(place, name)
        if not name.endswith(ENDING):
            continue
        try:
            data = files.read_ours(path)
            if not signing.is_signed(_purpose(place), data):
                refuse(path)
                continue
            found.append(_message(path, json.parse_object(data)))
        except (OSError, ValueError, KeyError, TypeError):
            refuse(path)
    return found


def _message(path: str, said: Json) -> Message:
    limits = {str(key): float(value) for key, value in said["limits"].items()}
    return Message(path, str(said["loop"]), str(said["kind"]), str(said["text"]), limits)


def _merged(messages: Sequence[Message]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for each in messages:
        found |= {key: int(value) if key in ("iterations", "tokens") else value for key, value in each.limits.items()}
    return found


def _given(note: Message) -> int | None:
    try:
        return int(files.read_ours(note.path.removesuffix(ENDING) + GIVEN))
    except (OSError, ValueError):
        return None


def _mark(note: Message, iteration: int) -> None:
    try:
        files.replace_unsynced(note.path.removesuffix(ENDING) + GIVEN, f"{iteration}\n".encode(), 0o600)
    except OSError:
        pass  # then the next prompt has the note too


def _purpose(place: str) -> str:
    """Return the signing purpose of a session's messages, so that a signature is valid for this session only."""
    return f"message {os.path.basename(os.path.dirname(place))}"
