"""Outcome, usage and cost of each recorded transcript, read as in a run."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rooda.agents import backoff, clis, hang_detection, transcript
from rooda.agents.outcome import judge
from rooda.agents.reader import OUTPUTS, PROGRAMS, reader
from rooda.agents.records import Facts, Usage
from tests.kit.clis import failures
from tests.kit.clis.cases import FAILURES, NEWER
from tests.kit.examples import examples

GOLDEN = Path(__file__).parent / "golden"
OUTPUT = {"qwen": "claude", "grok": "claude", "kilo": "opencode", "omp": "pi"}  # CLIs that print another's records
OUTCOMES = {
    "auth": "auth", "payment": "auth", "error_midway": "auth", "forbidden": "auth", "no_key": "auth",
    "no_credit": "auth",
    "not_logged_in": "auth", "success": "ok", "promise": "ok", "thinking": "ok", "failing_tool": "ok",
    "older_model": "ok", "usage_warning": "ok", "rate_limit": "rate_limit", "rate_limit_wait": "rate_limit",
    "overloaded": "rate_limit", "usage_limit": "usage_limit", "usage_limit_weekly": "usage_limit",
    "context_overflow": "context_overflow", "unknown_model": "config", "bad_flag": "config",
    "denied_call": "permission_denied", "overflow_once": "ok", "server_error": "agent_error",
    "cut_always": "agent_error", "stream_error": "agent_error", "no_network": "agent_error",
}  # fmt: skip
DIFFERENT = {
    "droid/no_key": "ok",  # a custom model needs no key of its own
    "opencode/no_key": "agent_error",  # an "Unexpected server error", like the next
    "opencode/unknown_model": "agent_error",
    "mini/promise": "agent_error",  # it ends only by a command, and an answer without one is an error
    "opencode/bad_flag": "agent_error",  # it prints its help, and no word on why
    "opencode/overflow_once": "agent_error",  # it went on and finished, and exits with 1 all the same
    "codex/server_error": "rate_limit",  # "high demand", it says, and no status
    "claude/stream_error": "ok",  # it asks again, for an answer in one piece
    **dict.fromkeys(("codex/stream_error", "copilot/stream_error"), "rate_limit"),  # an overloaded server
}
CASES = sorted(path.relative_to(GOLDEN).as_posix()[:-4] for path in GOLDEN.glob("*/*.out"))


def facts_of(name: str) -> Facts:
    output, path = OUTPUT.get(cli := name.partition("/")[0], cli), str(GOLDEN / f"{name}.out")
    gathered = transcript.read(output, path)
    transcript.take_report(output, path, gathered)
    return gathered.facts()


def recorded(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((GOLDEN / f"{name}.json").read_text())
    return found


def outcome(name: str, ended: str = "exit") -> str:
    cli, code = name.partition("/")[0], recorded(name)["returncode"]
    return judge(
        facts_of(name), ended, code if code >= 0 else 128 - code, reader(OUTPUT.get(cli, cli)).status_of_exit.get(code)
    ).kind


@pytest.mark.parametrize("name", [name for name in CASES if name.split("/")[1] in OUTCOMES])
def test_the_outcome_of_a_recording(name: str) -> None:
    """The same failure has the same outcome for every CLI; a run that had to be ended is `killed`."""
    stopped = recorded(name)["signalled"]
    expected = DIFFERENT.get(name, OUTCOMES[name.split("/")[1]])
    assert outcome(name, "interrupted" if stopped else "exit") == ("killed" if stopped else expected)


def test_I_31_no_recorded_record_is_unknown() -> None:
    """The types of all records in the recordings are known, so that a count means a newer version."""
    assert [name for name in CASES if facts_of(name).unknown_records] == []


@pytest.mark.parametrize("name", [name for name in CASES if recorded(name)["signalled"]])
def test_an_interrupted_call_is_not_a_success(name: str) -> None:
    """An interrupted call is not ok, though some of these CLIs exit with 0 then."""
    assert outcome(name, "interrupted") == "killed"
    assert outcome(name) != "ok" or facts_of(name).ended


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("codex/rate_limit_wait", "rate_limit"),
        ("gemini/rate_limit_wait", "rate_limit"),
        ("gemini/overloaded", "rate_limit"),
        ("gemini/usage_limit_wait", "usage_limit"),
        ("gemini/no_credit", "auth"),
        ("gemini/server_error", "timeout"),
        ("opencode/context_overflow", "context_overflow"),
        ("openhands/context_overflow", "context_overflow"),
        ("opencode/rate_limit_wait", "timeout"),
        ("claude/tool_int", "timeout"),
        ("claude/stall_int", "timeout"),
    ],
)
def test_a_timeout_has_the_outcome_of_the_reported_problem(name: str, expected: str) -> None:
    """A call that hits a timeout has the outcome of the problem that its CLI was waiting for, if it reported one."""
    found = judge(facts_of(name), "idle", 143)
    assert found.kind == expected
    assert found.retryable == (expected == "rate_limit" or name == "gemini/server_error")


def test_a_failed_attempt_is_not_the_cause_after_an_answer() -> None:
    """A failed attempt is not the cause once the model has answered."""
    for cli in ("claude", "codex", "opencode"):
        facts = facts_of(f"{cli}/cut_once")
        assert (facts.message, facts.error) == ("", "") and judge(facts, "timeout", 143).kind == "timeout"


def test_a_circle_is_seen() -> None:
    """opencode is in a compaction loop after several context overflows; one is not a loop."""
    assert hang_detection.repeats_overflow("opencode", str(GOLDEN / "opencode/context_overflow.out"))
    assert hang_detection.repeats_overflow("openhands", str(GOLDEN / "openhands/context_overflow.out"))
    assert not hang_detection.repeats_overflow("openhands", str(GOLDEN / "openhands/success.out"))
    assert not hang_detection.repeats_overflow("opencode", str(GOLDEN / "opencode/overflow_once.out"))
    assert not hang_detection.repeats_overflow("opencode", str(GOLDEN / "opencode/success.out"))
    assert not hang_detection.repeats_overflow("opencode", "/nowhere")


@pytest.mark.parametrize("cli", ["claude", "codex", "gemini", "qwen"])
def test_usage_has_one_meaning(cli: str) -> None:
    """Three calls of 1,300 tokens each, 200 of them cached: fresh and cached input never overlap."""
    usage = facts_of(f"{cli}/success").usage
    assert usage is not None
    calls = 4 if cli == "gemini" else 3  # it asks a small model for the way first
    assert usage.cached == 200 * calls and usage.output == 50 * calls
    assert usage.input + usage.cached + usage.written == 1300 * calls


def test_cost_is_as_reported_or_unknown() -> None:
    """claude reports dollars, also for a run that failed midway; codex reports none, which is not zero."""
    assert facts_of("claude/success").cost == pytest.approx(0.01662)
    assert facts_of("claude/error_midway").cost == pytest.approx(0.00554)
    assert facts_of("codex/success").cost is None


def test_edits_and_tools_are_seen() -> None:
    """The file that the model wrote, the two tools it used, and both denials of a run without permission."""
    assert [Path(path).name for path in facts_of("claude/success").edited] == ["made.txt"]
    assert facts_of("codex/success").tools == 2
    assert facts_of("claude/denied").denied == ("Write", "Bash")
    assert facts_of("copilot/denied").denied == ("create", "bash")
    assert facts_of("opencode/denied").denied == ("write",)
    assert facts_of("droid/denied_call").denied == ("Execute",)
    assert facts_of("grok/denied").denied == ("write",)
    assert {outcome(f"{cli}/denied") for cli in ("claude", "copilot", "opencode", "grok")} == {"permission_denied"}


def test_tries_are_counted() -> None:
    """Retries are counted for CLIs that report them."""
    names = ("claude/rate_limit", "codex/auth", "copilot/rate_limit", "gemini/rate_limit", "pi/rate_limit")
    assert [facts_of(name).retries for name in names] == [1, 1, 6, 10, 3]


def test_usage_is_reported_by_model() -> None:
    """gemini's small router model and its main model have their own prices."""
    shares = transcript.read("gemini", str(GOLDEN / "gemini/success.out")).shares
    assert shares == {"gemini-3.5-flash-lite": Usage(1100, 50, 200), "gemini-3.8-flash": Usage(3300, 150, 600)}


