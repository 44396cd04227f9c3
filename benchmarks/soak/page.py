"""The page in a soak: one process for all loops, with a browser that listens, killed and started again."""

import http.client
import os
import selectors
import signal
import subprocess

from benchmarks.measure import Failed, until
from benchmarks.soak.watch import PAGE, Watch

PATIENCE = 10.0


class Page:
    """`rooda page` and one listener."""

    def __init__(self, root: str, python: str, env: dict[str, str], watch: Watch) -> None:
        self.folder, self.starts, self.bytes, self.wrong = os.path.join(root, PAGE), 0, 0, list[str]()
        self._python, self._watch = python, watch
        self._env = {**env, "SOAK": self.folder}
        self._process: subprocess.Popen[str] | None = None
        self._stream: http.client.HTTPConnection | None = None
        os.mkdir(self.folder)

    def start(self) -> None:
        """Start the page, and listen to it."""
        self.starts += 1
        with open(os.path.join(self.folder, "said"), "w", encoding="utf-8") as said:
            self._process = subprocess.Popen(
                [self._python, "-m", "rooda", "page", "--no-browser"],
                cwd=self.folder, env=self._env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=said,
                text=True, start_new_session=True,
            )  # fmt: skip
        assert self._process.stdout
        address = self._process.stdout.readline().split()[1]
        port, _, path = address.removeprefix("http://127.0.0.1:").partition("/")
        first = http.client.HTTPConnection("127.0.0.1", int(port), timeout=PATIENCE)
        first.request("GET", f"/{path}")
        cookie = str(first.getresponse().getheader("set-cookie")).partition(";")[0]
        first.close()
        self._stream = http.client.HTTPConnection("127.0.0.1", int(port), timeout=PATIENCE)
        self._stream.request("GET", f"/{path.partition('?')[0]}events", headers={"Cookie": cookie})

    def look(self, now: float) -> None:
        """Read what the page has sent; note its memory and files."""
        assert self._process and self._stream and self._stream.sock
        if self._process.poll() is not None:
            self.wrong.append(f"the page ended with {self._process.returncode}")
            self.start()
        with selectors.DefaultSelector() as chosen:
            chosen.register(self._stream.sock, selectors.EVENT_READ)
            while chosen.select(0) and (data := self._stream.sock.recv(1 << 20)):
                self.bytes += len(data)
        self._watch.note(PAGE, self._process.pid, now)

    def end(self, number: int) -> None:
        """End it with a signal, although somebody listens."""
        assert self._process and self._stream
        self._process.send_signal(number)
        try:
            until(lambda: self._process is None or self._process.poll() is not None, PATIENCE, "the end of the page")
        except Failed:
            self.wrong.append(f"the page did not end after signal {number}")
            self._process.kill()
        if number == signal.SIGTERM and self._process.wait() not in (0, 143):
            self.wrong.append(f"the page ended with {self._process.returncode}")
        self._stream.close()
