"""The situations that are recorded from each real CLI: what the model server answers, and what is done to the CLI."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from rooda.agentkit.server.scenario import Json

from .errors import NO_CREDIT, OPENAI_CODE, OVERFLOW, QUOTA, STREAM_ERROR, UNKNOWN_MODEL

FAMILY = {
    "claude": "anthropic",
    "opencode": "anthropic",
    "copilot": "anthropic",
    "codex": "responses",
    "gemini": "gemini",
    "qwen": "chat",
    "droid": "chat",
    "pi": "chat",
    "aider": "chat",
    "kilo": "anthropic",
    **dict.fromkeys(("grok", "omp", "goose", "kimi", "vibe", "cline", "cn", "nanocoder", "openhands", "mini"), "chat"),
}
NEWER = (*FAMILY,)[-11:]  # of these fewer situations are recorded: success, every way to fail, and what they deny
FAILURES = ("auth", "payment", "rate_limit", "rate_limit_wait", "no_credit", "server_error", "context_overflow",
            "unknown_model", "no_network")  # fmt: skip
SKIP_FLAG = {  # what lets a CLI use its tools unasked; pi always does, and aider's has no counterpart
    "claude": "--dangerously-skip-permissions",
    "codex": "--dangerously-bypass-approvals-and-sandbox",
    "gemini": "--yolo",
    "opencode": "--auto",
    "copilot": "--allow-all-tools",
    "qwen": "--yolo",
    "droid": "--skip-permissions-unsafe",
    "grok": "--always-approve",
}
NO_KEY_MODEL = {"pi": "anthropic/claude-sonnet-4-5"}  # a model whose provider it knows
NO_KEY_ENV = {"opencode": {"OPENCODE_CONFIG_CONTENT": '{"autoupdate": false}'}}  # its settings would hold an empty one
DONE = {"text": "All done."}
FIVE_HOURS, THREE_DAYS = 2 * 3600, 3 * 86_400  # how far away the reset is


class Case(NamedTuple):
    """One situation. `signal` goes to the CLI's group once `when` holds; after `limit` seconds its own stop signal."""

    turns: list[Json]
    prompt: str = "Please do it."
    limit: float = 20.0
    signal: str = ""
    when: str = ""  # request: the model was asked; tool: the tool runs
    skip_permissions: bool = True
    more: tuple[str, ...] = ()  # arguments added to rooda's
    model: str = ""
    keys: bool = True  # are there credentials?
    env: Mapping[str, str] = MappingProxyType({})
    files: Mapping[str, str] = MappingProxyType({})  # in HOME; {url} is the model server's address
    url: str = ""  # another address than the model server's
    reset_in: int = 0  # seconds from the recording to the reset that the server names


def cases(cli: str, repo: str, now: int) -> dict[str, Case]:
    """Every situation of a CLI, by name."""
    family = FAMILY[cli]
    found = {**_plain(repo), **_errors(family), **_ended(), **_refused(cli, repo)}
    for name, make in SPECIAL.get(cli, {}).items():
        found[name] = make(now)
    if cli == "aider":
        found = _without_tools(found)
    if cli in NEWER:
        said = "Payment required: add credits to continue."
        found["payment"] = Case([{"error": 402, "message": said, "times": -1}])
        kept = ("success", "promise", "error_midway", *FAILURES, *(("denied",) if cli in SKIP_FLAG else ()))
        found = {name: found[name] for name in kept}
    patience = PATIENCE.get(cli, {})
    return {name: case._replace(limit=patience.get(name, patience.get("", case.limit))) for name, case in found.items()}


def _plain(repo: str) -> dict[str, Case]:
    work: list[Json] = [
        {"say": "I write the file.", "write": {"path": f"{repo}/made.txt", "content": "from the model\n"}},
        {"shell": "echo hi > shell.txt; cat made.txt"},
    ]
    promise = "The work is done.\n\n<promise>SUCCESS</promise>"
    failing: list[Json] = [{"shell": "echo oh no >&2; exit 3"}, {"text": "The command failed."}]
    return {
        "success": Case([*work, DONE]),
        "promise": Case([{"text": promise}]),
        "thinking": Case([{"thinking": "Let me see.", "text": "Seen.", "usage": {"reasoning": 30}}]),
        "failing_tool": Case(failing),
        "error_midway": Case([work[0], {"error": 401, "message": "The key was revoked.", "times": -1}]),
    }