def test_reset_times() -> None:
    """claude's event contains the reset time."""
    assert facts_of("claude/usage_limit").reset_at == 1795012602.0


@pytest.mark.parametrize(
    ("words", "seconds"),
    [
        ("Your quota will reset after 1h30m0s.. Retrying after 6344717ms...", 5400),
        ("Retrying after 6344717ms...", 6344.717),
        ("Try again in 3 days 4 hours 12 minutes.", 274_320),
        ("Try again in 1 day, 3 hours and 5 minutes.", 97_500),
        ("Please retry in 53.46s", 53.46),
        ("resets in 2h 15m", 8100),
        ("try again in 5 months", None),
        ("try again in less than a minute", 60),
        ("Resets in ~42 min", 2520),
        ("available again in 15 hours 23 minutes", 55_380),
        ("try again in 58 hours", 208_800),
        ("resets in 2h 5m", 7500),
        ("Reconnecting; retry-after-ms=3600000", 3600),
        ('"retryDelay": "27.5s"', 27.5),
        ("Retry-After: 120", 120),
        ("a 5-hour limit", None),
    ],
)
def test_reset_times_in_words(words: str, seconds: float | None) -> None:
    """Durations in letters or words, with all their parts."""
    found = backoff.parse_reset(words, 1e9, lambda _: None)
    assert (found and round(found - 1e9, 3)) == seconds


