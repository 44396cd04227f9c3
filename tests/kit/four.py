"""The small loop of each kind with an agent that can be held.

Every agent call passes a gate: it notes itself, waits while the gate is there, and only then does what its kind's
script says. A call that finds one of another run at work notes that too.
"""

import json
import os
import shlex
from pathlib import Path
from typing import Any, NamedTuple

from . import kinds
from .loops import SMALL, Loops
from .workspace import Ran, Running, Workspace, until

GATE = """\
began() { # when did the process with this number begin, if it lives?
    read -r line 2>/dev/null <"/proc/$1/stat" && set -- $line && [ "$3" != Z ] && began=${22}
}
for other in "$HELD"/live/*; do
    read -r run when 2>/dev/null <"$other" && [ "$run" != "$ROODA_RUN" ] || continue
    began "${other##*/}" && [ "$began" = "$when" ] && echo "$run $ROODA_RUN" >>"$HELD/doubled"
done
began $$
echo "$ROODA_RUN $began" >"$HELD/live/$$"
echo "$ROODA_RUN $ROODA_CALL $$" >>"$HELD/calls"
[ ! -p "$HELD/gate" ] || read -r word <"$HELD/gate"
[ ! -f "$HELD/first.sh" ] || . "$HELD/first.sh"
exec "$@"
"""


class Four:
    """One loop of one kind in a workspace of its own."""

    def __init__(self, kind: "Kind", root: str) -> None:
        self.kind, self.ws = kind, Workspace(root)
        self.held = os.path.join(root, "held")
        os.makedirs(os.path.join(self.held, "live"))
        Path(self.held, "agent.sh").write_text(GATE)
        self.ws.env["HELD"] = self.held
        self.settings: dict[str, str] = {}
        Loops(self.ws).prepare(kind.name, **({"steps": kind.turns, "score": 2} if kind.name == "goal" else {}))
        self.config(ai_cmd=self.agent(SMALL[kind.name].agent), retry_wait=0)

    def agent(self, command: str) -> str:
        """The command with the gate before it."""
        return f"sh {shlex.quote(os.path.join(self.held, 'agent.sh'))} {command}"

    def config(self, **keys: Any) -> None:
        """Keys of [loop], beside the agent."""
        self.settings |= {key: json.dumps(value) for key, value in keys.items()}
        rows = "".join(f"{key} = {value}\n" for key, value in self.settings.items())
        self.ws.config(f'[loop]\n{rows}[reflex]\nexec_checks = "run"\n' + "".join(self.ws.sections.values()))

    # when

    def start(self, *more: str, **how: Any) -> Running:
        return self.ws.start(*self.kind.begin, *more, **how)

    def run(self, *more: str, **how: Any) -> Ran:
        return self.ended(self.start(*more, **how))

    def resume(self, *more: str, **how: Any) -> Ran:
        return self.ended(self.ws.start("resume", *more, **how))

    def ended(self, running: Running) -> Ran:
        return Ran(running.finish(60), running.out, running.err)

    def first(self, shell: str) -> None:
        """What every call does before its kind's script."""
        Path(self.held, "first.sh").write_text(shell)

    def hold(self) -> None:
        """From now on the agent's calls wait."""
        os.mkfifo(os.path.join(self.held, "gate"))

    def release(self) -> None:
        """Those that wait continue, and later ones do not wait."""
        gate = os.path.join(self.held, "gate")
        descriptor = os.open(gate, os.O_RDWR | os.O_NONBLOCK)
        os.unlink(gate)
        os.write(descriptor, b"go\n" * 64)
        until(lambda: not self._waiting(), what="the agents to pass the gate")
        os.close(descriptor)

    def _waiting(self) -> list[int]:
        return [pid for pid in self.ws.leftovers() if is_at(pid, os.path.join(self.held, "gate"))]

    # then

    def calls(self) -> list[str]:
        """`RUN CALL PID` of every agent call so far."""
        path = Path(self.held, "calls")
        return path.read_text().splitlines() if path.exists() else []

    def runs(self) -> list[str]:
        """The runs that have called an agent, in order."""
        return list(dict.fromkeys(line.split()[0] for line in self.calls()))

    def await_calls(self, count: int) -> None:
        until(lambda: len(self.calls()) >= count, what=f"{count} agent calls")

    def doubled(self) -> list[str]:
        path = Path(self.held, "doubled")
        return path.read_text().splitlines() if path.exists() else []

    def said(self, *names: str) -> list[dict[str, Any]]:
        """The events of these names."""
        return [event for event in self.ws.every_event() if event["event"] in names]

    def done(self) -> bool:
        """Is the loop's public result what a run without any trouble leaves?"""
        return SMALL[self.kind.name].done(self.ws, self.kind.turns)


class Kind(NamedTuple):
    """A row of the table."""

    name: str
    begin: tuple[str, ...]  # the words of a fresh start
    turns: int  # of a run without any trouble: iterations, commits of a flow, steps of a goal
    calls: int  # of the agent, in such a run
    loop: str = ""  # its name for status, stop and resume; "" is found out
    first: int = 1  # the call from which on there is something to resume

    @property
    def public(self) -> tuple[str, ...]:
        """Where its public files are."""
        return kinds.KINDS[self.name].public


def is_at(pid: int, path: str) -> bool:
    try:
        return any(os.readlink(f"/proc/{pid}/fd/{number}").startswith(path) for number in os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return False


KINDS = {
    kind.name: kind
    for kind in (
        Kind("ooda", kinds.ooda(2), 2, 2, "build"),
        Kind("reflex", kinds.reflex(4), 1, 4, "page"),
        Kind("flow", kinds.flow(), 3, 5),
        Kind("goal", kinds.goal(), 3, 4, "goal", first=2),  # an agent plans it
    )
}
