"""The scripted model server, with requests like those of the CLIs."""

import gzip
import http.client
import json
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from rooda.agentkit.server.server import NOTHING_FITS, ModelServer
from tests.kit.processes import until

TEXT = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
WRITE = {
    "type": "object",
    "properties": {"file_path": {"type": "string"}, "content": {"type": "string"}, "mode": {"enum": ["new", "old"]}},
    "required": ["file_path", "content", "mode"],
}
PATHS = {
    "anthropic": "/v1/messages",
    "chat": "/v1/chat/completions",
    "responses": "/v1/responses",
    "gemini": "/v1beta/models/m:generateContent",
}
STREAMED = {**PATHS, "gemini": "/v1beta/models/m:streamGenerateContent?alt=sse"}
OFFERS: dict[str, Any] = {
    "anthropic": {"tools": [{"name": "Bash", "input_schema": TEXT}, {"name": "Write", "input_schema": WRITE}]},
    "chat": {
        "tools": [
            {"type": "function", "function": {"name": "run_shell", "parameters": TEXT}},
            {"type": "function", "function": {"name": "write_file", "parameters": WRITE}},
        ]
    },
    "responses": {
        "tools": [
            {"type": "function", "name": "shell", "parameters": TEXT},
            {"type": "function", "name": "write_file", "parameters": WRITE},
        ]
    },
    "gemini": {
        "tools": [
            {
                "functionDeclarations": [
                    {"name": "run_shell_command", "parametersJsonSchema": TEXT},
                    {"name": "write_file", "parametersJsonSchema": WRITE},
                ]
            }
        ]
    },
}


def post(server: ModelServer, path: str, body: Any, headers: dict[str, str] | None = None) -> tuple[int, bytes]:
    """Send a request; return status and answer."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(server.url + path, data, headers or {})
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as problem:
        return problem.code, problem.read()


def ask(server: ModelServer, api: str, stream: bool = False, **more: Any) -> Any:
    """The answer as JSON; a streamed one as a list of its events."""
    path = (STREAMED if stream else PATHS)[api]
    raw = post(server, path, {"model": "m", "stream": stream, **OFFERS[api], **more})[1].decode()
    if not stream:
        return json.loads(raw)
    return [json.loads(line[6:]) for line in raw.splitlines() if line.startswith("data: {")]


def said(api: str, answer: Any) -> Any:
    """Text and tool calls of an answer."""
    if api == "anthropic":
        return [block.get("text") or (block["name"], block["input"]) for block in answer["content"]]
    if api == "chat":
        message = answer["choices"][0]["message"]
        calls = [call["function"] for call in message.get("tool_calls", [])]
        found = [(call["name"], json.loads(call["arguments"])) for call in calls]
        return [message["content"], *found] if message["content"] else found
    if api == "responses":
        return [
            item["content"][0]["text"] if item["type"] == "message" else (item["name"], json.loads(item["arguments"]))
            for item in answer["output"]
        ]
    parts = answer["candidates"][0]["content"]["parts"]
    return [p.get("text") or (p["functionCall"]["name"], p["functionCall"]["args"]) for p in parts]


def joined(api: str, events: list[Any]) -> str:
    """Text of a streamed answer."""
    if api == "anthropic":
        return "".join(e["delta"].get("text", "") for e in events if e["type"] == "content_block_delta")
    if api == "chat":
        return "".join(c["delta"].get("content") or "" for e in events for c in e["choices"])
    if api == "responses":
        return "".join(e["delta"] for e in events if e["type"] == "response.output_text.delta")
    parts = [p for e in events for p in e["candidates"][0]["content"]["parts"]]
    return "".join(p["text"] for p in parts if not p.get("thought"))


@pytest.mark.parametrize("api", PATHS)
def test_turns_are_answered_in_order(server: ModelServer, api: str) -> None:
    """Text, a fitting shell call and a fitting write call follow each other, then the final answer."""
    write = {"path": "/a", "content": "x"}
    server.play({"turns": [{"text": "one"}, {"say": "now", "shell": "ls"}, {"write": write}]})
    answers = [said(api, ask(server, api)) for _ in range(4)]
    assert answers[0] == ["one"] and answers[3] == ["done"]
    assert answers[1][0] == "now" and answers[1][1][1] == {"command": "ls"}
    assert answers[2][0][1] == {"file_path": "/a", "content": "x", "mode": "new"}
    assert [request["turn"] for request in server.requests] == [1, 2, 3, 3]


@pytest.mark.parametrize("api", PATHS)
def test_a_streamed_answer_says_the_same(server: ModelServer, api: str) -> None:
    """The pieces of a stream form the text of the turn."""
    server.play({"turns": [{"text": "all of it"}]})
    assert joined(api, ask(server, api, stream=True)) == "all of it"


@pytest.mark.parametrize("api", PATHS)
def test_thinking_arrives_separately_from_the_text(server: ModelServer, api: str) -> None:
    """The model's thinking arrives, separate from the text."""
    server.play({"turns": [{"thinking": "hmm", "text": "x"}]})
    events = ask(server, api, stream=True)
    assert '"hmm"' in json.dumps(events) and joined(api, events) == "x"