def _without_tools(found: dict[str, Case]) -> dict[str, Case]:
    """For a CLI that offers no tools and edits by what the model writes; it asks once and for a whole answer."""
    edit = "made.txt\n```\n<<<<<<< SEARCH\n=======\nfrom the model\n>>>>>>> REPLACE\n```\n\nAll done."
    kept = ("promise", "auth", "rate_limit", "server_error", "context_overflow", "unknown_model", "no_credit",
            "cut_always", "hang_int", "hang_term", "no_key", "bad_flag", "no_network")  # fmt: skip
    return {"success": Case([{"text": edit}]), **{name: found[name] for name in kept}}


def _errors(family: str) -> dict[str, Case]:
    def always(status: int, **more: Any) -> Case:
        return Case([{"error": status, "times": -1, **more}])

    overloaded = 529 if family == "anthropic" else 503
    return {
        "auth": always(401, message="invalid x-api-key", **OPENAI_CODE.get((family, "auth"), {})),
        "forbidden": always(403, message="Your account may not use this model."),
        "rate_limit": always(429, message="Too many requests."),
        "rate_limit_wait": always(429, message="Too many requests.", headers={"retry-after": "3600"}),
        "server_error": always(500, message="Internal error."),
        "overloaded": always(overloaded, message="Overloaded"),
        "context_overflow": Case([{**OVERFLOW[family], "times": -1}]),
        "unknown_model": Case([{**UNKNOWN_MODEL[family], "times": -1}], model="no-such-model"),
        "no_credit": Case([{**NO_CREDIT[family], "times": -1}]),
        "cut_once": Case([{"text": "Lost on the way.", "drop": True}, DONE]),
        "cut_always": Case([{"text": "Lost on the way.", "drop": True, "times": -1}]),
        "stream_error": Case([{"text": "x", "stream_error": STREAM_ERROR[family], "times": -1}]),
    }


def _ended() -> dict[str, Case]:
    hang = [{"delay": 900, "text": "Too late."}]
    cut_short = [{"text": "I begin", "stall": 900}]
    tool = [{"say": "I start.", "shell": "touch started; sleep 900"}, DONE]
    return {
        "hang_int": Case(hang, signal="INT", when="request"),
        "hang_term": Case(hang, signal="TERM", when="request"),
        "stall_int": Case(cut_short, signal="INT", when="request"),
        "stall_term": Case(cut_short, signal="TERM", when="request"),
        "tool_int": Case(tool, signal="INT", when="tool"),
        "tool_term": Case(tool, signal="TERM", when="tool"),
    }


def _refused(cli: str, repo: str) -> dict[str, Case]:
    write = {"say": "I write the file.", "write": {"path": f"{repo}/made.txt", "content": "from the model\n"}}
    found = {
        "no_key": Case([DONE], keys=False, limit=10, model=NO_KEY_MODEL.get(cli, ""), env=NO_KEY_ENV.get(cli, {})),
        "bad_flag": Case([DONE], more=("--no-such-flag",)),
        "no_network": Case([DONE], url="http://127.0.0.1:9", limit=12),
    }
    if cli in ("gemini", "qwen"):  # they don't even offer their tools then; a model may call one all the same
        given = {"file_path": f"{repo}/made.txt", "content": "from the model\n"}
        calls: list[Json] = [{"tool": "write_file", "input": given}, {"text": "I may not."}]
        found["denied_call"] = Case(calls, skip_permissions=False)
    if cli == "droid":  # what is of low risk it does anyhow
        given = {"command": "git push --force", "summary": "x", "riskLevelReason": "x", "riskLevel": "high"}
        found["denied_call"] = Case([{"tool": "Execute", "input": given}, DONE], skip_permissions=False)
    if cli in SKIP_FLAG:
        found["denied"] = Case([write, {"shell": "echo hi > shell.txt"}, DONE], skip_permissions=False)
    return found


OAUTH = {"ANTHROPIC_API_KEY": "", "CLAUDE_CODE_OAUTH_TOKEN": "no-real-token"}


def _unified(status: str, claim: str, reset: int, used: str) -> Json:
    prefix, window = "anthropic-ratelimit-unified", {"five_hour": "5h", "seven_day": "7d"}[claim]
    return {
        f"{prefix}-status": status,
        f"{prefix}-representative-claim": claim,
        f"{prefix}-reset": reset,
        f"{prefix}-{window}-status": status,
        f"{prefix}-{window}-reset": reset,
        f"{prefix}-{window}-utilization": used,
        f"{prefix}-overage-status": "rejected",
        f"{prefix}-overage-disabled-reason": "org_level_disabled",
    }


def _claude_limit(claim: str, ahead: int) -> Callable[[int], Case]:
    def make(now: int) -> Case:
        headers = _unified("rejected", claim, now + ahead, "1.0")
        turn = {"error": 429, "message": "This request would exceed your account's rate limit.", "headers": headers}
        return Case([{**turn, "times": -1}], env=OAUTH, reset_in=ahead)

    return make


