"""Machines for the campaign: network namespaces on one bridge, each with processes of its own."""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

NET = "10.77.3"


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


class Machine:
    """A network namespace. What runs in it is ended, stopped or cut off as a machine would be."""

    def __init__(self, mark: str, name: str, number: int) -> None:
        self.name, self.space, self.address = name, f"{mark}-{name}", f"{NET}.{number}"
        self._outer = f"{mark[-6:]}v{number}"
        ip("netns", "add", self.space)
        ip("link", "add", self._outer, "type", "veth", "peer", "name", "eth0", "netns", self.space)
        ip("link", "set", self._outer, "netns", f"{mark}-hub")
        ip("netns", "exec", f"{mark}-hub", "ip", "link", "set", self._outer, "master", "br0", "up")
        for words in (("addr", "add", f"{self.address}/24", "dev", "eth0"), ("link", "set", "eth0", "up")):
            ip("-n", self.space, *words)
        ip("-n", self.space, "link", "set", "lo", "up")
        self._hub = f"{mark}-hub"

    def start(self, words: Sequence[str], env: Mapping[str, str], log: Path, cwd: Path) -> "subprocess.Popen[bytes]":
        with open(log, "ab") as out:
            return subprocess.Popen(
                ["ip", "netns", "exec", self.space, *words],
                env=dict(env),
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )

    def pids(self) -> list[int]:
        done = subprocess.run(["ip", "netns", "pids", self.space], capture_output=True, text=True, check=False)
        return [int(word) for word in done.stdout.split()]

    def signal_all(self, number: int) -> int:
        """Signal every process of the machine, until no new ones appear."""
        seen = set[int]()
        while new := set(self.pids()) - seen:
            for pid in new:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
            seen |= new
        return len(seen)

    def die(self) -> None:
        self.link(False)
        self.signal_all(signal.SIGKILL)

    def link(self, up: bool) -> None:
        ip("netns", "exec", self._hub, "ip", "link", "set", self._outer, "up" if up else "down")


@contextlib.contextmanager
def network(names: Sequence[str]) -> Iterator[dict[str, Machine]]:
    """Machines with these names; removed with all their processes at the end."""
    mark = f"rooda{os.getpid()}"
    ip("netns", "add", f"{mark}-hub")
    found: dict[str, Machine] = {}
    try:
        ip("-n", f"{mark}-hub", "link", "add", "br0", "type", "bridge")
        ip("-n", f"{mark}-hub", "link", "set", "br0", "up")
        for number, name in enumerate(names, 1):
            found[name] = Machine(mark, name, number)
        yield found
    finally:
        for machine in found.values():
            machine.signal_all(signal.SIGKILL)
        time.sleep(0.2)
        for space in (*(machine.space for machine in found.values()), f"{mark}-hub"):
            subprocess.run(["ip", "netns", "del", space], capture_output=True, check=False)
