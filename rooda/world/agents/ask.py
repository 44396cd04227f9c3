"""One agent call: prompt in, transcript out, facts back."""

import os
import signal
from collections.abc import Callable, Mapping, Sequence

from rooda.model import Call, Reply
from rooda.world import files, process
from rooda.world.agents import command, ender
from rooda.world.agents.environment import without
from rooda.world.agents.understanding import understood
from rooda.world.ground import Ground

Note = Callable[[int, str], None]  # pid, command


def ask(calls: Sequence[Call], ground: Ground, note: Note, meanwhile: Callable[[], None]) -> list[Reply]:
    """Run the agents to their ends, all at once. Failure, timeout and interruption are results, not exceptions."""
    specs = [_spec(call, ground, note) for call in calls]
    ended = process.together(specs, ground.signals, ground.tick, meanwhile)
    return [_reply(call, done, spec.output) for call, done, spec in zip(calls, ended, specs, strict=True)]


def _spec(call: Call, ground: Ground, note: Note) -> process.Spec:
    argv = _argv(call)
    transcript, opened = ground.folder.output(transcript_name(call))
    errors = -1
    if call.apart and call.agent.output == "text":
        errors = ground.folder.output(transcript_name(call).replace(".out", ".err"))[1]
    return process.Spec(
        argv=argv,
        cwd=ground.workspace,
        env=environment(call, ground.env),
        output=transcript,
        opened=opened,
        errors=errors,
        stdin=call.prompt.path if call.agent.prompt == "stdin" else os.devnull,
        timeout=call.iteration_timeout,
        idle_timeout=call.idle_timeout,
        grace=call.kill_grace,
        stop=signal.Signals[f"SIG{call.agent.stop}"],
        keep=call.agent.keep_background,
        exit_grace=call.agent.exit_grace,
        finished=ender.ender(call.agent.output, transcript),
        note=lambda pid: note(pid, command.describe(call.agent)),
    )


def _reply(call: Call, done: process.Done, transcript: str) -> Reply:
    if done.ended == "finished":  # it had said its last word; how we made it go says nothing
        done = done._replace(ended="exit", code=0)
    return understood(call, done, transcript)


def transcript_name(call: Call) -> str:
    return f"{call.number:04d}-{call.label or call.kind}.out"


def environment(call: Call, env: Mapping[str, str]) -> dict[str, str]:
    return {
        **(without(env, call.agent.env_deny) if call.agent.env_deny else env),
        **call.agent.env,
        **call.env,
        "ROODA_CALL": call.kind,
        "ROODA_ITERATION": str(call.number),
        "ROODA_MODEL": call.agent.model,
    }


def _argv(call: Call) -> list[str]:
    if call.agent.prompt == "file":
        return command.argv(call.agent, call.prompt.path)
    return command.argv(call.agent, files.text(call.prompt.path) if call.agent.prompt == "argument" else None)
