"""Manages the folder of a run, `.rooda/runs/<run-id>/`, or a temporary folder if that can't be written."""

import json
import os
import re
import sys
from collections.abc import Mapping
from typing import Any

from rooda.base import clock, dirs, files, secrets, signing
from rooda.base.json import Json
from rooda.base.secrets import MARK, to_references
from rooda.git import traces
from rooda.run.records import Owner

RUNS = os.path.join(".rooda", "runs")
SPARE = ".next"  # beginning of the names of empty files that were created in advance
MOST_SPARES = 8
TEMPORARY = "rooda-"  # prefix of the names of temporary folders
MEMORY = "/dev/shm"  # in memory, so it has space even if the disk is full


class RunFolder:
    """Writes the files of a run. If that fails, it switches to a temporary folder."""

    def __init__(self, workspace: str, run: str) -> None:
        self.run = run
        self.problem = ""  # a problem that is not reported yet; see `take_problem`
        self._home = os.path.join(workspace, ".rooda")
        self._path = os.path.join(self._home, "runs", run)
        self._spares: list[tuple[str, int]] = []  # path and descriptor of each file that was created in advance
        self._after, self._taken = "", 0  # the last process for `make_spares`, and how many files were needed since
        self._needed: dict[str, int] = {}  # how many were needed after each kind of process, the last time

    def ready(self) -> str:
        """Return the path of the folder; create it if it is missing."""
        if not files.is_folder(self._path):
            try:
                dirs.make_home(self._home, "runs", self.run)
            except OSError as problem:
                self._move(problem)
        return self._path

    def write(self, name: str, data: bytes) -> str:
        """Write a file of the run and return its path."""
        path = os.path.join(self.ready(), name)
        try:
            if not self._written_to_spare(path, data):
                files.write(path, data, 0o600)
        except OSError as problem:
            self._move(problem)
            path = os.path.join(self._path, name)
            files.write(path, data, 0o600)
        return path

    def output(self, name: str) -> tuple[str, int]:
        """Create an empty output file; return its path and its descriptor, which is -1 if no disk has space."""
        path = os.path.join(self.ready(), name)
        try:
            return path, files.require_space(self._renamed(path) or files.create_output(path))
        except OSError as problem:
            self._move(problem)
        path = os.path.join(self._path, name)
        try:
            return path, files.create_output(path)
        except OSError:
            return path, -1

    def make_spares(self, after: str) -> None:
        """While a process of the kind `after` works, create as many spare files as the last such process needed.

        Between two processes this could take longer than all other work: ext4 skips the inodes of recently
        deleted files one by one.
        """
        self._needed[self._after], self._after, self._taken = self._taken, after, 0
        wanted = min(self._needed.get(after, 1), MOST_SPARES)
        try:
            for number in range(len(self._spares), wanted):
                path = os.path.join(self._path, f"{SPARE}-{number}")
                self._spares.append((path, files.create_output(path)))
        except OSError:
            pass  # `output` will fail the same way and report it

    def take_back(self, path: str) -> None:
        """Keep an output file as a spare file if it is still empty."""
        spare = os.path.join(self._path, f"{SPARE}-{len(self._spares)}")
        try:
            files.rename(path, spare, synced=False)
            self._spares.append((spare, files.open_output(spare)))
        except OSError:
            pass  # then there is one spare file less
        self._taken -= 1

    def _renamed(self, path: str) -> int:
        """Rename a spare file to `path` and return its descriptor; 0 if there is no spare file."""
        self._taken += 1
        while self._spares:
            spare, descriptor = self._spares.pop()
            try:
                facts = os.fstat(descriptor)
                if facts.st_size == 0 and os.path.samestat(facts, os.lstat(spare)):
                    files.rename(spare, path, synced=False)
                    return descriptor
            except OSError:
                pass
            os.close(descriptor)
        return 0

    def _written_to_spare(self, path: str, data: bytes) -> bool:
        """Rename a spare file to `path`, and write the data to it; return False if there is no spare file."""
        descriptor = self._renamed(path)
        if not descriptor:
            return False
        try:
            files.write_all(descriptor, data)
        finally:
            os.close(descriptor)
        return True

    def close(self) -> None:
        while self._spares:
            spare, descriptor = self._spares.pop()
            os.close(descriptor)
            try:
                files.remove(spare)
            except OSError:
                pass

    def take_problem(self) -> str:
        problem, self.problem = self.problem, ""
        return problem

    def _move(self, problem: OSError) -> None:
        """Switch to the first temporary folder that has space."""
        import tempfile

        self.close()
        refused = f"{self._path} can't be written ({problem.strerror})"
        self.problem = f"{refused}, nor can any temporary folder"
        for parent in (None, MEMORY):
            try:
                path = tempfile.mkdtemp(prefix=TEMPORARY, dir=parent)
                if files.has_space(path):
                    self._path, self.problem = path, f"{refused}; writing files of this run to {path}"
                    return
            except OSError:
                continue


