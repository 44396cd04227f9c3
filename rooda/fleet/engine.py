"""Connects to Temporal and carries out the requests of the command line. `serve.py` is the worker's side."""

import asyncio
import os
from collections.abc import Coroutine, Mapping
from datetime import timedelta
from typing import Any, TypeVar

import temporalio.api.enums.v1
import temporalio.api.taskqueue.v1
import temporalio.api.workflowservice.v1 as service
from temporalio.client import (
    Client,
    WithStartWorkflowOperation,
    WorkflowExecutionStatus,
    WorkflowFailureError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.envconfig import ClientConfig
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.runtime import LoggingConfig, Runtime, TelemetryConfig
from temporalio.service import KeepAliveConfig, RPCError, RPCStatusCode

from rooda.base import clock
from rooda.base.json import Json
from rooda.errors import RoodaError, UsageProblem
from rooda.fleet import decide, money, names
from rooda.fleet.port import Address, Place, Wish

Value = TypeVar("Value")
HURRY = 0.25  # part of the heartbeat timeout that a workflow task may take, since a vanished machine may hold one
SLOWEST = 3000  # milliseconds in which a busy server still answers a ping of its connection
PATIENCE = 10.0  # seconds that one request of the command line may take
AWAY = (
    RPCStatusCode.UNAVAILABLE,
    RPCStatusCode.DEADLINE_EXCEEDED,
    RPCStatusCode.CANCELLED,
    RPCStatusCode.UNKNOWN,
    RPCStatusCode.RESOURCE_EXHAUSTED,
    RPCStatusCode.INTERNAL,
    RPCStatusCode.ABORTED,
)


class Unreachable(RoodaError):
    """Raised if Temporal does not answer."""


def task_timeout(heartbeat: float) -> timedelta:
    return timedelta(seconds=max(1.0, heartbeat * HURRY))


def connection(address: Address, insecure: bool) -> dict[str, Any]:
    """Return the client's settings: Temporal's own, such as TLS and API key, plus the address's host and namespace.

    Raises UsageProblem if the connection would be unencrypted, unless the address is local or `insecure` is set.
    """
    try:
        found: dict[str, Any] = {**ClientConfig.load_client_connect_config()}
    except Exception:  # its message may quote a value
        what = "Temporal's own settings (TEMPORAL_… variables, or its configuration file) can't be read."
        raise UsageProblem(what, "Check them with: temporal config list") from None
    found |= {"target_host": address.host, "namespace": address.namespace}
    if not found.get("tls") and found.get("api_key"):
        found["tls"] = True
    if not found.get("tls") and not address.is_local and not insecure:
        what = f"{address} is not encrypted: Temporal's settings have no TLS, and the address is not this machine."
        raise UsageProblem(
            what, "Set up TLS or an API key (TEMPORAL_TLS, TEMPORAL_API_KEY), or set insecure = true in [fleet]."
        )
    return found


async def connect(address: Address, insecure: bool, heartbeat: float, identity: str = "") -> Client:
    """Return a client. Raises Unreachable if nothing answers, and RoodaError if Temporal refuses the login."""
    settings = connection(address, insecure)
    beat = max(1000, int(heartbeat * 1000 / 6))
    runtime = Runtime(telemetry=TelemetryConfig(logging=_SILENT), worker_heartbeat_interval=None)
    try:
        return await Client.connect(
            **settings,
            identity=identity or None,
            runtime=runtime,
            keep_alive_config=KeepAliveConfig(interval_millis=beat, timeout_millis=max(beat, SLOWEST)),
        )
    except (RuntimeError, RPCError, ValueError) as problem:
        raise no_connection(address, str(problem)) from problem


def no_connection(address: Address, words: str) -> RoodaError:
    """Return the error for a connection that failed. `words`: the error text of Temporal's client."""
    if "code: Unauthenticated" in words or "code: PermissionDenied" in words:
        return RoodaError(f"Temporal at {address} refuses this login.", "Check TEMPORAL_API_KEY, or the certificate.")
    if "InvalidCertificate" in words:
        what = f"Temporal does not answer at {address} with a certificate that this machine trusts."
        return Unreachable(what, "Name the file with its authority's certificate: TEMPORAL_TLS_SERVER_CA_CERT_PATH")
    what = f"Temporal does not answer at {address}."
    return Unreachable(what, "Start it, or correct the address: --fleet, or [fleet] address.")


async def require_namespace(client: Client, address: Address) -> None:
    """Raise Unreachable if the namespace does not exist. A dev server answers before it has made its namespace."""
    try:
        request = service.DescribeNamespaceRequest(namespace=address.namespace)
        await client.workflow_service.describe_namespace(request, timeout=timedelta(seconds=PATIENCE))
    except RPCError as problem:
        if problem.status in (*AWAY, RPCStatusCode.NOT_FOUND):
            what = f"Temporal at {address.host} has no namespace {address.namespace}."
            raise Unreachable(what, "See: rooda fleet doctor") from problem


_SILENT = LoggingConfig(filter="off")


class Engine:
    """Temporal, as the command line uses it. Not safe for use in several threads."""

    def __init__(self, address: Address, heartbeat: float = 60.0, insecure: bool = False) -> None:
        self.address, self.heartbeat = address, heartbeat
        self._runner = asyncio.Runner()
        self.client = self._run(connect(address, insecure, heartbeat))

    def submit(self, wish: Wish) -> bool:
        """Submit a task; return False if Temporal already has it, whether open or ended."""
        return self._run(self._submit(wish))

    def order(self, workflow: str, order: Json) -> None:
        """Send a task an order. Raises UsageProblem if the task is over or unknown."""
        self._run(self._signal(workflow, "order", order))

    def board(self, key: str) -> list[Json]:
        """Return all tasks of a repository, each with the keys `workflow`, `open`, `task`, `fleet` and `ticket`."""
        return self._run(self._list(f'WorkflowId STARTS_WITH "{names.task_prefix(key)}"'))

    def show(self, workflow: str) -> Json | None:
        """Return the current data of one task, with the same keys as in `board`; None if the task is unknown."""
        return self._run(self._show(workflow))

    def every_task(self) -> list[Json]:
        return self._run(self._list('WorkflowType = "rooda-task"'))

    def hold(self, key: str, order: Json) -> None:
        """Send an order to every open task of a repository. `pause` also applies to new tasks until a `continue`."""
        self._run(self._hold(key, order))

    def money(self, workflow: str, question: Json) -> Json:
        """Ask the workflow of an account or a batch to reserve or pay a cost; return its answer."""
        return self._run(ask(self.client, workflow, question, self.heartbeat))

    def land(self, key: str, target: str, wish: Json) -> Json:
        """Land the tasks of a target, or join the landing that is running; return its result."""
        return self._run(self._land(key, target, wish))

    def workers(self) -> list[Json]:
        """Return the workers that polled Temporal for work in the last few minutes."""
        return self._run(self._workers())

    def message(self, queue: str, message: Json) -> bool:
        """Send one worker a message; return False if the worker does not take it."""
        return self._run(self._message(queue, message))

    def partitions(self, pool: str) -> int:
        """Return the number of partitions of a pool's queue."""
        return self._run(self._partitions(pool))

    def about(self) -> Json:
        """Return the server's version, and the namespace's name ("" if it does not exist) and retention."""
        return self._run(self._about())

    def clock_ahead(self) -> float:
        """Return the seconds by which this machine's clock is ahead of the server's."""
        return self._run(self._clock_ahead())

    def close(self) -> None:
        self._runner.close()

    def _run(self, work: Coroutine[Any, Any, Value]) -> Value:
        try:
            return self._runner.run(work)
        except RPCError as problem:
            if problem.status in AWAY:
                what = f"Temporal does not answer at {self.address}."
                raise Unreachable(what, "See: rooda fleet doctor") from None
            raise RoodaError(f"Temporal at {self.address} refused the request: {problem.message}") from None

    async def _submit(self, wish: Wish) -> bool:
        until = str(wish.task.get("until") or "")
        wake, paused = (clock.parse_time(until) if until else None) or 0.0, await self._is_held(wish.key)
        given = decide.begin(wish._asdict(), self.heartbeat, wake, paused)
        memo: Mapping[str, Any] = {**decide.memo(decide.decode(given)), "ticket": wish.ticket}
        if wish.batch and wish.batch_cost:
            await self._set_batch(wish)  # before the first call
        try:
            await self.client.start_workflow(
                "rooda-task",
                given,
                id=wish.workflow,
                task_queue=names.flow_queue(wish.v),
                task_timeout=task_timeout(self.heartbeat),
                id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
                memo=memo,
            )
        except WorkflowAlreadyStartedError:
            return False
        if not paused and await self._is_held(wish.key):  # paused in the meantime
            await self._signal(wish.workflow, "order", decide.ALL_PAUSED)
        return True

    async def _set_batch(self, wish: Wish) -> None:
        limit = {"ask": "limit", "limit": wish.batch_cost}
        workflow = names.batch_workflow(wish.key, wish.batch)
        await self.client.start_workflow(
            "rooda-money",
            first_account(workflow, wish.batch),
            id=workflow,
            task_queue=names.flow_queue(),
            task_timeout=task_timeout(self.heartbeat),
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            start_signal="tell",
            start_signal_args=[limit],
        )

    async def _signal(self, workflow: str, signal: str, value: Json) -> None:
        try:
            await self.client.get_workflow_handle(workflow).signal(signal, value)
        except RPCError as problem:
            if problem.status != RPCStatusCode.NOT_FOUND:
                raise
            raise UsageProblem(
                "This task is over, or the fleet does not know it.", "See: rooda tasks --fleet"
            ) from None

    async def _list(self, query: str) -> list[Json]:
        found = []
        async for each in self.client.list_workflows(query):
            memo = await each.memo()
            found.append(_told(each.id, each.status == WorkflowExecutionStatus.RUNNING, memo))
        return found

    async def _show(self, workflow: str) -> Json | None:
        try:
            described = await self.client.get_workflow_handle(workflow).describe()
        except RPCError as problem:
            if problem.status == RPCStatusCode.NOT_FOUND:
                return None
            raise
        is_open = described.status == WorkflowExecutionStatus.RUNNING
        return _told(workflow, is_open, await described.memo())

    async def _is_held(self, key: str) -> bool:
        try:
            found = await self.client.get_workflow_handle(names.hold_workflow(key)).describe()
        except RPCError as problem:
            if problem.status == RPCStatusCode.NOT_FOUND:
                return False
            raise
        return found.status == WorkflowExecutionStatus.RUNNING

    async def _hold(self, key: str, order: Json) -> None:
        lasting, name = order["order"] == "pause", names.hold_workflow(key)
        if lasting:
            await self.client.start_workflow(
                "rooda-hold",
                id=name,
                task_queue=names.flow_queue(),
                id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            )
        elif order["order"] == "continue" and await self._is_held(key):
            await self.client.get_workflow_handle(name).terminate("continued")
        told = set[str]()
        for pause in (0.0, 1.0):  # a list may lag behind a task that was just added
            await asyncio.sleep(pause)
            tasks = await self._list(f'WorkflowId STARTS_WITH "{names.task_prefix(key)}"')
            for each in tasks:
                if each["open"] and each["workflow"] not in told:
                    told.add(each["workflow"])
                    await self._signal_if_open(each["workflow"], order)

    async def _signal_if_open(self, workflow: str, order: Json) -> None:
        try:
            await self._signal(workflow, "order", order)
        except UsageProblem:
            pass

    async def _land(self, key: str, target: str, wish: Json) -> Json:
        handle = await self.client.start_workflow(
            "rooda-land",
            {**wish, "heartbeat": self.heartbeat},
            id=names.land_workflow(key, target),
            task_queue=names.flow_queue(),
            task_timeout=task_timeout(self.heartbeat),
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            start_signal="again",
            start_signal_args=[wish],
        )
        said: Json = await handle.result()
        return said

    async def _workers(self) -> list[Json]:
        request = service.DescribeTaskQueueRequest(
            namespace=self.client.namespace,
            task_queue=temporalio.api.taskqueue.v1.TaskQueue(name=names.flow_queue()),
            task_queue_type=temporalio.api.enums.v1.TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW,
        )
        answer = await self.client.workflow_service.describe_task_queue(request, timeout=timedelta(seconds=PATIENCE))
        found = []
        for poller in answer.pollers:
            if parts := names.from_identity(poller.identity):
                found.append({**parts, "seen": poller.last_access_time.ToMicroseconds() / 1e6})
        return found

    async def _message(self, queue: str, message: Json) -> bool:
        given = {"queue": queue, "message": message, "heartbeat": self.heartbeat}
        handle = await self.client.start_workflow(
            "rooda-message",
            given,
            id=f"rooda-message/{os.urandom(8).hex()}",
            task_queue=names.flow_queue(),
            task_timeout=min(task_timeout(self.heartbeat), timedelta(seconds=2)),
            execution_timeout=timedelta(seconds=3 * self.heartbeat),
        )
        try:
            return bool(await asyncio.wait_for(handle.result(), 3 * PATIENCE))
        except (TimeoutError, WorkflowFailureError):
            return False

    async def _partitions(self, pool: str) -> int:
        queue = temporalio.api.taskqueue.v1.TaskQueue(name=names.pool_queue(pool))
        request = service.ListTaskQueuePartitionsRequest(namespace=self.client.namespace, task_queue=queue)
        answer = await self.client.workflow_service.list_task_queue_partitions(request)
        return len(answer.activity_task_queue_partitions)

    async def _about(self) -> Json:
        system = await self.client.workflow_service.get_system_info(service.GetSystemInfoRequest())
        found: Json = {"version": system.server_version, "namespace": "", "retention": 0.0}
        try:
            request = service.DescribeNamespaceRequest(namespace=self.client.namespace)
            space = await self.client.workflow_service.describe_namespace(request)
        except RPCError as problem:
            if problem.status != RPCStatusCode.NOT_FOUND:
                raise
            return found
        kept = space.config.workflow_execution_retention_ttl.ToTimedelta().total_seconds()
        return {**found, "namespace": space.namespace_info.name, "retention": kept}

    async def _clock_ahead(self) -> float:
        before = clock.now()
        name = f"rooda-doctor/{os.urandom(8).hex()}"
        handle = await self.client.start_workflow("rooda-hold", id=name, task_queue=names.flow_queue())
        middle = (before + clock.now()) / 2
        begun = (await handle.describe()).start_time.timestamp()
        await handle.terminate("the clock was read")
        return middle - begun


def _told(workflow: str, is_open: bool, memo: Mapping[str, Any]) -> Json:
    task, fleet = memo.get("task", {}), memo.get("fleet", {})
    task = {**task, "text": memo.get("text", "")} if task else task
    return {"workflow": workflow, "open": is_open, "task": task, "fleet": fleet, "ticket": memo.get("ticket")}


def first_account(workflow: str, name: str) -> Json:
    """Return the state with which the workflow of an account or a batch begins."""
    budget = "batch" if workflow.startswith(names.batch_workflow("", "").rstrip("/")) else "agent"
    return money.encode(money.Account(name, budget))


async def ask(client: Client, workflow: str, question: Json, heartbeat: float) -> Json:
    """Ask the workflow of an account or a batch to reserve or pay a cost. The first request creates the workflow.

    A request is sent again if the workflow was just beginning a new history, so a request may arrive twice.
    """
    while True:
        try:
            return await _ask(client, workflow, question, heartbeat)
        except WorkflowUpdateRPCTimeoutOrCancelledError:
            raise RPCError("no answer in time", RPCStatusCode.DEADLINE_EXCEEDED, b"") from None
        except RPCError as problem:
            if problem.status != RPCStatusCode.FAILED_PRECONDITION:
                raise
        await asyncio.sleep(0.05)


async def _ask(client: Client, workflow: str, question: Json, heartbeat: float) -> Json:
    limit = timedelta(seconds=heartbeat)
    try:
        handle = client.get_workflow_handle(workflow)
        said: Json = await handle.execute_update("ask", question, rpc_timeout=limit)
        return said
    except RPCError as problem:
        if problem.status != RPCStatusCode.NOT_FOUND:
            raise
    start = WithStartWorkflowOperation[Any, Any](
        "rooda-money",
        first_account(workflow, str(question.get("name", ""))),
        id=workflow,
        task_queue=names.flow_queue(),
        task_timeout=task_timeout(heartbeat),
        id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
    )
    try:
        said = await client.execute_update_with_start_workflow(
            "ask", question, start_workflow_operation=start, rpc_timeout=limit
        )
    except RPCError:
        await asyncio.gather(start.workflow_handle(), return_exceptions=True)  # else asyncio prints it
        raise
    return said


def new_identity(place: Place, mark: str) -> str:
    return names.identity(place.name, place.pool, place.slots, mark)


async def state_of(client: Client, workflow: str) -> str:
    """Return the state of a task; "" if the engine no longer knows it."""
    try:
        memo = await (await client.get_workflow_handle(workflow).describe()).memo()
    except RPCError as problem:
        if problem.status == RPCStatusCode.NOT_FOUND:
            return ""
        raise
    task: Json = memo.get("task", {})
    return str(task.get("state", ""))
