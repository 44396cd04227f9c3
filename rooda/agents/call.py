"""Prepares agent calls and turns their ended processes into replies."""

import os
import signal
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from rooda.agents import command, hang_detection, preflight
from rooda.agents.command import without_denied
from rooda.agents.context import CallContext
from rooda.agents.outcome import AGENT_ERROR, CONTEXT
from rooda.agents.reader import ACP, reader
from rooda.agents.records import Agent, Call, Reply
from rooda.agents.reply import reply_of
from rooda.base import files
from rooda.processes import supervise

if TYPE_CHECKING:
    from rooda.agents import cli_log

OnStart = Callable[[int, str], None]  # PID, command
OnSilence = Callable[[float, str], None]  # when the agent printed for the last time, path of the CLI's own log


class PreparedCalls(NamedTuple):
    """Agent processes ready to start, and a function that turns their results into replies.

    Transcripts stay open until `close`, so that rooda reads the file that it opened even if an agent replaces it.
    """

    specs: list[supervise.Spec]
    tick: supervise.Periodic | None
    replies: Callable[[Sequence[supervise.ProcessResult]], list[Reply]]

    def sources(self, replies: Sequence[Reply]) -> list[str | int]:
        """Return the source of each reply's transcript: its descriptor while it is open, else its path."""
        opened = {spec.output: spec.opened for spec in self.specs if spec.opened >= 0}
        return [opened.get(reply.transcript, reply.transcript) for reply in replies]

    def close(self) -> None:
        for spec in self.specs:
            if spec.opened >= 0:
                os.close(spec.opened)


class _Watches(NamedTuple):
    overflows: hang_detection.OverflowWatch
    silences: hang_detection.SilenceWatch


def prepare(
    calls: Sequence[Call], context: CallContext, report_start: OnStart, report_silence: OnSilence
) -> PreparedCalls:
    """Prepare calls; a call whose prompt is too long gets a failed reply instead of a process."""
    problems = [preflight.size_problem_on_disk(call.agent, call.prompt) for call in calls]
    fitting = [call for call, problem in zip(calls, problems, strict=True) if not problem]
    watches = _Watches(hang_detection.OverflowWatch(), hang_detection.SilenceWatch(report_silence))
    specs = [_spec(call, context, report_start, watches) for call in fitting]
    marks = [_log_mark(call, spec) for call, spec in zip(fitting, specs, strict=True)]
    tick = watches.silences.periodic(context.tick)
    if any(reader(call.agent.output).compacts_forever for call in fitting):
        tick = watches.overflows.periodic(tick)

    def replies(ended: Sequence[supervise.ProcessResult]) -> list[Reply]:
        answers = map(_reply, fitting, ended, specs, marks)
        return [prompt_refused(problem) if problem else next(answers) for problem in problems]

    return PreparedCalls(specs, tick, replies)


def _spec(call: Call, context: CallContext, report_start: OnStart, watches: _Watches) -> supervise.Spec:
    transcript, opened = context.folder.output(transcript_name(call))
    argv = _argv(call, transcript)
    if context.tracing and not context.walls and call.agent.output != ACP:  # a sandbox may not reach the collector
        argv = [*argv, *context.tracing.options(call.agent)]
    errors = -1
    if call.wants_answer and call.agent.output == "text":
        errors = context.folder.output(transcript_name(call).replace(".out", ".err"))[1]
    stop = signal.Signals[f"SIG{call.agent.stop}"]

    source = opened if opened >= 0 else transcript

    def on_start(pid: int) -> None:
        report_start(pid, command.describe(call.agent))
        watches.overflows.watch(pid, stop, call.agent.output, source, made.walled)
        watches.silences.watch(source, _log_path(call, made))

    spec = supervise.Spec(
        argv=argv,
        cwd=context.workspace,
        env=environment(call, _base(call.agent, context, transcript), transcript),
        output=transcript,
        opened=opened,
        errors=errors,
        stdin=call.prompt.path if call.agent.prompt == "stdin" else os.devnull,
        timeout=call.bounds.iteration_timeout,
        idle_timeout=call.idle_timeout,
        grace=call.bounds.kill_grace,
        stop=stop,
        is_agent=True,
        keep=call.agent.keep_background,
        exit_grace=call.agent.exit_grace,
        finished=hang_detection.final_record_check(call.agent.output, source),
        on_start=on_start,
        held=not context.marked,
    )
    made = context.walls.around(spec, call.agent, call.prompt.path) if context.walls else spec
    return made


