"""The fake agent where there is no C compiler: see agent.c. Its start is in every gap, so ratios come out smaller."""

import os
import signal
import time

start = time.monotonic_ns()
does = os.environ.get("AGENT_DOES", "")


def stamp() -> None:
    file = os.open(os.environ["STAMPS"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.write(file, b"%d %d %d\n" % (start, time.monotonic_ns(), os.getpid()))


def leave() -> None:
    """A process that outlives us, if it is let."""
    child = os.fork()
    if child:
        if does == "fork":
            os.waitpid(child, 0)
        return
    if does != "hold":
        null = os.open(os.devnull, os.O_RDWR)
        for file in range(3):
            os.dup2(null, file)
        os.setsid()
    if does == "fork" and os.fork():
        os._exit(0)
    while True:
        signal.pause()


while os.read(0, 65536):
    pass
if does.startswith("write:"):
    left = int(does[6:])
    block = (b"x" * 79 + b"\n") * 819
    while left > 0:
        left -= os.write(1, block[:left])
if does == "change":
    with open("work", "w") as work:
        work.write(f"{start}\n")
if os.environ.get("AGENT_SAYS"):
    os.write(1, os.environ["AGENT_SAYS"].encode() + b"\n")
if does == "ignore":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if does in ("hold", "setsid", "fork"):
    leave()
stamp()
while does and does != "change" and not does.startswith("write:"):
    signal.pause()
os._exit(0)
