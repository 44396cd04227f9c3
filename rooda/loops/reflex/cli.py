"""Defines the commands of `rooda reflex`."""

import json
import os
from typing import TYPE_CHECKING, Any

import click

from rooda.base import files as base_files
from rooda.base.json import Json
from rooda.base.text import escape_line
from rooda.errors import OK, Interrupted, Undecided, UsageProblem, code_of_signal
from rooda.loops import launch, options
from rooda.loops.options import DASH_H, InOrder, RunOptions, items, place_of_tab
from rooda.loops.reflex import drafting, files, inspect, rules, store, view
from rooda.loops.reflex.drafting import TEMPLATES, Drafted, Given, Proposal, confirmed
from rooda.loops.reflex.effects import exec_checks
from rooda.loops.reflex.events import KIND
from rooda.loops.reflex.files import Place, find, named, newest, no_history_error, none_active
from rooda.loops.reflex.keys import OWN
from rooda.loops.reflex.setup import Prepared, prepared
from rooda.loops.reflex.start import ended, own_flags, refuse_second, resume_loop, start, unused_alias
from rooda.loops.reflex.state import RUNNING
from rooda.loops.reflex.status import facts_of, lines, row, row_line
from rooda.processes import lock
from rooda.run import folder, questions
from rooda.settings.agents import with_programs
from rooda.settings.where import Where, where, with_typed
from rooda.views.say import say

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

COUNT = click.IntRange(min=1)


class _Number(click.FloatRange):
    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = super().convert(value, param, ctx)
        return number if number == number else self.fail(f"{value!r} is not a number.", param, ctx)  # nan


@click.pass_context
def _new(ctx: click.Context, /, task: tuple[str, ...], **typed: object) -> int:
    here = with_typed(where(ctx), typed)
    asked = options.run_options(typed)
    text = " ".join(task)
    if not text.strip():
        raise UsageProblem("The task is empty.", 'Describe the artifact: rooda reflex new "An OpenAPI spec for …"')
    _one_source(typed)
    if not asked.worktree:
        base_files.refuse_links(here.workspace, os.path.dirname(files.HOME), files.HOME)  # before a call costs money
        if asked.opening != "fresh":
            refuse_second(here.workspace)
    made = prepared(here, asked, own_flags(typed))
    try:
        proposal = _proposed(text, here, asked, made, typed)
    except Interrupted as cut:  # while an agent drafted the rules
        say("Interrupted. Nothing was started.", to_stderr=True)
        return code_of_signal(cut.number)
    given = Given(bool(typed["confirm_criteria"]), _number(typed["confirm_max_iterations"]))
    if typed["yes"]:
        given = Given(True, given.max_iterations or proposal.max_iterations)
    proposal = confirmed(proposal, given, asked.json, _edit)
    if asked.worktree:

        def work(there: Where) -> int:
            agent = with_programs(made.agent, there.workspace, here.workspace)
            return start(proposal, there, asked, made._replace(agent=agent))

        return launch.in_worktree(here, "reflex", made.screen, work, made.setup.worktree)
    return start(proposal, here, asked, made)


def _one_source(typed: Json) -> None:
    named = [name for name in ("rules", "template", "draft") if typed[name] not in (None, False)]
    if len(named) > 1:
        raise UsageProblem(f"{' and '.join(f'--{name}' for name in named)} are mutually exclusive.")
    if typed["generic"] and (typed["rules"] is not None or typed["draft"]):
        raise UsageProblem("--generic keeps the checks of a template; it can't be combined with --rules or --draft.")
    alias = typed["alias"]
    if alias is not None and not rules.is_alias(alias):
        raise UsageProblem(f"--alias {alias!r}: use 3 to 64 lowercase letters and digits, separated by single hyphens.")


def _number(value: object) -> int | None:
    return value if isinstance(value, int) else None


def _proposed(task: str, here: Where, asked: RunOptions, made: Prepared, typed: Json) -> Proposal:
    drafted = _drafted(task, here, asked, made, typed)
    thresholds = dict(drafted.criteria.thresholds)
    thresholds |= {level: typed[key] for level in "AB" if typed[key := f"threshold_{level.lower()}"] is not None}
    alias = unused_alias(here.workspace, typed["alias"] or rules.alias_of(task))
    shown = "rules of both phases hold" if any(rule.phase == "B" for rule in drafted.criteria.rules) else "rules hold"
    first = " ".join(task.split())
    ideal = typed["ideal_result"] or drafted.ideal or f"{first[:120]}: all {shown}"
    limit = int(made.look.value("max_iterations"))
    criteria = drafted.criteria._replace(thresholds=thresholds, strict=bool(typed["strict"]))
    artifact = drafting.existing(here.workspace, typed["start_from"]) if typed["start_from"] else ""
    return Proposal(task, ideal, alias, criteria, drafted.origin, limit, exec_checks(made.look), artifact)


