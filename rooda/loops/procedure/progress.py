"""Decides whether an iteration failed, and whether the run makes progress, from what agent and gates did. Pure.

`count_failures`, `stuck_after`, `blocked_threshold` and `on_red` are the settings behind these rules. A gate's result
is "" if it passed, else its verdict and a hash of its normalized output.
"""

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, NamedTuple, TypeAlias

from rooda.agents.records import Reply
from rooda.loops.procedure.model import NO_PROGRESS, Procedure
from rooda.run.records import Gates

EVENTS = (  # the events from which a resume rebuilds Progress
    *("baseline.ended", "iteration.started", "agent.started", "iteration.ended", "snapshot.taken", "run.ended"),
)
Results: TypeAlias = Mapping[str, str]  # results by name of the gate; empty: not known


class Progress(NamedTuple):
    """Facts about earlier iterations on which decisions depend. A resume rebuilds them from the events of the run."""

    baseline: Mapping[str, str] = {}
    gates: Mapping[str, str] = {}  # the last results that apply to the work tree as the next iteration finds it
    stuck: int = 0  # iterations in a row that changed no result of a gate, while one was red
    blocked: int = 0  # promises of FAILURE in a row that left the work tree as it was
    tree: str = ""  # the work tree before the first of these promises
    reason: str = ""  # the agent's reason in the last of these promises
    base: str = ""  # the work tree at the last commit by rooda, or at the start
    over: str = ""  # the threshold that is reached: "stuck", "blocked" or ""
    undoing: tuple[str, str] = ("", "")  # of an undo that was cut off: snapshot to restore, snapshot to keep
    repeated: str = ""  # the snapshot from the beginning of an iteration that a crash cut off while its agent worked
    last: Mapping[str, Any] = {}  # the event `iteration.ended` of the last iteration that was not interrupted
    unjudged: bool = False  # the last iteration before the limit was cut off, and so was the check of its gates


NOTHING = Progress()


class Seen(NamedTuple):
    """The outcome of an iteration: the agent's reply, the gates' results, and the work tree before and after it."""

    reply: Reply
    gates: Gates = Gates()
    results: Mapping[str, str] = {}
    before: str = ""  # "": not known, or not needed
    after: str = ""
    said: str = ""  # the agent's last words

    @property
    def interrupted(self) -> bool:
        return self.reply.ended == "interrupted" or self.gates.interrupted

    @property
    def left_tree_alone(self) -> bool:
        return bool(self.before) and self.before == self.after


# What the rules need to know. With the default settings, none of it requires a git process.


def compares_outputs(procedure: Procedure) -> bool:
    return procedure.count_failures == NO_PROGRESS or procedure.on_red == "undo"


def is_watched(procedure: Procedure) -> bool:
    """True if a setting turns on a rule of this module that is off by default."""
    return compares_outputs(procedure) or procedure.baseline or counts_blocked(procedure) or commits(procedure)


def counts_blocked(procedure: Procedure) -> bool:
    return bool(procedure.blocked_threshold) and procedure.promise_signals


def commits(procedure: Procedure) -> bool:
    return procedure.commit == "green"


def needs_tree_before(procedure: Procedure, past: Progress) -> bool:
    """True if the work tree must be read before the agent starts, to compare it with the tree afterwards."""
    return _may_stand_still(procedure, past) or counts_blocked(procedure)


def needs_tree_after(procedure: Procedure, past: Progress, reply: Reply) -> bool:
    return _may_stand_still(procedure, past) or (counts_blocked(procedure) and reply.promise == "FAILURE")


def _may_stand_still(procedure: Procedure, past: Progress) -> bool:
    return procedure.count_failures == NO_PROGRESS and bool(red(past.gates))


# The rules


def red(results: Results) -> dict[str, str]:
    return {name: result for name, result in results.items() if result}


def turned_red(before: Results, now: Results) -> list[str]:
    """Return the gates that were green and are red now."""
    return [name for name in red(now) if before.get(name) == ""]


def is_unchanged(before: Results, now: Results) -> bool:
    """True if there are red gates, and each has the same result as before."""
    return bool(red(now)) and red(before) == red(now)


