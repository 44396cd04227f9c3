"""What CLIs say when they refuse a call, in a collection of texts: outcome, delay, and what only mentions a limit."""

import json
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest

from rooda.agents import backoff, transcript
from rooda.agents.error_text import account_kind
from rooda.agents.outcome import judge
from rooda.agents.reader import reader
from rooda.agents.records import Facts
from rooda.base import clock
from rooda.base.json import Json

TEXTS = Path(__file__).parent / "texts"
NOW = datetime(2026, 11, 19, 12, 0, tzinfo=UTC).timestamp()


def rows(name: str) -> list[str]:
    return [line for line in (TEXTS / name).read_text().splitlines() if line and not line.startswith("#")]


REFUSALS = [(kind, int(status) if status != "-" else None, text)
            for kind, status, text in (row.split("\t") for row in rows("limits.tsv"))]  # fmt: skip
MENTIONS = rows("mentions.txt")


def facts_of(output: str, *records: Json) -> Facts:
    into = transcript.Gathered()
    for record in records:
        transcript.take_line(reader(output), json.dumps(record).encode(), into)
    return into.facts()


@pytest.mark.parametrize(("kind", "status", "text"), REFUSALS)
def test_I_20_I_21_I_22_A_03_refusals(kind: str, status: int | None, text: str) -> None:
    """Each refusal has its outcome, whatever CLI prints it; throttles are retried, money and logins are not."""
    found = judge(Facts(ended=True, error="error", message=text, status=status), "exit", 1)
    assert found.kind == kind
    assert found.retryable == (kind == "rate_limit") or kind == "agent_error"


@pytest.mark.parametrize("text", MENTIONS)
@pytest.mark.parametrize("output", ["claude", "codex"])
def test_I_25_a_mention_in_a_successful_call_is_not_a_limit(output: str, text: str) -> None:
    """Tool results, file contents, messages and lines on stderr that mention limits leave the call a success."""
    into = transcript.Gathered()
    if output == "claude":
        result = {"type": "tool_result", "is_error": True, "content": text}
        records: list[Json] = [
            {"type": "assistant", "message": {"content": [{"type": "text", "text": text}]}},
            {"type": "user", "message": {"content": [result]}},
            {"type": "result", "is_error": False, "subtype": "success", "result": text},
        ]
    else:
        run = {"type": "command_execution", "command": "make", "aggregated_output": text, "status": "failed"}
        records = [
            {"type": "item.completed", "item": run},
            {"type": "item.completed", "item": {"type": "agent_message", "text": text}},
            {"type": "turn.completed", "usage": {"input_tokens": 1}},
        ]
    for line in [text, *map(json.dumps, records)]:
        transcript.take_line(reader(output), line.encode(), into)
    assert judge(into.facts(), "exit", 0).kind == "ok"


def test_I_25_a_warning_is_not_a_limit() -> None:
    """A warning about a limit that is near is none, also where another error ended the call."""
    last = MENTIONS.index("Running low on credits: 8% left")
    warnings = [text for text in MENTIONS[: last + 1] if "messages" not in text]
    assert len(warnings) > 15
    for text in warnings:
        assert account_kind(text) is None, text
        assert judge(Facts(unparsed=f"{text}\nError: connection reset"), "exit", 1).kind == "agent_error"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Your limit will reset at 2026-12-04 19:01:25", "2026-12-04T19:01"),
        ("Try again after July 3, 2027 at 2:45 PM.", "2027-07-03T14:45"),
        ("try again at Jul 5th, 2027 8:19 PM.", "2027-07-05T20:19"),
        ("Resets 12/21/2026", "2026-12-21T00:00"),
        ("It resets on December 1.", "2026-12-01T00:00"),
        ("Renews 1 December", "2026-12-01T00:00"),
        ("resets on 2nd Dec 2027 at 5pm", "2027-12-02T17:00"),
        ("resets in 1 week", "2026-11-26T12:00"),
        ("try again in about an hour", "2026-11-19T13:00"),
        ("try again in an hour and 5 minutes", None),
        ("resets 3:50pm (Asia/Tokyo)", "2026-11-20T06:50"),
        ("You've hit your limit · resets Nov 29, 5pm (Europe/Berlin)", "2026-11-29T16:00"),
        ("next reset 2026-12-01T00:00:00Z", "2026-12-01T00:00"),
        ("resets at 2026-11-20T05:00:00+02:00", "2026-11-20T03:00"),
        ("usage limit reached|1795185000", "2026-11-20T14:30"),
        ("You've hit your limit · resets tomorrow at 9am", "2026-11-20T09:00"),
        ("resets today at 9am", "2026-11-19T09:00"),
        ("Resets Monday 9am (Europe/Berlin)", "2026-11-23T08:00"),
        ("resets Thursday at 9am", "2026-11-26T09:00"),
        ("resets on Thursday, November 26, 2026 at 3:00 PM", "2026-11-26T15:00"),
        ("again at 9am tomorrow", "2026-11-20T09:00"),
        ("resets 21 Dec 2026, 08:00", "2026-12-21T08:00"),
        ("resets on the 21st of December at 08:00 UTC", "2026-12-21T08:00"),
        ("resets 21.12.2026 08:00", "2026-12-21T08:00"),
        ("limit reached|1795185000000", "2026-11-20T14:30"),
        ('"resetsAt": 1795185000', "2026-11-20T14:30"),
        ("resets at midnight PT", "2026-11-20T08:00"),
        ("resets Nov 26th at 9:00 PM GMT+2", "2026-11-26T19:00"),
        ("try again in a week", "2026-11-26T12:00"),
        ("try again in 2 weeks", "2026-12-03T12:00"),
        ("10 requests in a day", None),
        ("again monthly", None),
        ("reset at 25:61", None),
        ("resets in 5 requests", None),
    ],
)
def test_I_23_A_05_reset_times(text: str, expected: str | None) -> None:
    """Dates and times in the forms that CLIs print; a date without a time is the beginning of that day."""

    def to_epoch(moment: backoff.Moment) -> float | None:
        return clock.next_occurrence(NOW, *moment._replace(zone=moment.zone or "UTC"))

    found = backoff.parse_reset(text, NOW, to_epoch)
    assert (found and datetime.fromtimestamp(found, UTC).strftime("%Y-%m-%dT%H:%M")) == expected