def folder_of(workspace: str, run: str) -> str:
    return os.path.join(workspace, RUNS, run)


def transcript_in(folder: str, named: object) -> str:
    """Return the path of a file named in an event: in the run's own folder, whatever folder the event names.

    The only exception is a temporary folder of this user, which a run uses if the disk is full.
    """
    path = str(named)
    return path if _is_temporary(os.path.dirname(path)) else os.path.join(folder, os.path.basename(path))


def _is_temporary(folder: str) -> bool:
    """True for a temporary folder that `RunFolder` may have created: only this user can enter it."""
    import tempfile

    if not os.path.basename(folder).startswith(TEMPORARY):
        return False
    parents = (tempfile.gettempdir(), MEMORY)
    try:
        facts = os.lstat(folder)
    except (OSError, ValueError):
        return False
    own = facts.st_uid == os.geteuid() and facts.st_mode & 0o77 == 0
    return own and os.path.dirname(folder) in parents and os.path.isdir(folder) and not os.path.islink(folder)


def new_id(workspace: str, name: str) -> str:
    """Return a new run ID from time, loop and PID. It sorts after all existing IDs, even if the clock was set back."""
    newest = max(filter(is_id, _runs(workspace)), default="")
    made = f"{clock.file_stamp(clock.now())}-{name}-{os.getpid()}"
    if made <= newest and (moment := clock.parse_time(newest[:16])):
        made = f"{clock.file_stamp(moment + 1)}-{name}-{os.getpid()}"
    return made


def is_id(name: str) -> bool:
    """True if the name has the form of a run ID."""
    when, _, rest = name.partition("-")
    procedure, _, pid = rest.rpartition("-")
    return len(when) == 16 and bool(procedure) and pid.isdecimal() and name.isascii() and name.isprintable()


def loop_of(run: str) -> str:
    """Return the name of the loop in a run ID."""
    return run[17:].rpartition("-")[0]


def latest(workspace: str, name: str | None) -> str | None:
    """Return the newest run folder with a log; with `name`, only of this loop or run. None if there is none."""
    found = (path for path in reversed(all_of(workspace, name)) if os.path.exists(os.path.join(path, "events.jsonl")))
    return next(found, None)


def all_of(workspace: str, name: str | None) -> list[str]:
    """Return all run folders, oldest first; with `name`, only those of this loop or run."""
    wanted = [run for run in _runs(workspace) if name in (None, loop_of(run), run)]
    return [os.path.join(workspace, RUNS, run) for run in sorted(wanted)]


def _runs(workspace: str) -> list[str]:
    files.refuse_links(workspace, os.path.dirname(RUNS), RUNS)
    return files.list_folder(os.path.join(workspace, RUNS))


# Orders from another terminal, saved in the run's folder: `rooda stop` and `rooda cancel` with their reason,
# `rooda pause`.
ORDER_FILE = "order"
_UNREADABLE = r"[\x00-\x08\x0e-\x1f\x7f-\x9f\ud800-\udfff]"
STOP, PAUSE, CANCEL = "stop", "pause", "cancel"


def leave_order(folder: str, word: str, reason: str = "") -> bool:
    """Write and sign an order; the caller then sends its signal. Return False if the folder can't be written."""
    said = secrets.hide(" ".join(readable(reason).split()), secrets.forms(os.environ, (folder,)))
    order = {"order": word, "reason": said, "at": clock.rfc3339(clock.now())}
    try:
        runs, name = os.path.split(folder)
        dirs.make_home(os.path.dirname(runs), os.path.basename(runs), name)  # an agent may have deleted it
        _write_order(folder, order)
    except OSError:
        return False
    return True


def readable(reason: str) -> str:
    """Replace undecodable bytes and terminal controls with `?`."""
    return re.sub(_UNREADABLE, "?", reason)


def take_back_order(folder: str) -> None:
    try:
        files.remove(os.path.join(folder, ORDER_FILE))
    except OSError:
        pass


def order_of(folder: str) -> Json:
    """Return the order signed by this user, with the strings `order`, `reason` and `at`; {} if there is none."""
    order, is_ours = _order(folder)
    return order if is_ours else {}


