"""A wall clock that jumps, for one process tree: a small library, loaded before all others, adds what a file says."""

import os
import signal
import struct
import subprocess
import time
from pathlib import Path

from .swarm import loop_of
from .workspace import Running, Workspace

HOUR, YEAR = 3600, 31_557_600


class Clock:
    """The clock of everything that is started in a workspace, or with these variables, from now on."""

    def __init__(self, ws: Workspace) -> None:
        self.path = os.path.join(ws.root, "clock")
        self.jump(0)
        ws.env |= variables(ws.root)

    def jump(self, seconds: float, slept: float = 0) -> None:
        """So far from the real time, from this moment on; `slept`: and so long the machine has slept till then."""
        self._say(*jumped(seconds, slept))

    def set(self, moment: float) -> None:
        """To this time in seconds since 1970, and it continues from there."""
        self.jump(moment - time.time())

    def stand(self, moment: float) -> None:
        """At this time for good."""
        self._say(0, 0, int(moment * 1e9))

    def _say(self, *places: int) -> None:
        Path(f"{self.path}.new").write_bytes(struct.pack("=qqq", *places))
        os.replace(f"{self.path}.new", self.path)


def variables(folder: str) -> dict[str, str]:
    """The variables of a process whose clock the file `clock` in this folder sets."""
    library, source = os.path.join(folder, "clock.so"), str(Path(__file__).with_name("clock.c"))
    subprocess.run(["cc", "-shared", "-fPIC", "-nostdlib", "-o", library, source], check=True)
    return {"LD_PRELOAD": library, "CLOCK": os.path.join(folder, "clock")}


def shifted(seconds: float, folder: Path) -> dict[str, str]:
    """The variables of a process whose clock is off by so much."""
    folder.mkdir()
    (folder / "clock").write_bytes(struct.pack("=qqq", *jumped(seconds)))
    return variables(str(folder))


def sleep_through(clock: Clock, running: Running, seconds: float) -> None:
    """Let the machine sleep for so long, and wake the loop, which checks the time once a minute."""
    clock.jump(0, slept=seconds)
    os.kill(loop_of(running.pid), signal.SIGCONT)


def jumped(wall: float, slept: float = 0) -> tuple[int, int, int]:
    """What the file says for this."""
    return int((wall + slept) * 1e9), int(slept * 1e9), 0
