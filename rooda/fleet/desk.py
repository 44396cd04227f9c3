"""Gives the command line access to the fleet: lists, changes and adds the tasks of one repository."""

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from rooda import __version__
from rooda.base import clock, dirs, files, secrets
from rooda.base.json import Json
from rooda.errors import RoodaError, UsageProblem
from rooda.fleet import publish
from rooda.fleet import ticket as tickets
from rooda.fleet.board import Known
from rooda.fleet.chain import TICKET, Record
from rooda.fleet.mirror import Mirror
from rooda.fleet.options import fleet_settings
from rooda.fleet.port import Wish
from rooda.fleet.remote import Remote
from rooda.fleet.ticket import Ticket
from rooda.fleet.worker import fleet_of, require_engine
from rooda.git import command
from rooda.settings.layers import Settings
from rooda.settings.where import Where
from rooda.tasks import model
from rooda.tasks.model import Task
from rooda.tasks.store import Maker, Place, place_of
from rooda.views.say import say

LONGEST_TEXT = 400_000  # bytes; Temporal takes 2 MB, and the ticket has the text twice


class Added(NamedTuple):
    """The options that `tasks add` has only with --fleet."""

    pool: str = tickets.ANYWHERE
    batch: str = ""
    batch_cost: float = 0.0
    retries: int = 1


