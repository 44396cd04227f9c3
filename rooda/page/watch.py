"""Reads open logs at most twice a second while a browser listens, and sends the browsers what has changed."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from typing import TypeVar

from rooda.base import clock
from rooda.page import board_view
from rooda.page.board import Board
from rooda.page.html import Html
from rooda.page.pieces import Pieces, event
from rooda.page.run_channel import RunChannel
from rooda.settings.where import Where

PAUSE = 0.5  # seconds between two looks

T = TypeVar("T")


class Channel:
    """One page that any number of browsers show: the overview, or the view of a run."""

    def __init__(self, run: RunChannel | None = None) -> None:
        self.run, self.pieces = run, Pieces(int(clock.monotonic() * 1000))
        self.looked = float("-inf")
        self.said = 0  # number of characters of the agent's words at the last look
        self.listeners = 0
        self.gone = False
        self.changed = asyncio.Event()
        self._words: dict[tuple[str, int], bytes] = {}

    def publish(self) -> None:
        """Wake all listeners."""
        self._words.clear()
        before, self.changed = self.changed, asyncio.Event()
        before.set()

    def words(self, call: str, count: int) -> bytes:
        if self.run is None or (call, count) == (self.run.words.call, self.run.words.count):
            return b""
        if (call, count) not in self._words:
            self._words[call, count] = event("words", self.run.words.since(call, count))
        return self._words[call, count]


class Watch:
    """Looks for changes in the background, and publishes them on the page's channels."""

    def __init__(self, here: Where) -> None:
        self.board = Board(here)
        self.overview = Channel()
        self.stopping = False
        self._runs: dict[tuple[str, str], Channel] = {}
        self._clocks = board_view.Clocks()
        self._lock = asyncio.Lock()
        self._fresh = False
        self._reading: asyncio.Future[None] | None = None
        self._wake = asyncio.Event()
        self._ended = asyncio.Event()

    async def channel(self, key: str = "", run: str = "") -> Channel | None:
        """Return the updated channel of the overview, or of the run `run`; None if there is no such run."""
        await self._look_now(None)
        if not run:
            return self.overview
        here = self.board.workspaces.get(key)
        if here is None:
            return None
        found = self._runs.get((key, run)) or Channel(RunChannel(here, run))
        await self._look_now(found)
        if found.gone:
            return None
        self._forget()
        return self._runs.setdefault((key, run), found)

    def _forget(self) -> None:
        for key in [key for key, channel in self._runs.items() if not channel.listeners][:-20]:
            del self._runs[key]

    def forget_looks(self) -> None:
        """Make the next look read everything again, because an action has changed something."""
        self._fresh = True
        for each in (self.overview, *self._runs.values()):
            each.looked = float("-inf")

    async def _look_now(self, channel: Channel | None) -> None:
        """Look for changes to the overview and to the channel's run, unless that was done just now."""
        async with self._lock:
            now = clock.monotonic()
            old = [each for each in (self.overview, channel) if each and now - each.looked > PAUSE]
            if old:
                await self._look(old, fresh=True)

    async def run(self) -> None:
        """Look for changes while a browser listens; sleep otherwise."""
        while not self.stopping:
            active = [each for each in (self.overview, *self._runs.values()) if each.listeners]
            if not active:
                self._wake.clear()
                await self._wake.wait()
                continue
            begun, worked = clock.monotonic(), clock.cpu_time()
            if self.board.fleet.is_due:
                self._reading = asyncio.ensure_future(in_thread(self.board.fleet.read))
            async with self._lock:
                fresh, self._fresh = self._fresh, False
                await self._look([self.overview, *(each for each in active if each.run)], fresh)
            took, worked = clock.monotonic() - begun, clock.cpu_time() - worked
            await asyncio.sleep(max(PAUSE - took, worked))  # uses at most half of a processor

    def stop(self) -> None:
        """End all streams to browsers."""
        self.stopping = True
        self._wake.set()
        self._ended.set()
        for each in (self.overview, *self._runs.values()):
            each.publish()

    async def unless_stopped(self, work: "asyncio.Future[T]") -> T | None:
        """Return the result of `work`; None if the page ends first."""
        ended = asyncio.ensure_future(self._ended.wait())
        done, _ = await asyncio.wait((work, ended), return_when=asyncio.FIRST_COMPLETED)
        ended.cancel()
        return work.result() if work in done else None

    async def _look(self, channels: list[Channel], fresh: bool = False) -> None:
        found = await in_thread(lambda: [self._pieces(each, fresh) for each in channels])
        now = clock.monotonic()
        for channel, pieces in zip(channels, found, strict=True):
            said, before = channel.run.words.count if channel.run else 0, channel.said
            channel.gone, channel.said, channel.looked = pieces is None, said, now
            if (pieces is not None and channel.pieces.update(pieces)) or said != before:
                channel.publish()

    def _pieces(self, channel: Channel, fresh: bool) -> dict[str, Html] | None:
        """Return the current parts of a page; None if its run does not exist.

        If they can't be made, return the parts that the page has, and a line that says why they are out of date.
        """
        try:
            if channel.run:
                return channel.run.look(self.board)
            self.board.look(fresh)
            return board_view.pieces(self.board.open, self.board.finished, self._clocks, self.board.fleet.problem)
        except Exception as problem:  # the page continues, whatever an agent wrote into a log
            place = "more" if channel.run else "none"
            shown = {**channel.pieces.html, place: board_view.not_current(place, problem)}
            return None if channel.run and len(shown) == 1 else shown

    async def stream(self, channel: Channel, seen: int, call: str, count: int) -> AsyncIterator[bytes]:
        """Yield the events for one browser.

        The browser has version `seen` of the pieces, and `count` characters of the agent's words in the call `call`.
        """
        channel.listeners += 1
        self._wake.set()
        try:
            while not self.stopping:
                changed = channel.changed
                if message := channel.pieces.message(seen):
                    seen = channel.pieces.version
                    yield message
                if words := channel.words(call, count):
                    assert channel.run
                    call, count = channel.run.words.call, channel.run.words.count
                    yield words
                await changed.wait()
        finally:
            channel.listeners -= 1


async def in_thread(work: Callable[[], T]) -> T:
    """Run `work` in a thread that does not keep the process alive, and return its result."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def set_result(result: T | None, problem: BaseException | None) -> None:
        if future.cancelled():
            return
        if problem:
            future.set_exception(problem)
        else:
            future.set_result(result)  # type: ignore[arg-type]

    def run() -> None:
        result, problem = None, None
        try:
            result = work()
        except BaseException as error:
            problem = error
        try:
            loop.call_soon_threadsafe(set_result, result, problem)
        except RuntimeError:
            pass  # the page has ended

    threading.Thread(target=run, daemon=True).start()
    return await future
