"""Runs shell commands and quality gates in the workspace, each with its own process group, timeout and output."""

import os
from collections.abc import Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, NamedTuple

from rooda.agents.context import CallContext
from rooda.base import files
from rooda.base.text import format_number, telling_line
from rooda.processes import supervise
from rooda.run.event_records import Emit, GateEnded, GateStarted, Problem
from rooda.run.folder import all_of
from rooda.run.records import Command, CommandResult, Gate, GateResult, Gates
from rooda.run.setup import Setup

if TYPE_CHECKING:
    from rooda.run.walls import SessionWalls

READ = 16_384  # bytes at the end of a failed gate's output, among which rooda finds a line to show
LONGEST_LINE = 300  # characters of that line that are shown
NOT_FOUND = 127  # a shell's exit code if a command does not exist


class CommandLimits(NamedTuple):
    """Limits that apply to each command of a session."""

    grace: float  # seconds between the first signal and SIGKILL
    cap: int  # bytes of output kept
    keep: bool  # True: descendants may continue until the run ends


def limits_of(setup: Setup) -> CommandLimits:
    keep = setup.agent is not None and setup.agent.keep_background
    return CommandLimits(setup.bounds.kill_grace, setup.bounds.max_output_buffer, keep)


class CommandRunner:
    """Runs the commands of one session."""

    def __init__(
        self, context: CallContext, limits: CommandLimits, emit: Emit, walls: "SessionWalls | None" = None
    ) -> None:
        self._context, self._limits, self._emit, self._walls = context, limits, emit, walls

    def check(self, gates: tuple[Gate, ...], iteration: int) -> Gates:
        """Run all gates in order, even if one fails. A signal skips the remaining gates."""
        results: list[GateResult] = []
        for place, gate in enumerate(gates, 1):
            command = Command(gate.command, f"gate-{place}", gate.timeout, iteration + 1)
            done = self._run_gate(gate, command)
            if done.ended == "interrupted":
                return Gates(tuple(results), interrupted=True)
            reason = verdict(done, gate, self._context.workspace)
            if is_silent := not (reason or done.size or self._limits.keep):
                self._context.folder.take_back(done.output)
            result = GateResult(gate.name, round(done.seconds, 3), reason, "" if is_silent else done.output)
            facts = {"said": _telling_line(done.output)} if result.verdict else {}
            said = result.verdict or "pass"
            self._emit(GateEnded(gate=gate.name, elapsed=result.seconds, verdict=said, output=result.output, **facts))
            results.append(result)
        if iteration < 0 and self._walls:
            self._explain(gates, results)
        if self._context.walls:
            self._context.walls.show([result.output for result in results if result.output])
        return Gates(tuple(results))

    def _run_gate(self, gate: Gate, command: Command) -> CommandResult:
        """Run a gate to its end. While it runs, report its start and create spare output files."""

        def on_start(_: int) -> None:
            self._emit(GateStarted(gate=gate.name))
            self._context.folder.make_spares(command.label)

        done = self._ended([self._spec(command)._replace(on_start=on_start, held=False)])[0]
        if done.ended == "not-started":
            self._emit(GateStarted(gate=gate.name))
        return done

    def _explain(self, gates: Sequence[Gate], results: Sequence[GateResult]) -> None:
        """Report gates that are red only in the sandbox, and the settings that would make them green there.

        The gates run outside of the sandbox only if no agent of an earlier run has worked in the workspace.
        """
        context, red = self._context, {result.name for result in results if result.verdict}
        if not red or not self._walls or self._walls.sandbox.mode == "off" or len(all_of(context.workspace, None)) > 1:
            return
        from rooda.run import red_inside

        trial = red_inside.Trial(context.workspace, self._walls.sandbox, context.env, context.signals)
        for gate in gates:
            if gate.name in red and (lines := trial.helping(gate.command)):
                self._emit(Problem(text=red_inside.sentence(gate.name, lines)))

    def run(self, commands: Sequence[Command], together: bool = False) -> list[CommandResult]:
        """Run commands one after the other or, with `together`, all at once; return their results."""
        rounds = [commands] if together else [[command] for command in commands]
        return [ran for each in rounds for ran in self._ended(self.specs(each))]

    def _ended(self, specs: Sequence[supervise.Spec]) -> list[CommandResult]:
        folder = os.path.dirname(specs[0].output) if specs else ""
        with self._walls.watched(folder, self._emit) if self._walls else nullcontext():
            ended = supervise.run_all(specs, self._context.signals, self._context.tick)
        return results_of(ended, specs)

    def specs(self, commands: Sequence[Command]) -> list[supervise.Spec]:
        return [self._spec(command) for command in commands]

    def _spec(self, command: Command) -> supervise.Spec:
        context, limits = self._context, self._limits
        output, opened = context.folder.output(f"{command.number:04d}-{command.label}.out")
        spec = supervise.Spec(
            argv=("/bin/sh", "-c", command.command),
            cwd=context.workspace,
            env={**context.env, "ROODA_ITERATION": str(command.number), **command.env},
            output=output,
            opened=opened,
            timeout=command.timeout,
            grace=limits.grace,
            cap=limits.cap,
            keep=limits.keep,
        )
        return context.walls.around(spec) if context.walls and not command.outside else spec


def results_of(ended: Sequence[supervise.ProcessResult], specs: Sequence[supervise.Spec]) -> list[CommandResult]:
    """Return the results of commands that have ended, and close their output files."""
    for spec in specs:
        if spec.opened >= 0:
            os.close(spec.opened)
    return [
        CommandResult(each.code, each.seconds, each.ended, spec.output, each.size, each.note)
        for each, spec in zip(ended, specs, strict=True)
    ]


def _telling_line(output: str) -> str:
    """Return the last meaningful line of a command's output, as `text.telling_line` selects it; "" if there is none."""
    try:
        return telling_line(files.tail(output, READ).decode("utf-8", "replace"))[:LONGEST_LINE]
    except OSError:
        return ""


def verdict(done: CommandResult, gate: Gate, workspace: str) -> str:
    """Return the reason why a gate failed; "" if it passed."""
    if done.ended == "timeout":
        return f"timeout {format_number(gate.timeout)}s"
    if done.ended == "resources":
        return f"used {done.note}"
    if done.code == NOT_FOUND:
        from rooda.run import gate_programs

        return gate_programs.why_not_found(gate.command, workspace)
    return "" if done.code == 0 else f"exit {done.code}"
