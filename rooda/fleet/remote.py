"""Moves the refs of tasks in the state remote. Each push is a compare-and-swap: of two workers, only one succeeds.

If the result of a push is unknown, because the connection broke or the remote hung, rooda asks the remote for the
ref. A leg is one stay of a task on this worker; its turns are the iterations of the task's loop. Turns of several legs
that arrive while a push is running are pushed together in the next one.
"""

import re
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from rooda.base import clock, files, secret_forms
from rooda.errors import RoodaError
from rooda.fleet import chain
from rooda.fleet.chain import Entry
from rooda.fleet.mirror import LONGEST_QUIET, LONGEST_WORDS, Mirror, Unreachable, error_of
from rooda.git import command
from rooda.processes.capture import TIMED_OUT

DONE, REFUSED, REJECTED, UNREACHABLE = "done", "refused", "rejected", "unreachable"
MOST_TRIES = 4  # tries of a push that fails without a reason although the remote answers
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 15.0  # seconds between tries
FIRST_QUESTION, LONGEST_QUESTION = 10.0, 60.0  # seconds without an answer after which a question is given up
FORGES = (".github.com", ".gitlab.com", ".bitbucket.org")  # forges that limit the number of pushes
A_MINUTE, GATHER = 6, 2.0  # after 6 pushes in a minute a turn waits 2 seconds, to be pushed with others
MOST_DELETED = 200  # refs in one push
HEADS = "refs/heads/"
Wait: TypeAlias = Callable[[float], bool]  # sleeps for these seconds; returns True if the caller must give up
# Reasons of a remote that mean only that another push was faster, or that the remote was busy.
_RACE = re.compile(r"lock|failed to update ref|incorrect old value|already exists|atomic|transaction|fetch first|stale")
_PROGRESS = re.compile(r"[A-Z][a-z]+(?: [a-z]+)*: +[0-9]+(?:%|,|$)")  # of the remote: "Resolving deltas: 100% (1/1)"


class Result(NamedTuple):
    """The result of a push.

    `kind` is DONE; REFUSED (the task's ref has moved, usually because another worker claimed the task); REJECTED by the
    forge, with its reason in `words`; or UNREACHABLE (rooda gave up before the remote answered).
    """

    kind: str
    words: str = ""
    tip: str = ""  # of the task's ref, if it is known


class Update(NamedTuple):
    """A new commit for a task's ref, and the branch to deliver, if any. If `old` is empty, the ref is new."""

    number: int
    old: str
    new: str
    objects: tuple[str, ...] = ()  # folders with the commit's objects besides the mirror's
    branch: str = ""
    branch_commit: str = ""
    branch_old: str = ""  # "": no branch, or a branch that an earlier turn of the task delivered


class _Change(NamedTuple):
    ref: str
    old: str
    new: str  # "": delete it


class _Said(NamedTuple):
    """git's result for the changes of one update."""

    done: bool = False
    by_rule: bool = False
    words: str = ""
    hung: bool = False  # the push was ended; the remote may have carried it out


class _Turn:
    """An update that waits for the next grouped push."""

    def __init__(self, change: _Change, objects: Sequence[str]) -> None:
        self.change, self.objects = change, objects
        self.said: _Said | None = None


