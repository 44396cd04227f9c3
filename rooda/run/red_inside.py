"""Finds out why a gate is red in the sandbox and green outside, and which line of [sandbox] helps."""

import os
import tempfile
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from rooda.base import clock, files
from rooda.base.json import Json
from rooda.base.secret_forms import looks_secret
from rooda.processes import supervise
from rooda.processes.sandbox import is_below, sockets
from rooda.processes.signals import SignalSource
from rooda.run.setup import Sandbox, Setup
from rooda.run.walls import HOSTS, ON, PASSED, SessionWalls, matcher

OUTSIDE = "gates = false"
QUICK = 20.0  # seconds; a slower gate is not run again to find the line
LONGEST = 120.0  # seconds of one run
SEARCH = 180.0  # seconds of the search for what a gate needs
MOST_PORTS = 200
MOST_LISTED = 8  # settings; a gate that seems to need more should run outside
_LISTENING = "0A"  # in /proc/net/tcp
# Addresses in /proc/net/tcp and tcp6 that loopback reaches
_HERE = ("0100007F", "00000000", "00000000000000000000000001000000", "0000000000000000FFFF00000100007F")
# Parts of the paths of sockets through which a process could leave the sandbox
_WAYS_OUT = """
    docker containerd podman crio buildkit dbus /bus systemd ssh- gpg S.g X11 ICE wayland pulse pipewire snapd lxd
    libvirt tmux screen at-spi keyring vscode
"""


class Need(NamedTuple):
    """Something that a gate needs but the sandbox withholds: an entry to add to a list in [sandbox]."""

    key: str  # hosts, read or environment
    value: str


