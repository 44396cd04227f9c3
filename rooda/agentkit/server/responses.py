"""Parses requests and formats replies of the OpenAI Responses API."""

import json
import time
from collections.abc import Iterator
from typing import Any

from rooda.agentkit.server.scenario import Event, Json, Reply, message, new_id
from rooda.agentkit.server.tools import Tool, from_schema

TYPES = {400: "invalid_request_error", 401: "authentication_error", 403: "permission_error", 404: "not_found_error",
         429: "rate_limit_error", 529: "overloaded_error"}  # fmt: skip


def offered(body: Json) -> list[Tool]:
    """Return the tools that a request offers; for newer models, codex groups them by namespace in an input item."""
    tools = [tool for tool in body.get("tools") or [] if isinstance(tool, dict)]
    for item in body["input"] if isinstance(body.get("input"), list) else []:
        if item.get("type") == "additional_tools":
            tools += item.get("tools") or []
    nested = [tool for group in tools if group.get("type") == "namespace" for tool in group.get("tools", [])]
    return [_tool(tool) for tool in [*tools, *nested] if tool.get("type") != "namespace"]


def _tool(tool: Json) -> Tool:
    kind = tool.get("type", "function")
    if kind == "custom" and "await tools." in (tool.get("description") or ""):
        kind = "js"  # codex's "code mode": one tool runs JavaScript, which calls the other tools
    return from_schema(tool.get("name") or kind, tool.get("parameters"), kind)


def forced(body: Json) -> str:
    """Return the name of the tool that the answer must call; "" if the model may choose."""
    choice = body.get("tool_choice")
    return str(choice.get("name", "")) if isinstance(choice, dict) else ""


def wanted(body: Json) -> Json | None:
    """Return the JSON schema that the answer must match; None if there is none."""
    return ((body.get("text") or {}).get("format") or {}).get("schema")


def plain(reply: Reply) -> Json:
    """Format a reply as one JSON object."""
    usage = reply.usage
    return {
        "id": new_id("resp_"),
        "object": "response",
        "created_at": int(time.time()),
        "status": "completed",
        "model": reply.model,
        "output": list(_items(reply)),
        "usage": {
            "input_tokens": usage.prompt,
            "input_tokens_details": {"cached_tokens": usage.cache_read},
            "output_tokens": usage.output,
            "output_tokens_details": {"reasoning_tokens": usage.reasoning},
            "total_tokens": usage.prompt + usage.output,
        },
        "error": None,
        "incomplete_details": None,
        "parallel_tool_calls": True,
    }


def stream(reply: Reply) -> Iterator[Event]:
    """Yield a reply as numbered server-sent events."""
    for number, data in enumerate(_events(reply)):
        yield Event({**data, "sequence_number": number}, data["type"])


def error(turn: Json) -> Json:
    """Return the body of an error response."""
    kind = turn.get("type", TYPES.get(turn["error"], "api_error"))
    return {"error": {"message": message(turn), "type": kind, "param": None, "code": turn.get("code", kind)}}


def _items(reply: Reply) -> Iterator[Json]:
    done = {"status": "completed"}
    if reply.thinking:
        summary = [{"type": "summary_text", "text": reply.thinking}]
        yield {"type": "reasoning", "id": new_id("rs_"), "summary": summary, "encrypted_content": "c2lnbmVk", **done}
    if reply.text:
        part = {"type": "output_text", "text": reply.text, "annotations": []}
        yield {"type": "message", "id": new_id("msg_"), "role": "assistant", "content": [part], **done}
    if reply.call is None:
        return
    name, given = reply.call
    called = {"call_id": new_id("call_"), **done}
    if name == "local_shell":
        yield {"type": "local_shell_call", "id": new_id("lsc_"), "action": given, **called}
    elif isinstance(given, str):
        yield {"type": "custom_tool_call", "id": new_id("ctc_"), "name": name, "input": given, **called}
    else:
        arguments = json.dumps(given)
        yield {"type": "function_call", "id": new_id("fc_"), "name": name, "arguments": arguments, **called}


def _events(reply: Reply) -> Iterator[Json]:
    whole = plain(reply)
    started = {**whole, "status": "in_progress", "output": [], "usage": None}
    yield {"type": "response.created", "response": started}
    if reply.stream_error:
        code = reply.stream_error.get("code", reply.stream_error.get("type"))
        why = {"code": code, "message": reply.stream_error.get("message", "")}
        yield {"type": "response.failed", "response": {**whole, "status": "failed", "output": [], "error": why}}
        return
    for index, item in enumerate(whole["output"]):
        content: Json = {"content": []} if item["type"] == "message" else {}
        opened = {**item, "status": "in_progress", **content}
        yield {"type": "response.output_item.added", "output_index": index, "item": opened}
        for kind, fields in _pieces(item):
            yield {"type": f"response.{kind}", "item_id": item["id"], "output_index": index, **fields}
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    yield {"type": "response.completed", "response": whole}


def _pieces(item: Json) -> list[tuple[str, dict[str, Any]]]:
    if item["type"] == "message":
        part, at = item["content"][0], {"content_index": 0}
        return [
            ("content_part.added", {**at, "part": {**part, "text": ""}}),
            ("output_text.delta", {**at, "delta": part["text"]}),
            ("output_text.done", {**at, "text": part["text"]}),
            ("content_part.done", {**at, "part": part}),
        ]
    if item["type"] == "function_call":
        arguments = item["arguments"]
        return [
            ("function_call_arguments.delta", {"delta": arguments}),
            ("function_call_arguments.done", {"arguments": arguments}),
        ]
    if item["type"] == "reasoning":
        part, at = item["summary"][0], {"summary_index": 0}
        return [
            ("reasoning_summary_part.added", {**at, "part": {**part, "text": ""}}),
            ("reasoning_summary_text.delta", {**at, "delta": part["text"]}),
            ("reasoning_summary_text.done", {**at, "text": part["text"]}),
            ("reasoning_summary_part.done", {**at, "part": part}),
        ]
    return []
