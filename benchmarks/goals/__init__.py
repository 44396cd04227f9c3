"""One module per goal or family of goals; `GOALS` is the list of them."""

from collections.abc import Callable

from benchmarks.bench import Bench
from benchmarks.goals import flow, gap, goal, output, reflex, startup, steady, stopping, waiting
from benchmarks.verdict import Measured

GOALS: dict[int, Callable[[Bench], Measured]] = {
    1: startup.words,
    2: startup.dry_run,
    3: gap.gap,
    4: gap.cpu,
    5: gap.gate,
    6: gap.size,
    7: steady.steady,
    8: waiting.waiting,
    9: output.output,
    10: stopping.stopping,
    13: reflex.iteration,
    14: flow.boundary,
    15: goal.turn,
}
