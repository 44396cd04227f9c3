"""`rooda pause`, `continue`, `attach` and `stop`: control a running loop."""

from typing import TYPE_CHECKING

import click

from rooda.base import clock
from rooda.cli.common import kind_of, loop_of, require_known, say_parent_hint, warn_of_settings
from rooda.cli.logs import follow
from rooda.errors import FAILED, OK, Undecided
from rooda.loops import registry
from rooda.loops.configuration import require_own
from rooda.loops.options import items, place_of_tab
from rooda.loops.registry import Loop
from rooda.processes import lock, signals, table
from rooda.run import folder
from rooda.run import folder as run_folder
from rooda.settings.where import Where, where
from rooda.views.lines import LEVELS

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


ATTEMPTS = 100  # for each wait; 20 or 50 ms apart


def one_running(here: Where, name: str | None, verb: str = "stop") -> Loop | None:
    """Return the loop NAME if it is running, or the only running loop; print a message and return None if none runs.

    Raises Undecided if several run. Except for `attach`, raises ConfigProblem if files belong to another user, because
    another user's lock file could name any process.
    """
    if verb != "attach":
        require_own(here)
    wanted = name = loop_of(here, name) if name else None
    loops = [loop for loop in registry.known(here.workspace) if wanted in (None, loop.name)]
    running = [loop for loop in loops if lock.is_held(loop.lock)]
    if name and not loops:
        require_known(here, name)
    if not running:
        who = f"{registry.noun(kind_of(here, name)).capitalize()} '{name}'" if name else ""
        click.echo(f"{who} is not running." if name else "Nothing is running here.")
        say_parent_hint(here.workspace)
        return None
    if len(running) > 1:
        rows = "\n".join(f"  rooda {verb} {each.name}" for each in running)
        raise Undecided("Several loops are running; name one.", rows)
    return running[0]


def tab_running(ctx: click.Context, _: click.Parameter, incomplete: str) -> list["CompletionItem"]:
    loops = registry.known(place_of_tab(ctx).workspace)
    return items(((loop.name, "running") for loop in loops if lock.is_held(loop.lock)), incomplete)


def named(loop: Loop, begin: bool = False) -> str:
    """Return words that name the loop in a message; `begin`: with a capital letter, to begin a sentence."""
    noun = registry.noun(loop.kind)
    return f"{noun.capitalize() if begin else noun} '{loop.name}'"


def record_order(workspace: str, loop: Loop, word: str, reason: str = "") -> None:
    """Record an order in the run's folder before it is carried out; an empty `word` deletes the recorded order.

    Waits until a run that has just started has written its ID. Records nothing if the loop has ended, or if it is still
    asking the user a question before the run.
    """
    for _ in range(ATTEMPTS):
        owner = lock.owner(loop.lock)
        run = owner.get("run")
        if isinstance(run, str) and run_folder.is_id(run):
            folder = run_folder.folder_of(workspace, run)
            run_folder.leave_order(folder, word, reason) if word else run_folder.take_back_order(folder)
            return
        if owner.get("asks") or not lock.is_held(loop.lock):
            return
        clock.sleep(0.05)


def send_signal(loop: Loop, act: "signals.SignalSender") -> bool:
    """Send the loop's process a signal, once the loop has written its PID; return False if the loop has ended."""
    for _ in range(ATTEMPTS):
        if act(lock.owner(loop.lock)):
            return True
        if not lock.is_held(loop.lock):
            return False
        clock.sleep(0.05)
    return False


POLL = 0.02  # seconds between checks for a suspended or continued process


@click.command(short_help="Suspend a running loop and its agent.")
@click.argument("name", required=False, shell_complete=tab_running)
@click.pass_context
def pause(ctx: click.Context, name: str | None) -> int:
    """Suspend the loop, its agent and their processes, as Ctrl+Z does. Time limits are suspended too.

    The agent may lose the connection to its service, so use `rooda stop` and `rooda resume` for a long pause.
    """
    return _signal(ctx, name, "pause", signals.suspend, folder.PAUSE, "Paused", "Continue with: rooda continue")


@click.command("continue", short_help="Continue a paused loop.")
@click.argument("name", required=False, shell_complete=tab_running)
@click.pass_context
def continue_(ctx: click.Context, name: str | None) -> int:
    """Continue a loop that `rooda pause` or Ctrl+Z has suspended."""
    return _signal(ctx, name, "continue", signals.resume, "", "Continued", "Watch it with: rooda attach")


def _pause_state(workspace: str, loop: Loop) -> tuple[bool, bool]:
    """Return two flags: whether the user ordered a pause, and whether the loop is suspended (pause or Ctrl+Z)."""
    owner = lock.owner(loop.lock)
    run, pid = owner.get("run"), owner.get("pid")
    ordered = isinstance(run, str) and folder.order_of(folder.folder_of(workspace, run)).get("order") == folder.PAUSE
    return ordered, table.is_stopped(pid)