def _drafted(task: str, here: Where, asked: RunOptions, made: Prepared, typed: Json) -> Drafted:
    if typed["rules"] is not None:
        return drafting.from_file(here.workspace, typed["rules"])
    if typed["draft"]:
        return drafting.draft(task, here, made)
    general = drafting.from_template(typed["template"]) if typed["template"] else drafting.chosen(task)
    return general if typed["generic"] else drafting.for_task(general, task, here, made)


def _edit(text: str) -> str | None:
    try:
        return click.edit(text, extension=".toml", require_save=False)
    except click.ClickException as problem:
        raise Undecided(
            f"{problem.format_message()}. Nothing was started.",
            "Set EDITOR to another editor, or write the rules to a file: --rules FILE",
        ) from None


def tab_aliases(ctx: click.Context, _: click.Parameter, incomplete: str) -> "list[CompletionItem]":
    aliases = files.aliases(place_of_tab(ctx).workspace)
    return items(((alias, "a reflex loop") for alias in aliases), incomplete)


def loop_options() -> list[click.Parameter]:
    """Return the options of reflex loops that `new` and `resume` share."""
    return [*options.of(OWN, "steps"), *options.of(OWN, "checks", check_timeout=_Number(min=0))]


_THRESHOLD = _Number(0, 1)
new = click.Command(
    "new",
    callback=_new,
    params=[
        click.Argument(["task"], nargs=-1, required=True),
        click.Option(["--rules"], metavar="FILE", type=click.Path(), help="Use your own rules (JSON or TOML)."),
        click.Option(["--template"], type=click.Choice(TEMPLATES), help="Use rules that ship with rooda."),
        click.Option(["--generic"], is_flag=True, help="Keep the template's checks as they are."),
        click.Option(["--draft"], is_flag=True, help="Let the agent draft rules; you confirm them."),
        click.Option(
            ["--from", "start_from"], metavar="FILE", type=click.Path(), help="Begin with an existing artifact."
        ),
        click.Option(["--strict"], is_flag=True, help="Continue to the threshold, even if only warnings remain."),
        *options.of(OWN, "limit", max_iterations=COUNT),
        click.Option(["--threshold-a"], type=_THRESHOLD, metavar="X", help="Score that phase A must reach, 0 to 1."),
        click.Option(["--threshold-b"], type=_THRESHOLD, metavar="X", help="Score that phase B must reach, 0 to 1."),
        click.Option(["--ideal-result"], metavar="TEXT", help="Describe the ideal result; recorded, not checked."),
        click.Option(["--alias"], metavar="NAME", help="Name of the loop; default: derived from the task."),
        click.Option(["--confirm-criteria"], is_flag=True, help="Confirm the rules and thresholds without a question."),
        click.Option(
            ["--confirm-max-iterations"], type=COUNT, metavar="N", help="Confirm the iteration limit; N must equal it."
        ),
        click.Option(["-y", "--yes"], is_flag=True, help="Confirm criteria and iteration limit without asking."),
        click.Option(["--fresh"], is_flag=True, help="Start even if a loop can be resumed; end that loop."),
        *loop_options(),
        options.worktree(),
        *options.for_kind(),
    ],
    help="Start a new loop for TASK. You confirm the success criteria and the limit when asked, or with "
    "--confirm-criteria and --confirm-max-iterations N.",
    short_help="Start a new loop.",
)


run = click.Command("run", callback=_new, params=new.params, help=new.help, short_help="Same as new.")


@click.pass_context
def _resume(ctx: click.Context, /, alias: str | None, **typed: object) -> int:
    here = with_typed(where(ctx), typed)
    store.tidy_all(here.workspace)  # also finishes an end of a loop that was cut off
    place = find(here.workspace, alias) or (newest(here.workspace) if typed["max_iterations"] else None)
    if place is None:
        raise none_active(here.workspace)
    return resume_loop(place, here, typed)


