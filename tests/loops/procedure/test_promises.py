"""Promise signals: the outcome matrix, what counts as the agent's word, and whose procedures listen."""

import json

import pytest

from tests.kit.workspace import Workspace, masked

SUCCESS, FAILURE = "<promise>SUCCESS</promise>", "<promise>FAILURE</promise>"
SAID = {"none": "", "SUCCESS": SUCCESS, "FAILURE": FAILURE, "both": f"{SUCCESS}\n{FAILURE}"}
ON = "promise_signals = true\n"


def listening(ws: Workspace, **loop: object) -> None:
    ws.procedure("build", ON, loop)


@pytest.mark.parametrize("said", ["none", "SUCCESS", "FAILURE", "both"])
@pytest.mark.parametrize("code", [0, 3])
def test_OU_01_OU_02_the_outcome_matrix(ws: Workspace, code: int, said: str) -> None:
    """Each cell: the exit code first (a non-zero one is a failure whatever was said), FAILURE over SUCCESS."""
    listening(ws)
    ws.exits(1, code)
    ws.out(2, f"did something\n{SAID[said]}\nbecause of that\n")
    ws.copy_state_at(3)
    ran = ws.rooda("build", "-n", "3")
    lines = masked(ran.lines)[5:]
    if (code, said) == (0, "SUCCESS"):
        done = ["[T] Iteration 2/3 completed in D", "[T] AI signaled SUCCESS: completed after 2 iterations (total: D)"]
        assert lines == done
        assert len(ws.calls) == 2 and ran.code == 0 and ws.state() is None
        return
    failed = code or said in ("FAILURE", "both")
    what = f"AI CLI failed (exit {code})" if code else "AI signaled FAILURE"
    warned = [f"[T] WARNING: {what}, consecutive failures: 2/3"] if failed else []
    assert lines[:-3] == [*warned, "[T] Iteration 2/3 completed in D"]
    assert ws.copies[3]["consecutive_failures"] == (2 if failed else 0)
    assert len(ws.calls) == 3 and ran.code == 0
    assert masked(ran.lines)[-1] == "[T] Reached max iterations: 3 (total: D)"


def test_OU_01_off_for_a_procedure_of_ones_own(ws: Workspace) -> None:
    """A user's procedure goes by exit status and gates only, whatever is printed."""
    ws.out(1, SUCCESS + "\n")
    ws.out(2, FAILURE + "\n")
    ran = ws.rooda("build", "-n", "3")
    assert len(ws.calls) == 3 and ran.code == 0
    assert "signaled" not in ran.both and "WARNING" not in ran.both


def test_OU_01_on_for_the_built_in_procedures(bare: Workspace) -> None:
    """A shipped procedure teaches the signal and listens, with one phase replaced too; with all four it does not."""
    bare.config(f"[loop]\nai_cmd = {json.dumps('sh agent.sh')}\n")
    bare.write("agent.sh", f'cat >prompt.txt\necho call >>calls\necho "{SUCCESS}"\n')
    assert "AI signaled SUCCESS: completed after 1 iterations" in bare.rooda("build").lines[-1]
    assert SUCCESS in bare.read("prompt.txt")
    assert "AI signaled SUCCESS" in bare.rooda("audit-impl", "--observe", "only look").lines[-1]
    bare.write("calls", "")
    mine = ("--observe", "o", "--orient", "o", "--decide", "d", "--act", "a")
    assert "Reached max iterations: 2" in bare.rooda("build", "-n", "2", *mine).lines[-1]
    assert bare.read("calls") == "call\ncall\n"


def test_the_limit_of_an_overridden_procedure_stays(bare: Workspace) -> None:
    """Overriding all four phases of a built-in procedure keeps its iteration limit."""
    bare.config("[loop]\nai_cmd = 'true'\n")
    limit = bare.rooda("build").lines[0].partition("(")[2]
    assert limit == "max 5 iterations)"
    mine = ("--observe", "o", "--orient", "o", "--decide", "d", "--act", "a")
    assert bare.rooda("build", *mine).lines[0].endswith(limit)


