"""Defines Temporal's workflows: a task, an account or batch, the landing of one target, a message to a worker.

Temporal replays them from history, so they call only decide.py, money.py, and Temporal's timers, signals and
activities. A leg is one stay of a task on a worker, from its claim of the task to the end of the task's loop there.
"""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.common import Priority, RetryPolicy
from temporalio.exceptions import ActivityError, ApplicationError, CancelledError

from rooda.base import clock
from rooda.base.json import Json
from rooda.fleet import decide, money
from rooda.fleet.names import DAY, LAND, LEG, LOOK, MESSAGE, land_queue, pool_queue

ONCE = RetryPolicy(maximum_attempts=1)
LONG = timedelta(days=3650)
ASKED = 8  # questions after which an account begins a new history, because each answer reads the whole history
LOOKING = 3.0  # seconds that a vanished machine may hold a question before it is asked again
RETRY = 2.0  # seconds until an order is sent again to a worker that did not take it


def _now() -> float:
    return workflow.now().timestamp()


def _stamp(seconds: float) -> str:
    return clock.rfc3339(seconds)


@workflow.defn(name="rooda-task")
class TaskFlow:
    """A task's workflow: gives legs to workers, waits, and takes orders, until the task has landed or was cancelled."""

    @workflow.init
    def __init__(self, given: Json) -> None:
        self._state, self._shown, self._renewing = decide.decode(given), dict[str, Any](), False

    @workflow.run
    async def run(self, given: Json) -> Json:
        while not self._state.task.is_over:
            step = decide.step(self._state, _now())
            if step.leg:
                await self._leg()
            else:
                self._show()
                await self._wait(step.seconds)
            if workflow.info().is_continue_as_new_suggested() and workflow.all_handlers_finished():
                workflow.continue_as_new(decide.encode(self._state))
        self._show()
        await self._tell_watchers()
        return decide.encode(self._state)

    @workflow.signal
    def order(self, order: Json) -> None:
        self._state = decide.ordered(self._state, order, _stamp(_now()))

    @workflow.signal
    def turn(self, facts: Json) -> None:
        self._state = decide.turned(self._state, facts, _stamp(_now()))

    async def _wait(self, seconds: float | None) -> None:
        before = self._state
        if before.after:
            seconds = await self._ask_others()
        await _until(lambda: self._state is not before, seconds)

    async def _leg(self) -> None:
        self._state = decide.queued(self._state)
        self._show()
        queue, beat = pool_queue(self._state.pool), self._state.heartbeat
        order = decide.leg_order(self._state, workflow.info().workflow_id)
        leg = workflow.start_activity(
            LEG,
            order,
            task_queue=queue,
            priority=Priority(priority_key=decide.rank(self._state)),
            heartbeat_timeout=timedelta(seconds=beat),
            start_to_close_timeout=LONG,
            retry_policy=ONCE,
            cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
        )
        while not leg.done():
            self._show()
            await self._listen(leg, self._state)
        await self._settle(leg)

    async def _listen(self, leg: Any, before: decide.State) -> None:
        """Pass orders on to the worker, and wait until the leg ends or something else changes."""
        await self._pass_on(leg)
        again = RETRY if decide.to_pass(before) else None
        await _until(lambda: leg.done() or self._state is not before, again)

    async def _pass_on(self, leg: Any) -> None:
        """Send the running leg its new orders; take back a queued leg if an order changes how the leg begins."""
        if self._state.recall and not self._state.queue:
            leg.cancel()
        if workflow.info().is_continue_as_new_suggested() and not self._renewing:
            self._renewing = True  # only between legs can the workflow begin a new history
            self.order({"order": "hand-back", "why": "its history is long"})
        orders = decide.to_pass(self._state)
        if not orders or leg.done():
            return
        message = {"workflow": workflow.info().workflow_id, "leg": self._state.leg, "orders": orders}
        if await _send(self._state.queue, message, self._state.heartbeat):
            self._state = decide.passed(self._state, orders)

    async def _settle(self, leg: Any) -> None:
        """Change the task's state after a leg has ended."""
        before = self._state
        try:
            said = await leg
        except ActivityError as problem:
            if isinstance(problem.cause, CancelledError):
                self._state = decide.recalled(self._state, _stamp(_now()))
                return
            self._state = decide.lost(self._state, _stamp(_now()), **_reason(problem))
            await self._charge(before)
            return
        now = _now()
        tomorrow = _stamp(now - now % DAY + DAY)
        self._state = decide.ended(self._state, said, now, _stamp(now), tomorrow)
        if until := clock.parse_time(self._state.task.until) if self._state.task.until else None:
            late = workflow.random().uniform(0, min(30.0, max(0.0, until - now) / 10))
            self._state = self._state._replace(wake=until + late)

    async def _charge(self, before: decide.State) -> None:
        """Charge the amounts that the calls of a lost leg had reserved."""
        question = {"ask": "lost", "leg": f"{workflow.info().workflow_id}#{before.leg}"}
        for name in before.spends:
            await _signal(name, "tell", question)

    async def _ask_others(self) -> float | None:
        """Ask the tasks that this one waits for to report their end.

        Return None if all of them will, else the seconds until the next try.
        """
        me, closed = {"order": "watch", "workflow": workflow.info().workflow_id}, list[str]()
        for name in self._state.after:
            closed += [] if await _signal(name, "order", me) else [name]
        for name, state in (await _look(closed)).items() if closed else ():
            self.order({"order": "over", "workflow": name, "state": state})
        return decide.LONGEST_WAIT if closed else None

    async def _tell_watchers(self) -> None:
        report = {"order": "over", "workflow": workflow.info().workflow_id, "state": self._state.task.state}
        for name in self._state.watchers:
            await _signal(name, "order", report)

    def _show(self) -> None:
        memo = decide.memo(self._state)
        changed = {key: value for key, value in memo.items() if self._shown.get(key) != value}
        if changed:
            self._shown = memo
            workflow.upsert_memo(changed)


