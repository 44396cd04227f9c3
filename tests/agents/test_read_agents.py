"""Runs with an agent whose transcript is read, played from recordings by a scripted agent."""

import json
import signal
from pathlib import Path

import pytest

from tests.kit.workspace import FAKE_AI, Workspace, until

GOLDEN = Path(__file__).parent / "golden"

SCRIPTED_VIBE = """\
#!/bin/sh
mkdir "$1"
usage='"usage": {"input_tokens": 900, "cached_input_tokens": 200, "output_tokens": 50}, "cost_usd": 0.5'
case $ROODA_ITERATION in
1) echo '{"type": "message", "role": "assistant", "content": [{"type": "text", "text": "Done."}]}'
   echo "{\\"outcome\\": \\"finished\\", \\"error\\": null, $usage}" >"$1/export.json";;
*) echo "{\\"outcome\\": \\"error\\", \\"error\\": \\"Invalid API key\\", $usage}" >"$1/export.json"
   exit 1;;
esac
"""


@pytest.fixture
def read(bare: Workspace) -> Workspace:
    """The procedure `ship` with the agent `scripted`, which prints claude's records."""
    bare.procedure("ship", 'agent = "scripted"\nretry_wait = 0.1\n')
    settings = f'[agents.scripted]\ncommand = "{FAKE_AI}"\noutput = "claude"\n'
    bare.config(f"{bare.read('rooda.toml')}\n{settings}")
    return bare


def plays(ws: Workspace, *cases: str) -> None:
    """Call 1, 2, … prints the recording of this case and exits as the CLI did."""
    for n, case in enumerate(cases, 1):
        ws.out(n, (GOLDEN / "claude" / f"{case}.out").read_text())
    codes = [json.loads((GOLDEN / "claude" / f"{case}.json").read_text())["returncode"] for case in cases]
    ws.exits(*codes)


def test_a_denied_run_fails_even_with_exit_code_0(read: Workspace) -> None:
    """If every tool was denied, the iteration fails with that reason."""
    plays(read, "denied", "success")
    ran = read.rooda("ship", "-n", "2")
    assert "AI CLI failed (exit 0, permission_denied), consecutive failures: 1/3" in ran.out
    assert "permission_denied: every tool was denied: Write, Bash" in ran.err
    assert ran.code == 0


@pytest.mark.parametrize(
    "case, kind", [("auth", "auth"), ("unknown_model", "config"), ("context_overflow", "context_overflow")]
)
def test_an_error_that_would_repeat_ends_the_loop(read: Workspace, case: str, kind: str) -> None:
    """One call, exit 1, state kept as aborted, and the CLI's own message."""
    plays(read, case, "success")
    ran = read.rooda("ship", "-n", "5")
    assert (ran.code, len(read.calls)) == (1, 1)
    assert f"ERROR: Aborting: {kind}: " in ran.lines[-1]
    state = read.state("ship")
    assert state is not None and (state["status"], state["iteration"]) == ("aborted", 1)


def test_a_passing_fault_is_waited_out(read: Workspace) -> None:
    """A rate limit counts as a failure, and the next call comes after an announced pause."""
    plays(read, "rate_limit", "success")
    ran = read.rooda("ship", "-n", "2", "--json")
    events = [json.loads(line) for line in ran.lines]
    assert [event["seconds"] for event in events if event["event"] == "resting"] == [0.1]
    assert [event["consecutive_failures"] for event in events if event["event"] == "iteration.ended"] == [1, 0]


def test_a_usage_limit_is_waited_for_and_costs_no_iteration(read: Workspace) -> None:
    """Until the limit resets, the loop waits without counting; Ctrl+C ends the wait and closes no iteration."""
    plays(read, "usage_limit")
    record = json.loads((GOLDEN / "claude" / "usage_limit.out").read_text().splitlines()[1])
    record["rate_limit_info"]["resetsAt"] = 4_000_000_000
    ends = (GOLDEN / "claude" / "usage_limit.out").read_text().splitlines()[-1]
    read.out(1, f"{json.dumps(record)}\n{ends}\n")
    running = read.start("ship", "-n", "3")
    until(lambda: any(event["event"] == "resting" for event in read.events()), what="the wait")
    running.signal(signal.SIGINT)
    assert running.finish() == 130
    state = read.state("ship")
    assert state is not None and (state["iteration"], state["consecutive_failures"]) == (0, 0)
    resting = next(event for event in read.events() if event["event"] == "resting")
    assert resting["until"].startswith("2096-10-02")


def test_verbose_and_logs_show_words_and_tools(read: Workspace) -> None:
    """-v and `rooda logs --agent` show messages and tools, not raw JSON."""
    plays(read, "success")
    ran = read.rooda("ship", "-n", "1", "-v")
    shown = ["I write the file.", "[Write] /home/user/project/made.txt", "All done."]
    logs = read.rooda("logs", "--agent")
    for output in (ran.out, logs.out):
        print(output)
        assert [line for line in output.splitlines() if line in shown] == shown
        assert '{"type"' not in output


