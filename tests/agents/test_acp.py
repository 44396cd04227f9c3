"""Agents that speak the Agent Client Protocol: one turn, its transcript, permissions, failures and the end."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rooda.agentkit.server.server import ModelServer
from rooda.agents.clis.acp import is_error
from tests.kit import acp_agent
from tests.kit.clis import homes
from tests.kit.workspace import Ran, Workspace, until

SCRIPT = str(Path(acp_agent.__file__).resolve())
EDIT = {"title": "Write made.txt", "kind": "edit", "sh": "touch made.txt"}
RUN = {"title": "rm -rf build", "kind": "execute", "sh": "touch ran.txt"}
READ = {"title": "Read notes.md", "kind": "read", "sh": "touch read.txt"}
FETCH = {"title": "WebFetch https://example.invalid", "kind": "fetch", "sh": "touch fetched.txt"}


def prepare(
    ws: Workspace, *turns: list[Any], loop: str = "", program: str = "mycli", table: str = "", **script: Any
) -> None:
    """Make the scripted agent the agent of `build`, under this program name and with these turns."""
    path = os.path.join(ws.root, "bin", program)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    os.symlink(SCRIPT, path)
    Path(ws.fake, "acp.json").write_text(json.dumps({"turns": turns, **script}))
    ws.procedure("build", loop={"ai_cmd": None, "agent": "mine", "failure_threshold": 1, "retry_wait": 0})
    agent = f'[agents.mine]\ncommand = "{path} serve"\noutput = "acp"\nversion = ""\n{table}\n'
    ws.config(ws.read("rooda.toml").replace("[loop]\n", f"[loop]\n{loop}\n") + agent)


def received(ws: Workspace) -> list[dict[str, Any]]:
    """What reached the agent, in order."""
    path = Path(ws.fake, "acp.jsonl")
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def sent(ws: Workspace, method: str) -> list[dict[str, Any]]:
    return [each["params"] for each in received(ws) if each.get("method") == method]


def ended(ws: Workspace) -> dict[str, Any]:
    return [event for event in ws.events() if event["event"] == "agent.ended"][-1]


def build(ws: Workspace, *options: str) -> Ran:
    return ws.rooda("build", "-n", "1", *options)


def test_A_12_a_turn(ws: Workspace) -> None:
    """The prompt arrives whole; text, tools, edits, tokens, dollars and the model are read; nothing is offered."""
    diff = {"type": "diff", "path": "a.py", "newText": "x"}
    tool = {"sessionUpdate": "tool_call_update", "toolCallId": "7", "status": "completed", "content": [diff]}
    turn = [
        {"say": "I begin."},
        {"update": {"sessionUpdate": "tool_call", "toolCallId": "7", "title": "Edit a.py", "kind": "edit"}},
        {"update": tool},
        {"request": "fs/read_text_file"},
        {"say": "All do"},
        {"say": "ne.\n\n<promise>SUC"},
        {"say": "CESS</promise>\n"},
        {"update": {"sessionUpdate": "usage_update", "used": 9, "cost": {"amount": 0.25, "currency": "USD"}}},
        {"result": {"stopReason": "end_turn", "usage": {
            "inputTokens": 1300, "outputTokens": 50, "totalTokens": 1350, "cachedReadTokens": 300}}},
    ]  # fmt: skip
    session = {"sessionId": "session-1", "models": {"currentModelId": "m-1", "availableModels": []}}
    prepare(ws, turn, table='prompt = "argument"', **{"session/new": session})
    ran = build(ws, "--verbose")
    end = ended(ws)
    assert (ran.code, end["agent_outcome"], end["cost"], end["model"]) == (0, "ok", 0.25, "m-1"), ran.both
    assert end["usage"] == {"input": 1000, "output": 50, "cached": 300, "written": 0}
    assert (end["tools"], end["edited"]) == (1, 1)
    assert "[edit] Edit a.py" in ran.both and "All done.\n" in ran.both
    (prompt,) = sent(ws, "session/prompt")
    assert "OBS" in prompt["prompt"][0]["text"] and "ACT" in prompt["prompt"][0]["text"]
    (hello,) = sent(ws, "initialize")
    assert hello["clientCapabilities"] == {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False}
    assert sent(ws, "session/new") == [{"cwd": ws.path, "mcpServers": []}]
    (refused,) = [each["error"]["code"] for each in received(ws) if each.get("id") == "request"]
    assert refused == -32601


@pytest.mark.parametrize(
    ("loop", "made"),
    [
        ("", {"made.txt", "ran.txt", "read.txt", "fetched.txt"}),
        ("read_only = true", {"read.txt", "fetched.txt"}),
        ('denied_tools = ["execute", "webfetch"]', {"made.txt", "read.txt"}),
        ('denied_tools = ["rm *"]', {"made.txt", "read.txt", "fetched.txt"}),
        ('allowed_tools = ["edit", "Read *"]', {"made.txt", "read.txt"}),
        ('read_only = true\nallowed_tools = ["edit", "read"]', {"read.txt"}),
    ],
)
def test_A_12_permissions_follow_the_rules(ws: Workspace, loop: str, made: set[str]) -> None:
    """Each request is answered once, by kind and title; what is denied does not happen and is counted."""
    prepare(ws, [{"ask": call} for call in (EDIT, RUN, READ, FETCH)] + [{"say": "Done."}], loop=loop, program="gemini")
    ran = build(ws)
    assert {name for name in os.listdir(ws.path) if name.endswith(".txt")} == made, ran.both
    answers = [each["result"]["outcome"] for each in received(ws) if str(each.get("id")).startswith("ask-")]
    assert {answer["optionId"] for answer in answers} <= {"once", "no"} and len(answers) == 4
    assert (ran.code, ended(ws)["denied"]) == (0, 4 - len(made))


def test_A_12_an_agent_that_never_asks_is_not_restricted(ws: Workspace) -> None:
    """Nothing is started, since the restriction would have no effect."""
    prepare(ws, loop="read_only = true", program="opencode")
    ran = build(ws)
    assert ran.code == 2 and "has no option for this; nothing was started" in ran.err
    assert not received(ws)


@pytest.mark.parametrize(("kind", "outcome"), [("execute", "config"), ("read", "ok")])
def test_A_12_a_change_without_asking_ends_the_call(ws: Workspace, kind: str, outcome: str) -> None:
    """An unknown agent that changes something unasked can't be restricted, and the loop ends."""
    done = {"sessionUpdate": "tool_call", "toolCallId": "1", "title": "x", "kind": kind, "status": "completed"}
    prepare(ws, [{"update": done}, {"say": "Done."}], loop="read_only = true")
    ran = build(ws)
    assert ended(ws)["agent_outcome"] == outcome, ran.both
    assert ("without asking" in ran.both) == (outcome == "config")


