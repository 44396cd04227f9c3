"""One session of a loop: run folder, journal, ledger, signals, and the effects that every kind of loop shares."""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from rooda.agents import call as agents_call
from rooda.agents import command
from rooda.agents.context import Ground
from rooda.agents.outcome import USAGE_LIMIT, refusal
from rooda.agents.records import Call, Prompt, Reply
from rooda.base import clock, files, secrets
from rooda.base.json import Json
from rooda.errors import TERMINATED, Interrupted
from rooda.processes import detach, linux, supervise
from rooda.processes.ledger import Ledger
from rooda.processes.lock import Lock
from rooda.processes.signals import Signals
from rooda.processes.supervise import Periodic
from rooda.run import evidence, hooks, workspaces
from rooda.run import folder as run_folder
from rooda.run.budget import Turnstile
from rooda.run.commands import Checker, manner_of, understood
from rooda.run.event_records import (
    AgentStarted,
    BudgetExceeded,
    Emit,
    GatesEnded,
    OutputTruncated,
    Problem,
    PromptAssembled,
    Rested,
    Resting,
    SessionEnd,
    StateUnsaved,
)
from rooda.run.events import Events, Journal
from rooda.run.folder import RunFolder, new_id
from rooda.run.owner import TURN_EVENTS, Owner
from rooda.run.prompts import KeptPrompt, Measure
from rooda.run.records import Command, Gate, Gates, Ran

if TYPE_CHECKING:
    from rooda.processes.systemd import ManagerNotifier

NOT_ASKED = Reply(1, 0.0, ended="not-started", outcome=USAGE_LIMIT)
LOOK = 60.0  # seconds between looks at the clock, which may be set while we wait


