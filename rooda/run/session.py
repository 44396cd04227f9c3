"""Sets up one session of a loop, and offers the operations that every kind of loop shares: prompts, gates, waits."""

import gc
import os
from collections.abc import Callable, Container, Mapping, Sequence
from typing import TYPE_CHECKING

from rooda.agents import command
from rooda.agents.context import CallContext
from rooda.agents.records import Prompt
from rooda.base import clock, secrets, signing
from rooda.base.json import Json
from rooda.errors import Interrupted
from rooda.git import traces
from rooda.processes import detach, ending, linux, supervise
from rooda.processes.ledger import Ledger
from rooda.processes.lock import Lock
from rooda.processes.signals import Signals
from rooda.processes.supervise import Periodic
from rooda.run import folder as run_folder
from rooda.run import hooks, installed, workspaces
from rooda.run.budget import BudgetGate
from rooda.run.budgets import Purse, shared
from rooda.run.calls import AgentCalls
from rooda.run.commands import CommandRunner, limits_of
from rooda.run.cost_ledger import CostLedger, Place
from rooda.run.counts import Counting
from rooda.run.ended import COMPLETED, FAILED_STATE, of_end
from rooda.run.event_records import (
    BudgetExceeded,
    Emit,
    GatesEnded,
    PromptAssembled,
    Rested,
    Resting,
    SessionEnd,
    Stopping,
)
from rooda.run.events import Events, Journal
from rooda.run.folder import RunFolder, new_id
from rooda.run.messages import Inbox
from rooda.run.prompts import Measure, PromptFile
from rooda.run.records import TURN_EVENTS, Command, CommandResult, Gate, Gates, Owner
from rooda.run.setup import Setup, Watch, collector, is_walled
from rooda.run.spending import BudgetUse
from rooda.run.summary import Summing

if TYPE_CHECKING:
    from rooda.processes.systemd import ManagerNotifier
    from rooda.run.leg import Leg
    from rooda.run.recorder import Recorder
    from rooda.run.telemetry import Telemetry
    from rooda.run.walls import SessionWalls

CLOCK_INTERVAL = 60.0  # seconds between checks of the clock, which may be set during a wait


