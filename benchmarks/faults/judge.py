"""What a fault has cost: the calls that were made against those of an undisturbed run, and what is on disk."""

import difflib
import re
from collections.abc import Iterable
from typing import NamedTuple

from benchmarks.faults.kinds import Failed, Json, Kind
from benchmarks.faults.site import Call, Site

MOST = 2000  # characters of an output that are shown


class Tally(NamedTuple):
    """What the faults have cost. Everything but `redone` must be 0."""

    faults: int = 0
    lost: int = 0  # a finished call that was made again, one that was never made, an end that is another one
    corrupted: int = 0  # files that can't be read
    doubled: int = 0  # an agent that found one of another run at work
    orphaned: int = 0  # processes that outlived their run beside the next one, or its end
    failed: int = 0  # a traceback, an unexpected exit code, a command that hung
    redone: int = 0  # calls that a fault met at work, made once more

    @property
    def harmless(self) -> bool:
        return not any((self.lost, self.corrupted, self.doubled, self.orphaned, self.failed))

    def plus(self, other: "Tally") -> "Tally":
        return Tally(*map(sum, zip(self, other, strict=True)))


class Judge:
    """Follows one site from session to session. `problems` says in words what the tally counts.

    A disk that fails may cost one call, or a check and so a further turn: `detours` allows that, and a missing file.
    """

    def __init__(self, site: Site, reference: Json, detours: bool = False) -> None:
        self.site, self.reference, self.detours = site, reference, detours
        self.tally, self.problems = Tally(), list[str]()
        self._place = places(site.kind)
        self._seen = 0
        self._earlier: set[str] = set()  # runs of all sessions before the present one
        self._doubled = 0

    def session(self, code: int | None = None, codes: Iterable[int] = ()) -> list[Call]:
        """What the session that has just ended has done; its own calls."""
        calls = self.site.begun()
        before = [*calls[: self._seen], *(call for call in calls[self._seen :] if call.run in self._earlier)]
        fresh = [call for call in calls[self._seen :] if call.run not in self._earlier]
        self._order([call.key for call in before], [call.key for call in fresh])
        if fresh:
            orphans = [pid for pid, run in self.site.living().items() if run in self._earlier]
            self.note(orphaned=orphans)
        self.note(corrupted=self.site.corrupt())
        doubled = self.site.doubled()
        self.note(doubled=doubled[self._doubled :])
        said = self.site.heard()
        if "Traceback" in said or (code is not None and code not in codes):
            self.note(failed=[f"exit {code}: {said[-MOST:]}"])
        self._seen, self._doubled = len(calls), len(doubled)
        self._earlier |= {call.run for call in calls}
        return fresh

    def finish(self) -> None:
        """The session that goes on to the end, undisturbed."""
        ended = self.site.finish()
        self.session(ended.code, self.site.codes(ended))

    def nobody(self) -> None:
        """A moment at which nobody of the site may be alive."""
        left = self.site.living()
        self.note(orphaned=list(left))

    def end(self, paid: bool = False) -> None:
        """The end is that of an undisturbed run, nothing more is to be done, and nobody is left."""
        ended = self.site.do(*self.site.kind.resume(self.site.work))
        fresh = self.session(ended.code, (self.site.kind.finished,))
        self.note(lost=[f"a call after the end: {call.key}" for call in fresh])
        begun = {call.key for call in self.site.begun()}
        missing = [key for key in self._place if key not in begun]
        self.note(lost=[f"never made: {key}" for key in missing[int(self.detours) :]])
        found = self.site.end()
        if self.detours:
            self.note(
                lost=[f"left behind: {name}" for name in found if name not in self.reference and not self._detour()]
            )
        else:
            self.note(lost=differences(self.reference, found))
        if paid:
            self._paid()
        if not self.site.gone():
            self.note(orphaned=list(self.site.living()))

    def _paid(self) -> None:
        """Every finished call is counted once, and none that was not made."""
        paid, made = self.site.paid(), len(self.site.begun())
        unseen = self.tally.faults * max(map(len, self.site.kind.turns))  # started, and killed before they said a word
        if not len(self._place) <= paid <= made + unseen:
            self.note(lost=[f"{paid} calls counted, {made} made"])

    def note(self, **found: Iterable[object]) -> None:
        for name, values in found.items():
            told = [str(value) for value in values]
            self.problems += [f"{name}: {text}" for text in told] if name != "redone" else []
            self.tally = self.tally._replace(**{name: getattr(self.tally, name) + len(told)})

    def _order(self, before: list[str], fresh: list[str]) -> None:
        """Only what the fault met at work is asked for again; nothing is passed over."""
        reached = max((self._place.get(key, -1) for key in before), default=-1)
        for key in fresh:
            place = self._place.get(key, -2)
            if self.detours and (place < 0 or self._detour()):
                continue
            if key in before:
                spared = place == reached or (self.detours and not self.tally.redone)
                self.note(**{"redone" if spared else "lost": [f"again: {key}"]})
            elif not reached <= place <= reached + 1 + self.detours:
                self.note(lost=[f"passed over, before {key}" if place > reached else f"unexpected: {key}"])
            before, reached = [*before, key], max(reached, place)

    def _detour(self) -> bool:
        return any(call.key not in self._place for call in self.site.begun())


def places(kind: Kind) -> dict[str, int]:
    """The place of each call in an undisturbed run; those that are made together have the same."""
    return {key: place for place, together in enumerate(kind.turns) for key in together}


def differences(wanted: Json, found: Json) -> list[str]:
    """Where two ends differ."""
    names = [name for name in sorted({*wanted, *found}) if wanted.get(name) != found.get(name)]
    return [f"{name} differs: {_difference(str(wanted.get(name)), str(found.get(name)))}" for name in names]


def _difference(wanted: str, found: str) -> str:
    """In short, also of long lines."""
    one, other = (re.split(r"\n|(?<=,) ", text) for text in (wanted, found))
    lines = [line for line in difflib.unified_diff(one, other, lineterm="", n=1) if line[:3] not in ("---", "+++")]
    return "\n".join(lines[:40])


def undisturbed(site: Site, env: "dict[str, str] | None" = None) -> Json:
    """The end of a run that nothing happens to."""
    judge = Judge(site, {})
    judge.session(site.ended(site.next(env)).code, (0,))
    made = sorted(call.key for call in site.begun())
    if judge.problems or made != sorted(places(site.kind)) or not site.kind.over(site.work):
        raise Failed("\n".join([*judge.problems, f"an undisturbed run of {site.kind.name} has made {made}"]))
    return site.end()