resume = click.Command(
    "resume",
    callback=_resume,
    params=[
        click.Argument(["alias"], required=False, shell_complete=tab_aliases),
        click.Option(
            ["-n", "--max-iterations"],
            type=COUNT,
            metavar="N",
            help="At most N iterations in all. Needed to resume a loop that ended by its limit or by stagnation.",
        ),
        *loop_options(),
        *options.for_kind(),
    ],
    help="Resume the active loop, or ALIAS. An interrupted phase is repeated; finished phases are not. With -n N, a "
    "loop that has ended at its limit or by stagnation continues.",
    short_help="Resume the active loop, or a named one.",
)


@click.command(short_help="Show the progress of the active loop.")
@click.argument("alias", required=False, shell_complete=tab_aliases)
@click.option("--artifact", is_flag=True, help="Also show the whole artifact.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def status(ctx: click.Context, alias: str | None, artifact: bool, as_json: bool) -> int:
    """Show the progress of the active loop, or of ALIAS."""
    here = where(ctx)
    place = find(here.workspace, alias)
    from rooda.loops.overview import Overview, for_people
    from rooda.loops.overview import as_json as as_objects

    if as_json:
        facts = [facts_of(place)] if place else []
        say(json.dumps(as_objects(here, KIND.name, facts), indent=2, ensure_ascii=False))
    elif place is None:
        say("There is no active loop here. Start one with: rooda reflex new TASK")
    else:
        say("\n".join(map(escape_line, lines(for_people(*Overview(here).found(KIND.name, facts_of(place)))))))
        data = files.artifact_if_readable(place) if artifact else None
        if data is not None:
            say(base_files.to_text(data), end="")
    return OK


@click.command("list", short_help="List all loops with their status.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def list_(ctx: click.Context, as_json: bool) -> int:
    """List all loops of this workspace: running, stopped, completed or failed."""
    workspace = where(ctx).workspace
    rows = [row(Place(workspace, alias)) for alias in files.aliases(workspace)]
    if as_json:
        say(json.dumps(rows, indent=2, ensure_ascii=False))
    elif not rows:
        say("No loops here. Start one with: rooda reflex new TASK")
    width = max((len(each["task_alias"]) for each in rows), default=0)
    for each in () if as_json else rows:
        say(escape_line(row_line(each, width)))
    return OK


@click.command(short_help="Show the events of a loop.")
@click.argument("alias", required=False, shell_complete=tab_aliases)
@click.option("--json", "as_json", is_flag=True, help="Print the events as stored, one JSON object per line.")
@click.pass_context
def history(ctx: click.Context, alias: str | None, as_json: bool) -> int:
    """Show the events of the active loop, or of ALIAS, in order."""
    workspace = where(ctx).workspace
    place = find(workspace, alias)
    if place is None:
        raise none_active(workspace)
    found = files.load(place)
    if found.no_history:
        raise no_history_error(place, found)
    for event in files.events(place):
        say(json.dumps(event, ensure_ascii=False) if as_json else escape_line(inspect.event_line(event)))
    return OK


@click.command(short_help="Show the whole artifact.")
@click.argument("alias", required=False, shell_complete=tab_aliases)
@click.option(
    "--iteration", type=click.IntRange(min=1), metavar="N", help="Show the version that iteration N evaluated."
)
@click.pass_context
def show(ctx: click.Context, alias: str | None, iteration: int | None) -> int:
    """Show the artifact of the active loop or of ALIAS; without an active loop, of the latest one."""
    workspace = where(ctx).workspace
    place = named(workspace, alias) if alias else newest(workspace)
    if place is None:
        raise UsageProblem("There are no loops here.", "Start one with: rooda reflex new TASK")
    say(inspect.artifact_text(place, iteration), end="")
    return OK


@click.command(short_help="Show what changed between iterations.")
@click.argument("alias", required=False, shell_complete=tab_aliases)
@click.option("--from", "start", type=click.IntRange(min=1), metavar="N", help="The older iteration.")
@click.option("--to", "end", type=click.IntRange(min=1), metavar="N", help="The newer iteration.")
@click.pass_context
def diff(ctx: click.Context, alias: str | None, start: int | None, end: int | None) -> int:
    """Compare the artifacts of two evaluated iterations; without numbers, of the latest two."""
    workspace = where(ctx).workspace
    place = named(workspace, alias) if alias else newest(workspace)
    if place is None:
        raise UsageProblem("There are no loops here.", "Start one with: rooda reflex new TASK")
    say("\n".join(inspect.diff(place, start, end)))
    return OK


@click.command(short_help="Remove the files of a loop that isn't running.")
@click.argument("alias", required=False, shell_complete=tab_aliases)
@click.option("--all", "every", is_flag=True, help="Remove all loops that are not running.")
@click.option("--yes", is_flag=True, help="Don't ask for confirmation.")
@click.pass_context
def clean(ctx: click.Context, alias: str | None, every: bool, yes: bool) -> int:
    """Remove the files of the loop ALIAS, or of all loops that are not running. rooda asks for confirmation first."""
    workspace = where(ctx).workspace
    if (alias is not None) == every:
        if every or not questions.at_terminal():
            raise UsageProblem("Give the name of one loop, or --all.", "See the names with: rooda reflex list")
        alias = _asked_alias(workspace)
    all_ = [Place(workspace, each) for each in files.aliases(workspace)]
    places = all_ if every else [named(workspace, alias or "")]
    kept = [place for place in places if _is_running(place)]
    gone = [place for place in places if place not in kept]
    for place in kept:
        if not every:
            what = f"The loop '{place.alias}' is running; its files were not removed."
            raise Undecided(what, "End it first: rooda reflex stop")
        say(f"The loop '{place.alias}' is running; its files were not removed.", to_stderr=True)
    if not gone:
        say("Nothing to remove.")
        return OK
    _confirm([place.alias for place in gone], yes)
    for place in gone:
        linked = os.path.realpath(place.folder) if os.path.islink(place.folder) else ""
        left = store.remove(place)
        if linked:
            say(f"Removed the link to the loop '{place.alias}'; its files in {linked} were not removed.")
            continue
        also = f" Not created by rooda, so not removed: {', '.join(left)} in {place.folder}." if left else ""
        say(f"Removed the loop '{place.alias}'.{also}")
    return OK


def _asked_alias(workspace: str) -> str:
    names = files.aliases(workspace)
    rows = "\n".join(f"  {name}" for name in names)
    if not names:
        raise UsageProblem("There are no loops here.")
    answer = questions.typed_answer(f"Which loop?\n{rows}\nName: ")
    return (answer or "").strip()


def _is_running(place: Place) -> bool:
    state = files.load(place).state
    return lock.is_held(place.lock) or (state is not None and state.status == RUNNING)


def _confirm(aliases: list[str], yes: bool) -> None:
    if yes:
        return
    say(f"Remove all files of {', '.join(aliases)}? [y/N] ", end="")
    answer = questions.typed_answer("")
    if not questions.at_terminal():
        say(answer or "")
    if answer is None or answer.strip().lower() not in ("y", "yes"):
        raise Undecided("Not confirmed; nothing was removed.")


@click.command(short_help="End the active loop for good.")
@click.argument("reason", nargs=-1)
@click.pass_context
def stop(ctx: click.Context, reason: tuple[str, ...]) -> int:
    """End the active loop and record REASON. A process that runs the loop ends at its next phase boundary."""
    workspace = where(ctx).workspace
    alias = files.active(workspace)
    if alias is None:
        running = files.running(workspace)
        also = f" Marked as running: {', '.join(running)}. Resume one: rooda reflex resume ALIAS" if running else ""
        say(f"There is no active loop here; nothing to stop.{also}")
        return OK
    return end(Place(workspace, alias), folder.readable(" ".join(reason)).strip())


def end(place: Place, reason: str) -> int:
    state = store.close(place, reason)
    if state is None:
        say(f"The loop '{place.alias}' has already ended; nothing to stop.")
        return OK
    say("\n".join(view.summary(ended(place, state).facts)))
    data = files.artifact_if_readable(place)
    if data is not None:
        say(f"Artifact in full:\n{base_files.to_text(data)}", end="")
    return OK


HELP = """Write one artifact and refine it until its rules hold.

Each iteration: PLAN, PRODUCE and PREPARE in parallel, EVALUATE, and if a rule failed CRITIQUE and REFINE. You confirm
the rules and the number of iterations before the first. All state is in .ai-factory/evolution/.
`rooda reflex "TASK"` is short for `rooda reflex new "TASK"`.
"""
reflex = InOrder(
    "reflex",
    commands=[new, run, resume, status, stop, list_, history, clean, show, diff],
    help=HELP,
    short_help="Write one artifact and refine it until its rules hold.",
    context_settings=DASH_H,
    default="new",
)
