"""A reader that stops reading: rooda writes to a pipe of one page, and waits at its next line once that is full."""

import fcntl
import os
import subprocess
import threading

from .workspace import Workspace

F_SETPIPE_SZ = 1031  # Linux; elsewhere the pipe keeps its size


class Stalled:
    """A running command whose stdout is read when the test says so."""

    def __init__(self, ws: Workspace, *arguments: str, room: int | None = None) -> None:
        """`room`: bytes that still fit into the pipe before the command waits; None: it starts empty."""
        path = os.path.join(ws.fake, "pipe")
        os.mkfifo(path)
        self._read = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        self._fill = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        theirs = os.open(path, os.O_WRONLY)
        if hasattr(os, "pidfd_open"):
            fcntl.fcntl(theirs, F_SETPIPE_SZ, 4096)
        if room is not None:
            os.write(self._fill, b"#" * (4096 - room))
            if not room:
                self.fill()
        self._err = open(os.path.join(ws.root, "stalled.err"), "w+b")  # noqa: SIM115
        self.process = subprocess.Popen(
            ws.command(*arguments),
            cwd=ws.path,
            env=ws.env,
            stdin=subprocess.DEVNULL,
            stdout=theirs,
            stderr=self._err,
            start_new_session=True,
        )
        os.close(theirs)
        self.code = 0
        self.err = ""

    def signal(self, number: int) -> None:
        """Signal the loop itself: by way of the guardian it would arrive a moment later."""
        import psutil

        for loop in psutil.Process(self.process.pid).children():
            loop.send_signal(number)

    def fill(self) -> None:
        """Leave no room in the pipe: the command's next line stays unwritten until `drain`."""
        for size in (4096, 256, 16, 1):
            try:
                while True:
                    os.write(self._fill, b"#" * size)
            except BlockingIOError:
                pass

    def seen(self) -> str:
        """What has come out so far; takes it out of the pipe."""
        return os.read(self._read, 1 << 16).replace(b"#", b"").decode()

    def drain(self) -> list[str]:
        """The lines from here to the end of the command; sets `code` and `err`."""
        os.close(self._fill)
        os.set_blocking(self._read, True)
        guard = threading.Timer(30, self.process.kill)
        guard.start()
        pieces = []
        while piece := os.read(self._read, 1 << 16):
            pieces.append(piece)
        self.code = self.process.wait()
        guard.cancel()
        os.close(self._read)
        self._err.seek(0)
        self.err = self._err.read().decode()
        self._err.close()
        return b"".join(pieces).replace(b"#", b"").decode().splitlines()
