"""Connects a worker to Temporal: takes legs and workflows, sends proofs of life, receives orders, drains.

A leg is one stay of a task on this worker. A turn is an iteration of the task's loop. A proof of life is a heartbeat
for all running legs; once Temporal confirms it, the worker reports it to its guardian (processes/dead_man.py).
"""

import asyncio
import os
import queue
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any, NamedTuple, TypeVar

import temporalio.api.workflowservice.v1 as service
from temporalio import activity
from temporalio.client import Client
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from rooda.base import clock, files
from rooda.base.json import Json
from rooda.errors import OK, RoodaError, code_of_signal
from rooda.fleet import names
from rooda.fleet.engine import AWAY, Unreachable, ask, connect, new_identity, require_namespace, state_of
from rooda.fleet.flow import FLOWS
from rooda.fleet.port import AT_TURN, BEATS, NOW, PROTOCOL, Address, Land, Lost, Order, Place, Work
from rooda.processes import dead_man

Value = TypeVar("Value")
AGAIN = 0.3  # seconds until a request is repeated while Temporal does not answer
LAST = 5.0  # longest time, in seconds, that a drained worker waits until its tasks' workflows have its last reports
GOODBYE = 0.5  # seconds until a drain begins, so that its order can be confirmed
FOREVER = timedelta(days=3650)


class Host(NamedTuple):
    """Context of a worker: its place in the fleet, the functions that do its work, and its proofs of life."""

    place: Place
    work: Work
    say: Callable[[str], None]
    land: Land | None = None
    proof: Callable[[float, float], None] = lambda asked, lease: None  # a proof of life, and for how long it is valid
    fenced: bool = True  # False: a leg that the engine gave to another worker goes on (tests of git's own fence)


class Leg:
    """Implements the interface through which one leg reports to Temporal and receives orders."""

    def __init__(self, server: "Server", order: Json, token: bytes, lease: float) -> None:
        self._server, self.order, self._token, self.lease = server, order, token, lease
        self._heard: queue.SimpleQueue[Json] = queue.SimpleQueue()
        self._facts: Json = {}
        self._spends = set[str]()
        self._lost = threading.Event()
        self._sending: asyncio.Task[None] | None = None

    @property
    def name(self) -> str:
        return f"{self.order['workflow']}#{self.order['leg']}"

    @property
    def facts(self) -> Json:
        return self._facts

    # In the leg's threads

    def record(self, facts: Json) -> None:
        self._server.call(self._record(facts))

    def orders(self, timeout: float) -> list[Json]:
        found: list[Json] = []
        try:
            found.append(self._heard.get(timeout=timeout) if timeout > 0 else self._heard.get_nowait())
            while True:
                found.append(self._heard.get_nowait())
        except queue.Empty:
            pass
        self._require_own()
        return [each for each in found if each]

    def money(self, question: Json) -> Json:
        return self._server.call(self._money(question))

    def _require_own(self) -> None:
        if self._lost.is_set():
            raise Lost(f"{self.name} belongs to another worker")

    # In the event loop

    def hear(self, orders: list[Json]) -> None:
        for each in orders:
            self._heard.put(each)

    async def _record(self, facts: Json) -> None:
        self._facts = {**self._facts, **facts}
        await self._server.prove_until(self)
        self._require_own()
        if self._sending is None or self._sending.done():
            self._sending = asyncio.create_task(self._send())

    async def _send(self) -> None:
        """Send the workflow the latest facts; facts that arrive in the meantime are sent together."""
        sent: Json | None = None
        while sent != self._facts and not self._lost.is_set():
            sent = self._facts
            try:
                await self.tell(sent)
            except Lost:  # the next report has the facts
                return

    async def tell(self, facts: Json) -> None:
        server = self._server
        report = {**facts, "leg": self.order["leg"], "worker": server.host.place.name, "queue": server.queue}
        handle = server.client.get_workflow_handle(self.order["workflow"])
        await server.patiently(lambda: handle.signal("turn", report), self)

    async def finish(self) -> None:
        """Wait until the last report has arrived, so that it comes before the leg's end."""
        if self._sending:
            await self._sending

    async def confirm(self, timeout: float) -> None:
        """Prove to Temporal that this leg is alive. Raises RPCError while Temporal does not answer."""
        details = await self._server.client.data_converter.encode_wrapper([self._facts])
        request = service.RecordActivityTaskHeartbeatRequest(
            namespace=self._server.client.namespace, task_token=self._token, details=details
        )
        call = self._server.client.workflow_service.record_activity_task_heartbeat
        try:
            said = await call(request, retry=False, timeout=timedelta(seconds=timeout))
        except RPCError as problem:
            if problem.status not in (RPCStatusCode.NOT_FOUND, RPCStatusCode.INVALID_ARGUMENT):
                raise
            self.lose()
            return
        if said.cancel_requested:
            self.hear([{"order": "hand-back", "at": NOW, "why": "taken back"}])

    def lose(self) -> None:
        if self._server.host.fenced:
            self._lost.set()
            self._heard.put({})  # wakes the thread that waits for orders

    @property
    def is_lost(self) -> bool:
        return self._lost.is_set()

    async def _money(self, question: Json) -> Json:
        self._require_own()
        question = {**question, "leg": self.name}
        digest = files.sha256(str(question.get("account", "")).encode())[:12]
        asked = [(names.account_workflow(digest), {**question, "name": question.get("account", "")})]
        if batch := self.order.get("batch"):
            workflow = names.batch_workflow(self.order["key"], batch)
            asked.append((workflow, {**question, "name": batch, "day": 0}))
        done: list[tuple[str, Json]] = []
        for workflow, each in asked:
            said = await self._ask(workflow, each)
            if said.get("cause"):
                for earlier, _ in done:
                    await self._ask(earlier, {"ask": "release", "calls": [question.get("call")]})
                return said
            done.append((workflow, said))
        return done[0][1]

    async def _ask(self, workflow: str, question: Json) -> Json:
        if workflow not in self._spends:  # the workflow of the task charges it if this worker vanishes
            self._spends.add(workflow)
            self._facts = {**self._facts, "spends": sorted(self._spends)}
            await self.tell(self._facts)
        server, lease = self._server, self.lease
        return await server.patiently(lambda: ask(server.client, workflow, question, lease), self)