class Desk:
    """The list of a repository's tasks, kept by Temporal. A task's number names its ref in the state remote."""

    def __init__(self, here: Where, found: Settings, added: Added, address: str | None = None) -> None:
        require_engine()
        self._here, self._settings, self._added = here, fleet_settings(found), added
        self._fleet = fleet_of(found.table("fleet"), address)
        self._place = place_of(here.workspace)
        self.repository = remote_url(self._place)
        self.state = self._settings.state or self.repository
        self.key = tickets.key_of(self.state)
        self._engine: Any = None

    @property
    def place(self) -> Place:
        return self._place

    @property
    def engine(self) -> Any:
        if self._engine is None:
            from rooda.fleet.engine import Engine

            self._engine = Engine(self._fleet.address, self._fleet.heartbeat, self._fleet.insecure)
        return self._engine

    # The list

    def known(self) -> dict[int, Known]:
        """Return all tasks by number. If an interrupted `add` left two with the same number, return the open one."""
        found: dict[int, Known] = {}
        for each in self.engine.board(self.key):
            if (each["task"] and (task := model.decode(each["task"])).id not in found) or each["open"]:
                found[task.id] = Known(each["workflow"], task, each["fleet"], each["open"], each["ticket"] or {})
        return found

    def all(self) -> dict[int, Task]:
        return {number: each.task for number, each in sorted(self.known().items())}

    def find(self, number: int) -> Known:
        """Return a task. Raises UsageProblem if there is none."""
        if found := self.known().get(number):
            return found
        raise UsageProblem(f"There is no task {number} in the fleet.", "List them: rooda tasks --fleet")

    def get(self, number: int) -> Task:
        return self.find(number).task

    def order(self, number: int, word: str, **facts: object) -> Known:
        """Send a task an order, and return the task."""
        found = self.find(number)
        self.engine.order(found.workflow, {"order": word, **facts})
        return found

    def change(self, number: int, fields: Json) -> None:
        """Change a task.

        Raises UsageProblem if the fields contain a secret or a forbidden command, or if the task would wait for a task
        that does not exist or for itself.
        """
        known = self.known()
        if number not in known:
            self.find(number)
        task = known[number].task
        gates, options = (tuple(fields.get(key, ())) for key in ("gates", "options"))
        self._require_clean(task._replace(text=fields.get("text", ""), gates=gates, options=options))
        order: Json = {"order": "set", "fields": fields}
        if "limits" in fields:
            order["fields"] = {**fields, "limits": {**task.limits._asdict(), **fields["limits"]}}
        if "after" in fields:
            if ring := model.cycle(number, fields["after"], lambda each: known[each].task if each in known else None):
                raise UsageProblem(f"The tasks would wait for each other: {model.shown_ring(ring, 'after')}.")
            order["workflows"] = [self._known_workflow(known, each) for each in fields["after"]]
        self.engine.order(known[number].workflow, order)

    def _known_workflow(self, known: Mapping[int, Known], number: int) -> str:
        if number not in known:
            raise UsageProblem(f"There is no task {number} in the fleet.", "List them: rooda tasks --fleet")
        return known[number].workflow

    def landing(self, target: str, options: Json) -> Json:
        """Return the order with all that a worker needs to land the tasks of a target."""
        prefix = os.path.relpath(self._place.repo.workspace, self._place.repo.top)
        return {
            **{name.replace("_", "-"): value for name, value in options.items()},
            "key": self.key,
            "repository": self.repository,
            "state": self.state,
            "ref_prefix": self._settings.ref_prefix,
            "prefix": "" if prefix == "." else prefix,
            "target": target,
        }

    # New tasks

    def add(self, make: Maker) -> Task:
        return self.add_all(lambda: [make])[0]

    def add_all(self, makers: Callable[[], Iterable[Maker]], what: str = "added") -> list[Task]:
        """Submit tasks; return only the new ones, because the fleet may already have some of them."""
        numbers: dict[int, str] = {}  # workflows of the tasks that were just added
        found = [self._submitted(make, numbers) for make in makers()]
        return [task for task in found if task]

    def _submitted(self, make: Maker, numbers: dict[int, str]) -> Task | None:
        from rooda.fleet.engine import Unreachable

        mirror, remote = self.git()
        drafts: dict[int, Ticket] = {}

        def root(number: int) -> str:
            drafts[number] = self._ticket(make(number), number)
            return self._root(mirror, drafts[number])

        engine = self.engine  # before a number is reserved
        self._require_clean(make(0))
        self._require_target(mirror, make(0).target)
        number, commit = remote.create(root, lambda seconds: clock.sleep(seconds) or False)
        ticket = drafts[number]
        numbers[number] = ticket.workflow
        try:
            is_new = engine.submit(self._wish(ticket, numbers))
        except Unreachable:  # it may have the task
            raise
        except RoodaError:
            remote.delete({number: commit})
            raise
        if not is_new:
            remote.delete({number: commit})
            say(f"Already in the fleet: {ticket.task.title}")
            return None
        return ticket.task

    def _ticket(self, task: Task, number: int) -> Ticket:
        prefix = os.path.relpath(self._place.repo.workspace, self._place.repo.top)
        task = task._replace(
            id=number, target=task.target.removeprefix("origin/"), created_at=clock.rfc3339(clock.now())
        )
        typed = os.urandom(8).hex()
        return Ticket(
            number=number,
            identity=tickets.identity_of(task.source, self.repository, typed),
            repository=self.repository,
            state=self.state,
            task=task,
            prefix="" if prefix == "." else prefix,
            ref_prefix=self._settings.ref_prefix,
            branch_prefix=self._settings.branch_prefix,
            pool=self._added.pool,
            batch=self._added.batch,
            batch_cost=self._added.batch_cost,
            retries=self._added.retries,
            logs=self._settings.logs,
            desk=os.uname().nodename,
            rooda=__version__,
        )

    def _root(self, mirror: Mirror, ticket: Ticket) -> str:
        """Make the ticket's commit. A random part in it keeps two simultaneous imports from making the same commit."""
        record = Record(
            kind=TICKET,
            task=ticket.number,
            worker=ticket.desk,
            rooda=__version__,
            at=clock.rfc3339(clock.now()),
            more={"mark": os.urandom(8).hex()},
        )
        return publish.ticket(mirror, record, tickets.to_bytes(ticket))

    def _wish(self, ticket: Ticket, numbers: Mapping[int, str]) -> Wish:
        known = self.known() if any(number not in numbers for number in ticket.task.after) else {}
        workflows = {**{number: each.workflow for number, each in known.items()}, **numbers}
        waits = [workflows[number] for number in ticket.task.after if number in workflows]
        return Wish(
            workflow=ticket.workflow,
            ticket=tickets.encode(ticket),
            task=model.encode(ticket.task),
            key=self.key,
            repository=self.repository,
            ref=ticket.ref,
            pool=ticket.pool,
            after=tuple(waits),
            batch=ticket.batch,
            batch_cost=ticket.batch_cost,
            retries=ticket.retries,
        )

    def _require_clean(self, task: Task) -> None:
        """Raise UsageProblem if the ticket would hold a secret, a text that is too long, or forbidden commands."""
        self.require_no_secret("\n".join((task.title, task.text, *task.gates, *task.options, task.source.place)))
        if (size := len(files.to_bytes(task.text))) > LONGEST_TEXT:
            what = f"The text has {size:,} bytes; a task of the fleet can have {LONGEST_TEXT:,}. Nothing was done."
            raise UsageProblem(what, "Move details into a file, commit it, and name the file in the text.")
        if (task.gates or task.options) and not self._settings.policy.ticket_commands:
            what = "Workers don't run commands that come with a task (--gate, --with). Nothing was done."
            raise UsageProblem(what, "Allow it here and on the workers: [fleet.worker] ticket_commands = true")

    def require_no_secret(self, text: str) -> None:
        """Raise UsageProblem if a text holds a secret, because git and Temporal would store it."""
        if secrets.hide(text, secrets.forms(os.environ, (self._here.workspace,))) != text:
            what = "The text holds what looks like a key or a password; nothing was done."
            raise UsageProblem(what, "Git and Temporal would store it. Put secrets into the workers' own settings.")

    def _require_target(self, mirror: Mirror, target: str) -> None:
        name = target.removeprefix("origin/")
        if not (there := mirror.branch(name)):
            what = f"The branch {name} is not in {self.repository}, where workers fetch it; nothing was added."
            raise UsageProblem(what, f"Push it: git push origin {name}")
        own = files.to_text(self._place.repo.run("rev-parse", "-q", "--verify", f"refs/heads/{name}").out).strip()
        if own and own != there and not self._noted:
            self._noted = True
            what = f"Workers start from {name} in {self.repository}, at {there[:12]}; here {name} is at {own[:12]}."
            say(f"{what} If they need your commits, push them: git push origin {name}", True)

    _noted = False

    # Git

    def git(self) -> tuple[Mirror, Remote]:
        """Return the repository's mirror and its Remote. The mirror borrows objects from the user's checkout."""
        if not self._git:
            mirror = self._mirror()
            try:
                mirror.make()
                theirs = os.path.join(os.path.realpath(self._place.repo.common), "objects")
                files.write(os.path.join(mirror.objects, "info", "alternates"), files.to_bytes(f"{theirs}\n"))
            except OSError as problem:
                what = f"The mirror {mirror.folder} can't be written: {problem.strerror or problem}."
                raise RoodaError(what, "Set ROODA_DATA_HOME to another folder.") from None
            mirror.fetch()
            self._git = mirror, Remote(mirror)
        return self._git

    _git: tuple[Mirror, Remote] | None = None

    def _home(self) -> str:
        if home := dirs.data("fleet"):
            return home
        raise UsageProblem("There is no folder for mirrors of repositories: HOME is not set.", "Set HOME.")

    def _mirror(self) -> Mirror:
        return Mirror(
            self._home(),
            f"desk-{tickets.key_of(self.repository)}",
            self.repository,
            self.state,
            prefix=self._settings.ref_prefix,
            insecure=self._settings.insecure,
        )


def remote_url(place: Place) -> str:
    """Return the URL of `origin`, else of the only remote, without a password.

    Raises UsageProblem if the repository has neither.
    """
    repo = place.repo
    names = repo.lines("remote")
    name = "origin" if "origin" in names else names[0] if len(names) == 1 else ""
    if not name:
        what = "The fleet needs a remote repository that its workers can reach; this one has no `origin`."
        raise UsageProblem(what, "Add it: git remote add origin URL")
    done = repo.run("remote", "get-url", name)
    if done.code:
        raise UsageProblem(f"git remote get-url {name}: {command.error_text(done)}")
    url = tickets.without_password(files.to_text(done.out).strip())
    return os.path.normpath(os.path.join(repo.top, url)) if tickets.is_relative(url) else url