def _claude_warning(now: int) -> Case:
    headers = _unified("allowed_warning", "five_hour", now + FIVE_HOURS, "0.92")
    return Case([{"text": "Nearly used up.", "headers": headers}], env=OAUTH, reset_in=FIVE_HOURS)


def _claude_budget(now: int) -> Case:
    return Case([{"shell": "echo hi"}, DONE], more=("--max-budget-usd", "0.001"))


def _codex_limit(ahead: int) -> Callable[[int], Case]:
    def make(now: int) -> Case:
        said = {"type": "usage_limit_reached", "message": "The usage limit has been reached", "plan_type": "plus"}
        body = {"error": {**said, "resets_at": now + ahead, "resets_in_seconds": ahead}}
        return Case([{"error": 429, "body": body, "times": -1}], reset_in=ahead)

    return make


def _codex_not_logged_in(now: int) -> Case:
    """What its own provider answers when there is neither a login nor a key."""
    files = {".codex/config.toml": 'openai_base_url = "{url}/v1"\n'}
    turn = {"error": 401, "message": "Missing bearer or basic authentication in header", "times": -1}
    return Case([turn], files=files, keys=False, limit=60)


def _droid_not_logged_in(now: int) -> Case:
    """Without a custom model it needs the login of its vendor."""
    return Case([DONE], files={".factory/settings.json": "{}"}, keys=False, model="claude-sonnet-4-5-20250929")


def _codex_older(now: int) -> Case:
    return Case([{"say": "I look.", "shell": "echo hi > shell.txt"}, DONE], model="gpt-5")


def _opencode_overflow_once(now: int) -> Case:
    """Too full a context that it sums up, and then continues with."""
    return Case([OVERFLOW["anthropic"], {"shell": "echo hi > shell.txt"}, DONE])


def _gemini_daily(now: int) -> Case:
    violation = {
        "quotaMetric": "generativelanguage.googleapis.com/generate_content_free_tier_requests",
        "quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier",
        "quotaValue": "250",
    }
    failure = {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [violation]}
    return _gemini_quota(QUOTA, [failure])


def _gemini_wait(now: int) -> Case:
    why = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "QUOTA_EXHAUSTED"}
    wait = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "5400s"}
    said = "You have exhausted your capacity on this model. Your quota will reset after 1h30m0s."
    details = [{**why, "domain": "cloudcode-pa.googleapis.com"}, wait]
    return _gemini_quota(said, details)._replace(reset_in=5400)


def _gemini_quota(said: str, details: list[Json]) -> Case:
    error = {"code": 429, "message": said, "status": "RESOURCE_EXHAUSTED", "details": details}
    return Case([{"error": 429, "body": {"error": error}, "times": -1}])


SPECIAL: dict[str, dict[str, Callable[[int], Case]]] = {
    "claude": {
        "usage_limit": _claude_limit("five_hour", FIVE_HOURS),
        "usage_limit_weekly": _claude_limit("seven_day", THREE_DAYS),
        "usage_warning": _claude_warning,
        "budget": _claude_budget,
    },
    "codex": {
        "usage_limit": _codex_limit(FIVE_HOURS),
        "usage_limit_weekly": _codex_limit(THREE_DAYS),
        "older_model": _codex_older,
        "not_logged_in": _codex_not_logged_in,
    },
    "droid": {"not_logged_in": _droid_not_logged_in},
    "opencode": {"overflow_once": _opencode_overflow_once},
    "gemini": {"usage_limit": _gemini_daily, "usage_limit_wait": _gemini_wait},
}
# Seconds until a CLI has given up by itself, where that takes long but comes; "" is for its other cases.
_ENDS = ("success", "promise", "error_midway", "denied", "auth", "payment", "context_overflow", "unknown_model")
PATIENCE: dict[str, dict[str, float]] = {
    **{cli: dict.fromkeys(_ENDS, 120) for cli in NEWER},
    "nanocoder": {"": 60},
    "codex": {"server_error": 60, "overloaded": 60, "auth": 40, "forbidden": 40},
    "gemini": {"rate_limit": 300},
    "opencode": {"rate_limit": 150, "server_error": 150, "": 45},
    "copilot": {"rate_limit": 120, "no_network": 90},
    "qwen": {"server_error": 120},
    "aider": {"": 150},
    "pi": {"rate_limit": 60, "server_error": 60, "overloaded": 60, "no_credit": 60, "no_network": 60},
    "droid": {"rate_limit": 120},
}
