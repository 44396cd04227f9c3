"""Quality gates: shell commands in the workspace, each in its own group, with its own time and output file."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from rooda.model import Gate, GateResult, Gates
from rooda.policy.durations import plain
from rooda.world import process
from rooda.world.ground import Ground

Note = Callable[[str, Mapping[str, object]], None]  # event, facts


class Limits(NamedTuple):
    """What holds for every gate."""

    grace: float
    cap: int  # bytes of output kept
    keep: bool  # leave alone what the agent was allowed to leave behind


class Checker:
    """Runs the gates of one run."""

    def __init__(self, ground: Ground, limits: Limits, note: Note) -> None:
        self._ground, self._limits, self._note = ground, limits, note

    def check(self, gates: tuple[Gate, ...], iteration: int) -> Gates:
        """All of them, in order: one failing gate does not hide the next. A signal ends the round."""
        results: list[GateResult] = []
        for place, gate in enumerate(gates, 1):
            self._note("gate.started", {"gate": gate.name})
            done, output = self._run(gate, iteration + 1, place)
            if done.ended == "interrupted":
                return Gates(tuple(results), interrupted=True)
            result = GateResult(gate.name, round(done.seconds, 3), verdict(done, gate), output)
            said = result.verdict or "pass"
            self._note("gate.ended", {"gate": gate.name, "elapsed": result.seconds, "verdict": said})
            results.append(result)
        return Gates(tuple(results))

    def _run(self, gate: Gate, number: int, place: int) -> tuple[process.Done, str]:
        ground, limits = self._ground, self._limits
        output = ground.folder.output(f"{number:04d}-gate-{place}.out")
        spec = process.Spec(
            argv=("/bin/sh", "-c", gate.command),
            cwd=ground.workspace,
            env={**ground.env, "ROODA_ITERATION": str(number)},
            output=output,
            timeout=gate.timeout,
            grace=limits.grace,
            cap=limits.cap,
            keep=limits.keep,
        )
        return process.run(spec, ground.signals, ground.tick), output


def verdict(done: process.Done, gate: Gate) -> str:
    """Empty when it passed."""
    if done.ended == "timeout":
        return f"timeout {plain(gate.timeout)}s"
    return "" if done.code == 0 else f"exit {done.code}"
