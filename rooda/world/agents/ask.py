"""One agent call: prompt in, transcript out, facts back."""

import os
import signal
from collections.abc import Callable, Mapping

from rooda.model import Call, Reply
from rooda.world import files, process
from rooda.world.agents import command, ender
from rooda.world.agents.environment import without
from rooda.world.agents.understanding import understood
from rooda.world.ground import Ground

Note = Callable[[int], None]


def ask(call: Call, ground: Ground, note: Note, meanwhile: Callable[[], None]) -> Reply:
    """Run the agent to its end. Failure, timeout and interruption are results, not exceptions."""
    transcript = ground.folder.output(transcript_name(call.number, call.kind))
    spec = process.Spec(
        argv=_argv(call),
        cwd=ground.workspace,
        env=environment(call, ground.env),
        output=transcript,
        stdin=call.prompt.path if call.agent.prompt == "stdin" else os.devnull,
        timeout=call.iteration_timeout,
        idle_timeout=call.idle_timeout,
        grace=call.kill_grace,
        stop=signal.Signals[f"SIG{call.agent.stop}"],
        meanwhile=meanwhile,
        keep=call.agent.keep_background,
        exit_grace=call.agent.exit_grace,
        finished=ender.ender(call.agent.output, transcript),
        note=note,
    )
    done = process.run(spec, ground.signals, ground.tick)
    if done.ended == "finished":  # it had said its last word; how we made it go says nothing
        done = done._replace(ended="exit", code=0)
    return understood(call, done, transcript)


def transcript_name(number: int, kind: str) -> str:
    return f"{number:04d}-{kind}.out"


def environment(call: Call, env: Mapping[str, str]) -> dict[str, str]:
    return {
        **(without(env, call.agent.env_deny) if call.agent.env_deny else env),
        **call.agent.env,
        "ROODA_CALL": call.kind,
        "ROODA_ITERATION": str(call.number),
        "ROODA_MODEL": call.agent.model,
    }


def _argv(call: Call) -> list[str]:
    if call.agent.prompt == "file":
        return command.argv(call.agent, call.prompt.path)
    return command.argv(call.agent, files.text(call.prompt.path) if call.agent.prompt == "argument" else None)