def failed(procedure: Procedure, past: Progress, seen: Seen) -> bool:
    """Return True if the iteration failed.

    It always fails if the agent failed or gave up. If a gate is red, it fails with `count_failures = "red"`; with
    "no-progress" it fails only if the agent claimed SUCCESS, if a green gate turned red, or if neither a red gate's
    result nor the work tree changed.
    """
    if not seen.reply.ok or seen.reply.promise == "FAILURE":
        return True
    if not seen.gates.failed or procedure.count_failures != NO_PROGRESS:
        return bool(seen.gates.failed)
    if seen.reply.promise == "SUCCESS" or turned_red(past.gates, seen.results):
        return True
    return is_unchanged(past.gates, seen.results) and seen.left_tree_alone


def must_commit(procedure: Procedure, seen: Seen) -> bool:
    return commits(procedure) and seen.reply.ok and not seen.gates.failed and not seen.interrupted


def must_undo(procedure: Procedure, past: Progress, seen: Seen) -> bool:
    """True if undo is on, and the iteration turned a green gate red or left the red gates' results unchanged."""
    if procedure.on_red != "undo" or seen.interrupted or not seen.gates.failed:
        return False
    worse = turned_red(past.gates, seen.results) or turned_red(past.baseline, seen.results)
    return bool(worse) or is_unchanged(past.gates, seen.results)


def after(procedure: Procedure, past: Progress, seen: Seen, undone: bool = False) -> Progress:
    """Return the progress after an iteration. After an undo the gates' earlier results apply again."""
    if seen.interrupted:
        return past
    stands = is_unchanged(past.gates, seen.results)
    stuck = past.stuck if not seen.results else past.stuck + 1 if stands else 0
    now = _with_blocked(procedure, past, seen)._replace(stuck=stuck)
    if seen.results and not undone:
        now = now._replace(gates=seen.results)
    if counts_blocked(procedure) and now.blocked >= procedure.blocked_threshold:
        return now._replace(over="blocked")
    is_stuck = procedure.count_failures == NO_PROGRESS and 0 < procedure.stuck_after <= stuck
    return now._replace(over="stuck") if is_stuck else now


def _with_blocked(procedure: Procedure, past: Progress, seen: Seen) -> Progress:
    """Count consecutive FAILURE promises that left the tree unchanged or, if it is unknown, gave the same reason."""
    if not counts_blocked(procedure) or seen.reply.promise != "FAILURE":
        return past._replace(blocked=0, tree="", reason="")
    first, reason = past.tree if past.blocked else seen.before, " ".join(seen.said.split())
    if first and seen.after:
        count = past.blocked + 1 if first == seen.after else 0
    else:
        count = past.blocked + 1 if not past.blocked or reason == past.reason else 1
    return past._replace(blocked=count, tree=first if count else "", reason=reason)


def remembered(past: Progress) -> dict[str, Any]:
    """Return the fields that `iteration.ended` must record for a resume; {} if there are none."""
    kept = {key: getattr(past, key) for key in ("gates", "stuck", "blocked", "tree", "reason", "base")}
    return kept if any(kept.values()) else {}


def recalled(events: Iterable[Mapping[str, Any]]) -> Progress:
    """Rebuild a run's progress from its events, oldest first."""
    past = Progress()
    for record in events:
        event = record["event"]
        if event == "baseline.ended":
            past = past._replace(baseline=record["gates"], gates=record["gates"])
        elif event == "snapshot.taken":
            began = record["commit"] if record["moment"] == "before" else past.undoing[0]
            past = past._replace(undoing=(began, record["commit"] if record["moment"] == "undo" else ""))
        elif event == "iteration.started":
            past = past._replace(base=record.get("base", past.base))
        elif event == "agent.started":
            past = past._replace(repeated=past.repeated or past.undoing[0])
        elif event in ("iteration.ended", "run.ended"):
            past = past._replace(undoing=("", ""), repeated="")
            if event == "iteration.ended" and record.get("outcome") != "interrupted":
                past = past._replace(**record.get("remembered", {}), last=record)
    return past