NO_SIGNALS = [
    "<promise>success</promise>",
    "<promise> SUCCESS </promise>",
    "<promise>SUCCESS: all done</promise>",
    "<promise>SUCCESS",
    "I will print <promise>SUCCESS</promise> when done",
    "<promise>SUCCESS</promise>.",
    "```<promise>SUCCESS</promise>```",
    "`<promise>SUCCESS</promise>`",
    "**<promise>SUCCESS</promise>**",
    "- <promise>SUCCESS</promise>",
    '"<promise>SUCCESS</promise>"',
    "<PROMISE>SUCCESS</PROMISE>",
]


def test_OU_01_what_is_not_a_signal(ws: Workspace) -> None:
    """Only the exact tag, alone on its line, is a signal; the shipped prompts warn of each of these marks."""
    listening(ws)
    for number, text in enumerate(NO_SIGNALS, 1):
        ws.out(number, text + "\n")
    ran = ws.rooda("build", "-n", str(len(NO_SIGNALS)))
    assert f"Reached max iterations: {len(NO_SIGNALS)}" in ran.lines[-1], ran.out


@pytest.mark.parametrize("text", [SUCCESS, f"  {SUCCESS}\t\r\n", f"done\n\n{SUCCESS}\n\nall tests pass\n"])
def test_OU_01_what_is_a_signal(ws: Workspace, text: str) -> None:
    """White space around the tag, a missing last line feed and words after it do not matter."""
    listening(ws)
    ws.out(1, text)
    assert "AI signaled SUCCESS" in ws.rooda("build", "-n", "2").lines[-1]


def test_OU_01_stderr_counts_too(ws: Workspace) -> None:
    """A raw command's message is all that it printed, on either stream."""
    listening(ws)
    ws.err(1, SUCCESS + "\n")
    assert "AI signaled SUCCESS" in ws.rooda("build", "-n", "2").lines[-1]


def test_OU_01_an_echoed_prompt_is_not_a_signal(ws: Workspace) -> None:
    """An agent that prints its prompt, which names the tag on a line of its own, has promised nothing."""
    ws.write("prompts/act_build.md", f"When nothing is left, end with this line:\n{SUCCESS}\n")
    ws.procedure("build", ON, {"ai_cmd": "cat"})
    assert "Reached max iterations: 2" in ws.rooda("build", "-n", "2").lines[-1]


def test_OU_01_a_signal_next_to_an_echo(ws: Workspace) -> None:
    """An agent that prints its prompt and then signals by itself is heard."""
    ws.write("prompts/act_build.md", f"When nothing is left, end with this line:\n{SUCCESS}\n")
    ws.write("agent.sh", f'cat\necho "nothing is left"\necho "{SUCCESS}"\n')
    ws.procedure("build", ON, {"ai_cmd": "sh agent.sh"})
    assert "AI signaled SUCCESS: completed after 1" in ws.rooda("build", "-n", "2").lines[-1]


def test_settled_02_success_is_a_request(ws: Workspace) -> None:
    """With gates, SUCCESS ends the loop only in an iteration whose gates pass; before that it is a failed one."""
    ws.procedure("build", ON, gates={"there": "test -e done"})
    for n in (1, 2):
        ws.out(n, SUCCESS + "\n")
    ws.side(2, "touch done")
    ran = ws.rooda("build", "-n", "5")
    assert masked(ran.lines)[1:] == [
        "[T] Iteration 1/5 starting...",
        "[T] WARNING: Quality gates failed: there (exit 1), consecutive failures: 1/3",
        "[T] Iteration 1/5 completed in D",
        "[T] Iteration 2/5 starting...",
        "[T] Iteration 2/5 completed in D",
        "[T] AI signaled SUCCESS: completed after 2 iterations (total: D)",
    ]


def test_OU_02_failure_aborts_at_the_threshold(ws: Workspace) -> None:
    """An agent that says three times that it cannot continue ends the loop like one that fails three times."""
    listening(ws)
    for n in (1, 2, 3):
        ws.out(n, FAILURE + "\n")
    ran = ws.rooda("build", "-n", "9")
    assert ran.code == 1 and len(ws.calls) == 3
    assert masked(ran.lines)[-2:] == [
        "[T] WARNING: AI signaled FAILURE, consecutive failures: 3/3",
        "[T] ERROR: Aborting after 3 consecutive failures (3 iterations completed, total: D)",
    ]
    assert ws.events()[-1]["reason"] == "failures"


