"""`rooda tasks add`: adds a task from the command line, or imports tasks from a list file or a forge's issues."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import click
from click.core import ParameterSource

from rooda.base import files, workspace_files
from rooda.base.json import Json
from rooda.base.text import escape_line
from rooda.errors import OK, UsageProblem
from rooda.git.repository import read_head
from rooda.loops import configuration, registry
from rooda.loops.options import DASH_H, Value, tab_agents
from rooda.run import questions, task_lists, workspaces
from rooda.settings import procedures
from rooda.settings.layers import Settings
from rooda.settings.types import AMOUNT, COMMAND, DURATION, whole
from rooda.settings.where import Where, where
from rooda.tasks import forge_issues, model, sources
from rooda.tasks.model import PRIORITIES, PROCEDURE, Limits, Task
from rooda.tasks.sources import FILE, FORGES, Draft, Known, Plan
from rooda.tasks.store import Place, Store, TaskList, place_of
from rooda.views.say import say

KINDS = tuple(kind for kind in registry.KINDS if kind != registry.OODA)  # all kinds except procedures
NOT_WITH = ("config", "directory", "detach", "dry_run", "fresh", "going", "json", "new", "resume", "worktree")
TYPE_IT = 'Type it: rooda tasks add "Fix the flaky login test"'


class Ids(click.ParamType):  # type: ignore[type-arg]  # generic only in newer click
    """Task ids separated by commas, such as 3,4."""

    name = "ids"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, ...]:
        if isinstance(value, tuple):
            return value
        words = [word.strip() for word in str(value).split(",") if word.strip()]
        if not all(word.isascii() and word.isdecimal() and len(word) < 10 for word in words):
            self.fail(f"must be ids of tasks such as 3 or 3,4, got {value}.", param, ctx)
        return tuple(dict.fromkeys(map(int, words)))


class _Add(click.Command):
    """A command whose `--kind` takes one word or two: `--kind goal`, `--kind procedure NAME`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--" in args:
            end = args.index("--")
            return super().parse_args(ctx, [*joined_kind(args[:end]), *args[end:]])
        return super().parse_args(ctx, joined_kind(args))


def joined_kind(args: Sequence[str]) -> list[str]:
    """Join the two words after `--kind` in `--kind procedure NAME` into one argument."""
    found = [*args]
    for at, word in enumerate(args[:-2]):
        if word == "--kind" and args[at + 1] == PROCEDURE and not args[at + 2].startswith("-"):
            found[at + 1 : at + 3] = [f"{PROCEDURE} {args[at + 2]}"]
    return found


def own_options() -> list[click.Parameter]:
    """Return the options of `add` and `edit` that describe a task."""
    return [
        click.Option(["--gate", "gates"], multiple=True, metavar="COMMAND", type=Value(COMMAND),
                     help="Another command that must succeed, besides the project's gates; repeatable."),
        click.Option(["--after"], type=Ids(), metavar="IDS", help="Ids of tasks that must land first, such as 3,4."),
        click.Option(["--priority"], type=click.Choice(PRIORITIES), help="high, normal or low."),
        click.Option(["-n", "--max-iterations", "iterations"], type=Value(whole(1)), metavar="N",
                     help="Stop after N iterations."),
        click.Option(["--max-cost", "cost"], type=Value(AMOUNT), metavar="USD", help="Stop at this cost in dollars."),
        click.Option(["--max-duration", "seconds"], type=Value(DURATION), metavar="TIME",
                     help="Stop after this time, such as 2h."),
        click.Option(["--agent"], metavar="NAME", help="Agent to run.", shell_complete=tab_agents),
        click.Option(["--with", "options"], metavar="OPTIONS",
                     help="More options for the loop, such as '--template docs'."),
        click.Option(["--target"], metavar="BRANCH", help="Branch to land on; default: the one checked out now."),
    ]  # fmt: skip


def store_of(here: Where) -> Store:
    return Store(place_of(here.workspace))