def test_a_reset_time_of_day() -> None:
    """`resets 3pm` and `will reset at 3pm` mean the same."""
    for words in ("You've hit your limit · resets 3pm (Asia/Kolkata)", "Your limit will reset at 3pm (Asia/Kolkata)."):
        read: list[backoff.Moment] = []
        backoff.parse_reset(words, 1e9, read.append)
        assert read == [backoff.Moment(0, 0, 0, 15, 0, "Asia/Kolkata")]


def told(output: str, *records: dict[str, Any]) -> transcript.Gathered:
    into = transcript.Gathered()
    for record in records:
        transcript.take_line(reader(output), json.dumps(record).encode(), into)
    return into


def goose_says(name: str | None, text: str) -> dict[str, Any]:
    message = {"id": name, "role": "assistant", "content": [{"type": "text", "text": text}]}
    return {"type": "message", "message": message}


def test_A_11_an_error_with_exit_code_0_is_a_failure_and_a_quoted_one_is_not() -> None:
    """goose's own messages have no ID; the model's may quote one. openhands ends with the record of the error."""
    words = "Ran into this error: Status: 401 Unauthorized.\n\nPlease retry if you think this is a transient error."
    done = {"type": "complete", "total_tokens": 9, "input_tokens": 8}
    failed = {"type": "complete", "total_tokens": None}
    assert judge(told("goose", goose_says(None, words), failed).facts(), "exit", 0).kind == "auth"
    assert judge(told("goose", goose_says("chatcmpl-1", words), done).facts(), "exit", 0).kind == "ok"
    assert judge(told("goose", goose_says(None, "Words of a later version."), failed).facts(), "exit", 0).kind != "ok"
    said = {"kind": "MessageEvent", "source": "agent", "llm_message": {"content": [{"type": "text", "text": "Hi"}]}}
    error = {"kind": "ConversationErrorEvent", "code": "AuthenticationError", "detail": "invalid x-api-key"}
    assert judge(told("openhands", said).facts(), "exit", 0).kind == "ok"
    assert judge(told("openhands", said, error).facts(), "exit", 0).kind == "auth"


def test_A_11_no_recorded_failure_is_a_success() -> None:
    """Of no CLI is a failure taken for a success, and each newer CLI has all of them recorded."""
    rows = failures.table()
    assert [(cli, case) for cli, row in rows.items() for case, each in row.items() if each.outcome == "ok"] == []
    assert {cli for cli in NEWER if set(rows.get(cli, ())) != set(FAILURES)} == set()


