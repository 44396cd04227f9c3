"""Finds out why a gate is red in the sandbox and green outside, and which line of [sandbox] helps."""

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from rooda.base import clock, files
from rooda.base.secret_names import looks_secret
from rooda.processes import supervise
from rooda.processes.signals import SignalSource
from rooda.run.setup import Sandbox, Setup
from rooda.run.walls import HOSTS, ON, PASSED, SessionWalls, matcher

QUICK = 20.0  # seconds; a slower gate is not run again to find the line
LONGEST = 120.0  # seconds of one run
MOST_PORTS = 12
_LISTENING = "0A"  # in /proc/net/tcp
_HERE = ("0100007F", "00000000")  # addresses in /proc/net/tcp that loopback reaches


class Opening(NamedTuple):
    """Settings that open the sandbox a little, and their lines."""

    sandbox: Sandbox
    lines: tuple[str, ...]


class Trial:
    """Runs a gate's command in a workspace, in a sandbox or outside."""

    def __init__(self, workspace: str, sandbox: Sandbox, env: Mapping[str, str], signals: SignalSource) -> None:
        self._workspace, self._sandbox, self._env, self._signals = workspace, sandbox, env, signals
        self.seconds = 0.0  # of the last run

    def passes(self, command: str, sandbox: Sandbox | None) -> bool:
        """Run the command; None: outside of a sandbox."""
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
        """Return the lines of [sandbox] that make a red gate green; None if it is red outside, too."""
        if not self.passes(command, None):
            return None
        if self.seconds < QUICK:
            for opening in self._openings():
                if self._signals.count:
                    break
                if self.passes(command, opening.sandbox):
                    return self._narrowed(command, opening).lines
        return ("gates = false",)

    def _openings(self) -> Iterator[Opening]:
        ports, names = listening_ports(), self._names()
        for port in ports[:MOST_PORTS]:
            yield self._with_hosts([f"localhost:{port}"])
        yield Opening(self._sandbox._replace(gate_network=ON), ('gate_network = "on"',))
        if names:
            yield self._with_variables(names)
            opened = self._with_variables(names)
            sandbox = opened.sandbox._replace(gate_network=ON)
            yield Opening(sandbox, ('gate_network = "on"', *opened.lines))

    def _narrowed(self, command: str, opening: Opening) -> Opening:
        """Return the opening with as few variables as the gate needs, if it needs only those."""
        names = list(opening.sandbox.environment[len(self._sandbox.environment) :])
        if opening.sandbox.gate_network != self._sandbox.gate_network:
            return opening
        while len(names) > 1:
            middle = len(names) // 2
            halves = (names[:middle], names[middle:])
            good = next((half for half in halves if self.passes(command, self._with_variables(half).sandbox)), None)
            if good is None:
                break
            names = good
        return self._with_variables(names) if names else opening

    def _with_hosts(self, hosts: Sequence[str]) -> Opening:
        sandbox = self._sandbox._replace(hosts=(*self._sandbox.hosts, *hosts), gate_network=HOSTS)
        return Opening(sandbox, (f"hosts = {_array(hosts)}", f'gate_network = "{HOSTS}"'))

    def _with_variables(self, names: Sequence[str]) -> Opening:
        sandbox = self._sandbox._replace(environment=(*self._sandbox.environment, *names))
        return Opening(sandbox, (f"environment = {_array(names)}",))

    def _names(self) -> list[str]:
        """Return the variables that the sandbox leaves out and that hold no key."""
        known = matcher((*PASSED.split(), *self._sandbox.environment))
        return [name for name in self._env if not known(name) and not looks_secret(name) and name != "TMPDIR"]


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


def joined(lines: Sequence[str]) -> tuple[str, ...]:
    """Return the lines for several gates as one table: one line per key; lists are united."""
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
    """Return what to say about a gate that is red only in the sandbox."""
    return f"The gate {gate} is red only in the sandbox. What helps, in [sandbox]: {'; '.join(lines)}"