@pytest.mark.parametrize("api", PATHS)
def test_usage_is_counted_as_each_api_counts(server: ModelServer, api: str) -> None:
    """Anthropic excludes cached tokens from the input, the other APIs include them."""
    server.play({"turns": [{"text": "x"}], "usage": {"input": 10, "output": 3, "cache_read": 4, "cache_write": 2}})
    answer = ask(server, api)
    usage = answer.get("usage") or answer["usageMetadata"]
    keys = {
        "anthropic": ("input_tokens", "output_tokens", "cache_read_input_tokens"),
        "chat": ("prompt_tokens", "completion_tokens"),
        "responses": ("input_tokens", "output_tokens"),
        "gemini": ("promptTokenCount", "candidatesTokenCount", "cachedContentTokenCount"),
    }
    expected = (10, 3, 4) if api == "anthropic" else (16, 3, 4)
    assert tuple(usage[key] for key in keys[api]) == expected[: len(keys[api])]


@pytest.mark.parametrize("api", PATHS)
def test_an_error_has_status_headers_and_body(server: ModelServer, api: str) -> None:
    """The scripted status and message arrive; a body in the scenario replaces the default."""
    turn = {"error": 429, "message": "slow down", "headers": {"retry-after": "7"}}
    server.play({"turns": [turn, {"error": 418, "body": {"tea": True}}]})
    request = urllib.request.Request(server.url + PATHS[api], json.dumps(OFFERS[api]).encode())
    with pytest.raises(urllib.error.HTTPError) as problem:
        urllib.request.urlopen(request, timeout=10)
    with problem.value as answer:
        assert (answer.code, answer.headers["retry-after"]) == (429, "7")
        assert json.load(answer)["error"]["message"] == "slow down"
    assert post(server, PATHS[api], OFFERS[api]) == (418, b'{"tea": true}')


@pytest.mark.parametrize("api", PATHS)
def test_an_error_inside_a_stream(server: ModelServer, api: str) -> None:
    """The stream starts normally, then has the error instead of the text."""
    server.play({"turns": [{"text": "never", "stream_error": {"type": "overloaded_error", "message": "too busy"}}]})
    events = ask(server, api, stream=True)
    assert len(events) == 2 and "too busy" in json.dumps(events[1]) and "never" not in json.dumps(events)


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
def test_a_dropped_connection(server: ModelServer, stream: bool) -> None:
    """The client sees the connection break; the next turn is complete again."""
    server.play({"turns": [{"text": "lost", "drop": True}, {"text": "kept"}]})
    with pytest.raises((http.client.HTTPException, OSError)):
        ask(server, "anthropic", stream=stream)
    assert said("anthropic", ask(server, "anthropic")) == ["kept"]
    until(lambda: [request.get("cut", False) for request in server.requests] == [True, False], what="both on record")


@pytest.mark.parametrize("turn", [{"delay": 600}, {"stall": 600}], ids=["delay", "stall"])
def test_a_hanging_answer_ends_with_the_server(turn: dict[str, Any]) -> None:
    """A hanging request is logged, and closing the server disconnects the client."""
    with ModelServer({"turns": [{"text": "late", **turn}]}) as server:
        ended = threading.Event()

        def client() -> None:
            try:
                post(server, "/v1/messages", {"stream": True, **OFFERS["anthropic"]})
            except (http.client.HTTPException, OSError):
                ended.set()

        threading.Thread(target=client, daemon=True).start()
        until(lambda: server.requests, what="the request on record")
        assert "seconds" not in server.requests[0]
    assert ended.wait(10)


def test_requests_without_tools_use_no_turn(server: ModelServer) -> None:
    """A title or quota request gets the side answer, or JSON for its schema; with `consume` it uses a turn."""
    server.play({"turns": [{"text": "main"}], "side": "by the way"})
    assert said("anthropic", ask(server, "anthropic", tools=[])) == ["by the way"]
    schema = {"type": "object", "properties": {"kind": {"enum": ["easy", "hard"]}, "n": {"type": "integer"}}}
    server.play({"turns": [{"text": "main"}]})
    wanted = ask(server, "gemini", tools=[], generationConfig={"responseJsonSchema": schema})
    assert json.loads(said("gemini", wanted)[0]) == {"kind": "easy", "n": 1}
    assert said("chat", ask(server, "chat")) == ["main"]
    server.play({"turns": [{"text": "main"}], "consume": "all"})
    assert said("chat", ask(server, "chat", tools=[])) == ["main"]


