"""Parsers of single words, of other programs' output, and of transcripts."""

import contextlib
import io
import shlex
from collections.abc import Callable
from datetime import datetime

from rooda.agents import command, hang_detection, limits, outcome, reply, sessions
from rooda.agents import transcript as agents_transcript
from rooda.agents.reader import reader
from rooda.agents.records import Agent
from rooda.base import clock, files
from rooda.base import text as base_text
from rooda.cli import usage
from rooda.errors import PromptProblem, UsageProblem
from rooda.git import retention
from rooda.git import snapshots as taken
from rooda.git.repository import Repo
from rooda.loops.flow import commits, model, repository
from rooda.loops.goal import arguments, scoring
from rooda.loops.reflex import rules
from rooda.processes.capture import Captured
from rooda.run.placeholders import substitute
from rooda.settings.schema import AGENT
from rooda.settings.types import COMMAND, DURATION
from rooda.views.agent_output import Tail
from tests.fuzz.fuzz_room import put, room, seen, text

OUTPUTS = AGENT["output"].type.expected.removeprefix("must be one of ").split(", ")
SESSIONS = [output for output in OUTPUTS if reader(output).sessions]
CHUNKS = (5, 64, 65_536)


def transcript(output: str) -> Callable[[bytes], None]:
    """A reader of this form of output: facts without an exception, the same words in any split."""

    def read(data: bytes) -> None:
        path = put("transcript.out", data)
        facts = agents_transcript.facts_of(output, path)
        assert all(number >= 0 for number in facts.usage or ())
        assert isinstance(facts.session, str) and isinstance(facts.model, str) and isinstance(facts.final, str)
        reply.read_output(path)
        ended = hang_detection.final_record_check(output, path)
        assert ended is None or ended() in (True, False)
        hang_detection.repeats_overflow(output, path)
        claims = outcome.claims(facts.final.encode("utf-8", "replace").split(b"\n"))
        assert outcome.verdict(claims, b"") in ("", "SUCCESS", "FAILURE")
        if len(data) < 2048:
            said = [tailed(output, path, data, size) for size in CHUNKS]
            assert said[0] == said[1] == said[2]

    return read


def tailed(output: str, path: str, data: bytes, size: int) -> str:
    """What --verbose shows when the transcript grows by pieces of this size."""
    found: list[str] = []
    tail = Tail(found.append)
    put("transcript.out", b"")
    tail.update({"event": "agent.started", "transcript": path, "output": output})
    with open(path, "ab", 0) as file:
        for place in range(0, len(data), size):
            file.write(data[place : place + size])
            tail.read()
    tail.update({"event": "agent.ended"})
    return "".join(found)


def session_file(output: str) -> Callable[[bytes], None]:
    """The file that this CLI keeps of a session: a usage per model; whatever else means unknown."""

    def read(data: bytes) -> None:
        path = put("session.jsonl", data)
        for kept in reader(output).sessions:
            with contextlib.suppress(ValueError, RecursionError):  # as `spent` does
                shares = sessions._read(path, kept)
                assert all(isinstance(model, str) for model in shares)
                sessions.total(shares)

    return read


def duration(data: bytes) -> None:
    """Seconds, or a ValueError; a duration of ours is read as it was meant."""
    said = text(data)
    DURATION.faults(said)
    try:
        found = base_text.parse_seconds(said)
    except ValueError:
        return
    assert abs(found) <= base_text.LONGEST
    assert abs(base_text.parse_seconds(base_text.format_tenths(abs(found))) - abs(found)) < 0.051
    assert base_text.format_seconds(found) and base_text.format_number(found)


def since(data: bytes) -> None:
    """--since: a time as the events have it, or a sentence."""
    with contextlib.suppress(UsageProblem):
        start = usage.start_of(text(data))
        assert datetime.fromisoformat(start).tzinfo is not None, start


def reset_time(data: bytes) -> None:
    """When a usage limit ends: a moment that can be waited for and written down, or nothing."""
    moment = limits.reset_time(seen(data))
    if moment is not None:
        assert clock.parse_time(clock.rfc3339_local(moment)) is not None
        clock.rfc3339(moment)


def placeholders(data: bytes) -> None:
    """A fragment with its parameters; braces that are no placeholder stay."""
    said = text(data)
    with contextlib.suppress(PromptProblem):
        filled = substitute(said, {"name": "{{other}}", "x": ""}, "f")
        assert "{{" in said or filled == said


def command_line(data: bytes) -> None:
    """A command in settings: words without a shell, or a fault in words."""
    said = text(data)
    if COMMAND.faults(said):
        return
    assert shlex.split(said)
    for how in ("stdin", "argument"):
        agent = Agent("", said, prompt=how)
        assert isinstance(command.argv(agent, "the {model} prompt"), list) and command.describe(agent)


def names(data: bytes) -> None:
    """From a task to the names that files and branches get."""
    said = seen(data)
    assert rules.is_alias(rules.alias_of(said))
    slug = model.slug(said)
    assert slug and len(slug) <= model.LONGEST_SLUG and slug == model.slug(slug)
    model.own_iteration("1", said)
    model.next_run_id("20260301", said.split("\n"))


def typed_scores(data: bytes) -> None:
    """--score and --criterion."""
    scoring.read_option(text(data))
    with contextlib.suppress(UsageProblem):
        arguments.criteria_options((text(data),), False)


def snapshot_message(data: bytes) -> None:
    """A snapshot's commit; what is understood, written again, is the same."""
    found = retention.parse(text(data))
    if found is not None and "\n" not in "".join(map(str, found)):
        head = f"{found.commit} {found.tree} {found.seconds}\n"
        again = retention.parse(head + retention.message(found))
        assert again is not None and (again.number, again.iteration) == (found.number, found.iteration)


class Said(Repo):
    """A repository whose git prints these bytes, whatever it is asked."""

    def run(self, *args: str, stdin: bytes = b"", index: str = "") -> Captured:
        return Captured(0, files.to_bytes(self.prefix), b"")


def git_output(data: bytes) -> None:
    """What git prints, as each of its readers takes it."""
    repo = Said(room(), room(), text(data), room(), room())
    for word, path in repository.dirty(repo):
        assert len(word) <= 2 and isinstance(path, str)
    repository.branches(repo), commits.runs_at(repo, "HEAD"), commits._page(repo, "HEAD", 0)
    taken.tips(repo, everywhere=True), taken.refs_of_runs(repo, ["r"])


def quiet(function: Callable[[bytes], None]) -> Callable[[bytes], None]:
    """Without what it prints."""

    def silent(data: bytes) -> None:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            function(data)

    return silent