@pytest.mark.parametrize("deaf", [False, True])
def test_A_12_a_stop_cancels_the_turn_first(ws: Workspace, deaf: bool) -> None:
    """`session/cancel` arrives before a signal, in the agent's own session; nothing is left, even of a deaf one."""
    turn = [{"sh": "sleep 300 & touch begun"}, {"await": "session/cancel"}]
    turn += [{"await": "never"}] if deaf else [{"result": {"stopReason": "cancelled"}}]
    prepare(ws, turn, loop="kill_grace = 1", deaf=deaf)
    running = ws.start("build", "-n", "1")
    until(lambda: ws.exists("begun"), 20, "begun")
    running.signal(15)
    assert running.finish() == 143
    marks = [each.get("method") or each.get("signal") or "closed" for each in received(ws)[1:]]
    assert marks[:4] == ["initialize", "session/new", "session/prompt", "session/cancel"]
    assert ("TERM" in marks) == deaf and "INT" not in marks
    first = received(ws)[0]
    assert first["session"] == first["pid"]
    assert ended(ws)["ended"] == "interrupted" and not ws.leftovers()


def test_A_12_a_time_limit_cancels_the_turn_too(ws: Workspace) -> None:
    """The call has timed out, whatever the agent answers to the cancel."""
    prepare(ws, [{"await": "session/cancel"}, {"error": {"code": -32603, "message": "Internal error: aborted"}}])
    ran = build(ws, "--iteration-timeout", "1")
    assert ended(ws)["agent_outcome"] == "timeout", ran.both
    assert sent(ws, "session/cancel") == [{"sessionId": "session-1"}]


