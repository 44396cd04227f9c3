"""Shell commands in the workspace, quality gates among them: each in its own group, with its own time and output."""

from collections.abc import Sequence
from typing import NamedTuple

from rooda.agents.context import Ground
from rooda.base.text import format_number
from rooda.processes import supervise
from rooda.run.event_records import Emit, GateEnded, GateStarted
from rooda.run.records import Command, Gate, GateResult, Gates, Ran
from rooda.run.setup import Setup


class Manner(NamedTuple):
    """How every command is run."""

    grace: float
    cap: int  # bytes of output kept
    keep: bool  # leave alone what the agent was allowed to leave behind


def manner_of(setup: Setup) -> Manner:
    keep = setup.agent is not None and setup.agent.keep_background
    return Manner(setup.bounds.kill_grace, setup.bounds.max_output_buffer, keep)


class Checker:
    """Runs the commands of one run."""

    def __init__(self, ground: Ground, manner: Manner, emit: Emit) -> None:
        self._ground, self._manner, self._emit = ground, manner, emit

    def check(self, gates: tuple[Gate, ...], iteration: int) -> Gates:
        """All of them, in order: one failing gate does not hide the next. A signal ends the round."""
        results: list[GateResult] = []
        for place, gate in enumerate(gates, 1):
            self._emit(GateStarted(gate=gate.name))
            command = Command(gate.command, f"gate-{place}", gate.timeout, iteration + 1)
            done = self.run((command,))[0]
            if done.ended == "interrupted":
                return Gates(tuple(results), interrupted=True)
            result = GateResult(gate.name, round(done.seconds, 3), verdict(done, gate), done.output)
            said = result.verdict or "pass"
            self._emit(GateEnded(gate=gate.name, elapsed=result.seconds, verdict=said, output=result.output))
            results.append(result)
        return Gates(tuple(results))

    def run(self, commands: Sequence[Command], together: bool = False) -> list[Ran]:
        """Each to its end, one after the other or all at once."""
        rounds = [commands] if together else [[command] for command in commands]
        return [ran for each in rounds for ran in self._round(each)]

    def _round(self, commands: Sequence[Command]) -> list[Ran]:
        specs = self.ready(commands)
        return understood(supervise.run_all(specs, self._ground.signals, self._ground.tick), specs)

    def ready(self, commands: Sequence[Command]) -> list[supervise.Spec]:
        return [self._spec(command) for command in commands]

    def _spec(self, command: Command) -> supervise.Spec:
        ground, manner = self._ground, self._manner
        output, opened = ground.folder.output(f"{command.number:04d}-{command.label}.out")
        return supervise.Spec(
            argv=("/bin/sh", "-c", command.command),
            cwd=ground.workspace,
            env={**ground.env, "ROODA_ITERATION": str(command.number), **command.env},
            output=output,
            opened=opened,
            timeout=command.timeout,
            grace=manner.grace,
            cap=manner.cap,
            keep=manner.keep,
        )


def understood(ended: Sequence[supervise.Done], specs: Sequence[supervise.Spec]) -> list[Ran]:
    return [
        Ran(each.code, each.seconds, each.ended, spec.output, each.size)
        for each, spec in zip(ended, specs, strict=True)
    ]


def verdict(done: Ran, gate: Gate) -> str:
    """Empty when it passed."""
    if done.ended == "timeout":
        return f"timeout {format_number(gate.timeout)}s"
    return "" if done.code == 0 else f"exit {done.code}"
