"""Parses requests and formats replies of the OpenAI Chat Completions API."""

import json
import time
from collections.abc import Iterator

from rooda.agentkit.server.responses import error
from rooda.agentkit.server.scenario import Event, Json, Reply, new_id
from rooda.agentkit.server.tools import Tool, from_schema

__all__ = ["error", "forced", "offered", "plain", "stream", "wanted"]


def offered(body: Json) -> list[Tool]:
    """Return the tools that a request offers."""
    found = []
    for tool in body.get("tools") or []:
        described = tool.get("function") or tool.get("custom") or {}
        found.append(from_schema(described.get("name", "?"), described.get("parameters"), tool.get("type", "function")))
    return found


def forced(body: Json) -> str:
    """Return the name of the tool that the answer must call; "" if the model may choose."""
    choice = body.get("tool_choice")
    return str((choice.get("function") or {}).get("name", "")) if isinstance(choice, dict) else ""


def wanted(body: Json) -> Json | None:
    """Return the JSON schema that the answer must match; None if there is none."""
    return ((body.get("response_format") or {}).get("json_schema") or {}).get("schema")


def plain(reply: Reply) -> Json:
    """Format a reply as one JSON object."""
    choice = {"index": 0, "message": _message(reply), "finish_reason": _finish(reply), "logprobs": None}
    return {**_base(reply), "object": "chat.completion", "usage": _usage(reply), "choices": [choice]}


def stream(reply: Reply) -> Iterator[Event]:
    """Yield a reply as server-sent events."""
    base = {**_base(reply), "object": "chat.completion.chunk"}

    def chunk(delta: Json, finish: str | None = None) -> Event:
        return Event({**base, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

    yield chunk({"role": "assistant", "content": ""})
    if reply.stream_error:
        yield Event({"error": reply.stream_error})
        return
    if reply.thinking:
        yield chunk({"reasoning_content": reply.thinking})
    if reply.text:
        yield chunk({"content": reply.text})
    for call in _message(reply).get("tool_calls", []):
        yield chunk({"tool_calls": [{**call, "index": 0}]})
    yield chunk({}, _finish(reply))
    yield Event({**base, "choices": [], "usage": _usage(reply)})
    yield Event("[DONE]")


def _base(reply: Reply) -> Json:
    return {"id": new_id("chatcmpl-"), "created": int(time.time()), "model": reply.model}


def _finish(reply: Reply) -> str:
    return reply.stop_reason or ("tool_calls" if reply.call else "stop")


def _message(reply: Reply) -> Json:
    said: Json = {"role": "assistant", "content": reply.text or None}
    if reply.thinking:
        said["reasoning_content"] = reply.thinking
    if reply.call:
        function = {"name": reply.call.name, "arguments": json.dumps(reply.call.input)}
        said["tool_calls"] = [{"id": new_id("call_"), "type": "function", "function": function}]
    return said


def _usage(reply: Reply) -> Json:
    usage = reply.usage
    return {
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.output,
        "total_tokens": usage.prompt + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
    }