def _reason(problem: ActivityError) -> dict[str, str]:
    """Return the argument `why` of decide.lost: the failure that the worker reported; {} if it reported none."""
    cause = problem.cause
    return {"why": f"its worker failed: {cause.message}"} if isinstance(cause, ApplicationError) else {}


async def _until(condition: Callable[[], bool], seconds: float | None) -> None:
    """Wait until a condition is true, for at most `seconds` (None: no limit)."""
    try:
        await workflow.wait_condition(condition, timeout=seconds)
    except TimeoutError:
        pass


async def _signal(name: str, signal: str, value: Json) -> bool:
    """Send another workflow a signal; return False if that workflow is not open."""
    try:
        await workflow.get_external_workflow_handle(name).signal(signal, value)
    except ApplicationError:
        return False
    return True


async def _look(names: list[str]) -> dict[str, str]:
    """Return the state of each task that Temporal knows, open or closed."""
    found: dict[str, str] = await workflow.execute_activity(
        LOOK, names, start_to_close_timeout=timedelta(seconds=LOOKING), result_type=dict
    )
    return found


async def _send(queue: str, message: Json, heartbeat: float) -> bool:
    """Send a worker a message through its own queue; return False if the worker does not take it."""
    try:
        await workflow.execute_activity(
            MESSAGE,
            message,
            task_queue=queue,
            schedule_to_close_timeout=timedelta(seconds=heartbeat),
            retry_policy=ONCE,
        )
    except ActivityError:
        return False
    return True


@workflow.defn(name="rooda-money")
class MoneyFlow:
    """The workflow of an account or a batch. It answers requests to reserve or pay a cost, one at a time."""

    @workflow.init
    def __init__(self, given: Json) -> None:
        self._account, self._asked = money.decode(given), 0

    @workflow.run
    async def run(self, given: Json) -> None:
        await workflow.wait_condition(lambda: self._asked >= ASKED and workflow.all_handlers_finished())
        workflow.continue_as_new(money.encode(self._account))

    @workflow.update
    def ask(self, question: Json) -> Json:
        return self._answer(question)

    @workflow.signal
    def tell(self, question: Json) -> None:
        self._answer(question)

    def _answer(self, question: Json) -> Json:
        self._asked += 1
        now = _now()
        self._account, found = money.answer(self._account, question, now, _stamp(now)[:10])
        return found


@workflow.defn(name="rooda-land")
class LandFlow:
    """The workflow that lands the tasks of one target. A second request joins it and makes it run one more pass."""

    @workflow.init
    def __init__(self, given: Json) -> None:
        self._again = 0

    @workflow.signal
    def again(self, given: Json) -> None:
        self._again += 1

    @workflow.run
    async def run(self, given: Json) -> Json:
        pause, done = 1.0, list[Json]()
        while True:
            seen = self._again
            said = await self._land(given)
            if said.get("kind") == "refused" or "lost" in said:
                await workflow.sleep(pause)
                pause = min(decide.LONGEST_WAIT, pause * 2)
                continue
            done.append(said)
            if seen == self._again:
                return decide.landed(done)

    async def _land(self, given: Json) -> Json:
        try:
            said: Json = await workflow.execute_activity(
                LAND,
                given,
                task_queue=land_queue(given.get("pool", "default")),
                heartbeat_timeout=timedelta(seconds=given["heartbeat"]),
                start_to_close_timeout=LONG,
                retry_policy=ONCE,
            )
        except ActivityError:
            return {"lost": True}
        return said


@workflow.defn(name="rooda-message")
class MessageFlow:
    """The workflow that carries a message from the command line to one worker, such as the order to drain."""

    @workflow.run
    async def run(self, given: Json) -> bool:
        return await _send(given["queue"], given["message"], given["heartbeat"])


@workflow.defn(name="rooda-hold")
class HoldFlow:
    """A workflow that is open while all tasks of a repository are paused."""

    @workflow.run
    async def run(self) -> None:
        await workflow.wait_condition(lambda: False)


FLOWS = (TaskFlow, MoneyFlow, LandFlow, MessageFlow, HoldFlow)
