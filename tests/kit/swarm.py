"""Agents that do everything to stay alive, and ways to kill the loop above them."""

import json
import os
import shlex
import signal
import sys
import uuid
from pathlib import Path
from typing import NamedTuple

from . import census
from .workspace import Ran, Running, Workspace, until

# Each process notes its pid first, then opens the marker; $0 is the word that names the swarm.
BEGIN = 'echo $$ >>"$SWARM/pids"; exec 9>>"$SWARM/marker"; '
MEMBER = BEGIN + "exec sleep 1000"
HOP = BEGIN + 'sh -c "$1" "$0" "$1" & exit'


class Kind(NamedTuple):
    """What an agent does; and when all of it is there: so many pids have been noted."""

    shell: str
    members: int
    grace: float = 5.0


def _script(text: str) -> str:
    return BEGIN + text


STUBBORN = "trap '' TERM INT HUP QUIT; "
KINDS = {
    "plain": Kind(_script("exec sleep 1000"), 1),
    "ignores-term": Kind(_script(STUBBORN + 'sh -c "$MEMBER" "$0" & wait; while :; do sleep 1000; done'), 2, 0.2),
    "grandchild": Kind(_script('sh -c "$MEMBER" "$0" & wait'), 2),
    "double-fork": Kind(_script('setsid sh -c \'sh -c "$MEMBER" "$0" & exit\' "$0"; sleep 1000'), 2),
    "stubborn-double-fork": Kind(
        _script('setsid sh -c \'trap "" TERM; sh -c "$MEMBER" "$0" & exit\' "$0"; sleep 1000'), 2, grace=0.2
    ),
    "empty-environment": Kind(
        _script('setsid env -i "SWARM=$SWARM" sh -c \'sh -c "$1" "$0" & exit\' "$0" "$MEMBER" >&- 2>&- 9>&-; sleep 99'),
        2,
    ),
    "leader-gone": Kind(_script('setsid sh -c "$MEMBER" "$0" & sh -c "$MEMBER" "$0" & exec sleep 1000'), 3),
    "holds-stdout": Kind(_script('(trap "" HUP; exec sh -c "$MEMBER" "$0") & echo done; wait'), 2),
    "spawns": Kind(_script('while :; do sh -c "$MEMBER" "$0" & sleep 0.01; done'), 4),
    "hops": Kind(_script('sh -c "$HOP" "$0" "$HOP" & sleep 1000'), 6),
    "hops-sessions": Kind(_script('sh -c "$SETSID_HOP" "$0" "$SETSID_HOP" & sleep 1000'), 6),
}
ENDINGS = {"INT": 130, "TERM": 143, "HUP": 143, "QUIT": 143}
KILLS = {"KILL-loop": -9, "KILL-guardian": -9, "KILL-both": -9, "KILL-group": -9}
WAYS = {**ENDINGS, **KILLS}


class Swarm:
    """A workspace whose agent is a swarm of one kind, and after a change of mind a census of it."""

    def __init__(self, ws: Workspace, kind: str) -> None:
        self.ws, self.kind = ws, KINDS[kind]
        self.folder = os.path.join(ws.root, f"swarm-{uuid.uuid4().hex}")
        os.mkdir(self.folder)
        self.env = {
            "SWARM": self.folder,
            "MEMBER": MEMBER,
            "HOP": HOP,
            "SETSID_HOP": HOP.replace("sh -c", "setsid sh -c"),
        }
        self._script(self.kind.shell)
        command = shlex.join(["sh", self._path, os.path.basename(self.folder)])
        ws.procedure("build", keys=f"kill_grace = {self.kind.grace}\n", loop={"ai_cmd": command})

    @property
    def _path(self) -> str:
        return os.path.join(self.folder, "agent.sh")

    def _script(self, shell: str) -> None:
        # -c, so that $0 is the word
        Path(self._path).write_text(f'exec sh -c {shlex.quote(shell)} "$1"\n')

    def start(self) -> Running:
        """A loop of two iterations, as soon as the swarm of the first is complete."""
        running = self.ws.start("build", "-n", "2", env=self.env)
        until(lambda: len(census.noted(self.folder)) >= self.kind.members or running.process.poll() is not None)
        assert running.process.poll() is None, running.both
        return running

    def resume(self) -> Ran:
        """The next start. Its agents record which processes are alive."""
        self._script(f"exec {shlex.join([sys.executable, '-IS', census.__file__, self.folder])}")
        return self.ws.rooda("resume", "build", env=self.env)

    def living(self) -> list[int]:
        return census.living(self.folder)

    def seen(self) -> list[str]:
        """The live processes that each call of the next start has seen, "" for none."""
        return Path(self.folder, "census").read_text().splitlines()


def loop_of(guardian: int) -> int:
    """The loop process below the visible one."""
    return int(Path(f"/proc/{guardian}/task/{guardian}/children").read_text().split()[0])


def kill(guardian: int, way: str) -> None:
    """Send what `way` says to the visible process, the loop, or both."""
    if way in ENDINGS:
        os.kill(guardian, signal.Signals[f"SIG{way}"])
    elif way == "KILL-group":
        os.killpg(guardian, signal.SIGKILL)
    else:
        loop = loop_of(guardian)
        for pid in {"KILL-loop": [loop], "KILL-guardian": [guardian], "KILL-both": [guardian, loop]}[way]:
            os.kill(pid, signal.SIGKILL)


def fact(ws: Workspace) -> str:
    """The lock file, for messages of failing tests."""
    try:
        return json.dumps(ws.json(".rooda/state/build.lock"))
    except (OSError, ValueError) as problem:
        return repr(problem)