def _await_state(loop: Loop, still: bool) -> bool:
    """Wait until the loop is suspended, or, unless `still`, until it continues; return False if it ended first.

    The signal to continue is repeated, in case a pause arrives at the same time. The wait ends after a few seconds,
    because a loop that is saving a large work tree suspends only afterwards.
    """
    for _ in range(ATTEMPTS):
        owner = lock.owner(loop.lock)
        if not lock.is_held(loop.lock) or table.stopped_states(owner.get("pid")) == {still}:
            break
        clock.sleep(POLL)
        if not still:
            signals.resume(owner)
    return lock.is_held(loop.lock)


def _signal(
    ctx: click.Context, name: str | None, verb: str, act: "signals.SignalSender", order: str, *said: str
) -> int:
    """Suspend or continue a loop. `order`: the word to record in the run's folder; "" deletes the recorded word."""
    here = where(ctx)
    loop = one_running(here, name, verb)
    if loop is None:
        return OK
    paused, still = _pause_state(here.workspace, loop)
    if order and paused and still:
        click.echo(f"{named(loop, True)} is already paused. {said[1]} {loop.name}")
        return OK
    record_order(here.workspace, loop, order)
    if not send_signal(loop, act) and lock.is_held(loop.lock):
        click.echo(f"{named(loop, True)} is running, but rooda can't identify its process.", err=True)
        return FAILED
    woken = not order and (paused or still)  # then it was continued, even if it ended right afterwards
    if not _await_state(loop, bool(order)) and not woken:
        click.echo(f"{named(loop, True)} has ended.")
        return OK
    if not order and not paused and not still:  # the signal was sent anyway: a pause may be about to arrive
        click.echo(f"{named(loop, True)} is not paused. {said[1]} {loop.name}")
        return OK
    click.echo(f"{said[0]} {named(loop)}. {said[1]} {loop.name}")
    return OK


@click.command(short_help="Watch a running loop; Ctrl+C only stops watching.")
@click.argument("name", required=False, shell_complete=tab_running)
@click.pass_context
def attach(ctx: click.Context, name: str | None) -> int:
    """Print the output of the running loop NAME and of its agent, from the start of the run until it ends or Ctrl+C."""
    here = where(ctx)
    loop = one_running(here, name, "attach")
    folder = loop and run_folder.latest(here.workspace, loop.name)
    if loop is None or folder is None:
        return OK
    try:
        follow(folder, LEVELS["info"], True, lambda: lock.is_held(loop.lock))
    except KeyboardInterrupt:
        click.echo(f"\nDetached; the loop is still running. End it with: rooda stop {loop.name}", err=True)
    return OK


STOP_PATIENCE = 15.0  # seconds that `rooda stop` waits for the loop to end


@click.command(short_help="End a running loop as Ctrl+C would; its state is saved.")
@click.argument("name", required=False, shell_complete=tab_running)
@click.option("--now", is_flag=True, help="End the agent at once, without time to end by itself.")
@click.option("--reason", metavar="TEXT", default="", help="Record this reason.")
@click.pass_context
def stop(ctx: click.Context, name: str | None, now: bool, reason: str) -> int:
    """End the run of NAME, or without NAME the only running one. rooda saves the state and ends the agent.

    `rooda status`, `rooda logs` and `rooda why` show the reason. `rooda resume --all` does not resume the run.
    """
    here = where(ctx)
    warn_of_settings(here)
    loop = one_running(here, name)
    return end_loop(here.workspace, loop, now, folder.readable(reason).strip()) if loop else OK


def end_loop(workspace: str, loop: Loop, now: bool = False, reason: str = "", for_good: bool = False) -> int:
    """Send SIGTERM to the loop, a second time if `now`, and wait at most STOP_PATIENCE seconds for its end.

    `for_good`: the caller will cancel the loop, so no command to resume it is printed.
    """
    who = named(loop)
    record_order(workspace, loop, folder.STOP, reason)
    if not send_signal(loop, signals.terminate) and lock.is_held(loop.lock):
        record_order(workspace, loop, "")
        click.echo(f"{named(loop, True)} is running, but rooda can't identify its process.", err=True)
        return FAILED
    owner = lock.owner(loop.lock)
    if now and not _ends(loop, 0.3):
        signals.terminate(owner)
    if not _ends(loop, STOP_PATIENCE):
        click.echo(f"Asked {who} (pid {owner.get('pid')}) to stop; it is still ending its agent.")
        return OK
    _await_guardian(owner)
    if for_good:
        return OK
    if loop.name not in registry.kind(loop.kind).resumable(workspace):
        click.echo(f"{named(loop, True)} has ended; there is nothing to resume.")
        return OK
    click.echo(f"Stopped {who}. Resume with: rooda resume {loop.name}")
    return OK


def _await_guardian(owner: dict[str, object]) -> None:
    """Wait until the loop's guardian has ended the processes that the loop left behind, and has exited."""
    for _ in range(ATTEMPTS):
        if not table.is_alive(owner):
            return
        clock.sleep(POLL)


def _ends(loop: Loop, seconds: float) -> bool:
    """Wait until the loop ends; return False if it has not ended after `seconds`.

    Continues a loop that was just suspended, so that it can end.
    """

    def awake() -> bool:
        owner = lock.owner(loop.lock)
        return True in table.stopped_states(owner.get("pid")) and not signals.resume(owner)

    return lock.await_free(loop.lock, seconds, awake)