def test_OU_03_the_reason_is_in_the_log(ws: Workspace) -> None:
    """The state file keeps its four words; the log distinguishes a success signal from a limit."""
    listening(ws)
    ws.out(2, SUCCESS + "\n")
    ws.rooda("build", "-n", "2")
    first = ws.events()[-1]
    ws.rooda("build", "-n", "1")
    second = ws.events()[-1]
    assert [(end["reason"], end["status"]) for end in (first, second)] == [
        ("success-signal", "completed"),
        ("max-iterations", "completed"),
    ]


def test_OU_05_a_timeout_beats_a_promise(ws: Workspace) -> None:
    """A call that ran out of time has failed, even if it had signalled success."""
    listening(ws, iteration_timeout=0.3, kill_grace=0.1)
    ws.side(1, f"echo '{SUCCESS}'\nsleep 30 & wait")
    ran = ws.rooda("build", "-n", "1")
    assert masked(ran.lines)[2] == "[T] WARNING: AI CLI timed out after D, consecutive failures: 1/3"
    assert "timed out after 0.3s" in ran.out
    assert "signaled" not in ran.out


def test_OU_06_only_the_end_of_a_long_output_is_read(ws: Workspace) -> None:
    """Beyond max_output_buffer the beginning is not searched; that is said with both sizes, the whole stays on disk."""
    listening(ws, max_output_buffer=2048)
    ws.out(1, SUCCESS + "\n" + "x" * 3000 + "\n")
    ws.out(2, "x" * 3000 + "\n" + SUCCESS + "\n")
    ran = ws.rooda("build", "-n", "3")
    assert len(ws.calls) == 2 and "AI signaled SUCCESS" in ran.lines[-1]
    assert ran.err.count("over max_output_buffer (2048)") == 2 and "3028 bytes" in ran.err
    ended = [event for event in ws.events() if event["event"] == "agent.ended"]
    assert [event["truncated"] for event in ended] == [True, True]
    with open(ended[0]["transcript"], encoding="utf-8") as file:
        assert file.read().startswith(SUCCESS)


def test_OU_06_a_line_that_is_cut_is_not_one(ws: Workspace) -> None:
    """Where the buffer ends just before a tag that stood behind words on its line, it does not stand alone."""
    listening(ws, max_output_buffer=2048)
    rest = SUCCESS + "\n" + "y" * (2048 - len(SUCCESS) - 2) + "\n"
    ws.out(1, "x" * 3000 + rest)
    ws.out(2, "x" * 3000 + "\n" + rest)
    ran = ws.rooda("build", "-n", "3")
    assert len(ws.calls) == 2 and "AI signaled SUCCESS: completed after 2 iterations" in ran.lines[-1]


@pytest.mark.parametrize(
    ("output", "record"),
    [
        ("claude", {"type": "result", "result": f"done\n{SUCCESS}"}),
        ("codex", {"type": "item.completed", "item": {"type": "agent_message", "text": f"done\n{SUCCESS}"}}),
    ],
    ids=["claude", "codex"],
)
def test_settled_02_only_the_final_message_counts(ws: Workspace, output: str, record: dict) -> None:
    """With an agent whose records rooda reads, a tag in a tool's result is not a signal, one in the last message is."""
    tool = {"type": "user", "message": {"content": [{"type": "tool_result", "content": f"\n{SUCCESS}\n"}]}}
    ws.procedure("build", ON, {"ai_cmd": None, "agent": "mine"})
    ws.config(ws.read("rooda.toml") + f'[agents.mine]\ncommand = "sh agent.sh"\noutput = "{output}"\n')
    ws.write("tool.json", json.dumps(tool) + f"\n{SUCCESS}\n")
    ws.write("final.json", json.dumps(record) + "\n")
    ws.write("agent.sh", 'cat >/dev/null\ncat tool.json\n[ "$ROODA_ITERATION" = 1 ] || cat final.json\n')
    ran = ws.rooda("build", "-n", "4")
    assert "AI signaled SUCCESS: completed after 2 iterations" in ran.lines[-1]
