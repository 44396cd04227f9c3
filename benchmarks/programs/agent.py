"""The fake agent where there is no C compiler: see agent.c. Its start is in every gap, so ratios come out smaller."""

import os
import signal
import time

start = time.monotonic_ns()
does = os.environ.get("AGENT_DOES", "")


def stamp() -> None:
    file = os.open(os.environ["STAMPS"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.write(file, b"%d %d %d\n" % (start, time.monotonic_ns(), os.getpid()))


while os.read(0, 65536):
    pass
if does.startswith("write:"):
    left = int(does[6:])
    block = (b"x" * 79 + b"\n") * 819
    while left > 0:
        left -= os.write(1, block[:left])
if does == "ignore":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
stamp()
while does in ("wait", "ignore"):
    signal.pause()
os._exit(0)