def cancelled(folder: str) -> str | None:
    """Return the reason with which the user cancelled the run, "" without one; None if the run isn't cancelled."""
    order = order_of(folder)
    return " ".join(order["reason"].split()) if order.get("order") == CANCEL else None


def has_foreign_order(folder: str) -> bool:
    """True if there is an order that this user did not sign; rooda ignores it."""
    order, is_ours = _order(folder)
    return bool(order) and not is_ours


def sign_order(folder: str) -> Json:
    """Sign an order that this user has not signed yet, and return it; {} if there is none."""
    order, is_ours = _order(folder)
    if not order or is_ours:
        return {}
    order = {key: value for key, value in order.items() if key != "mac"}
    _write_order(folder, order)
    return order


def _write_order(folder: str, order: Json) -> None:
    data = signing.signed(_what(ORDER_FILE, folder), json.dumps(order, ensure_ascii=False).encode())
    files.replace(os.path.join(folder, ORDER_FILE), data + b"\n", 0o600)


def _order(folder: str) -> tuple[Json, bool]:
    try:
        data = files.read_ours(os.path.join(folder, ORDER_FILE))
        found = json.loads(data)
    except (OSError, ValueError, RecursionError):
        return {}, False
    whole = isinstance(found, dict) and all(isinstance(found.get(key), str) for key in ("order", "reason", "at"))
    return (found, signing.is_signed(_what(ORDER_FILE, folder), data)) if whole else ({}, False)


def _what(name: str, folder: str) -> str:
    """Return the purpose for which a file is signed: its name and the run ID."""
    return f"{name} {os.path.basename(folder)}"


# The origin of a session: the command line, the working directory, and the run inside which it was started.
ORIGIN_FILE = "start"


def note_origin(folder: RunFolder, environ: Mapping[str, str], workspace: str, owner: Owner) -> None:
    """Write and sign how a session was started. Secrets are replaced with references to variables."""
    every = (sys.argv[1:], owner.remembered, (owner.task,))
    words, before, (work,) = ([to_references(word, environ, workspace) for word in each] for each in every)
    facts: Json = {"words": words, "kept": before, "folder": os.getcwd(), "inside": os.environ.get("ROODA_RUN", "")}
    facts |= {"task": work, "loop": owner.kind.name, "limits": owner.setup.budget._asdict(), **place_of(workspace)}
    folder.write(ORIGIN_FILE, signing.signed(f"{ORIGIN_FILE} {folder.run}", json.dumps(facts).encode()) + b"\n")


def place_of(workspace: str) -> dict[str, str]:
    """Return the workspace and the commit of HEAD. Both are signed, so that a signature is not valid elsewhere."""
    return {"workspace": os.path.realpath(workspace), "commit": traces.head_commit(workspace)}


UNSIGNED = "not signed by you"


def elsewhere(said: Mapping[str, Any], workspace: str) -> str:
    """Return why a valid signature does not apply to this folder or its repository; "" if it does."""
    here, commit = place_of(workspace), said.get("commit")
    if said.get("workspace") != here["workspace"]:
        return f"signed by you for {said.get('workspace')}"
    if not commit or commit == here["commit"]:
        return ""
    from rooda.git.repository import has_commit

    return "" if has_commit(workspace, str(commit)) else "signed by you for another repository in this folder"


def origin_of(folder: str) -> Json:
    """Read how a session was started; {} if the file is missing or invalid.

    `signed` is true if this user signed it, for `workspace` and `commit`.
    """
    try:
        data = files.read_ours(os.path.join(folder, ORIGIN_FILE))
        found = json.loads(data)
        return {
            "words": [str(word) for word in found["words"]],
            "kept": [str(word) for word in found.get("kept", ())],
            "folder": str(found["folder"]).replace(MARK, ""),
            "inside": str(found["inside"]),
            "task": str(found.get("task", "")),
            "loop": str(found.get("loop", "")),
            "limits": found.get("limits"),
            "workspace": str(found.get("workspace", "")),
            "commit": str(found.get("commit", "")),
            "signed": signing.is_signed(_what(ORIGIN_FILE, folder), data),
        }
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return {}


def sign_origin(folder: str, origin: Json) -> None:
    """Sign the file with a session's origin, after the user has confirmed its content."""
    data = signing.signed(_what(ORIGIN_FILE, folder), json.dumps({**origin, "signed": True}).encode())
    files.replace(os.path.join(folder, ORIGIN_FILE), data + b"\n")
