"""The four kinds of loops in one table: a workspace with a scripted agent that can be held, and how to start.

Every agent call passes a gate: it notes itself, waits while the gate is there, and only then does what its kind's
script says. A call that finds one of another run at work notes that too.
"""

import json
import os
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from . import flow as flow_kit
from . import kinds
from . import reflex as reflex_kit
from .goal import SPEC, Goals
from .workspace import FAKE_AI, Ran, Running, Workspace, until

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
        self.kind, self.ws = kind, kind.workspace(root)
        self.held = os.path.join(root, "held")
        os.makedirs(os.path.join(self.held, "live"))
        Path(self.held, "agent.sh").write_text(GATE)
        self.ws.env["HELD"] = self.held
        self.settings: dict[str, str] = {}
        kind.prepare(self)

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

    def events(self) -> list[dict[str, Any]]:
        """Of every run here, in the order of the runs' names."""
        found = []
        for log in sorted(Path(self.ws.path, ".rooda", "runs").glob("*/events.jsonl")):
            found += [json.loads(line) for line in log.read_bytes().splitlines()]
        return found

    def said(self, *names: str) -> list[dict[str, Any]]:
        """The events of these names."""
        return [event for event in self.events() if event["event"] in names]

    def done(self) -> bool:
        """Is the loop's public result what a run without any trouble leaves?"""
        return self.kind.done(self)


class Kind(NamedTuple):
    """A row of the table."""

    name: str
    workspace: Callable[[str], Workspace]
    prepare: Callable[[Four], None]
    begin: tuple[str, ...]  # the words of a fresh start
    done: Callable[[Four], bool]
    public: tuple[str, ...]  # where its public files are
    calls: int  # of a run without any trouble
    loop: str = ""  # its name for status, stop and resume; "" is found out
    first: int = 1  # the call from which on there is something to resume


def is_at(pid: int, path: str) -> bool:
    try:
        return any(os.readlink(f"/proc/{pid}/fd/{number}").startswith(path) for number in os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return False


def _ooda(four: Four) -> None:
    four.ws.procedure("build", loop={"ai_cmd": four.agent(FAKE_AI)})
    four.config(ai_cmd=four.agent(FAKE_AI))


def _ooda_done(four: Four) -> bool:
    ended = [event for event in four.said("run.ended") if event["status"] == "completed"]
    return bool(ended) and ended[-1]["iterations"] == 2 and four.ws.state() is None


def _reflex(four: Four) -> None:
    reflex_kit.Kit(four.ws)
    four.config(ai_cmd=four.agent(reflex_kit.FAKE))


def _reflex_done(four: Four) -> bool:
    folder = Path(four.ws.path, ".ai-factory", "evolution", reflex_kit.ALIAS)
    history = [json.loads(line)["event"] for line in (folder / "history.jsonl").read_text().splitlines()]
    run = json.loads((folder / "run.json").read_text())
    return (
        run["status"] == "completed"
        and (folder / "artifact.md").read_text() == reflex_kit.words("ENAD")
        and [history.count(each) for each in ("run_started", "plan_created", "artifact_created")] == [1, 1, 1]
        and not (folder.parent / "current.json").exists()
    )


def _flow(four: Four) -> None:
    four.ws.config("# in the first commit\n")
    flow = flow_kit.Flow(four.ws)
    flow.scenario("S1")
    four.ws.write(".git/info/exclude", "/rooda.toml\n")
    four.ws.git("rm", "-q", "--cached", "rooda.toml")
    four.ws.git("commit", "-q", "-m", "settings are nobody else's")
    four.config(ai_cmd=four.agent(flow_kit.AGENT), retry_wait=0)


def _flow_done(four: Four) -> bool:
    (state,) = Path(four.ws.path, ".ai-loop", "runs").glob("run_*/run-state.md")
    status = flow_kit.front_matter(state.read_text())["status"]
    subjects = four.ws.git("log", "--format=%s", "main..HEAD").splitlines()
    return bool(status == "complete") and len(subjects) == len(set(subjects)) == 3


def _goal(four: Four) -> None:
    goals = four.ws
    assert isinstance(goals, Goals)
    goals.succeeds()
    four.config(ai_cmd=four.agent(FAKE_AI))


def _goal_done(four: Four) -> bool:
    state = four.ws.json(".loop/state.json")
    rows = [json.loads(line)["iteration"] for line in four.ws.read(".loop/iterations.jsonl").splitlines()]
    return state["status"] == "completed" and rows == [0, 1, 2, 3]


KINDS = {
    kind.name: kind
    for kind in (
        Kind("ooda", Workspace, _ooda, kinds.ooda(2), _ooda_done, kinds.KINDS["ooda"].public, 2, "build"),
        Kind(
            "reflex",
            Workspace,
            _reflex,
            kinds.reflex(4, reflex_kit.ALIAS, "rs.json"),
            _reflex_done,
            kinds.KINDS["reflex"].public,
            4,
            reflex_kit.ALIAS,
        ),
        Kind("flow", Workspace, _flow, kinds.flow(), _flow_done, kinds.KINDS["flow"].public, 5),
        Kind("goal", Goals, _goal, kinds.goal(name=SPEC), _goal_done, kinds.KINDS["goal"].public, 4, "goal", first=2),
    )
}
