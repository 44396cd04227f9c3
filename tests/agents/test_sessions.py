"""Session files of CLIs: the usage of a call whose transcript lacks it."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from rooda.agents import sessions
from rooda.agents.records import Usage

ID = "1a53da0d-9ddb-4a31-bfbc-e389b8c3b00b"
CODEX = {"input_tokens": 1300, "cached_input_tokens": 200, "cache_write_input_tokens": 0, "output_tokens": 50}
CLAUDE = {"input_tokens": 1000, "output_tokens": 50, "cache_read_input_tokens": 200, "cache_creation_input_tokens": 100}
COPILOT = {"model": "claude-sonnet-4", "inputTokens": 1300, "outputTokens": 50, "cacheReadTokens": 200,
           "cacheWriteTokens": 100}  # fmt: skip
GEMINI = {"input": 1300, "output": 40, "cached": 200, "thoughts": 10}
QWEN = {"promptTokenCount": 1300, "candidatesTokenCount": 50, "cachedContentTokenCount": 200}
KIMI = {"inputOther": 1100, "output": 50, "inputCacheRead": 200, "inputCacheCreation": 0}
CN = {"totalCost": 0.1, "promptTokens": 1300, "completionTokens": 50, "promptTokensDetails": {"cachedTokens": 200}}
OPENHANDS = {"model": "openai/gpt-4o", "prompt_tokens": 1300, "completion_tokens": 50, "cache_read_tokens": 200}


def twice(usage: dict[str, int]) -> dict[str, int]:
    return {key: 2 * value for key, value in usage.items()}


def claude(answer: str, model: str = "claude-opus-5-5") -> dict[str, Any]:
    return {"type": "assistant", "message": {"id": answer, "model": model, "usage": CLAUDE}}


def gemini(answer: str) -> dict[str, Any]:
    return {"type": "gemini", "id": answer, "model": "gemini-3.8-flash", "tokens": GEMINI}


KEPT: dict[str, tuple[str, str, list[Any], sessions.Spent]] = {
    "claude": (
        "claude",
        f".claude/projects/-home-user-project/{ID}.jsonl",
        [{"type": "user"}, claude("a"), claude("a"), claude("b"), claude("c", "claude-haiku-4-5")],
        {"claude-opus-5-5": Usage(2000, 100, 400, 200), "claude-haiku-4-5": Usage(1000, 50, 200, 100)},
    ),
    "codex": (
        "codex",
        f".codex/sessions/2026/11/18/rollout-2026-11-18T14-38-48-{ID}.jsonl",
        [
            {"type": "turn_context", "payload": {"model": "gpt-6.1-sol"}},
            {"type": "token_usage_record", "payload": {"thread_token_usage": CODEX}},
            {"type": "event_msg", "payload": {"type": "token_count", "info": {"total_token_usage": CODEX}}},
            {"type": "token_usage_record", "payload": {"thread_token_usage": twice(CODEX)}},
        ],
        {"gpt-6.1-sol": Usage(2200, 100, 400)},
    ),
    "copilot": (
        "copilot",
        f".copilot/session-state/{ID}/events.jsonl",
        2 * [{"type": "session.usage_record", "data": {"usage": COPILOT}}],
        {"claude-sonnet-4": Usage(2000, 100, 400, 200)},
    ),
    "gemini": (
        "gemini",
        f".gemini/tmp/project/chats/session-2026-11-18T14-38-{ID[:8]}.jsonl",
        [gemini("a"), gemini("a"), {"$set": {}}, gemini("b")],
        {"gemini-3.8-flash": Usage(2200, 100, 400)},
    ),
    "qwen": (
        "claude",
        f".qwen/projects/-home-user-project/chats/{ID}.jsonl",
        [{"type": "assistant", "uuid": "a", "model": "qwen3-coder-plus", "usageMetadata": QWEN}],
        {"qwen3-coder-plus": Usage(1100, 50, 200)},
    ),
    "kimi": (
        "kimi",
        f".kimi-code/sessions/wd_project_1/{ID}/agents/main/wire.jsonl",
        2 * [{"type": "usage.record", "model": "kimi-k3", "usage": KIMI}],
        {"kimi-k3": Usage(2200, 100, 400)},
    ),
    "cn": ("cn", f".continue/sessions/{ID}.json", [{"usage": CN, "history": []}], {"": Usage(1100, 50, 200)}),
    "openhands": (
        "openhands",
        f".openhands/conversations/{ID}/base_state.json",
        [{"stats": {"usage_to_metrics": {"agent": {"accumulated_token_usage": OPENHANDS}, "condenser": {}}}}],
        {"gpt-4o": Usage(1100, 50, 200)},
    ),
}
MOVED = {"claude": "CLAUDE_CONFIG_DIR", "codex": "CODEX_HOME", "copilot": "COPILOT_HOME", "qwen": "QWEN_HOME"}


def keep(home: Path, name: str, records: list[Any]) -> None:
    path = home / name
    path.parent.mkdir(parents=True)
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records))


@pytest.mark.parametrize("cli", KEPT)
def test_usage_of_a_session(cli: str, tmp_path: Path) -> None:
    """Fresh and cached input are separate, each answer counts once, model by model."""
    output, name, records, expected = KEPT[cli]
    keep(tmp_path, name, records)
    assert sessions.usage_of(output, ID, {"HOME": str(tmp_path)}) == expected


@pytest.mark.parametrize("cli", MOVED)
def test_a_folder_that_was_moved(cli: str, tmp_path: Path) -> None:
    """The CLI's own variable moves its folder."""
    output, name, records, expected = KEPT[cli]
    keep(tmp_path, name.partition("/")[2], records)
    env = {"HOME": "/nowhere", MOVED[cli]: str(tmp_path)}
    assert sessions.usage_of(output, ID, env) == expected