def added(here: Where, store: TaskList, typed: Json) -> int:
    """Add the task that the options of `add` describe, or import the tasks of a source."""
    found = configuration.load(here.workspace, here.config)
    workspaces.record(here.workspace)
    taken = Taken(*(typed.pop(key) for key in Taken._fields))
    if taken.source is None:
        if taken != Taken():
            raise UsageProblem("--label, --sync, --allow-outside and --yes need --from.")
        text = _text(typed.pop("text"))
        wanted = new_task(found, store, typed, text)
        task = store.add(lambda number: wanted._replace(id=number))
        say(escape_line(f"Added task {task.id}: {task.title}"))
        return OK
    if typed.pop("text") is not None:
        raise UsageProblem("Give either a text or --from, not both.")
    return _import(here, store, new_task(found, store, typed, ""), taken)


def _text(typed: str | None) -> str:
    if typed in (None, "-"):
        if sys.stdin is None or (typed is None and sys.stdin.isatty()):
            raise UsageProblem("The task has no text.", TYPE_IT)
        typed = files.to_text(sys.stdin.buffer.read())
    assert typed is not None
    typed = model.clean(typed)
    if not model.title_of(typed):
        raise UsageProblem("The task's text is empty.", TYPE_IT)
    return typed.strip()


def new_task(found: Settings, store: TaskList, typed: Json, text: str) -> Task:
    """Build a task, without an id yet, from the options of `add`.

    Raises UsageProblem for an unknown agent, procedure or task.
    """
    kind, name = _kind(found, typed.get("kind") or PROCEDURE)
    for number in (after := typed.get("after") or ()):
        store.get(number)
    return Task(
        id=0,
        title=model.title_of(text),
        text=text,
        target=typed.get("target") or target_of(found, store.place),
        kind=kind,
        name=name,
        agent=known_agent(found, typed.get("agent")),
        options=loop_options(kind, typed.get("options") or ""),
        gates=tuple(typed.get("gates") or ()),
        after=after,
        priority=typed.get("priority") or "normal",
        limits=Limits(
            int(typed.get("iterations") or 0), float(typed.get("cost") or 0), float(typed.get("seconds") or 0)
        ),
    )


def known_agent(found: Settings, name: str | None) -> str:
    """Return the agent's name; "" means the agent from the settings. Raises UsageProblem for an unknown name."""
    from rooda.settings import agents

    if name and name not in (known := agents.agents(found)):
        raise UsageProblem(f"There is no agent {name!r}.", f"Available: {', '.join(known)}")
    return name or ""


def loop_options(kind: str, typed: str) -> tuple[str, ...]:
    """Split the options in `--with` into words. Raises UsageProblem for one that this kind of loop does not have."""
    import shlex

    try:
        words = shlex.split(typed)
        known = registry.kind(registry.OODA if kind == PROCEDURE else kind).options()
        taken = [each for each in known if isinstance(each, click.Option)]
        with click.Command("with", params=[*taken]).make_context("with", [*words], help_option_names=[]) as ctx:
            set_ = [name for name in NOT_WITH if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE]
    except (ValueError, click.ClickException) as problem:
        why = problem.format_message() if isinstance(problem, click.ClickException) else f"{problem}."
        raise UsageProblem(f"--with: {why}", f"See: rooda {_start_of(kind)} --help") from None
    if set_:
        what = f"--with: a task can't set --{set_[0].replace('_', '-')}; rooda does."
        raise UsageProblem(what, "See: rooda tasks add --help")
    return tuple(words)


def _start_of(kind: str) -> str:
    return "build" if kind == PROCEDURE else f"{kind} {registry.KINDS[kind].starting[0]}"


def _kind(found: Settings, typed: str) -> tuple[str, str]:
    """Split a value of `--kind`, such as `goal` or `procedure audit-spec`, into the kind and the procedure's name."""
    kind, _, name = typed.partition(" ")
    if kind in KINDS and not name:
        return kind, ""
    name = name or ("build" if kind == PROCEDURE else kind)
    if name not in procedures.names(found):
        known = f"procedure NAME, {', '.join(KINDS)}"
        raise UsageProblem(f"--kind {typed}: there is no such kind or procedure.", f"Available: {known}; rooda list")
    return PROCEDURE, name


