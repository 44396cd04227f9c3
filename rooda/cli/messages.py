"""`rooda say TEXT` and `rooda set`: give a running loop a note for its next prompt, or new limits."""

import os
from typing import Any

import click

from rooda.base import clock, secrets, signing
from rooda.base.text import counted, format_seconds
from rooda.cli.common import loop_of, require_known
from rooda.cli.control import ATTEMPTS, named, one_running, tab_running
from rooda.errors import OK, RoodaError, UsageProblem
from rooda.loops import registry
from rooda.loops.options import Value
from rooda.loops.registry import Loop
from rooda.processes import lock
from rooda.run import folder as run_folder
from rooda.run import history, messages
from rooda.run.spending import dollars
from rooda.settings.schema import LOOP
from rooda.settings.where import Where, where


@click.command(short_help="Give a running loop a note for its next prompt.")
@click.argument("text")
@click.argument("name", required=False, shell_complete=tab_running)
@click.pass_context
def say(ctx: click.Context, text: str, name: str | None) -> int:
    """Put TEXT once into the STATUS section of the next prompt of the loop NAME. `rooda why` shows it.

    A loop that is paused or was interrupted gets the note when it is resumed.
    """
    here = where(ctx)
    note = run_folder.readable(text).strip()
    if not note:
        raise UsageProblem("The text is empty.")
    if len(note) > messages.LONGEST:
        raise UsageProblem(
            f"The text has more than {messages.LONGEST:,} characters.", "Write it to a file, and give its path."
        )
    loop, run = _addressee(here, name)
    if not registry.KINDS[loop.kind].hears_notes:
        raise UsageProblem(
            f"{named(loop, True)} can't take notes, because its files define the prompts of its steps.",
            f"Stop it, change its files and resume: rooda stop {loop.name}",
        )
    _leave(here, run, loop, messages.NOTE, secrets.hide(note, secrets.forms(os.environ, (here.workspace,))))
    click.echo(f"The next prompt of {named(loop)} will contain it. See: rooda why {loop.name}")
    return OK


def _addressee(here: Where, name: str | None) -> tuple[Loop, str]:
    """Return the running loop and its session; if none runs, a loop that can be resumed and its latest session."""
    wanted = loop_of(here, name) if name else None
    running = [
        each for each in registry.known(here.workspace) if lock.is_held(each.lock) and wanted in (None, each.name)
    ]
    if running:
        loop = one_running(here, name, "say TEXT")
        if loop and (run := _session(loop)):
            return loop, run
    for loop in registry.resumable(here.workspace):
        if wanted in (None, loop.name) and (session := history.newest(here.workspace, loop.name, loop.kind)):
            return loop, session.run
    if name:
        require_known(here, name)
    raise UsageProblem(
        f"{name} is not running, and can't be resumed." if name else "Nothing is running here.", "See: rooda status"
    )


def _session(loop: Loop) -> str:
    """Return the ID of a running loop's session, once the loop has written it; "" if the loop has ended."""
    for _ in range(ATTEMPTS):
        run = lock.owner(loop.lock).get("run")
        if isinstance(run, str) and run_folder.is_id(run):
            return run
        if not lock.is_held(loop.lock):
            break
        clock.sleep(0.05)
    return ""


class _Count(click.ParamType):  # type: ignore[type-arg]  # generic only in newer click
    """A number of iterations, or a change such as +5."""

    name = "count"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        text = str(value)
        if not (text.removeprefix("+").removeprefix("-").isdecimal() and text.isascii()):
            self.fail("must be a number such as 8, or a change such as +5.", param, ctx)
        return text