def _base(agent: Agent, context: CallContext, transcript: str) -> Mapping[str, str]:
    """Return the run's environment, with the variables that make the agent part of the run's telemetry."""
    tracing, env = context.tracing, context.env
    return {**env, **tracing.environment(agent, transcript, env)} if tracing else env


def _env_of(spec: supervise.Spec) -> Mapping[str, str]:
    """Return the environment of a process; HOME is the one that the process sees in a sandbox."""
    return {**spec.env, "HOME": spec.home} if spec.home else spec.env


def _log_path(call: Call, spec: supervise.Spec) -> str:
    """Return the path of the CLI's own log; "" if unknown."""
    if not call.agent.log:
        return ""
    from rooda.agents import cli_log

    return cli_log.path_of(call.agent, _env_of(spec))


def _log_mark(call: Call, spec: supervise.Spec) -> "cli_log.Mark | None":
    """Return the position at which the CLI's own log ends before the call; None if the log is unknown."""
    if not call.agent.log:
        return None
    from rooda.agents import cli_log

    return cli_log.mark(call.agent, _env_of(spec))


def prompt_refused(problem: str) -> Reply:
    """Return the reply for a prompt that has become too long for the agent or for a command line."""
    what = f"the prompt has become too long: it has {problem}. The agent was not started"
    reply = Reply(supervise.NOT_RUNNABLE, 0.0, "not-started", note=what, cost_source="unknown")
    return reply._replace(outcome=CONTEXT, message=what)


def _reply(call: Call, done: supervise.ProcessResult, spec: supervise.Spec, log: "cli_log.Mark | None") -> Reply:
    if done.ended == "finished":  # rooda ended it after its final message, which is not a failure
        done = done._replace(ended="exit", code=0)
    env = _env_of(spec)
    if spec.opened < 0:
        return reply_of(call, done, spec.output, env, log=log)
    reply = reply_of(call, done, spec.output, env, spec.opened, log)
    return with_replaced(reply, files.now_at(spec.output, spec.opened))


def with_replaced(reply: Reply, replaced: str) -> Reply:
    """Return the reply as a failure if the transcript was replaced; only record a deletion, perhaps an accident."""
    if replaced in ("", "missing") or not reply.ok:
        return reply._replace(replaced=replaced)
    what = f"its transcript was replaced by {replaced} while it ran"
    source = reply.cost_source or "unknown"
    return reply._replace(
        replaced=replaced, outcome=AGENT_ERROR, message=what, promise="", question="", cost_source=source
    )


def transcript_name(call: Call) -> str:
    return f"{call.number:04d}-{call.label or call.kind}.out"


def environment(call: Call, env: Mapping[str, str], transcript: str = "") -> dict[str, str]:
    return {
        **(without_denied(env, call.agent.env_deny) if call.agent.env_deny else env),
        **command.env_of_call(call.agent, transcript),
        **call.env,
        "ROODA_CALL": call.kind,
        "ROODA_ITERATION": str(call.number),
        "ROODA_MODEL": call.agent.model,
    }


def _argv(call: Call, transcript: str) -> list[str]:
    if call.agent.output == ACP:
        return _acp_client(call.agent)
    if call.agent.prompt == "file":
        return command.argv(call.agent, call.prompt.path, transcript)
    prompt = files.to_text(files.read_ours(call.prompt.path)) if call.agent.prompt == "argument" else None
    return command.argv(call.agent, prompt, transcript)


def _acp_client(agent: Agent) -> list[str]:
    """Return the command of rooda's client for the Agent Client Protocol (ACP).

    The client starts and prompts the agent. It selects the model, unless the agent's command already does.
    """
    import json

    from rooda.processes import detach

    model = "" if "{model}" in agent.command else agent.model
    settings = {"model": model, "rules": agent.tools._asdict()}
    return [*detach.rooda_command("rooda.agents.acp"), json.dumps(settings), *command.argv(agent)]