class Server:
    """A worker process while it is connected to Temporal."""

    client: Client

    def __init__(self, address: Address, insecure: bool, host: Host) -> None:
        self._address, self._insecure, self.host = address, insecure, host
        self._mark = os.urandom(4).hex()
        self.queue = names.own_queue(host.place.name, self._mark)
        self._legs: dict[str, Leg] = {}
        self._left = set[str]()  # the workflows of the legs that ended while this worker drained
        self._draining: asyncio.Event = asyncio.Event()
        self._when, self._why = AT_TURN, ""
        self._threads = ThreadPoolExecutor(host.place.slots + 1, thread_name_prefix="leg")

    def call(self, work: Coroutine[Any, Any, Value]) -> Value:
        """Run a coroutine in the event loop; called from a leg's thread."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def run(self) -> None:
        """Run legs until drained. Raises RoodaError if Temporal refuses this worker."""
        self._loop = asyncio.get_running_loop()
        if not await self._connected():
            return
        flows, legs, further = self._workers()
        beats = asyncio.create_task(self._beat())
        running = [asyncio.create_task(each.run()) for each in (*flows, legs, *further)]
        stop = asyncio.create_task(self._draining.wait())
        await asyncio.wait([stop, beats, *running], return_when=asyncio.FIRST_COMPLETED)
        if self._draining.is_set():
            await legs.shutdown()
            await self._taken_up()
            await asyncio.gather(*(each.shutdown() for each in (*further, *flows)))
        for task in (beats, stop):
            task.cancel()
        try:
            await asyncio.gather(*running)
        except RuntimeError as problem:  # the library's error for everything that a server refuses to a worker
            what = f"Temporal at {self._address} rejects this worker."
            raise RoodaError(what, "See: rooda fleet doctor", dead_man.FENCED) from problem

    def drain(self, when: str = AT_TURN, why: str = "its worker is drained") -> None:
        """Take no further legs. Running legs hand back their tasks, at the end of the turn or at once (`when`)."""
        self._when, self._why = when, why
        self.host.say(f"Draining: {len(self._legs)} running, no further tasks are taken.")
        for leg in self._legs.values():
            leg.hear([self._hand_back()])
        self._draining.set()

    async def _taken_up(self) -> None:
        """Wait until the workflows of the last legs know that the legs were handed back.

        Workflows run only while a worker serves them, and this worker may be the last one.
        """
        deadline = clock.uptime() + LAST
        for name in sorted(self._left):
            while clock.uptime() < deadline:
                try:
                    found = await self.client.get_workflow_handle(name).describe()
                except RPCError:
                    break
                if not found.raw_description.HasField("pending_workflow_task"):
                    break
                await asyncio.sleep(AGAIN / 3)

    def _hand_back(self) -> Json:
        return {"order": "hand-back", "at": self._when, "why": self._why}

    async def _connected(self) -> bool:
        """Connect to Temporal, however long that takes; return False if the worker must end before that."""
        said = False
        place = self.host.place
        while not self._draining.is_set():
            try:
                identity = new_identity(place, self._mark)
                self.client = await connect(self._address, self._insecure, place.heartbeat, identity)
                await require_namespace(self.client, self._address)
                return True
            except Unreachable as problem:
                if not said:
                    self.host.say(f"{problem.what} {problem.hint} The worker keeps trying.")
                said = True
            await asyncio.wait([asyncio.create_task(self._draining.wait())], timeout=1.0)
        return False

    def _workers(self) -> tuple[list[Worker], Worker, list[Worker]]:
        place = self.host.place
        common: dict[str, Any] = {
            "max_concurrent_activity_task_polls": 1,
            "max_heartbeat_throttle_interval": timedelta(seconds=place.heartbeat / 6),
            "disable_eager_activity_execution": True,
            "graceful_shutdown_timeout": FOREVER,
        }
        flows = [
            Worker(
                self.client,
                task_queue=names.flow_queue(protocol),
                workflows=FLOWS,
                activities=[self._look],
                workflow_runner=UnsandboxedWorkflowRunner(),
                max_cached_workflows=0,  # a vanished machine is not waited for
                max_concurrent_workflow_task_polls=1,
                **common,
            )
            for protocol in range(max(1, PROTOCOL - 1), PROTOCOL + 1)
        ]
        pool, own = names.pool_queue(place.pool), self.queue
        legs = Worker(
            self.client, task_queue=pool, activities=[self._leg], max_concurrent_activities=place.slots, **common
        )
        further = [Worker(self.client, task_queue=own, activities=[self._message], **common)]
        if self.host.land:
            landing = names.land_queue(place.pool)
            further.append(
                Worker(self.client, task_queue=landing, activities=[self._land], max_concurrent_activities=1, **common)
            )
        return flows, legs, further

    # Activities

    @activity.defn(name=names.LEG)
    async def _leg(self, order: Json) -> Json:
        return await self._host(order, lambda leg: self.host.work(_order(order), leg))

    @activity.defn(name=names.LAND)
    async def _land(self, given: Json) -> Json:
        land, order = self.host.land, {**given, "workflow": activity.info().workflow_id, "leg": 0}
        assert land
        return await self._host(order, lambda leg: land(given, leg))

    @activity.defn(name=names.LOOK)
    async def _look(self, workflows: list[str]) -> dict[str, str]:
        return {name: state for name in workflows if (state := await state_of(self.client, name))}

    @activity.defn(name=names.MESSAGE)
    async def _message(self, message: Json) -> None:
        if "drain" in message:
            self._loop.call_later(GOODBYE, self.drain, AT_TURN, str(message["drain"]))
            return
        leg = self._legs.get(f"{message['workflow']}#{message['leg']}")
        if leg is None:
            raise ApplicationError("this leg does not run on this worker", non_retryable=True)
        leg.hear(message["orders"])

    async def _host(self, order: Json, work: Callable[[Leg], Json]) -> Json:
        """Run one leg in a thread. Nothing cancels the thread; the leg receives orders and learns if it is lost."""
        info, place = activity.info(), self.host.place
        if int(order.get("v", 1)) > PROTOCOL:
            why = f"the task needs a newer rooda: its protocol is {order['v']}, that of this worker {PROTOCOL}"
            self.host.say(f"Handed back {order['workflow']}: {why}.")
            return {"kind": "refused", "worker": place.name, "why": why}
        lease = info.heartbeat_timeout.total_seconds() if info.heartbeat_timeout else place.heartbeat
        leg = Leg(self, order, info.task_token, lease)
        self._legs[leg.name] = leg
        try:
            if self._draining.is_set():
                leg.hear([self._hand_back()])
            await self.prove_until(leg)
            return await self._finished(leg, self._threads.submit(self._run, leg, work))
        finally:
            del self._legs[leg.name]
            if self._draining.is_set():
                self._left.add(order["workflow"])

    def _run(self, leg: Leg, work: Callable[[Leg], Json]) -> Json:
        try:
            return work(leg)
        except Lost:
            return {"kind": "lost", "why": "it belongs to another worker"}
        except Exception as problem:  # a leg that fails must not look like a worker that died
            self.host.say(f"{leg.name} failed on this worker: {type(problem).__name__}: {problem}")
            return {"kind": "lost", "why": f"{self.host.place.name} could not work on it ({type(problem).__name__})"}

    async def _finished(self, leg: Leg, running: Any) -> Json:
        future = asyncio.wrap_future(running)
        while not future.done():
            try:
                activity.heartbeat(leg.facts)  # the library cancels an activity that does not send heartbeats itself
                await asyncio.wait([future], timeout=leg.lease / 3)
            except asyncio.CancelledError:
                pass  # `confirm` learns of an order to take the leg back
        await leg.finish()
        said: Json = future.result()
        return said

    # Proof of life

    async def _beat(self) -> None:
        """Prove at regular intervals that all legs are alive. A slow proof does not delay the next one."""
        going = set[asyncio.Task[None]]()
        while True:
            proof = asyncio.create_task(self._prove())
            going.add(proof)
            proof.add_done_callback(going.discard)
            await asyncio.sleep(self._lease / BEATS)

    @property
    def _lease(self) -> float:
        return min([self.host.place.heartbeat, *(leg.lease for leg in self._legs.values())])

    async def _prove(self) -> None:
        asked, lease = clock.uptime(), self._lease
        legs = [leg for leg in self._legs.values() if not leg.is_lost]
        try:
            if legs:
                await asyncio.gather(*(leg.confirm(lease / 3) for leg in legs))
            else:
                request = service.GetSystemInfoRequest()
                await self.client.workflow_service.get_system_info(request, timeout=timedelta(seconds=lease / 3))
        except RPCError:
            return
        self.host.proof(asked, lease)

    async def prove_until(self, leg: Leg) -> None:
        """Return once Temporal has confirmed a leg, or has given it to another worker."""
        await self.patiently(lambda: leg.confirm(leg.lease / 3), leg)

    async def patiently(self, request: Callable[[], Coroutine[Any, Any, Value]], leg: Leg) -> Value:
        """Repeat a request while Temporal does not answer. Raises Lost once another worker has the leg."""
        while True:
            try:
                return await request()
            except RPCError as problem:
                if leg.is_lost or problem.status not in AWAY:
                    raise Lost(str(problem.status)) from None
            await asyncio.sleep(AGAIN)


def _order(given: Json) -> Order:
    """Return an order from JSON. Keys may be missing, if an older rooda submitted the task."""
    known = {key: given[key] for key in Order._fields if key in given}
    return Order(**{**known, "notes": (*given["notes"],)})


def serve(address: Address, insecure: bool, host: Host) -> int:
    """Run legs until drained or ended by a signal; return the exit code. A second signal ends everything at once."""
    signalled: list[int] = []

    async def main() -> None:
        server, loop = Server(address, insecure, host), asyncio.get_running_loop()

        def end(number: int) -> None:
            signalled.append(number)
            if len(signalled) > 1:
                dead_man.announce_exit(code_of_signal(signalled[0]))
                os._exit(code_of_signal(signalled[0]))
            server.drain(NOW, "its worker was ended")

        for number in dead_man.FORWARDED:
            loop.add_signal_handler(number, end, number)
        loop.add_signal_handler(dead_man.ABANDONED, dead_man.end_without_guardian)
        await server.run()

    asyncio.run(main())
    return code_of_signal(signalled[0]) if signalled else OK