class Remote:
    """The refs of a repository's tasks at its remote. All legs of a worker that share a mirror share one `Remote`."""

    def __init__(self, mirror: Mirror) -> None:
        self._mirror = mirror
        host = re.match(r"(?:[a-z+]+://)?(?:[^/@]*@)?([^/:]*)", mirror.state)
        self._is_limited = host is not None and f".{host[1].lower()}".endswith(FORGES)
        self._pushed: list[float] = []  # when the last pushes began
        self._quiet = mirror.quiet  # seconds without progress after which a push is ended; longer if the remote is slow
        self._least = self._patience = min(FIRST_QUESTION, mirror.quiet)  # seconds after which a question is given up
        self._changed = threading.Condition()
        self._queue: list[_Turn] = []
        self._is_pushing = False

    # Looking

    def tip(self, number: int) -> str:
        """Return the commit of a task's ref; "" if there is none. Raises Unreachable."""
        ref = self._mirror.ref(number)
        return self._refs(self._mirror.state, ref).get(ref, "")

    def tips(self) -> dict[int, str]:
        """Return the commits of all tasks' refs. Raises Unreachable."""
        prefix = self._mirror.prefix
        found = self._refs(self._mirror.state, f"{prefix}*").items()
        names = ((ref.removeprefix(prefix), commit) for ref, commit in found)
        return {int(name): commit for name, commit in names if name.isascii() and name.isdecimal()}

    def branch_tip(self, name: str) -> str:
        """Return the commit of a branch of the repository; "" if there is none. Raises Unreachable."""
        return self._refs(self._mirror.url, f"{HEADS}{name}").get(f"{HEADS}{name}", "")

    def entries(self, tip: str) -> tuple[Entry, ...]:
        """Return the chain that ends at a commit of the mirror, oldest entry first. Raises ChainProblem."""
        done = self._mirror.run("rev-list", "--first-parent", "--reverse", tip)
        if done.code:
            raise RoodaError(f"The history of a task, up to {tip}, can't be read: {command.error_text(done)}")
        commits = files.to_text(done.out).split()
        found = self._mirror.read([f"{commit}:task.json" for commit in commits])
        records = (each.data if each else b"" for each in found)
        return tuple(Entry(commit, chain.decode(data)) for commit, data in zip(commits, records, strict=True))

    def file(self, tip: str, path: str) -> bytes:
        """Return a file of a chain commit, such as ticket.json; b"" if it is missing."""
        (found,) = self._mirror.read([f"{tip}:{path}"])
        return found.data if found and found.type == "blob" else b""

    # Changing

    def create(self, root: Callable[[int], str], wait: Wait, first: int = 0) -> tuple[int, str]:
        """Reserve the next free number by creating its ref; return the number and the commit.

        `root` makes the commit for a number. `first`, if set, is the first number to try.
        Raises RoodaError if the remote rejects the ref, or if `wait` says to give up.
        """
        number = first or max(self.tips(), default=0) + 1
        while True:
            commit = root(number)
            result = self.push(Update(number, "", commit), wait)
            if result.kind == DONE:
                return number, commit
            if result.kind != REFUSED:
                raise RoodaError(f"{self._mirror.ref(number)} can't be created in {self._mirror.state}: {result.words}")
            number += 1

    def push(self, update: Update, wait: Wait) -> Result:
        """Push a task's new chain commit, and the branch of the update, if it has one.

        Both are pushed atomically. If they have different remotes, the branch is pushed first.
        """
        task = _Change(self._mirror.ref(update.number), update.old, update.new)
        if update.branch and not update.branch_old:
            old = self._delivered(update, wait)
            if isinstance(old, Result):
                return old
            update = update._replace(branch_old=old)
        branch = [_Change(f"{HEADS}{update.branch}", update.branch_old, update.branch_commit)] if update.branch else []
        if branch and self._mirror.url != self._mirror.state:
            result = self._settled(self._mirror.url, branch, update.objects, wait)
            if result.kind != DONE:
                return result._replace(kind=REJECTED if result.kind == REFUSED else result.kind, tip="")
            branch = []
        return self._settled(self._mirror.state, [task, *branch], update.objects, wait)

    def turn(self, update: Update, wait: Wait) -> Result:
        """Push a turn, together with the turns of other legs that are waiting."""
        change = _Change(self._mirror.ref(update.number), update.old, update.new)
        return self._settled(self._mirror.state, [change], update.objects, wait, self._grouped)

    def delete(self, tips: Mapping[int, str]) -> dict[int, str]:
        """Delete tasks' refs unless they have moved; return git's error for each task whose ref was not deleted."""
        said = dict[str, _Said]()
        changes = [_Change(self._mirror.ref(number), tip, "") for number, tip in tips.items()]
        for begin in range(0, len(changes), MOST_DELETED):
            said |= self._send(self._mirror.state, changes[begin : begin + MOST_DELETED])
        return {n: said[change.ref].words for n, change in zip(tips, changes, strict=True) if not said[change.ref].done}

    def _delivered(self, update: Update, wait: Wait) -> str | Result:
        """Return the remote's commit that the delivery of a branch replaces; "" if it replaces none.

        Return a Result instead if the commit is not the task's own work, or if rooda gave up.
        """
        pause = FIRST_PAUSE
        while True:
            try:
                tip = self.branch_tip(update.branch)
                break
            except Unreachable as problem:
                if wait(pause):
                    return Result(UNREACHABLE, problem.what)
                pause = min(2 * pause, LONGEST_PAUSE)
        if tip in ("", update.branch_commit):
            return ""
        if tip in {entry.record.head for entry in self.entries(update.old)}:
            return tip
        return Result(REJECTED, _changed(update.branch), update.old)

    # One push, to its settled end

    def _settled(
        self,
        url: str,
        changes: Sequence[_Change],
        objects: Sequence[str],
        wait: Wait,
        first: Callable[[_Change, Sequence[str]], _Said] | None = None,
    ) -> Result:
        """Retry a push until the remote has the changes, or certainly never will have them.

        `first`, if given, makes the first attempt; then there must be only one change.
        """
        pause, tries, quiet = FIRST_PAUSE, 0, self._quiet
        while True:
            said = first(changes[0], objects) if first else self._all(url, changes, objects, quiet)
            first = None
            if said.done:
                return Result(DONE, tip=changes[0].new)
            try:
                now = self._refs(url, *(change.ref for change in changes))
            except Unreachable as problem:
                if wait(pause):
                    return Result(UNREACHABLE, said.words or problem.what)
                pause = min(2 * pause, LONGEST_PAUSE)
                continue
            tries += not said.hung or quiet == LONGEST_QUIET
            quiet = min(2 * quiet, LONGEST_QUIET) if said.hung else quiet
            if result := _judged(changes, now, said, tries):
                return result
            if wait(pause):
                return Result(UNREACHABLE, said.words, changes[0].old)
            pause = min(2 * pause, LONGEST_PAUSE)

    def _all(self, url: str, changes: Sequence[_Change], objects: Sequence[str], quiet: float) -> _Said:
        """Push changes together, atomically if there are several; return one result for all of them."""
        found = self._send(url, changes, objects, len(changes) > 1, quiet).values()
        words = "; ".join(dict.fromkeys(each.words for each in found if each.words and "atomic push" not in each.words))
        by_rule, hung = any(each.by_rule for each in found), any(each.hung for each in found)
        return _Said(all(each.done for each in found), by_rule, words, hung)

    def _grouped(self, change: _Change, objects: Sequence[str]) -> _Said:
        """Push a change with all waiting changes. While another thread pushes, wait: it may push this change too."""
        own = _Turn(change, objects)
        with self._changed:
            self._queue.append(own)
            while self._is_pushing and own.said is None:
                self._changed.wait()
            if own.said is not None:
                return own.said
            self._is_pushing = True
        batch, found = [own], dict[str, _Said]()
        try:
            self._gather()
            with self._changed:
                batch, self._queue = self._queue, []
            borrowed = dict.fromkeys(folder for each in batch for folder in each.objects)
            found = self._send(self._mirror.state, [each.change for each in batch], [*borrowed])
        finally:
            with self._changed:
                self._is_pushing = False
                for each in batch:
                    each.said = found.get(each.change.ref, _Said())
                self._changed.notify_all()
        return own.said or _Said()

    def _gather(self) -> None:
        """Wait a moment for turns of other legs to join this push, if the forge would soon limit the pushes."""
        now = clock.monotonic()
        self._pushed = [each for each in self._pushed if each > now - 60][-A_MINUTE:]
        if self._is_limited and len(self._pushed) == A_MINUTE:
            clock.sleep(GATHER)

    def _send(
        self,
        url: str,
        changes: Sequence[_Change],
        objects: Sequence[str] = (),
        atomic: bool = False,
        quiet: float = 0.0,
    ) -> dict[str, _Said]:
        """Push once; return git's result for each ref.

        git shows its progress only if an earlier push has hung or taken long, because showing it has a cost.
        """
        leases = [f"--force-with-lease={change.ref}:{change.old}" for change in changes]
        specs = [f"{change.new}:{change.ref}" for change in changes]
        quiet = quiet or self._quiet
        how = [*(["--atomic"] if atomic else []), *(["--progress"] if quiet > self._mirror.quiet else [])]
        self._pushed.append(began := clock.monotonic())
        words = ("push", "--porcelain", "--no-verify", *how, *leases, "--", url, *specs)
        done = self._mirror.ask(url, *words, borrowed=objects, quiet=quiet)
        if not done.code:  # the next push may be as slow
            self._quiet = min(max(self._mirror.quiet, 2 * (clock.monotonic() - began)), LONGEST_QUIET)
        rows = [row.split("\t") for row in files.to_text(done.out).split("\n")]
        told = {row[1].rpartition(":")[2]: (row[0], row[2]) for row in rows if len(row) == 3}
        remote = [row[7:].strip() for row in files.to_text(done.err).splitlines() if row.startswith("remote:")]
        said = " ".join(row for row in remote if row and not _PROGRESS.match(row))
        error, hung = error_of(done), done.code == TIMED_OUT
        return {change.ref: _judged_row(told.get(change.ref), said, error)._replace(hung=hung) for change in changes}

    def _refs(self, url: str, *patterns: str) -> dict[str, str]:
        done = self._mirror.ask(url, "ls-remote", "-q", "--refs", "--", url, *patterns, quiet=self._patience)
        self._patience = min(2 * self._patience, LONGEST_QUESTION) if done.code == TIMED_OUT else self._least
        if done.code:
            raise Unreachable(f"{url} does not answer: {error_of(done)}")
        rows = (row.split("\t") for row in files.to_text(done.out).split("\n"))
        return {row[1]: row[0] for row in rows if len(row) == 2}