@pytest.mark.parametrize("session", ["", "../../../etc/passwd", "*", "{short}", "a" * 200, ID.replace("1", "2")])
def test_no_such_session(session: str, tmp_path: Path) -> None:
    """An invalid session ID, or another session's, finds no file."""
    for output, name, records, _ in KEPT.values():
        if not (tmp_path / name).exists():
            keep(tmp_path, name, records)
        assert sessions.usage_of(output, session, {"HOME": str(tmp_path)}) == {}


def test_usage_in_an_unreadable_file_is_unknown(tmp_path: Path) -> None:
    """For a link, a pipe, a folder, a torn line or a large file the usage is unknown, and nothing blocks."""
    output, name, records, _ = KEPT["codex"]
    keep(tmp_path, name, records)
    path, env = tmp_path / name, {"HOME": str(tmp_path)}
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"type":"token_usage_record","payload":{"thread_token_usage"')
    assert sessions.usage_of(output, ID, env) == {}
    path.write_bytes(b"\\xff\\x00[1]\\n")
    assert sessions.usage_of(output, ID, env) == {}
    with path.open("wb") as file:
        file.truncate(sessions.LARGEST + 1)
    assert sessions.usage_of(output, ID, env) == {}
    path.unlink()
    (tmp_path / "elsewhere").write_bytes(whole)
    for odd in (lambda: path.symlink_to(tmp_path / "elsewhere"), lambda: os.mkfifo(path), path.mkdir):
        odd()
        assert sessions.usage_of(output, ID, env) == {}
        path.rmdir() if path.is_dir() else path.unlink()


def test_only_the_newest_days_are_searched(tmp_path: Path) -> None:
    """codex has a folder per day: a current call is in one of the last two."""
    output, name, records, expected = KEPT["codex"]
    keep(tmp_path, name, records)
    env = {"HOME": str(tmp_path)}
    for day in ("19", "20"):
        assert sessions.usage_of(output, ID, env) == expected
        (tmp_path / f".codex/sessions/2026/11/{day}").mkdir()
    assert sessions.usage_of(output, ID, env) == {}


def test_a_cli_without_such_files() -> None:
    """Nothing is searched for CLIs without known session files."""
    assert sessions.usage_of("aider", ID, {}) == {} and sessions.total({}) is None