def test_no_tool_fits(server: ModelServer) -> None:
    """If no offered tool fits a turn, the answer and the log say so."""
    server.play({"turns": [{"shell": "ls"}]})
    offered = [{"name": "Think", "input_schema": {}}]
    assert said("anthropic", ask(server, "anthropic", tools=offered)) == [NOTHING_FITS]
    assert server.requests[0]["note"] == NOTHING_FITS


def test_the_log_keeps_requests_but_no_keys(tmp_path: Path) -> None:
    """One JSON line per request, with keys shortened and bodies left out on request; gzip is decoded."""
    log = tmp_path / "requests.jsonl"
    body = gzip.compress(json.dumps({"model": "zipped", **OFFERS["anthropic"]}).encode())
    with ModelServer(log=str(log), bodies=False) as server:
        headers = {"content-encoding": "gzip", "authorization": "Bearer a-long-secret-key"}
        assert post(server, "/v1/messages", body, headers)[0] == 200
        until(lambda: log.exists() and log.read_text().endswith("\n"), what="the log")
    record = json.loads(log.read_text())
    assert (record["model"], record["status"], record["tools"]) == ("zipped", 200, ["Bash", "Write"])
    assert "secret-key" not in log.read_text() and "body" not in record


def test_requests_to_other_paths(server: ModelServer) -> None:
    """Models are listed, tokens counted, other paths are 404; a request can replace the scenario."""
    with urllib.request.urlopen(server.url + "/v1/models", timeout=10) as answer:
        assert json.load(answer)["data"][0]["id"] == "claude-sonnet-4-5"
    assert json.loads(post(server, "/v1/messages/count_tokens", {})[1])["input_tokens"] == 1000
    assert post(server, "/v1/nowhere", {})[0] == 404
    assert post(server, "/_server/scenario", {"turns": [{"text": "changed"}]})[0] == 200
    assert said("chat", ask(server, "chat")) == ["changed"]


def test_as_a_command(tmp_path: Path) -> None:
    """The command prints its address, writes its port, reads its scenario from a file, and ends silently on INT."""
    scenario, port = tmp_path / "s.json", tmp_path / "port"
    scenario.write_text('{"turns": [{"text": "from a file"}]}')
    command = [sys.executable, "-m", "rooda.agentkit.server"]
    words = [*command, "--scenario", str(scenario), "--port-file", str(port)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().strip()
            assert url == f"http://127.0.0.1:{port.read_text()}"
            body = json.dumps(OFFERS["anthropic"]).encode()
            with urllib.request.urlopen(url + "/v1/messages", body, timeout=10) as answer:
                assert said("anthropic", json.load(answer)) == ["from a file"]
            process.send_signal(2)
            assert process.wait(10) == 0
            assert process.stderr is not None and process.stderr.read() == ""
        finally:
            process.kill()


TITLE = {"properties": {"title": {"type": "string"}}, "required": ["title"]}
FORCED: dict[str, Any] = {
    "anthropic": {
        "tool_choice": {"type": "tool", "name": "title"},
        "tools": [{"name": "title", "input_schema": TITLE}],
    },
    "chat": {
        "tool_choice": {"type": "function", "function": {"name": "title"}},
        "tools": [{"type": "function", "function": {"name": "title", "parameters": TITLE}}],
    },
    "responses": {
        "tool_choice": {"type": "function", "name": "title"},
        "tools": [{"type": "function", "name": "title", "parameters": TITLE}],
    },
    "gemini": {
        "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["title"]}},
        "tools": [{"functionDeclarations": [{"name": "title", "parametersJsonSchema": TITLE}]}],
    },
}


@pytest.mark.parametrize("api", FORCED)
def test_A_08_a_forced_tool_is_called_and_uses_no_turn(server: ModelServer, api: str) -> None:
    """A request that names the tool to call asks for a title, say: it gets that call, and the work goes on."""
    server.play({"turns": [{"text": "the first turn"}]})
    answer = json.dumps(json.loads(post(server, PATHS[api], FORCED[api])[1]))
    assert "title" in answer and "the first turn" not in answer
    assert said(api, ask(server, api)) == ["the first turn"]


def test_A_08_a_shell_tool_may_take_a_list_of_commands(server: ModelServer) -> None:
    """Each element of `commands` is a whole command, not a word of one."""
    several = {"properties": {"commands": {"type": "array", "items": {"type": "string"}}}, "required": ["commands"]}
    server.play({"turns": [{"shell": "echo hi > shell.txt"}]})
    offer = {"tools": [{"name": "run_commands", "input_schema": several}]}
    (block,) = json.loads(post(server, PATHS["anthropic"], offer)[1])["content"]
    assert block["input"] == {"commands": ["echo hi > shell.txt"]}