def test_a_rejected_limit_that_the_account_pays_extra_for() -> None:
    """If claude's event says rejected but its result is a success, the call succeeded and the loop does not wait."""
    event = {"type": "rate_limit_event", "rate_limit_info": {"status": "rejected", "resetsAt": 1795012602}}
    good = {"type": "result", "subtype": "success", "is_error": False, "result": "Done."}
    bad = {**good, "is_error": True, "api_error_status": 429, "result": "Too many requests"}
    assert judge(told("claude", event, good).facts(), "exit", 0).kind == "ok"
    assert judge(told("claude", event, bad).facts(), "exit", 1).kind == "usage_limit"
    turns = {**good, "is_error": True, "subtype": "error_max_turns", "result": None}
    assert judge(told("claude", bad, turns).facts(), "exit", 1).kind == "agent_error", "the status of an earlier result"


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("cli", ["claude", "qwen"])
def test_all_records_in_one_list_say_the_same(tmp_path: Path, cli: str, indent: int | None) -> None:
    """Lists of records, as these CLIs print them at the end, on one line or on many."""
    golden = GOLDEN / cli / "success.out"
    records = [json.loads(line) for line in golden.read_bytes().splitlines() if line.startswith(b"{")]
    path = tmp_path / "list.out"
    path.write_text(json.dumps(records, indent=indent))
    found, known = (transcript.facts_of("claude", str(each))._replace(unparsed="") for each in (path, golden))
    assert found == known


def test_each_file_of_readers_is_registered() -> None:
    """An agent with a new output format needs one file, one word in the registry, one table of settings."""
    names = {path.stem for path in Path(clis.__path__[0]).glob("*.py")} - {"__init__"}
    assert names == set(PROGRAMS)
    assert all(bool(reader(name).record) != bool(reader(name).line) for name in OUTPUTS)


def test_a_transcript_loads_its_own_reader_alone() -> None:
    """A run imports the reader of its agent and no other."""
    code = "import sys; from rooda.agents import transcript; transcript.facts_of('pi', '/nowhere'); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert [name for name in loaded if ".clis." in name] == ["rooda.agents.clis.pi"]


def test_a_transcript_of_one_record_counts_it_once(tmp_path: Path) -> None:
    """An agent that was ended after its first tool call has written one file, once."""
    record = {"type": "assistant", "message": {"content": [
        {"type": "tool_use", "name": "Write", "input": {"file_path": "a.py"}}]}}  # fmt: skip
    path = tmp_path / "one.out"
    path.write_text(json.dumps(record))
    gathered = transcript.read("claude", str(path))
    assert gathered.tools == 1 and gathered.edited == {"a.py": 1}


def test_missing_usage_is_unknown_not_zero() -> None:
    """A final record without usage leaves it unknown; claude's usage by model is kept, each with its own price."""
    assert told("codex", {"type": "turn.completed"}).facts().usage is None
    assert told("pi", {"type": "message_end", "message": {"role": "assistant", "content": []}}).facts().usage is None
    cached = {"cacheReadInputTokens": 3, "cacheCreationInputTokens": 4}
    models = {"a": {"inputTokens": 1, "outputTokens": 2}, "b": cached}
    both = told("claude", {"type": "result", "is_error": False, "modelUsage": models})
    assert both.shares == {"a": Usage(1, 2), "b": Usage(0, 0, 3, 4)} and both.facts().usage == Usage(1, 2, 3, 4)


KEYS = st.sampled_from(
    ["type", "subtype", "message", "content", "item", "part", "usage", "tokens", "result", "error", "is_error", "data",
     "modelUsage", "permission_denials", "stats", "cost", "role", "text", "status", "rate_limit_info", "resetsAt"]
)  # fmt: skip
WORDS = st.sampled_from(["result", "assistant", "user", "system", "init", "item.completed", "turn.completed",
                         "error", "agent_message", "message", "step_finish", "message_end", "completion"])  # fmt: skip
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | WORDS | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize("output", OUTPUTS)
@settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(records=st.lists(st.dictionaries(KEYS, VALUES, max_size=6), max_size=5), noise=st.binary(max_size=60))
def test_any_bytes_are_facts_or_unknown(output: str, records: list[dict[str, Any]], noise: bytes) -> None:
    """Any transcript gives facts that can be judged, never an exception."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "transcript")
        Path(path).write_bytes(b"\n".join([*(json.dumps(record).encode() for record in records), noise]))
        facts = transcript.facts_of(output, path)
    assert facts.usage is None or (len(facts.usage) == len(Usage._fields) and min(facts.usage) >= 0)
    for ended in ("exit", "timeout", "interrupted"):
        assert judge(facts, ended, 1).kind