def test_A_01_a_temporary_throttle_of_a_subscription_is_a_rate_limit() -> None:
    """A rejected event without type and reset time is retried after seconds; with a type it is a usage limit."""
    words = "API Error: Server is temporarily limiting requests (not your usage limit) · Rate limited"
    failed = {"type": "result", "subtype": "success", "is_error": True, "api_error_status": 429, "result": words}

    def event(**more: object) -> Json:
        return {"type": "rate_limit_event", "rate_limit_info": {"status": "rejected", "isUsingOverage": False, **more}}

    throttle = judge(facts_of("claude", event(), failed), "exit", 1)
    assert (throttle.kind, throttle.retryable) == ("rate_limit", True)
    refused = {**failed, "result": "Rejected"}
    assert judge(facts_of("claude", event(rateLimitType="five_hour"), refused), "exit", 1).kind == "usage_limit"
    assert judge(facts_of("claude", event(resetsAt=1795012602), refused), "exit", 1).kind == "usage_limit"


@pytest.mark.parametrize(
    ("errors", "kind"),
    [
        (["401 invalid api key"], "auth"),
        (["prompt is too long"], "context_overflow"),
        (["Rate limit exceeded, retry after 20 seconds"], "rate_limit"),
        ([{"message": "model grok-x not found"}], "config"),
        (["You are out of credits"], "auth"),
    ],
)
def test_A_02_errors_of_a_result_without_text(errors: list[object], kind: str) -> None:
    """The list `errors` is the message of a failed result, and its kind is judged from it."""
    record = {"type": "result", "subtype": "error_during_execution", "is_error": True, "errors": errors}
    assert judge(facts_of("claude", record), "exit", 1).kind == kind


def test_I_30_shapes_of_results() -> None:
    """A string as `error` is the message; usage by model in other letters counts; all zeros fall back to `usage`."""
    failed: Json = {"type": "result", "is_error": True, "error": "Invalid API key"}
    assert judge(facts_of("claude", failed), "exit", 1)[:2] == ("auth", "Invalid API key")
    empty: Json = {"type": "result", "is_error": False, "errors": [], "result": "Done."}
    assert judge(facts_of("claude", empty), "exit", 0).kind == "ok"
    snake = {**empty, "modelUsage": {"m": {"input_tokens": 7, "output_tokens": 2}}}
    zeros = {**empty, "modelUsage": {"m": {"inputTokens": 0}}, "usage": {"input_tokens": 5, "output_tokens": 1}}
    assert [sum(facts_of("claude", each).usage or ()) for each in (snake, zeros)] == [9, 6]
    step: list[Json] = [{"type": "text", "part": {"text": "Done."}}, {"type": "step_finish", "part": {}}]
    assert judge(facts_of("opencode", *step), "exit", 0).kind == "ok"


def test_A_04_context_overflows() -> None:
    """Names and sentences of CLIs that gave up because the context stayed too full."""
    for text in ("ContextOverflowError", "Compaction exhausted after 3 attempts", "Context limit still exceeded"):
        assert judge(Facts(error="error", message=text), "exit", 1).kind == "context_overflow"


def main() -> None:
    """Print how many texts of the collection are judged right, by outcome."""
    right: Counter[str] = Counter()
    for kind, status, text in REFUSALS:
        right[kind] += judge(Facts(ended=True, error="error", message=text, status=status), "exit", 1).kind == kind
    for kind, count in Counter(kind for kind, _, _ in REFUSALS).items():
        print(f"{kind:18} {right[kind]:3} of {count}")
    print(f"{'mentions':18} {sum(account_kind(text) is None for text in MENTIONS):3} of {len(MENTIONS)} judged alone")


if __name__ == "__main__":
    main()
