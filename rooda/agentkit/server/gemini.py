"""Parses requests and formats replies of the Gemini API."""

import uuid
from collections.abc import Iterator

from rooda.agentkit.server.scenario import Event, Json, Reply, message
from rooda.agentkit.server.tools import Tool, from_schema

STATUSES = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND",
            429: "RESOURCE_EXHAUSTED", 500: "INTERNAL", 503: "UNAVAILABLE"}  # fmt: skip


def offered(body: Json) -> list[Tool]:
    """Return the tools that a request offers."""
    found = []
    for tool in body.get("tools") or []:
        for function in tool.get("functionDeclarations") or tool.get("function_declarations") or []:
            schema = function.get("parametersJsonSchema") or function.get("parameters")
            found.append(from_schema(function["name"], schema))
    return found


def forced(body: Json) -> str:
    """Return the name of the tool that the answer must call; "" if the model may choose."""
    settings = (body.get("toolConfig") or {}).get("functionCallingConfig") or {}
    names = settings.get("allowedFunctionNames") or []
    return str(names[0]) if settings.get("mode") == "ANY" and len(names) == 1 else ""


def wanted(body: Json) -> Json | None:
    """Return the JSON schema that the answer must match; None if there is none."""
    settings = body.get("generationConfig") or {}
    return settings.get("responseJsonSchema") or settings.get("responseSchema")


def plain(reply: Reply) -> Json:
    """Format a reply as one JSON object."""
    return {
        "candidates": [_candidate(reply, _parts(reply), ended=True)],
        "usageMetadata": _usage(reply),
        "modelVersion": reply.model,
        "responseId": uuid.uuid4().hex[:16],
    }


def stream(reply: Reply) -> Iterator[Event]:
    """Yield a reply as two server-sent events: the content, then the end with the token counts."""
    if reply.stream_error:
        yield Event({"candidates": [_candidate(reply, [{"text": "The first"}])], "modelVersion": reply.model})
        yield Event({"error": reply.stream_error})
        return
    yield Event({"candidates": [_candidate(reply, _parts(reply))], "modelVersion": reply.model})
    yield Event({**plain(reply), "candidates": [_candidate(reply, [{"text": ""}], ended=True)]})


def error(turn: Json) -> Json:
    """Return the body of an error response."""
    status = STATUSES.get(turn["error"], "UNKNOWN")
    return {"error": {"code": turn["error"], "message": message(turn), "status": status}}


def _parts(reply: Reply) -> list[Json]:
    parts: list[Json] = []
    if reply.thinking:
        parts.append({"text": reply.thinking, "thought": True})
    if reply.text:
        parts.append({"text": reply.text})
    if reply.call:
        call = {"name": reply.call.name, "args": reply.call.input}
        parts.append({"functionCall": call, "thoughtSignature": "c2lnbmVk"})
    return parts


def _candidate(reply: Reply, parts: list[Json], ended: bool = False) -> Json:
    candidate: Json = {"content": {"role": "model", "parts": parts}, "index": 0}
    return {**candidate, "finishReason": reply.stop_reason or "STOP"} if ended else candidate


def _usage(reply: Reply) -> Json:
    usage = reply.usage
    return {
        "promptTokenCount": usage.prompt,
        "candidatesTokenCount": usage.output,
        "thoughtsTokenCount": usage.reasoning,
        "cachedContentTokenCount": usage.cache_read,
        "totalTokenCount": usage.prompt + usage.output + usage.reasoning,
    }