def _judged_row(told: tuple[str, str] | None, remote: str, error: str) -> _Said:
    if told is None:
        return _Said(words=_shown(f"{error} {remote}".strip()))
    flag, text = told
    if flag != "!":
        return _Said(done=True)
    if "stale info" in text:  # if the ref has not moved, the remote hides it
        return _Said(words="the remote does not show this ref to pushes")
    reason = text[text.find("(") + 1 :].rstrip(")") if "(" in text else text
    by_rule = text.startswith("[remote rejected]") and not _RACE.search(reason) and "unpack" not in reason
    return _Said(False, by_rule, _shown(f"{reason}: {remote}" if remote else reason))


def _judged(changes: Sequence[_Change], now: Mapping[str, str], said: _Said, tries: int) -> Result | None:
    """Return the result of a failed push, based on the remote's refs `now`; None if it must be tried again."""
    task, *others = changes
    tip = now.get(task.ref, "")
    if all(now.get(change.ref, "") == change.new for change in changes):
        return Result(DONE, tip=task.new)
    if tip not in (task.old, task.new):
        return Result(REFUSED, f"{task.ref} has moved to {tip[:12] or 'nothing: it was deleted'}", tip)
    for change in others:
        if now.get(change.ref, "") not in (change.old, change.new):
            return Result(REJECTED, _changed(change.ref.removeprefix(HEADS)), tip)
    if said.by_rule or tries >= MOST_TRIES:
        return Result(REJECTED, said.words, tip)
    return None


def _changed(branch: str) -> str:
    return f"the branch {branch} was changed by someone else"


def _shown(words: str) -> str:
    plain = "".join(sign if sign.isprintable() else " " for sign in words)
    return secret_forms.hide(" ".join(plain.split())[:LONGEST_WORDS])