class Trial:
    """Runs a gate's command in a workspace, in a sandbox or outside."""

    def __init__(self, workspace: str, sandbox: Sandbox, env: Mapping[str, str], signals: SignalSource) -> None:
        self._workspace, self._sandbox, self._env, self._signals = workspace, sandbox, env, signals
        self.seconds = 0.0  # of the last run

    def passes(self, command: str, sandbox: Sandbox | None) -> bool:
        """Run the command in `sandbox`, or without a sandbox if that is None; return True if the command passes."""
        began = clock.monotonic()
        with tempfile.TemporaryDirectory(prefix="rooda-") as folder:
            output = os.path.join(folder, "output")
            spec = supervise.Spec(("/bin/sh", "-c", command), self._workspace, self._env, output, timeout=LONGEST)
            walls = SessionWalls(self._workspace, Setup(sandbox=sandbox), self._env) if sandbox else None
            try:
                done = supervise.run(walls.around(spec) if walls else spec, self._signals)
            finally:
                if walls:
                    walls.close()
        self.seconds = clock.monotonic() - began
        return done.ended == "exit" and done.code == 0

    def helping(self, command: str) -> tuple[str, ...] | None:
        """Return the lines of [sandbox] that make a red gate green; None if the gate is also red outside."""
        if not self.passes(command, None):
            return None
        found = self._search(command) if self.seconds < QUICK else None
        return found or (OUTSIDE,)

    def _search(self, command: str) -> tuple[str, ...] | None:
        """Widen the sandbox until the gate passes; return the [sandbox] lines it needs, None if the search fails."""
        until = clock.monotonic() + SEARCH
        here = [Need("hosts", f"localhost:{port}") for port in listening_ports()[:MOST_PORTS]]
        here += [Need("read", path) for path in listening_sockets(self._workspace)]
        plain, secret = self._variables()
        steps = ((here, ""), ([*here, *plain], ""), ([*here, *plain], ON), ([*here, *plain, *secret], ON))
        for needs, network in steps:
            if self._signals.count or clock.monotonic() > until:
                return None
            if self._helps(command, needs, network):
                network = "" if network and self._helps(command, needs, "") else network
                least = self._least(command, needs, network, until)
                return self._lines(least, network) if len(least) <= MOST_LISTED else None
        return None

    def _least(self, command: str, needs: list[Need], network: str, until: float) -> list[Need]:
        """Return a minimal set of needs with which the gate is green; larger than minimal if time runs out."""
        size = max(len(needs) // 2, 1)
        while needs and clock.monotonic() < until and not self._signals.count:
            parts = [needs[at : at + size] for at in range(0, len(needs), size)]
            rests = [[need for need in needs if need not in part] for part in parts]
            smaller = next((rest for rest in rests if self._helps(command, rest, network)), None)
            if smaller is not None:
                needs = smaller
                size = min(size, max(len(needs) // 2, 1))
            elif size == 1:
                break
            else:
                size //= 2
        return needs

    def _helps(self, command: str, needs: Sequence[Need], network: str) -> bool:
        sandbox = self._sandbox
        for need in needs:
            more: Json = {need.key: (*getattr(sandbox, need.key), need.value)}
            sandbox = sandbox._replace(**more)
        opened = network or (HOSTS if any(need.key == "hosts" for need in needs) else sandbox.gate_network)
        return self.passes(command, sandbox._replace(gate_network=opened))

    def _lines(self, needs: Sequence[Need], network: str) -> tuple[str, ...]:
        keys = dict.fromkeys(need.key for need in needs)
        lines = [f"{key} = {_array([need.value for need in needs if need.key == key])}" for key in keys]
        network = network or (HOSTS if "hosts" in keys else "")
        return (*lines, *((f'gate_network = "{network}"',) if network else ()))

    def _variables(self) -> tuple[list[Need], list[Need]]:
        """Return the variables that the sandbox leaves out: those that hold no secret, and those that may hold one."""
        known = matcher((*PASSED.split(), *self._sandbox.environment))
        names = [name for name in self._env if not known(name) and name != "TMPDIR"]
        plain = [Need("environment", name) for name in names if not looks_secret(name)]
        return plain, [Need("environment", name) for name in names if looks_secret(name)]


def _array(names: Sequence[str]) -> str:
    return "[" + ", ".join(f'"{name}"' for name in names) + "]"


def listening_ports() -> list[int]:
    """Return the TCP ports of this machine's loopback device on which something listens."""
    found = set()
    for name in ("tcp", "tcp6"):
        try:
            rows = files.read_long_proc(f"/proc/net/{name}").decode().splitlines()[1:]
        except OSError:
            continue
        for row in rows:
            _, local, _, state, *_ = row.split()
            address, _, port = local.rpartition(":")
            if state == _LISTENING and (address in _HERE or not address.strip("0")):
                found.add(int(port, 16))
    return sorted(found)


def listening_sockets(workspace: str) -> list[str]:
    """Return the Unix sockets of services that the sandbox hides, without those that would be a way out of it."""
    return [
        path
        for path in sockets()
        if not any(part in path for part in _WAYS_OUT.split())
        and not is_below(path, (os.path.realpath(workspace),))
        and os.access(path, os.W_OK)
    ]


def joined(lines: Sequence[str]) -> tuple[str, ...]:
    """Return the lines for several gates as one table: one line per key; lists are merged."""
    import tomllib

    table: dict[str, list[str] | str | bool] = {}
    for line in lines:
        for key, value in tomllib.loads(line).items():
            before = table.get(key)
            if isinstance(before, list):
                table[key] = list(dict.fromkeys([*before, *value]))
            elif not (key == "gate_network" and before == ON):
                table[key] = value
    return tuple(f"{key} = {_toml(value)}" for key, value in table.items())


def _toml(value: list[str] | str | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else _array(value) if isinstance(value, list) else f'"{value}"'


def sentence(gate: str, lines: Sequence[str]) -> str:
    """Return the sentence about a gate that is red only in the sandbox."""
    text = f"The gate {gate} is red only in the sandbox. What helps, in [sandbox]: {'; '.join(lines)}"
    return f"{text}, or the files that it needs: read, write" if OUTSIDE in lines else text