def target_of(found: Settings, place: Place) -> str:
    """Return the branch to land on: `[tasks] target`, else the current one. Raises UsageProblem if neither exists."""
    if wanted := str(found.table("tasks").get("target", "")):
        return wanted
    if branch := read_head(place.repo).branch:
        return branch
    said = place.repo.run("symbolic-ref", "-q", "--short", "HEAD")  # a branch without a commit
    if said.code == 0:
        return files.to_text(said.out).strip()
    raise UsageProblem(
        "No branch is checked out, so the task has no branch to land on.", "Name one: rooda tasks add --target main …"
    )


# --from


class Taken(NamedTuple):
    """Options of `add --from`."""

    source: str | None = None
    labels: tuple[str, ...] = ()
    sync: bool = False
    outside: bool = False
    yes: bool = False


class Read(NamedTuple):
    """The drafts read from a source. `kind`: file, gh or glab; `place`: the file, or the common prefix of the URLs."""

    kind: str
    place: str
    drafts: list[Draft]
    refused: frozenset[str] = frozenset()  # keys of issues by authors who can't write to the repository


def _import(here: Where, store: TaskList, base: Task, taken: Taken) -> int:
    """Add the drafts that the task list lacks, and report items that were edited or removed at the source."""
    read = _read(here, store, taken)
    if ring := sources.circle(read.drafts):
        names = model.shown_ring([*map(sources.name_of, [*ring, ring[0]])], "after")
        raise UsageProblem(f"{taken.source}: these tasks wait for each other: {names}.", "Nothing was added.")
    with_gates = _may_become_gates(_plan(store, read).new, taken.yes)
    plans: list[Plan] = []
    ids: dict[str, int] = {}

    def makers() -> Iterator[Callable[[int], Task]]:
        plans.append(_plan(store, read))  # read again, under the lock: another import may have added some
        ids.update({known.draft.key: known.task.id for known in plans[0].known})
        return (_maker(base, draft, read.kind, ids, taken, with_gates) for draft in plans[0].new)

    for task in store.add_all(makers, "imported"):
        say(escape_line(f"Added task {task.id}: {task.title}"))
    _say_rest(plans[0], read)
    return OK


def _plan(store: TaskList, read: Read) -> Plan:
    found = sources.plan(read.drafts, store.all().values(), read.kind, read.place)
    return found._replace(new=tuple(draft for draft in found.new if draft.key not in read.refused))


def _maker(
    base: Task, draft: Draft, kind: str, ids: dict[str, int], taken: Taken, with_gates: bool
) -> Callable[[int], Task]:
    def make(number: int) -> Task:
        ids[draft.key] = number
        gates = (*base.gates, *(draft.commands if with_gates else ()))
        return base._replace(
            id=number,
            title=sources.title_of(draft),
            text=draft.text,
            gates=tuple(dict.fromkeys(gates)),
            after=sources.after_of(draft, ids, base.after),
            source=sources.source_of(draft, kind, taken.sync),
        )

    return make


def _read(here: Where, store: TaskList, taken: Taken) -> Read:
    assert taken.source is not None
    if taken.source in FORGES:
        return _issues(here, taken, taken.source)
    if taken.labels or taken.outside:
        raise UsageProblem("--label and --allow-outside work only with --from gh or --from glab.")
    return _list(here, store, taken.source)


def _list(here: Where, store: TaskList, name: str) -> Read:
    path = os.path.join(here.current or here.workspace, name)
    try:
        text = model.clean(files.to_text(workspace_files.read_typed(here.workspace, path)))
        found = task_lists.read(text, name)
    except OSError as problem:
        raise UsageProblem(f"{name} can't be read: {problem.strerror or problem}.") from None
    except task_lists.UnknownForm as problem:
        raise UsageProblem(f"{name}: {problem}.", f"Supported: {sources.KNOWN}.") from None
    top = os.path.realpath(store.place.repo.top)
    real = os.path.realpath(path)
    place = os.path.relpath(real, top) if real.startswith(f"{top}/") else real
    return Read(FILE, place, sources.of_list(found, place))


