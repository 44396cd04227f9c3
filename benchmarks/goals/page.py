"""The page with many browsers and busy loops: its memory, the time until an event is on the screen, what loops lose."""

import http.client
import json
import os
import re
import selectors
import signal
import statistics
import subprocess
import sys
import threading
import time
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from glob import glob
from typing import NamedTuple

from benchmarks.bench import ROOT, Bench, Workspace, gaps, run
from benchmarks.measure import finish, round_robin, start
from benchmarks.verdict import Measured, Row

BROWSERS, LOOPS = 200, 20
WITH, WITHOUT = "with the page", "without the page"
AGENT = "/bin/sh -c 'sleep {}; exec {}'"
CALL = 1.0  # seconds that an agent's call takes
SHOWN = re.compile(r'data-run="([^"]+)".*?class="iteration">([0-9]+)')


class Door(NamedTuple):
    """Where the page is, and the cookie."""

    pid: int
    port: int
    base: str
    cookie: str


def page(bench: Bench) -> Measured:
    """Two hundred open pages of an overview with twenty busy loops."""
    with open(os.path.join(ROOT, "pyproject.toml"), "rb") as file:
        needed = tomllib.load(file)["project"]["optional-dependencies"]["page"]
    run([sys.executable, "-m", "pip", "--quiet", "--python", bench.python, "install", *needed])
    browsers, loops = (20, 4) if bench.quick else (BROWSERS, LOOPS)
    home = os.path.join(bench.root, "page-home")
    os.mkdir(home)
    places = [bench.workspace("page", HOME=home, ROODA_STATE_HOME=os.path.join(home, "state")) for _ in range(loops)]
    facts: dict[str, float] = {}
    series = round_robin(
        {
            WITHOUT: lambda: _busy(bench, places, 0, {}),
            WITH: lambda: _busy(bench, places, browsers, facts),
        },
        1 if bench.quick else 3,
        warm=0,
    )
    lost = series[WITH]["gap"].median / series[WITHOUT]["gap"].median
    rows = [
        Row(0, f"memory of the page with {browsers} browsers and {loops} busy loops", facts["memory"], 100, "MB"),
        Row(0, "from an event to the browser, 95th percentile", facts["late"] * 1000, 1000, "ms"),
        Row(0, f"time between two agent calls with the page and {browsers} browsers, over that without", lost, None),
        Row(0, "CPU of the page, of one processor", facts["cpu"] * 100, None, "%"),
    ]
    return Measured(rows, series)


def _busy(bench: Bench, places: list[Workspace], browsers: int, facts: dict[str, float]) -> Mapping[str, float]:
    """Run all loops at once, with this many browsers; the median time between two calls of an agent."""
    calls = 8 if bench.quick else 20
    began = time.monotonic()
    with _watched(bench, places[0], browsers, facts) if browsers else _unwatched():
        for place in places:
            with open(place.stamps, "wb"):
                pass
        agent = AGENT.format(CALL, bench.agent)
        argv = [bench.rooda, "bench", "--fresh", "-n", str(calls), "--ai-cmd", agent]
        for pid in [start(argv, place.env, place.path) for place in places]:
            finish(pid, began)
    found = [gap - CALL for place in places for gap in gaps(place)]
    return {"gap": statistics.median(found), "largest": max(found)}


@contextmanager
def _unwatched() -> Iterator[None]:
    yield


@contextmanager
def _watched(bench: Bench, place: Workspace, browsers: int, facts: dict[str, float]) -> Iterator[None]:
    """Serve the page, and let browsers listen meanwhile; collect its memory, CPU and how late events come."""
    argv = [bench.rooda, "page", "--no-browser"]
    process = subprocess.Popen(argv, cwd=place.path, env=place.env, stdout=subprocess.PIPE, text=True)
    assert process.stdout
    door = _entered(process.pid, process.stdout.readline().split()[1])
    seen: dict[tuple[str, int], float] = {}
    ended = threading.Event()
    reader = threading.Thread(target=_read, args=(door, browsers, seen, ended))
    reader.start()
    before, began = _cpu(door.pid), time.monotonic()
    try:
        yield
        facts["memory"] = max(facts.get("memory", 0.0), _memory(door.pid))
        facts["cpu"] = (_cpu(door.pid) - before) / (time.monotonic() - began)
    finally:
        ended.set()
        reader.join()
        process.send_signal(signal.SIGTERM)
        process.wait()
    late = sorted(_lateness(os.path.dirname(place.path), seen))
    facts["late"] = late[int(len(late) * 0.95)]


def _entered(pid: int, address: str) -> Door:
    port, _, rest = address.removeprefix("http://127.0.0.1:").partition("/")
    connection = http.client.HTTPConnection("127.0.0.1", int(port))
    connection.request("GET", f"/{rest}")
    cookie = str(connection.getresponse().getheader("set-cookie")).partition(";")[0]
    return Door(pid, int(port), f"/{rest.partition('?')[0]}", cookie)


def _read(door: Door, browsers: int, seen: dict[tuple[str, int], float], ended: threading.Event) -> None:
    """Listen as this many browsers; note of the last one when it was told which iteration of a run."""
    chosen = selectors.DefaultSelector()
    for number in range(browsers):
        connection = http.client.HTTPConnection("127.0.0.1", door.port, timeout=60)
        connection.request("GET", f"{door.base}events", headers={"Cookie": door.cookie})
        assert connection.sock
        chosen.register(connection.sock, selectors.EVENT_READ, (connection, number == browsers - 1))
        connection.sock.setblocking(False)
    rest = b""
    while not ended.is_set():
        for key, _ in chosen.select(0.2):
            data = key.data[0].sock.recv(1 << 20)
            if key.data[1]:
                *lines, rest = (rest + data).split(b"\n")
                _note([line for line in lines if line.startswith(b"data: ")], seen)
    for key in [*chosen.get_map().values()]:
        key.data[0].close()


def _note(lines: list[bytes], seen: dict[tuple[str, int], float]) -> None:
    now = time.time()
    for line in lines:
        for key, html in json.loads(line[6:]).get("pieces", {}).items():
            if key.startswith("open/") and (found := SHOWN.search(html)):
                seen.setdefault((found[1], int(found[2])), now)


def _lateness(root: str, seen: dict[tuple[str, int], float]) -> Iterator[float]:
    """Yield the seconds from the beginning of an iteration, as the log has it, to the browser."""
    for (name, number), at in seen.items():
        for path in glob(os.path.join(root, "*", ".rooda", "runs", name, "events.jsonl")):
            with open(path, encoding="utf-8") as file:
                events = [json.loads(line) for line in file]
            begun = [event["ts"] for event in events if event["event"] == "iteration.started"]
            if 1 < number <= len(begun):
                yield at - datetime.fromisoformat(begun[number - 1]).timestamp()


def _memory(pid: int) -> float:
    """Megabytes of a process at their peak."""
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) / 1000


def _cpu(pid: int) -> float:
    """Seconds of processor time of a process."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
