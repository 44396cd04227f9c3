"""Quality gates: shell commands in the workspace, each in its own group, with its own time and output file."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from rooda.model import Gate, GateResult, Gates
from rooda.policy.durations import plain
from rooda.world import process
from rooda.world.runfolder import RunFolder
from rooda.world.signals import Signals

Note = Callable[[str, Mapping[str, object]], None]  # event, facts


class Limits(NamedTuple):
    """What holds for every gate."""

    grace: float
    cap: int  # bytes of output kept
    keep: bool  # leave alone what the agent was allowed to leave behind


class Checker:
    """Runs the gates of one run."""

    def __init__(
        self, workspace: str, env: Mapping[str, str], folder: RunFolder, signals: Signals, limits: Limits, note: Note
    ) -> None:
        self._workspace, self._env, self._folder = workspace, env, folder
        self._signals, self._limits, self._note = signals, limits, note

    def check(self, gates: tuple[Gate, ...], iteration: int, tick: process.Tick | None) -> Gates:
        """All of them, in order: one failing gate does not hide the next. A signal ends the round."""
        results: list[GateResult] = []
        for place, gate in enumerate(gates, 1):
            self._note("gate.started", {"gate": gate.name})
            output = self._folder.output(f"{iteration + 1:04d}-gate-{place}.out")
            env = {**self._env, "ROODA_ITERATION": str(iteration + 1)}
            argv = ("sh", "-c", gate.command)
            grace, cap, keep = self._limits
            spec = process.Spec(
                argv, self._workspace, env, output, timeout=gate.timeout, grace=grace, cap=cap, keep=keep
            )
            done = process.run(spec, self._signals, tick)
            if done.ended == "interrupted":
                return Gates(tuple(results), interrupted=True)
            result = GateResult(gate.name, round(done.seconds, 3), verdict(done, gate), output)
            self._note("gate.ended", {"gate": gate.name, "elapsed": result.seconds, "verdict": result.verdict or "pass"})
            results.append(result)
        return Gates(tuple(results))


def verdict(done: process.Done, gate: Gate) -> str:
    """Empty when it passed."""
    if done.ended == "timeout":
        return f"timeout {plain(gate.timeout)}s"
    return "" if done.code == 0 else f"exit {done.code}"