def _issues(here: Where, taken: Taken, forge: str) -> Read:
    """Read the open issues. Without --allow-outside, print and refuse those by authors without write access."""
    drafts = forge_issues.listed(forge, taken.labels, here.workspace, os.environ)
    read = Read(forge, forge_issues.place_of(drafts), drafts)
    if taken.outside:
        return read
    inside = forge_issues.writers(forge, (draft.author for draft in drafts), here.workspace, os.environ)
    outside = [draft for draft in drafts if draft.author not in inside]
    for draft in outside:
        say(escape_line(f"Not taken: {draft.place} {draft.title}"))
    if outside:
        say(
            "Their authors have no write access to the repository, and the text of an issue becomes a prompt. "
            "To add them anyway: --allow-outside"
        )
    return read._replace(refused=frozenset(draft.key for draft in outside))


def _may_become_gates(drafts: Sequence[Draft], yes: bool) -> bool:
    """True if commands found in the texts may become gates: with --yes, or if the user agrees."""
    found = [(draft, command) for draft in drafts for command in draft.commands]
    if not found or yes:
        return yes
    say("Commands in the texts:")
    for draft, command in found:
        say(escape_line(f"  {draft.title}: {command}"))
    if not questions.at_terminal():
        say("They don't become gates without your consent. Add one: rooda tasks edit ID --gate COMMAND")
        return False
    return (questions.typed_answer("Run them as gates of their tasks? [y/N] ") or "").strip().lower() in ("y", "yes")


def _say_rest(plan: Plan, read: Read) -> None:
    """Report tasks whose items were done, edited or removed at the source."""
    for known in plan.known:
        for text in _news(known):
            say(escape_line(text))
    there = read.place if read.kind == FILE else "among the open issues with these labels"
    for task in plan.gone:
        what = f"Task {task.id} is no longer {'in ' if read.kind == FILE else ''}{there}: {task.title}."
        say(escape_line(f"{what} Cancel it: rooda tasks cancel {task.id}"))
    if not plan.new:
        say("No new tasks were found.")


def _news(known: Known) -> Iterator[str]:
    task, draft = known.task, known.draft
    if draft.done and not task.is_over:
        yield f"Task {task.id} is done in {draft.place}: {task.title}. Cancel it: rooda tasks cancel {task.id}"
    elif known.is_edited and not task.is_over:
        yield f"Task {task.id} was edited in {draft.place}, but not here. Edit it here: rooda tasks edit {task.id}"


def add_command(listed: Callable[[Where, Json], TaskList], *further: click.Parameter) -> click.Command:
    """Return the command `add`. `listed` opens the task list; it takes the values of the `further` options."""

    @click.pass_context
    def add(ctx: click.Context, /, **typed: Any) -> int:
        here = where(ctx)
        return added(here, listed(here, typed), typed)

    return _Add(
        "add",
        params=[*_SOURCE, *own_options(), *further],
        callback=add,
        help="Add a task: TEXT, or standard input if TEXT is `-` or missing. With --from, add several.",
        short_help="Add tasks.",
        context_settings=DASH_H,
    )


_SOURCE: list[click.Parameter] = [
    click.Argument(["text"], required=False),
    click.Option(["--from", "source"], metavar="FILE|gh|glab",
                 help="Add the tasks in FILE, or the open issues on GitHub (gh) or GitLab (glab)."),
    click.Option(["--label", "labels"], multiple=True, metavar="LABEL",
                 help="Only issues with this label; repeatable."),
    click.Option(["--sync"], is_flag=True, help="Tick the box or close the issue once the task has landed."),
    click.Option(["--allow-outside", "outside"], is_flag=True,
                 help="Also add issues by authors who can't write to the repository."),
    click.Option(["-y", "--yes"], is_flag=True, help="Use commands in imported texts as gates without asking."),
    click.Option(["--kind"], metavar="KIND", help="Kind of loop: procedure NAME, goal, flow or reflex."),
]  # fmt: skip
add = add_command(lambda here, typed: store_of(here))