class Session:
    """The resources of one start or resume of a loop, and the operations that use them."""

    recorder: "Recorder | None" = None  # takes the session's snapshots

    def __init__(
        self,
        workspace: str,
        owner: Owner,
        signals: Signals,
        show: Callable[[Json], None],
        tick: Periodic | None,
        held: Lock | None,
    ) -> None:
        gc.freeze()  # collections would write to memory that is shared with the guardian
        gc.enable()  # was disabled at startup, while modules were loading
        linux.return_large_blocks()
        self._began = clock.monotonic()
        self.folder = folder = RunFolder(workspace, new_id(workspace, owner.name))
        detach.report_started(folder.run, folder.ready, workspace)
        linux.adopt_orphans()
        self._notifier = _notifier()
        tick = self._notifier.with_watchdog(tick) if self._notifier else tick
        self._signals, self._limits, kind = signals, limits_of(owner.setup), owner.kind
        self._walls, self.context = _context(workspace, owner, folder, signals, tick)
        self._hooks = self._hooks_of(owner)
        self._journal = Journal(folder, loop=kind.name, **{kind.name_field: owner.name})
        self._events = Events(self._journal, self._session_end)
        self._leg = self._connected()
        self.emit: Emit = self._events.emit
        self.hide(self.context.env)
        run_folder.note_origin(folder, self.context.env, workspace, owner)
        self._subscribe(show, owner)
        self._report_walls()
        self._watch = self._watching(owner)
        self._ledger = Ledger(held, folder.run, self._events.warn)
        self._commands = CommandRunner(self.context, self._limits, self.emit, self._walls)
        self._prompt = PromptFile(folder)
        self._purse, self.inbox = self._purse_of(owner), Inbox(folder, workspace, owner, self.emit)
        self._gate = self._budget_gate(owner)
        self.reached_limit = self._gate.reached_limit
        self.calls = AgentCalls(
            self.context, folder, self._events, self._ledger, self._commands, self._gate, self.signalled, self._walls
        )
        signals.when_abandoned, signals.when_stopping = self._ledger.abandon, self._report_stopping

    def _report_walls(self) -> None:
        if self._walls and (self._walls.mode != "off" or self._walls.why_off):
            from rooda.run.event_records import Problem, SandboxChosen

            self.emit(SandboxChosen(mode=self._walls.mode, why=self._walls.why_off))
            for text in self._walls.remarks:
                self.emit(Problem(text=text))

    def _connected(self) -> "Leg | None":
        """Return the connection to the fleet's worker that started this loop; None for any other loop."""
        if not (path := os.environ.get(command.IN_LEG)):
            return None
        from rooda.run import leg

        return leg.connected(path, self._signals)

    def _telemetry_of(self, owner: Owner) -> "Telemetry | None":
        """Start the export of this session, and let agents take part in it; return None if telemetry is off."""
        endpoint = collector(owner.setup, os.environ)
        if not endpoint:
            return None
        from rooda.run import telemetry

        place = telemetry.Session(self.context.workspace, owner, self.folder.run, endpoint)
        made = telemetry.start(place, self._events.warn)
        if made:
            self._events.subscribe(made.add, made.events)
            self.context = self.context._replace(tracing=made)
        return made

    def _lend(self, owner: Owner) -> bool:
        """If this is the clone of a task, publish each iteration in the user's repository; return False if it isn't."""
        if self._leg:
            return True  # its worker publishes
        top = traces.clone_around(self.context.workspace)
        if not top:
            return False
        from rooda.git import clones
        from rooda.run.lending import Lending

        loan = clones.loan_of(top)
        if loan is None:
            return False
        lending = Lending(top, loan, self.emit, lambda: self.recorder.newest if self.recorder else "")
        self._events.subscribe_ahead(lending.publish, (*owner.kind.turn_ends, "run.ended"))
        return True

    def _hooks_of(self, owner: Owner) -> hooks.Hooks | None:
        if not owner.setup.hooks:
            return None
        kind = owner.kind
        loop = owner.name if kind.name_variable or kind.name == owner.name else f"{kind.name} {owner.name}"
        return hooks.Hooks(owner.setup.hooks, kind.moments, self.context, loop, lambda: self._gate.known_cost)

    def _watching(self, owner: Owner) -> Watch | None:
        if not self._lend(owner):
            workspaces.record(self.context.workspace)
        self._awake = self._kept_awake(owner)
        if owner.setup.watch:
            owner.setup.watch.begin(self.folder.run, self.context.workspace)
        return owner.setup.watch

    def _purse_of(self, owner: Owner) -> Purse:
        place = Place(self.context.workspace, owner.kind.name, owner.name, self.folder.run)
        agent = owner.setup.agent
        budgets = shared(owner.setup.budgets, os.environ)
        purse = CostLedger(place, budgets, lambda: agent.prices if agent else {}, self._events.warn)
        if not self._leg:
            return purse
        from rooda.run.leg import LegPurse

        return LegPurse(purse, self._leg, self.folder.run)

    def _budget_gate(self, owner: Owner) -> BudgetGate:
        installed.guard()
        gate = BudgetGate(owner.setup, self._purse, self.inbox, self._wait_until, self.signalled, self._events.warn)
        if owner.resumed:
            gate.count_earlier(self.context.workspace, owner.name, owner.kind.name, owner.setup.agent)
        return gate

    def _kept_awake(self, owner: Owner) -> int:
        if not owner.setup.keep_awake:
            return 0
        from rooda.processes import awake

        return awake.keep_awake(self.context.workspace, self.context.env)

    def elapsed(self) -> float:
        """Return the seconds since this session began."""
        return clock.monotonic() - self._began

    def signalled(self) -> int:
        """Return the first signal that rooda received, 0 if none. Raises Interrupted if the guardian was killed."""
        first = self._signals.first
        if self._signals.abandoned:
            raise Interrupted(first)
        return first

    def used(self) -> BudgetUse:
        """Return the limits of the run, and what it has used so far."""
        return self._gate.used()

    def subscribe(self, subscriber: Callable[[Json], None], events: Container[str]) -> None:
        """Call `subscriber` after any of these events is written."""
        self._events.subscribe(subscriber, events)

    def _report_stopping(self, grace: float, is_agent: bool) -> None:
        self.emit(Stopping(signal=self._signals.first, grace=grace, what="agent" if is_agent else "command"))

    def _subscribe(self, show: Callable[[Json], None], owner: Owner) -> None:
        """Subscribe all handlers of events, the screen first, so that it shows an event before a hook runs."""
        self._events.subscribe(show)
        self._summing = Summing(self.context.workspace, owner, self.folder.run, self.emit)
        self._events.subscribe(self._summing.add, self._summing.events)
        self._counting = Counting(self.context.workspace, owner, self.folder.run)
        self._events.subscribe(self._counting.add, self._counting.events)
        if self._notifier:
            self._events.subscribe(self._notifier.report, self._notifier.EVENTS)
        if self._hooks:
            self._events.subscribe(self._run_hooks)
        if owner.setup.safety == "snapshot":
            from rooda.run.recorder import Recorder

            self.recorder = recorder = Recorder(self.context.workspace, self.folder.run, owner, self.emit)
            events = (*TURN_EVENTS, *owner.kind.turn_events)
            self._events.subscribe_ahead(recorder.before, events)
            self._events.subscribe(recorder.after, events)
        if self._leg:
            self._events.subscribe_ahead(self._leg.publish, ("resting",))
            self._events.subscribe(self._leg.end_call, ("agent.ended",))
            self._events.subscribe(self._leg.close_part, owner.kind.part_ends)
            self._events.subscribe(self._leg.close_turn, owner.kind.turn_ends)
        if problem := signing.problem():
            self._events.warn(problem)
        self._telemetry = self._telemetry_of(owner)

    def _run_hooks(self, record: Json) -> None:
        for problem in self._hooks.run(record) if self._hooks else ():
            self._events.warn(problem)

    def hide(self, environ: Mapping[str, str]) -> None:
        """Replace the secrets in these variables with stars in all later events."""
        self._journal.hide(environ, self.context.workspace)

    def clean(self, text: str) -> str:
        """Replace secrets in a text with stars, for files that other people read."""
        return secrets.hide(text, self._journal.hidden)

    def prompt(self, text: Callable[[], str], stem: str, measure: Measure, same: bool = False) -> Prompt:
        """Write a prompt to its file, report its size, and return its record.

        `stem` is the beginning of the file's name. `same`: no part of the prompt has changed, so `text` is not needed.
        """
        began = clock.monotonic()
        prompt = (self._prompt.unchanged() if same else None) or self._prompt.write(text(), stem, measure)
        self._events.report_problem_of(self.folder)
        elapsed = round(clock.monotonic() - began, 6)
        self.emit(PromptAssembled(phase="assemble", elapsed=elapsed, **prompt._asdict()))
        if prompt.over_budget:
            self.emit(BudgetExceeded(phase="budget", tokens=prompt.tokens, exact=prompt.exact, budget=prompt.budget))
        return prompt

    def last_prompt(self) -> str:
        """Return the text of the last prompt; "" if it is no longer known."""
        return self._prompt.text()

    def check(self, gates: tuple[Gate, ...], iteration: int) -> Gates:
        """Run the quality gates, if there are any, and report the result."""
        if not gates:
            return Gates()
        began = clock.monotonic()
        found = self._commands.check(gates, iteration)
        self.signalled()
        self.calls.require_lock()  # a gate may run code that an agent wrote
        outcome = "interrupted" if found.interrupted else "failure" if found.failed else "success"
        elapsed = round(clock.monotonic() - began, 3)
        self.emit(GatesEnded(phase="gates", elapsed=elapsed, outcome=outcome, summary=found.summary))
        self._events.report_problem_of(self.folder)
        return found

    def run(self, commands: Sequence[Command], together: bool = False) -> list[CommandResult]:
        """Run shell commands in the workspace, such as checks, sensors and verifications."""
        found = self._commands.run(commands, together)
        self.signalled()
        self._events.report_problem_of(self.folder)
        return found

    def wait(self, seconds: float) -> None:
        """Wait for `seconds`, unaffected by clock changes, or until a signal arrives; report the wait as events."""
        last = clock.monotonic() + seconds
        self._wait(clock.now() + seconds, lambda: last - clock.monotonic())

    def _wait_until(self, moment: float, account: str) -> None:
        """Wait until the clock shows `moment`, but not longer than planned if the clock is set back."""
        last = clock.monotonic() + moment - clock.now()
        self._wait(moment, lambda: min(moment - clock.now(), last - clock.monotonic()), account)

    def _wait(self, moment: float, remaining: Callable[[], float], account: str = "") -> None:
        self.calls.sync_state()
        self._purse.sync()
        seconds = round(max(remaining(), 0.0), 1)
        self.emit(Resting(seconds=seconds, until=clock.rfc3339(moment), account=account))
        tick = self.context.tick
        while (left := min(remaining(), self._gate.seconds_left())) > 0 and not self.signalled():
            self._signals.suspend_if_asked()
            if tick:
                tick.work()
            self._signals.wait(min(left, tick.every if tick else CLOCK_INTERVAL))
        self.emit(Rested())

    def close(self) -> None:
        """End every process of the session and close its files."""
        for problem in self._hooks.finish() if self._hooks else ():
            self._events.warn(problem)
        if self._telemetry:
            self._telemetry.close()
        self.calls.sync_state()
        ending.spared.discard(self._awake)
        supervise.end_leftovers(self._signals, self._limits.grace)
        if self._watch:
            self._watch.end(self.folder.run, self.context.workspace)
        if self._walls:
            self._walls.close()
        self._purse.close()
        self._counting.close()
        self._journal.sync()
        self._journal.close()
        self.folder.close()
        self._ledger.close()
        if self._leg:
            self._leg.close()

    def _session_end(self, ended: Json) -> SessionEnd:
        """Return the fields of `run.ended` that all kinds share, such as run time, state and summary."""
        facts: Json = {"refused": self.calls.refused} if self.calls.refused else {}
        folder = self.folder.ready()
        if run_folder.has_foreign_order(folder):
            self._events.warn(f"{os.path.join(folder, run_folder.ORDER_FILE)} is not signed by you; ignoring it")
        order = run_folder.order_of(folder)
        is_over = of_end(ended) in (COMPLETED, FAILED_STATE)  # before the order arrived
        if order.get("order") == run_folder.STOP and not is_over:
            facts |= {"stopped_by": "person", "stopped_because": order["reason"]}
        facts |= {"state": of_end({**ended, **facts}), "summary": self._summing.facts()}
        return SessionEnd(ran=self._gate.session_seconds(), **facts)


