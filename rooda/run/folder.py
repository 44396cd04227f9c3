"""The private notes of one run, `.rooda/runs/<run-id>/`; in a temporary folder if that can't be written."""

import json
import os
import re
import sys
from collections.abc import Mapping, Sequence

from rooda.base import clock, dirs, files, secrets
from rooda.base.json import Json
from rooda.base.secrets import MARK, to_references

RUNS = os.path.join(".rooda", "runs")
SPARE = ".next"
MEMORY = "/dev/shm"  # where a machine whose one disk is full still has room


class RunFolder:
    """Knows where files of this run go, and moves elsewhere when the disk refuses."""

    def __init__(self, workspace: str, run: str) -> None:
        self.run = run
        self.problem = ""  # said once per iteration at most; taken by `take_problem`
        self._home = os.path.join(workspace, ".rooda")
        self._path = os.path.join(self._home, "runs", run)
        self._spare = -1  # the next output, made ahead and open

    def ready(self) -> str:
        """The folder, made if absent."""
        if not os.path.isdir(self._path):
            try:
                dirs.make_home(self._home)
                files.make_folder(self._path)
            except OSError as problem:
                self._move(problem)
        return self._path

    def write(self, name: str, data: bytes) -> str:
        """Write a file of the run and give its path."""
        path = os.path.join(self.ready(), name)
        try:
            files.write(path, data)
        except OSError as problem:
            self._move(problem)
            path = os.path.join(self._path, name)
            files.write(path, data)
        return path

    def output(self, name: str) -> tuple[str, int]:
        """An empty file for a process to write to: its path, and it open for that. -1: no disk took it just now."""
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

    def make_spare(self) -> None:
        """Make the next output while a process works. Between two calls it can cost more than all the rest.

        ext4 passes by the inodes of files that were deleted in the last minutes, one by one.
        """
        if self._spare < 0:
            try:
                self._spare = files.create_output(os.path.join(self._path, SPARE))
            except OSError:
                pass  # who needs it will see

    def _renamed(self, path: str) -> int:
        """The spare file under its new name; 0 if there is none, or somebody took it away."""
        descriptor, self._spare = self._spare, -1
        if descriptor < 0:
            return 0
        try:
            spare = os.path.join(self._path, SPARE)
            facts = os.fstat(descriptor)
            if facts.st_size == 0 and os.path.samestat(facts, os.lstat(spare)):
                files.rename(spare, path, synced=False)
                return descriptor
        except OSError:
            pass
        os.close(descriptor)
        return 0

    def close(self) -> None:
        if self._spare >= 0:
            os.close(self._spare)
            self._spare = -1
            try:
                files.remove(os.path.join(self._path, SPARE))
            except OSError:
                pass

    def take_problem(self) -> str:
        problem, self.problem = self.problem, ""
        return problem

    def _move(self, problem: OSError) -> None:
        """To a place that has room, if there is one."""
        import tempfile

        self.close()
        refused = f"{self._path} can't be written ({problem.strerror})"
        self.problem = f"{refused}, nor can any other place"
        for parent in (None, MEMORY):
            try:
                path = tempfile.mkdtemp(prefix="rooda-", dir=parent)
                if files.has_space(path):
                    self._path, self.problem = path, f"{refused}; notes of this run go to {path}"
                    return
            except OSError:
                continue


def folder_of(workspace: str, run: str) -> str:
    """Path of the run's folder."""
    return os.path.join(workspace, RUNS, run)


def new_id(workspace: str, name: str) -> str:
    """A run's name: when, what, which process. It sorts behind all others, also if the clock stands or went back."""
    newest = max(filter(is_id, _runs(workspace)), default="")
    made = f"{clock.file_stamp(clock.now())}-{name}-{os.getpid()}"
    if made <= newest and (moment := clock.parse_time(newest[:16])):
        made = f"{clock.file_stamp(moment + 1)}-{name}-{os.getpid()}"
    return made


def is_id(name: str) -> bool:
    """Does it look like one that we made?"""
    when, _, rest = name.partition("-")
    procedure, _, pid = rest.rpartition("-")
    return len(when) == 16 and bool(procedure) and pid.isdecimal() and name.isascii() and name.isprintable()


def loop_of(run: str) -> str:
    """The procedure, or the loop of another kind, that the run is one of."""
    return run[17:].rpartition("-")[0]


def latest(workspace: str, name: str | None) -> str | None:
    """The newest run folder, of a procedure if one is named."""
    found = (path for path in reversed(all_of(workspace, name)) if os.path.exists(os.path.join(path, "events.jsonl")))
    return next(found, None)


def all_of(workspace: str, name: str | None) -> list[str]:
    """Every run folder, oldest first: of a loop if one is named, that one if a run is."""
    wanted = [run for run in _runs(workspace) if name in (None, loop_of(run), run)]
    return [os.path.join(workspace, RUNS, run) for run in sorted(wanted)]


def _runs(workspace: str) -> list[str]:
    return files.list_folder(os.path.join(workspace, RUNS))


# What a person has ordered of a run from another terminal, in the run's folder: that it stop, and why; that it pause.
ORDER_FILE = "order"
_UNREADABLE = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
STOP, PAUSE = "stop", "pause"


def leave_order(folder: str, word: str, reason: str = "") -> bool:
    """Before the signal that carries it out. False where it can't be written: then it is not known why."""
    said = secrets.hide(" ".join(readable(reason).split()), secrets.forms(os.environ, (folder,)))
    order = {"order": word, "reason": said, "at": clock.rfc3339(clock.now())}
    try:
        files.make_folder(folder)  # an agent may have cleaned it away
        files.replace(os.path.join(folder, ORDER_FILE), json.dumps(order, ensure_ascii=False).encode() + b"\n")
    except OSError:
        return False
    return True


def readable(reason: str) -> str:
    """Bytes that are no text, and controls of a terminal, become `?`."""
    return _UNREADABLE.sub("?", reason)


def take_back_order(folder: str) -> None:
    try:
        files.remove(os.path.join(folder, ORDER_FILE))
    except OSError:
        pass


def order_of(folder: str) -> Json:
    """The order that stands; {} without one. `order`, `reason` and `at` are texts."""
    try:
        found = json.loads(files.read_ours(os.path.join(folder, ORDER_FILE)))
    except (OSError, ValueError, RecursionError):
        return {}
    whole = isinstance(found, dict) and all(isinstance(found.get(key), str) for key in ("order", "reason", "at"))
    return found if whole else {}


# How a session was started, in the run's folder: the words that were typed, where, and inside which other run.
ORIGIN_FILE = "start"


def note_origin(folder: RunFolder, environ: Mapping[str, str], workspace: str, kept: Sequence[str], task: str) -> None:
    """In the place of keys the names of their variables. `kept`: what an earlier start had typed, and still holds."""
    every = (sys.argv[1:], kept, (task,))
    words, before, (work,) = ([to_references(word, environ, workspace) for word in each] for each in every)
    facts = {"words": words, "kept": before, "folder": os.getcwd(), "inside": os.environ.get("ROODA_RUN", "")}
    facts["task"] = work
    folder.write(ORIGIN_FILE, json.dumps(facts).encode() + b"\n")


def origin_of(folder: str) -> Json:
    """{} where it is not known."""
    try:
        found = json.loads(files.read_ours(os.path.join(folder, ORIGIN_FILE)))
        return {
            "words": [str(word) for word in found["words"]],
            "kept": [str(word) for word in found.get("kept", ())],
            "folder": str(found["folder"]).replace(MARK, ""),
            "inside": str(found["inside"]),
            "task": str(found.get("task", "")),
        }
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return {}