AUTH: dict[str, Any] = {"code": -32000, "message": "Authentication required"}
LIMIT = {"code": -32603, "message": "Internal error", "data": {"errorKind": "rate_limit", "details": "Slow down."}}


@pytest.mark.parametrize(
    ("steps", "outcome", "words"),
    [
        ([{"error": AUTH}], "auth", "Authentication required"),
        ([{"error": LIMIT}], "rate_limit", "Internal error: Slow down."),
        ([{"error": {"code": 401, "message": "invalid x-api-key"}}], "auth", "invalid x-api-key"),
        ([{"error": {"code": 500, "message": "models/m is not found for API version v1beta."}}], "config", "models/m"),
        ([{"say": "Error: 401 Incorrect "}, {"say": "API key provided"}], "auth", "Error: 401"),
        (
            [
                {"say": "Info: The context limit was exceeded. Compacting history and retrying..."},
                {"say": "Error: The provider rejected the prompt as too long. Reduce context before retrying."},
            ],
            "context_overflow",
            "Error: The provider",
        ),
        ([{"say": "Compacting conversation context…"}, {"say": "Compaction cancelled."}], "context_overflow", ""),
        ([{"say": "The docs say:\n\nError: 401 Incorrect API key provided"}], "ok", ""),
        ([{"result": {"stopReason": "max_tokens"}}], "agent_error", "ended its turn with max_tokens"),
        ([{"result": {"stopReason": "refusal"}}], "agent_error", "ended its turn with refusal"),
        ([], "agent_error", "without a message"),
        ([{"complain": "no newline; Invalid API key"}, {"exit": 3}], "auth", "Invalid API key"),
        ([{"say": "Wor"}, {"exit": 0}], "agent_error", "without its final message"),
        ([{"print": "Welcome!"}, {"complain": '{"type": "error"}\n'}, {"say": "Done."}], "ok", ""),
    ],
)
def test_A_12_how_turns_end(ws: Workspace, steps: list[Any], outcome: str, words: str) -> None:
    """Errors of the protocol, errors in words, other ends, an early exit, and noise, which is none."""
    prepare(ws, steps)
    ran = build(ws)
    end = ended(ws)
    assert end["agent_outcome"] == outcome and words in str(end.get("message") or ""), (end, ran.both)
    assert (ran.code == 0) == (outcome == "ok") and not ws.leftovers()


OPTIONS = [{"id": "llm", "category": "model", "type": "select", "currentValue": "small", "options": []}]
MODELS = {"currentModelId": "small", "availableModels": []}


@pytest.mark.parametrize(
    ("offer", "method", "asked"),
    [
        ({"configOptions": OPTIONS}, "session/set_config_option", {"configId": "llm", "value": "large"}),
        ({"models": MODELS}, "session/set_model", {"modelId": "large"}),
    ],
)
def test_A_12_the_model_is_chosen_over_the_protocol(ws: Workspace, offer: Any, method: str, asked: Any) -> None:
    """By the session's option or the older request; an error is a wrong setting."""
    prepare(ws, [{"say": "Done."}], table='model = "large"', **{"session/new": {"sessionId": "s", **offer}})
    assert build(ws).code == 0 and ended(ws)["model"] == "large"
    assert sent(ws, method) == [{"sessionId": "s", **asked}]