def test_only_the_final_message_promises(read: Workspace) -> None:
    """Only a tag in the final message is a promise, not one in a tool's result or an earlier message."""
    read.config(read.read("rooda.toml").replace("retry_wait", "promise_signals = true\nretry_wait"))
    tag = "<promise>SUCCESS</promise>"
    early = {"type": "assistant", "message": {"content": [{"type": "text", "text": f"I will end with\n{tag}\n"}]}}
    result = {"type": "user", "message": {"content": [{"type": "tool_result", "content": f"\n{tag}\n"}]}}
    last = {"type": "result", "is_error": False, "result": "Not yet."}
    read.out(1, "".join(json.dumps(record) + "\n" for record in (early, result, last)))
    read.out(2, json.dumps({**last, "result": f"All of it.\n{tag}"}) + "\n")
    ran = read.rooda("ship", "-n", "5")
    assert "AI signaled SUCCESS: completed after 2 iterations" in ran.lines[-1]


def test_the_log_has_usage_and_cost(read: Workspace) -> None:
    """`agent.ended` reports tokens, dollars, tools and files."""
    plays(read, "success")
    read.rooda("ship", "-n", "1")
    ended = next(event for event in read.events() if event["event"] == "agent.ended")
    assert ended["usage"] == {"input": 3000, "output": 150, "cached": 600, "written": 300}
    assert (ended["cost"], ended["tools"], ended["edited"], ended["agent_outcome"]) == (0.01662, 2, 1, "ok")


def test_a_cost_is_computed_where_none_is_reported(read: Workspace) -> None:
    """Tokens without dollars: the user's price gives the cost; without a price it is unknown, not zero."""
    read.config(read.read("rooda.toml").replace('output = "claude"', 'output = "codex"\nmodel = "house-model"'))
    read.config(f"{read.read('rooda.toml')}\n[prices.house-model]\ninput = 1.0\noutput = 10.0\n")
    for n in (1, 2):
        read.out(n, (GOLDEN / "codex" / "success.out").read_text())
    read.rooda("ship", "-n", "1")
    ended = next(event for event in read.events() if event["event"] == "agent.ended")
    assert ended["cost_source"] == "computed" and ended["cost"] >= 3300e-6 + 1500e-6
    read.rooda("ship", "-n", "1", "--model", "nobody-knows")
    ended = next(event for event in read.events() if event["event"] == "agent.ended")
    assert (ended["cost_source"], ended["cost"]) == ("unknown", None)


def test_denied_variables_do_not_reach_the_agent(read: Workspace) -> None:
    """`env_deny` takes names and patterns; rooda's own variables stay."""
    read.config(read.read("rooda.toml").replace('output = "claude"', 'output = "text"\nenv_deny = ["SECRET_*"]'))
    read.rooda("ship", "-n", "1", env={"SECRET_TOKEN": "x", "OPEN": "y"})
    assert "SECRET_TOKEN" not in read.calls[0].env and read.calls[0].env["OPEN"] == "y"
    assert read.calls[0].kind == "iteration"


def test_I_31_an_unknown_record_is_counted(read: Workspace) -> None:
    """A record of a type that rooda does not know is kept in the transcript and counted; the call is a success."""
    plays(read, "success")
    read.out(1, '{"type": "of_next_year", "subtype": "x"}\n' + (GOLDEN / "claude" / "success.out").read_text())
    assert read.rooda("ship", "-n", "1").code == 0
    (ended,) = (event for event in read.events() if event["event"] == "agent.ended")
    assert (ended["agent_outcome"], ended["unknown_records"]) == ("ok", 1)
    assert "of_next_year" in Path(ended["transcript"]).read_text()


def test_A_11_usage_is_read_from_a_report_beside_the_transcript(bare: Workspace) -> None:
    """{report} is a path of the call's own; there vibe writes its usage, its dollars and the reason of a failure."""
    bare.write("vibe.sh", SCRIPTED_VIBE, mode=0o755)
    bare.procedure("ship", 'agent = "vibe"\n')
    bare.config(bare.read("rooda.toml") + f'\n[agents.vibe]\ncommand = "{bare.file("vibe.sh")} {{report}}"\n')
    ran = bare.rooda("ship", "-n", "2")
    first, second = (event for event in bare.events() if event["event"] == "agent.ended")
    assert (first["agent_outcome"], first["cost"], first["usage"]["input"]) == ("ok", 0.5, 700), ran.both
    assert (second["agent_outcome"], second["message"]) == ("auth", "Invalid API key")
