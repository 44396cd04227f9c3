"""Reports a loop's start, progress and end to a service manager, and pings its watchdog.

Uses systemd's `sd_notify` protocol: messages to the socket in NOTIFY_SOCKET. Loaded only if that is set.
"""

import os
from collections.abc import Mapping

from rooda.base import clock
from rooda.base.json import Json
from rooda.processes import guardian
from rooda.processes.supervise import Periodic

PATIENCE = 1.0  # seconds to wait while the manager's queue is full


def send(text: bytes) -> None:
    """Send a message to the socket in NOTIFY_SOCKET; errors are ignored."""
    import socket

    address = os.environ.get(guardian.MANAGER_VARIABLES[0], "")
    place = f"\0{address[1:]}" if address.startswith("@") else address
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | getattr(socket, "SOCK_CLOEXEC", 0)) as end:
            end.settimeout(PATIENCE)
            end.sendto(text, place) if text else None
    except (OSError, ValueError):
        pass


class ManagerNotifier:
    """Sends a loop's state to the service manager, if there is one."""

    EVENTS = ("run.started", "run.resumed", "iteration.started", "resting", "run.ended")

    def __init__(self, every: float = 0.0) -> None:
        self.every, self._next = every, 0.0

    def send(self, **facts: str | int) -> None:
        """Send variables such as READY=1 and STATUS=… as one message."""
        text = "\n".join(f"{key}={' '.join(str(value).split())}" for key, value in facts.items())
        data = text.encode("utf-8", "replace")
        if not guardian.send_to_manager(data):
            send(data)

    def report(self, record: Json) -> None:
        """Report an event of the loop if the protocol has a message for it."""
        event, name = record["event"], record.get("procedure") or record.get("name", "")
        if event in ("run.started", "run.resumed"):
            self.send(READY=1, STATUS=f"{name}: started")
        elif event == "iteration.started":
            most = record.get("max_iterations")
            self.send(STATUS=f"{name}: iteration {record['display']}{f'/{most}' if most else ''}")
        elif event == "resting":
            self.send(STATUS=f"{name}: waiting until {record['until']}")
        elif event == "run.ended":
            self.send(STOPPING=1, STATUS=f"{name}: ended ({record.get('reason', '')})")

    def ping_watchdog(self) -> None:
        """Send WATCHDOG=1 if it is due."""
        if self.every and clock.monotonic() >= self._next:
            self._next = clock.monotonic() + self.every
            self.send(WATCHDOG=1)

    def with_watchdog(self, other: Periodic | None) -> Periodic | None:
        """Return the periodic work of a wait with watchdog pings added; None if there is nothing to do."""
        if not self.every:
            return other

        def work() -> None:
            self.ping_watchdog()
            if other:
                other.work()

        return Periodic(min(self.every, other.every) if other else self.every, work)


def notifier(environ: Mapping[str, str] = os.environ) -> ManagerNotifier:
    """Return a notifier for the service manager; without watchdog pings if WATCHDOG_PID names another process."""
    period, pid = (environ.get(name, "") for name in guardian.MANAGER_VARIABLES[1:])
    ours = pid in ("", str(os.getpid()), str(guardian.visible_pid()))
    seconds = int(period) / 1e6 if period.isdecimal() and period.isascii() and ours else 0.0
    return ManagerNotifier(seconds / 2)