def forgiven(procedure: Procedure, past: Progress) -> Progress:
    """Reset the counts that have reached their thresholds, so that a resume starts them from 0."""
    if counts_blocked(procedure) and past.blocked >= procedure.blocked_threshold:
        past = past._replace(blocked=0, tree="", reason="")
    return past._replace(stuck=0) if past.stuck >= procedure.stuck_after else past


def must_recheck(procedure: Procedure, past: Progress, iterations: int, failures: int) -> bool:
    """True if a run that is resumed at its iteration limit must run its gates once more before it ends.

    This is the case if the last iteration was cut off and is therefore not on record. If no iteration is on record,
    failures in a row show that the last iteration was not cut off.
    """
    is_known = past.last.get("iteration") == iterations - 1 if past.last else bool(failures)
    return bool(procedure.gates) and not is_known


def ends_red(past: Progress, failures: int, gated: bool) -> bool:
    """True if the last iteration failed or left a gate red. Without gates (`--no-gates`) only the agent counts.

    If no iteration is on record, return True after failures in a row, or if a gate was red before iteration 1.
    """
    last = past.last
    if not last:
        return failures > 0 or bool(gated and red(past.gates))
    by_agent = last.get("ended", "exit") != "exit" or last.get("exit_code") or last.get("promise") == "FAILURE"
    by_agent = by_agent or last.get("agent_outcome") not in (None, "", "ok") or last.get("commit_refused")
    return bool(by_agent or (gated and last.get("gates_failed")))


# Output that differs between two runs of a gate although nothing has changed: pattern, flags, replacement

_MONTH = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*"
_UNIT = "(?:ns|[uµ]s|ms|s|secs?|seconds?|m|mins?|minutes?|h|hours?)"
_CLOCK = r"\d{1,2}:\d\d(?::\d\d(?:[.,]\d+)?)?"


@cache
def _noise() -> list[tuple["re.Pattern[str]", str]]:
    """Return patterns for text that varies from run to run, each with its replacement. Compiled only when needed."""
    return [
        (re.compile(pattern, flags), instead)
        for pattern, flags, instead in (
            (r"\x1b\[[0-9;?]*[A-Za-z]", 0, ""),
            (rf"\b\d{{4}}-\d\d-\d\d(?:[T ]{_CLOCK}(?:Z|[+-]\d\d:?\d\d)?)?\b", 0, "DATE"),
            (rf"\b(?:{_MONTH} +\d{{1,2}}\b|\d{{1,2}} {_MONTH}\b)(?:,? \d{{4}}\b)?", 0, "DATE"),
            (r"\b\d{1,2}[/.]\d{1,2}[/.]\d{4}\b", 0, "DATE"),
            (rf"(?<![\w:.-]){_CLOCK}(?:Z|[+-]\d\d:?\d\d)?(?![\w:])", 0, "TIME"),
            (rf"\b(?:\d+(?:[.,]\d+)? ?{_UNIT} ?)+\b", 0, "DURATION "),
            (r"\b0x[0-9a-fA-F]+\b", 0, "ADDRESS"),
            (r"\b(pid|process|thread)([ =:#]{0,3})\d+\b", re.IGNORECASE, r"\1\2PID"),
            (r"==\d+==|(?<=\w)\[\d+\](?=:)", 0, "PID"),
        )
    ]


TEMPORARY = ("/private/var/folders", "/var/folders", "/private/tmp", "/var/tmp", "/tmp", "/dev/shm")
_PATH_ENDS = r"[^\s'\"`:,;()\[\]{}<>]*"


def normalised(text: str, workspace: str, temporary: Iterable[str] = ()) -> str:
    """Return a gate's output without durations, times, dates, addresses, temporary paths and PIDs, its lines sorted.

    Lines are sorted because test runners that work in parallel print in any order.
    """
    text = text.replace(workspace, "WORKSPACE") if workspace else text
    roots = sorted({*TEMPORARY, *(root.rstrip("/") for root in temporary)} - {""}, key=len, reverse=True)
    text = re.sub(rf"(?<![\w.])(?:{'|'.join(map(re.escape, roots))})/{_PATH_ENDS}", "TEMPORARY", text)
    for pattern, instead in _noise():
        text = pattern.sub(instead, text)
    return "\n".join(sorted(line.strip() for line in text.splitlines()))