def _environment(owner: Owner, run: str) -> dict[str, str]:
    """Return the environment of all agents and commands."""
    kind = owner.kind
    named = {kind.name_variable: owner.name} if kind.name_variable else {}
    base = command.base_environment()
    if collector(owner.setup, base):
        from rooda.run import telemetry

        base = telemetry.without_keys(base)
    return {**base, "ROODA_RUN": run, "ROODA_LOOP": kind.name, **named}


def _context(
    workspace: str, owner: Owner, folder: RunFolder, signals: Signals, tick: Periodic | None
) -> "tuple[SessionWalls | None, CallContext]":
    """Return a session's sandbox, None if it needs none, and the context of all processes of the session."""
    marked, env = linux.mark_self(folder.run), _environment(owner, folder.run)
    walls = walls_of(owner.setup, workspace, env)
    return walls, CallContext(workspace, env, folder, signals, tick, marked, walls)


def walls_of(setup: Setup, workspace: str, env: Mapping[str, str]) -> "SessionWalls | None":
    """Return the sandbox for a setup; None if the setup needs neither a sandbox nor resource limits."""
    if not is_walled(setup):
        return None
    from rooda.run.walls import SessionWalls

    return SessionWalls(workspace, setup, env)


def _notifier() -> "ManagerNotifier | None":
    """Return a notifier if a service manager started rooda, else None."""
    if not os.environ.get("NOTIFY_SOCKET"):
        return None
    from rooda.processes import systemd

    return systemd.notifier()