class _Limit(Value):
    """A new limit. A change such as +5 is refused, because it would be read as 5."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if str(value).startswith("+"):
            self.fail(f"must be the new limit itself, got {value}; only --iterations takes a change.", param, ctx)
        return super().convert(value, param, ctx)


def _option(key: str) -> click.Option:
    flag = LOOP[key].flag
    assert flag is not None
    return click.Option(flag.named(key), type=_Limit(LOOP[key].type), metavar="N", help=flag.help)


_BUDGET = {"max_cost": "cost", "max_tokens": "tokens", "max_duration": "seconds"}


@click.pass_context
def _set(ctx: click.Context, /, name: str | None, iterations: str | None, **typed: float | None) -> int:
    here = where(ctx)
    limits = {_BUDGET[key]: float(value) for key, value in typed.items() if value is not None}
    if not limits and iterations is None:
        raise UsageProblem("No limit was given.", "For example: rooda set --iterations +5, rooda set --max-cost 12")
    if os.environ.get("ROODA_RUN"):
        raise UsageProblem("An agent can't change the limits of the run that it works for.")
    loop = one_running(here, name, "set")
    run = _session(loop) if loop else ""
    if loop is None or not run:
        who = loop.name if loop else name or "NAME"
        what = "No loop is running here; no limit was changed."
        raise UsageProblem(what, f"Set it when you resume: rooda resume {who} --max-cost 12")
    if iterations is not None:
        limits["iterations"] = _iterations(here, loop, run, iterations)
    _leave(here, run, loop, messages.LIMITS, limits=limits)
    click.echo(f"{named(loop, True)} has new limits from its next turn on: {_in_words(limits)}")
    return OK


def _iterations(here: Where, loop: Loop, run: str, text: str) -> int:
    """Return the new iteration limit. A change such as +5 is added to the limit in force."""
    if text[0] not in "+-":
        if not int(text) and loop.kind != registry.OODA:
            what = f"{named(loop, True)} needs a limit of iterations."
            raise UsageProblem(what, f"To end it: rooda stop {loop.name}")
        return int(text)
    kind = registry.kind(loop.kind)
    asked = messages.limits_in(run_folder.folder_of(here.workspace, run)).get("iterations")
    facts = next(iter(kind.facts(here.workspace, loop.name)), {})
    most = asked if asked is not None else kind.progress(facts, history.Now()).max_iterations
    if not most:
        what = f"{named(loop, True)} has no iteration limit, so {text} can't change it."
        raise UsageProblem(what, f"Set one: rooda set --iterations {max(1, int(text))}")
    if (changed := int(most) + int(text)) < 1:
        raise UsageProblem(
            f"{text} would leave no iteration: the limit is {int(most)}.", f"To end it: rooda stop {loop.name}"
        )
    return changed


def _in_words(limits: dict[str, float]) -> str:
    words = {
        "iterations": lambda value: counted(value, "iteration") if value else "any number of iterations",
        "cost": lambda value: dollars(value) if value else "no cost limit",
        "tokens": lambda value: f"{value:,.0f} tokens" if value else "no token limit",
        "seconds": lambda value: format_seconds(value) if value else "no time limit",
    }
    return ", ".join(words[key](value) for key, value in limits.items())


def _leave(
    here: Where, run: str, loop: Loop, kind: str, text: str = "", limits: dict[str, float] | None = None
) -> None:
    if not signing.has_key():
        raise RoodaError(
            "The message was not sent: rooda can't sign it, and loops ignore unsigned messages.", signing.problem()
        )
    try:
        messages.leave(here.workspace, run, loop.kind, kind, text, limits)
    except OSError as problem:
        raise RoodaError(
            f"The message was not sent: {problem.filename} can't be written: {problem.strerror}",
            "The loop continues without it. Correct the problem and send it again.",
        ) from None


set_ = click.Command(
    "set",
    callback=_set,
    params=[
        click.Argument(["name"], required=False, shell_complete=tab_running),
        click.Option(
            ["-n", "--iterations", "--max-iterations"],
            type=_Count(),
            metavar="N|+N",
            help="Maximum number of iterations; +5: five more.",
        ),
        *map(_option, _BUDGET),
    ],
    help="Change the limits of the running loop NAME, or without NAME of the only one; 0 = no limit.\n\n"
    "A resume keeps them. For a loop that is not running: rooda resume NAME --max-cost 12",
)