class Session:
    """Everything that one start or resume opens, and closes again."""

    def __init__(
        self,
        workspace: str,
        owner: Owner,
        signals: Signals,
        show: Callable[[Json], None],
        tick: Periodic | None,
        held: Lock | None,
    ) -> None:
        linux.settle_memory()
        self._began = clock.monotonic()
        self.folder = folder = RunFolder(workspace, new_id(workspace, owner.name))
        detach.report_started(folder.run, folder.ready, workspace)
        linux.adopt_orphans()
        marked = linux.mark_self(folder.run)
        workspaces.note(workspace)
        self._herald = _herald()
        tick = self._herald.with_watchdog(tick) if self._herald else tick
        self._signals, self._manner, self._refused = signals, manner_of(owner.setup), ""
        self._limited: list[str] = []  # transcripts that tell of a usage limit
        kind = owner.kind
        marks = {"ROODA_RUN": folder.run, "ROODA_LOOP": kind.name}
        if kind.name_variable:
            marks[kind.name_variable] = owner.name
        self.ground = Ground(workspace, {**command.inherited(), **marks}, folder, signals, tick, marked)
        self._hooks = hooks.Hooks(owner.setup.hooks, kind.moments, self.ground) if owner.setup.hooks else None
        self._journal = Journal(folder, loop=kind.name, **{kind.name_field: owner.name})
        self._events = Events(self._journal, self._at_the_end)
        self.emit: Emit = self._events.emit
        self.hide(self.ground.env)
        run_folder.note_origin(folder, self.ground.env, workspace, owner.kept, owner.task)
        self._subscribe(show, owner)
        self._ledger = Ledger(held, folder.run, self._warn)
        self._checker = Checker(self.ground, self._manner, self.emit)
        self._prompt = KeptPrompt(folder)
        self._turnstile = Turnstile(owner.setup.budget, self._rest_until, self.signalled, self._warn)
        if owner.resumed:
            self._turnstile.count_earlier(workspace, owner.name, kind.name, owner.setup.agent)
        self.enough = self._turnstile.enough
        signals.when_abandoned = self._ledger.abandon

    def elapsed(self) -> float:
        """Seconds since this session began."""
        return clock.monotonic() - self._began

    def signalled(self) -> int:
        """The signal that came first. Interrupted when the guardian was killed: then this counts as a crash."""
        first = self._signals.first
        if self._signals.abandoned:
            raise Interrupted(first)
        return first

    def _subscribe(self, show: Callable[[Json], None], owner: Owner) -> None:
        """The order counts: the screen shows an event before a hook hears of it."""
        self._events.subscribe(show)
        if self._herald:
            self._events.subscribe(self._herald.tell, self._herald.HEARD)
        if self._hooks:
            self._events.subscribe(self._hook)
        if owner.setup.safety == "snapshot":
            from rooda.run.recorder import Recorder

            recorder = Recorder(self.ground.workspace, self.folder.run, owner, self.emit)
            events = (*TURN_EVENTS, *owner.kind.turn_events)
            self._events.ahead(recorder.before, events)
            self._events.subscribe(recorder.after, events)

    def _hook(self, record: Json) -> None:
        for problem in self._hooks.told(record) if self._hooks else ():
            self._warn(problem)

    def hide(self, environ: Mapping[str, str]) -> None:
        """From now on the keys in these variables are stars."""
        self._journal.hide(environ, self.ground.workspace)

    def clean(self, text: str) -> str:
        """Stars in the place of keys: for files that others read too."""
        return secrets.hide(text, self._journal.hidden)

    def prompt(self, text: Callable[[], str], stem: str, measure: Measure, same: bool = False) -> Prompt:
        """A prompt's file and its facts. `stem` begins the file's name; `same`: nothing it is made of has changed."""
        began = clock.monotonic()
        prompt = (self._prompt.again() if same else None) or self._prompt.keep(text(), stem, measure)
        self._say_problem()
        elapsed = round(clock.monotonic() - began, 6)
        self.emit(PromptAssembled(phase="assemble", elapsed=elapsed, **prompt._asdict()))
        if prompt.over_budget:
            self.emit(BudgetExceeded(phase="budget", tokens=prompt.tokens, exact=prompt.exact, budget=prompt.budget))
        return prompt

    def ask(self, call: Call) -> Reply:
        """One agent call. Who meets a usage limit is asked again when it is over."""
        reply = NOT_ASKED
        while reply is NOT_ASKED and not self.signalled():
            reply = self.ask_all((call,))[0]
        return reply

    def ask_all(self, calls: Sequence[Call]) -> list[Reply]:
        """Several agent calls at once, each when its account allows it. NOT_ASKED for those that met a usage limit."""
        return self.ask_beside(calls, ())[0]

    def ask_beside(self, calls: Sequence[Call], commands: Sequence[Command]) -> tuple[list[Reply], list[Ran]]:
        """The same, while shell commands run in the workspace; none has run if a signal came first."""
        ready = [self._turnstile.passed(self._apart(call)) for call in calls]
        if self.signalled():  # before or while it was waited for
            return [NOT_ASKED] * len(calls), []
        replies, ran = self._ask(ready, commands)
        for place, (call, reply) in enumerate(zip(ready, replies, strict=True)):
            if self._turnstile.counted(call, reply):
                self._limited.append(agents_call.transcript_name(calls[place]))
                replies[place] = NOT_ASKED
        return replies, ran

    def _apart(self, call: Call) -> Call:
        """The call with a name of its own for what it prints, if it is made once more."""
        tries = self._limited.count(agents_call.transcript_name(call)) + 1
        return call if tries == 1 else call._replace(label=f"{call.label or call.kind}-{tries}")

    def _ask(self, calls: Sequence[Call], commands: Sequence[Command]) -> tuple[list[Reply], list[Ran]]:
        for call in calls:
            transcript = os.path.join(self.folder.ready(), agents_call.transcript_name(call))
            self.hide({**call.agent.env, **call.env})
            self.emit(
                AgentStarted(
                    phase="execute",
                    call=call.kind,
                    transcript=transcript,
                    agent=call.agent.name,
                    output=call.agent.output,
                    model=call.agent.model,
                )
            )
        self._keep_the_lock()
        self._ledger.turn()
        agents, checks = agents_call.ready(calls, self.ground, self._begun), self._checker.ready(commands)
        specs, signals = [*agents.specs, *checks], self.ground.signals
        ended = supervise.run_all(specs, signals, agents.tick, self._sync)
        replies = agents.replies(ended[: len(agents.specs)])
        self.signalled()
        self._keep_the_lock()
        self._refused = next(filter(None, map(refusal, replies)), "")
        for call, reply in zip(calls, replies, strict=True):
            self.emit(evidence.of(call, reply, self._turnstile.ran(), self._journal.hidden))
            if reply.truncated:
                self.emit(OutputTruncated(size=reply.size, limit=call.bounds.max_output_buffer))
        self._say_problem()
        return replies, understood(ended[len(agents.specs) :], checks)

    def check(self, gates: tuple[Gate, ...], iteration: int) -> Gates:
        """No gates: no step, no word."""
        if not gates:
            return Gates()
        began = clock.monotonic()
        found = self._checker.check(gates, iteration)
        self.signalled()
        outcome = "interrupted" if found.interrupted else "failure" if found.failed else "success"
        elapsed = round(clock.monotonic() - began, 3)
        self.emit(GatesEnded(phase="gates", elapsed=elapsed, outcome=outcome, summary=found.summary))
        self._say_problem()
        return found

    def run(self, commands: Sequence[Command], together: bool = False) -> list[Ran]:
        """Shell commands in the workspace: checks, sensors, verifications."""
        found = self._checker.run(commands, together)
        self.signalled()
        self._say_problem()
        return found

    def rest(self, seconds: float) -> None:
        """Wait so long, whatever becomes of the clock, and say so; a signal ends it."""
        last = clock.monotonic() + seconds
        self._rest(clock.now() + seconds, lambda: last - clock.monotonic())

    def _rest_until(self, moment: float, who: str) -> None:
        """Until the clock shows it, even if it was set meanwhile or the machine slept; never longer than it seemed."""
        last = clock.monotonic() + moment - clock.now()
        self._rest(moment, lambda: min(moment - clock.now(), last - clock.monotonic()), who)

    def _rest(self, moment: float, how_long: Callable[[], float], who: str = "") -> None:
        self._settle()
        seconds = round(max(how_long(), 0.0), 1)
        self.emit(Resting(seconds=seconds, until=clock.rfc3339(moment), account=who))
        tick = self.ground.tick
        while (left := min(how_long(), self._turnstile.left())) > 0 and not self.signalled():
            self._signals.suspend_if_asked()
            if tick:
                tick.work()
            self._signals.wait(min(left, tick.every if tick else LOOK))
        self.emit(Rested())

    def close(self) -> None:
        """Nobody lives on, and the ledger says so."""
        for problem in self._hooks.finish() if self._hooks else ():
            self._warn(problem)
        self._settle()
        supervise.end_leftovers(self._signals, self._manner.grace)
        self._journal.sync()
        self._journal.close()
        self.folder.close()
        self._ledger.close()

    def _at_the_end(self) -> SessionEnd:
        """How long it ran, what refused its last call, and why a person ended it from another terminal, if one did."""
        from rooda.run import folder

        told: Json = {"refused": self._refused} if self._refused else {}
        order = folder.order_of(self.folder.ready())
        if order.get("order") == folder.STOP:
            told |= {"stopped_by": "person", "stopped_because": order["reason"]}
        return SessionEnd(ran=self._turnstile.ran(), **told)

    def _keep_the_lock(self) -> None:
        """Interrupted when another run has taken our place; whatever state is on disk is its own."""
        if not self._ledger.renew():
            raise Interrupted(TERMINATED - 128)

    def _begun(self, pid: int, command: str) -> None:
        """Into the ledger: at once if after a crash we knew it by nothing else; else there is time while it loads."""
        if self.ground.marked:
            self._ahead()
        self._ledger.enter(pid, command)
        if not self.ground.marked:
            self._ahead()

    def _ahead(self) -> None:
        """What would make the time between two calls longer, done while one is made."""
        self._settle()
        self.folder.make_spare()
        files.release_replaced()

    def _settle(self) -> None:
        """No power cut takes the last state from us now."""
        try:
            files.sync_replaced()
        except OSError as problem:
            self.emit(StateUnsaved(path=problem.filename, why=problem.strerror or str(problem)))

    def _sync(self) -> None:
        """While agents work it costs nothing: the loop has to wait anyway."""
        self._ledger.sync()
        self._journal.sync()

    def _say_problem(self) -> None:
        problem = self.folder.take_problem()
        if problem:
            self._warn(problem)

    def _warn(self, text: str) -> None:
        self.emit(Problem(text=text))


def _herald() -> "ManagerNotifier | None":
    """Whom a service manager hears; None where there is none."""
    if not os.environ.get("NOTIFY_SOCKET"):
        return None
    from rooda.processes import systemd

    return systemd.notifier()
