"""Parses requests and formats replies of the Anthropic Messages API."""

import json
from collections.abc import Iterator

from rooda.agentkit.server.scenario import Event, Json, Reply, message, new_id
from rooda.agentkit.server.tools import Tool, from_schema

TYPES = {400: "invalid_request_error", 401: "authentication_error", 403: "permission_error", 404: "not_found_error",
         413: "request_too_large", 429: "rate_limit_error", 529: "overloaded_error"}  # fmt: skip


def offered(body: Json) -> list[Tool]:
    """Return the tools that a request offers."""
    tools = [tool for tool in body.get("tools") or [] if isinstance(tool, dict)]
    return [from_schema(str(tool.get("name") or tool.get("type")), tool.get("input_schema")) for tool in tools]


def forced(body: Json) -> str:
    """Return the name of the tool that the answer must call; "" if the model may choose."""
    choice = body.get("tool_choice") or {}
    return str(choice.get("name", "")) if choice.get("type") == "tool" else ""


def wanted(body: Json) -> Json | None:
    """Return the JSON schema that the answer must match; None if there is none."""
    return ((body.get("output_config") or {}).get("format") or body.get("output_format") or {}).get("schema")


def plain(reply: Reply) -> Json:
    """Format a reply as one JSON object."""
    usage = reply.usage
    return {
        "id": new_id("msg_"),
        "type": "message",
        "role": "assistant",
        "model": reply.model,
        "content": list(_blocks(reply)),
        "stop_reason": reply.stop_reason or ("tool_use" if reply.call else "end_turn"),
        "stop_sequence": None,
        "usage": {
            "input_tokens": usage.input,
            "cache_creation_input_tokens": usage.cache_write,
            "cache_read_input_tokens": usage.cache_read,
            "output_tokens": usage.output,
            "service_tier": "standard",
        },
    }


def stream(reply: Reply) -> Iterator[Event]:
    """Yield a reply as server-sent events; the first event reports one output token, as in the real API."""
    for data in _events(reply):
        yield Event(data, data["type"])


def error(turn: Json) -> Json:
    """Return the body of an error response."""
    said = {"type": turn.get("type", TYPES.get(turn["error"], "api_error")), "message": message(turn)}
    return {"type": "error", "error": said, "request_id": new_id("req_")}


def _blocks(reply: Reply) -> Iterator[Json]:
    if reply.thinking:
        yield {"type": "thinking", "thinking": reply.thinking, "signature": "c2lnbmVk"}
    if reply.text:
        yield {"type": "text", "text": reply.text}
    if reply.call:
        yield {"type": "tool_use", "id": new_id("toolu_"), "name": reply.call.name, "input": reply.call.input}


def _events(reply: Reply) -> Iterator[Json]:
    whole = plain(reply)
    start: Json = {"content": [], "stop_reason": None, "usage": {**whole["usage"], "output_tokens": 1}}
    yield {"type": "message_start", "message": {**whole, **start}}
    if reply.stream_error:
        yield {"type": "error", "error": reply.stream_error}
        return
    for index, block in enumerate(whole["content"]):
        empty, deltas = _pieces(block)
        yield {"type": "content_block_start", "index": index, "content_block": empty}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    stop = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": stop, "usage": whole["usage"]}
    yield {"type": "message_stop"}


def _pieces(block: Json) -> tuple[Json, list[Json]]:
    """Split a content block into the empty block that starts it and the deltas that fill it."""
    if block["type"] == "text":
        return {**block, "text": ""}, [{"type": "text_delta", "text": block["text"]}]
    if block["type"] == "tool_use":
        return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]
    deltas = [
        {"type": "thinking_delta", "thinking": block["thinking"]},
        {"type": "signature_delta", "signature": block["signature"]},
    ]
    return {**block, "thinking": "", "signature": ""}, deltas