def test_A_12_a_model_that_the_agent_refuses_is_a_wrong_setting(ws: Workspace) -> None:
    """The loop ends, and the message names the model."""
    refused = {"error": {"code": -32602, "message": "Invalid params"}}
    session = {"sessionId": "s", "models": MODELS}
    prepare(ws, [], table='model = "large"', **{"session/new": session, "session/set_model": refused})
    ran = build(ws)
    assert ran.code == 1 and "config" in ran.both and "invalid model 'large': Invalid params" in ran.both


def test_A_12_a_login_with_a_key_of_the_environment(ws: Workspace) -> None:
    """It is tried once, and only if the agent requires one; a login in a browser is not."""
    methods = [{"id": "oauth-personal"}, {"id": "gemini-api-key"}]
    answers = [{"error": AUTH}, {"sessionId": "s"}]
    hello = {"protocolVersion": 1, "authMethods": methods}
    prepare(ws, [{"say": "Done."}], initialize=hello, **{"session/new": answers})
    assert build(ws).code == 0
    assert sent(ws, "authenticate") == [{"methodId": "gemini-api-key"}]


def test_A_12_a_build_whose_gate_is_red_at_first(ws: Workspace) -> None:
    """The second call, another process, turns the gate green."""
    prepare(ws, [{"say": "Done."}], [{"ask": EDIT}, {"say": "Done now."}])
    ws.config(ws.read("rooda.toml").replace("failure_threshold = 1", "failure_threshold = 3"))
    gate = '\n[[procedures.build.quality_gates]]\nname = "made"\ncommand = "test -f made.txt"\n'
    ws.config(ws.read("rooda.toml") + gate)
    ran = ws.rooda("build", "-n", "2")
    outcomes = [event["outcome"] for event in ws.events() if event["event"] == "gates.ended"]
    assert (ran.code, outcomes) == (0, ["failure", "success"]), ran.both
    assert len({each["pid"] for each in received(ws) if "pid" in each}) == 2


@pytest.mark.parametrize(
    ("text", "failed"),
    [
        ("Error: 401 Incorrect API key provided", True),
        ("Error: Authentication failed with provider at http://x (HTTP 401).\n  Check your KEY.", True),
        ("500 Internal error.\nInternal error. (type=api_error param=api_error)", True),
        ("Unable to continue: Context limit still exceeded after compaction.", True),
        ("404 errors are now retried.", False),
        ("Ran into this error: Authentication error: Status: 401 Unauthorized\n\nPlease retry if you think so.", True),
        ("Error handling was added to parser.py; requests that fail with 401 are retried.", False),
        ("The test printed `Error: 429 rate limit`; I fixed it.", False),
        ("Error: 401 is now reported\n" + "with its request.\n" * 200, False),
    ],
)
def test_A_12_a_message_that_is_an_error(text: str, failed: bool) -> None:
    """It begins with an error's words; a message that mentions an error does not."""
    assert is_error(text) == failed


@pytest.mark.parametrize("restricted", [False, True])
def test_A_12_gemini_over_acp(
    bare: Workspace, cli: Callable[[str], str], server: ModelServer, restricted: bool
) -> None:
    """The shipped agent: a gate that is red at first; with `read_only` the file is not written."""
    cli("gemini")
    env = homes.home("gemini", server.url, bare.home)
    write = {"write": {"path": bare.file("made.txt"), "content": "x\n"}}
    server.play({"turns": [*([] if restricted else [{"text": "Nothing yet."}]), write, {"text": "All done."}]})
    gate = '[[loop.quality_gates]]\nname = "made"\ncommand = "test -f made.txt"\n'
    bare.config(f'[loop]\nagent = "gemini-acp"\nread_only = {str(restricted).lower()}\n{gate}')
    ran = bare.rooda("build", "-n", "1" if restricted else "2", env=env, timeout=90)
    end = ended(bare)
    assert end["agent_outcome"] == ("permission_denied" if restricted else "ok"), ran.both
    assert end["usage"] and end["denied"] == restricted and not bare.leftovers()
    outcomes = [event["outcome"] for event in bare.events() if event["event"] == "gates.ended"]
    assert (outcomes, bare.exists("made.txt")) == (([], False) if restricted else (["failure", "success"], True))
