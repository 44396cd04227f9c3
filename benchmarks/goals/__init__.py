"""One module per goal or family of goals; `PARTS` is the list of what can be measured."""

from collections.abc import Callable

from benchmarks.bench import Bench
from benchmarks.goals import (
    everything,
    flow,
    gap,
    goal,
    growth,
    left,
    output,
    page,
    peers,
    publishing,
    reflex,
    sandbox,
    snapshots,
    startup,
    steady,
    stopping,
    tasks,
    today,
    tokens,
    trust,
    waiting,
)
from benchmarks.verdict import Measured

PARTS: dict[str, Callable[[Bench], Measured]] = {
    "startup": startup.words,
    "dry-run": startup.dry_run,
    "gap": gap.gap,
    "cpu": gap.cpu,
    "gate": gap.gate,
    "prompt": gap.size,
    "steady": steady.steady,
    "everything": everything.everything,
    "waiting": waiting.waiting,
    "output": output.output,
    "stopping": stopping.stopping,
    "left": left.left,
    "tokens": tokens.tokens,
    "reflex": reflex.iteration,
    "flow": flow.boundary,
    "goal": goal.turn,
    "snapshots": snapshots.snapshot,
    "trust": trust.known,
    "sandbox": sandbox.cost,
    "tasks": tasks.tasks,
    "page": page.page,
    "publishing": publishing.publishing,
    "growth": growth.growth,
    "peers": peers.peers,
    "today": today.today,
}
