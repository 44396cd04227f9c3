"""Situations of whole runs, for each CLI: what the model server answers, and what `rooda build` has to make of it."""

import time
from collections.abc import Mapping
from typing import Any

from rooda.agentkit.server.scenario import Json

from .builds import Case
from .cases import DONE, FAMILY, FIVE_HOURS, SPECIAL, THREE_DAYS
from .errors import OPENAI_CODE, OVERFLOW

SUCCESS = {"text": "The work is done.\n\n<promise>SUCCESS</promise>"}
IDLE = {"idle_timeout": 3}
SLOW = ("opencode",)  # computes a little all the time, too much for an idle timeout of seconds
NO_RETRY = {"retry-after": "3600"}


def cases(cli: str, work: str) -> dict[str, Case]:
    """By name; `work` is the workspace."""
    found = {**_errors(FAMILY[cli]), **_limits(cli), **_ended(work), **_done(cli, work)}
    for name, changes in DIFFERENT.get(cli, {}).items():
        if changes is None:
            found.pop(name, None)
        else:
            found[name] = found[name]._replace(**changes)
    if cli in SLOW:
        for name, case in found.items():
            settings = {"iteration_timeout" if key == "idle_timeout" else key: v for key, v in case.settings.items()}
            ended = "timeout" if case.ended == "idle" else case.ended
            found[name] = case._replace(settings=settings, ended=ended)
    return found


def _write(work: str) -> Json:
    return {"say": "I write the file.", "write": {"path": f"{work}/made.txt", "content": "from the model\n"}}


def _always(status: int, **more: Any) -> list[Json]:
    return [{"error": status, "times": -1, **more}]


def _errors(family: str) -> dict[str, Case]:
    overloaded = 529 if family == "anthropic" else 503
    refused = _always(401, message="invalid x-api-key", **OPENAI_CODE.get((family, "auth"), {}))
    busy, waits = "Too many requests.", "consecutive failures: 1/1"
    return {
        "auth": Case(refused, "auth", says="ERROR: Aborting: auth: "),
        "rate_limit": Case(_always(429, message=busy), "rate_limit", says=waits, retryable=True, settings=IDLE),
        "rate_limit_wait": Case(
            _always(429, message=busy, headers=NO_RETRY), "rate_limit", says=waits, retryable=True, settings=IDLE
        ),
        "server_error": Case(
            _always(500, message="Internal error."), "agent_error", says=waits, retryable=True, settings=IDLE
        ),
        "overloaded": Case(
            _always(overloaded, message="Overloaded"), "rate_limit", says=waits, retryable=True, settings=IDLE
        ),
        "overflow": Case(
            [{**OVERFLOW[family], "times": -1}], "context_overflow", says="ERROR: Aborting: context_overflow: "
        ),
        "cut": Case(
            [{"text": "Lost.", "drop": True, "times": -1}], "agent_error", says=waits, retryable=True, settings=IDLE
        ),
        "hang": Case([{"delay": 900, "text": "Late."}], "timeout", says="timed out after 3s", ended="idle",
                     routed=False, settings=IDLE),
    }  # fmt: skip


def _limits(cli: str) -> dict[str, Case]:
    """A usage limit: rooda waits for its end, until a signal stops it."""
    made = {name: make(int(time.time())) for name, make in SPECIAL.get(cli, {}).items() if name in RESETS}
    return {
        name: Case(
            case.turns, "usage_limit", 143, "before the next call (until ", when="resting", signal="TERM",
            settings=IDLE, env=dict(case.env), reset_in=RESETS[name],
        )
        for name, case in made.items()
    }  # fmt: skip


RESETS = {"usage_limit": FIVE_HOURS, "usage_limit_weekly": THREE_DAYS, "usage_limit_wait": 5400}


def _ended(work: str) -> dict[str, Case]:
    tool = [_write(work), {"shell": "touch started; sleep 900"}, DONE]
    stopped = Case(tool, "killed", ended="interrupted", says="Interrupted. State saved.", answers=2, routed=False,
                   edits=True, when="tool")  # fmt: skip
    killed = stopped._replace(outcome="agent_error", ended="exit", says="AI CLI failed (exit 137)", signal="KILL")
    return {
        "tool_int": stopped._replace(signal="INT", code=130),
        "tool_term": stopped._replace(signal="TERM", code=143),
        "tool_kill": killed,
    }


def _done(cli: str, work: str) -> dict[str, Case]:
    work_done = [_write(work), SUCCESS]
    given = {"file_path": f"{work}/made.txt", "content": "from the model\n"}
    denied = [{"tool": "write_file", "input": given}, DONE] if cli in ("gemini", "qwen") else [_write(work), DONE]
    first = _FIRST_FAILS.get(FAMILY[cli], {"error": 429, "headers": NO_RETRY})
    return {
        "success": Case(work_done, "ok", 0, "AI signaled SUCCESS: completed after 1 iterations", answers=2, edits=True),
        "revoked": Case([_write(work), *_always(401, message="The key was revoked.")], "auth",
                        says="ERROR: Aborting: auth: ", answers=1, edits=True),
        "denied": Case(denied, "permission_denied", says="permission_denied: ", answers=2, unsafe=False),
        "second_try": Case([first, *work_done], "ok", 0, "completed after 2 iterations", answers=2, edits=True,
                           calls=2, settings={"failure_threshold": 2}),
    }  # fmt: skip


# What ends a first call at once, by itself, and may go well a little later.
_FIRST_FAILS: Mapping[str, Json] = {"responses": {"error": 429, "message": "Busy."},
                                    "gemini": {"text": "Lost.", "drop": True}}  # fmt: skip
_WAITING = {"ended": "idle", "routed": False}
_SILENT = {"outcome": "timeout", "ended": "idle", "retryable": False}  # it waits, and doesn't say for what
_UNNAMED = {**_WAITING, "outcome": "timeout"}  # it waits, and what it says is no limit
_ANY = {"source": "any"}
_HALF = {"answers": 1}  # it tells what a step used when its tools have run
_TOOLS = ("tool_int", "tool_term", "tool_kill")
_BUSY = ("rate_limit", "rate_limit_wait", "server_error", "overloaded")
DIFFERENT: dict[str, dict[str, dict[str, Any] | None]] = {
    "codex": {
        "rate_limit_wait": {"ended": "idle"},
        "server_error": {"outcome": "rate_limit"},  # it says "high demand", and no status
        "denied": {"outcome": "ok", "says": "Quality gates failed: made"},  # its stream says nothing of a refusal
    },
    "gemini": {
        **dict.fromkeys(_BUSY, _WAITING),
        "server_error": _UNNAMED,
        "usage_limit": {"reset_in": 0},  # nobody says when the day is over
        "usage_limit_wait": _WAITING,
    },
    "claude": {"cut": _ANY, "tool_kill": {"source": "computed"}},
    "opencode": {
        **dict.fromkeys((*_BUSY, "cut"), _SILENT),
        **dict.fromkeys((*_TOOLS, "denied"), _HALF),
        "overflow": _ANY,  # it is ended after some rounds
        "second_try": None,
    },
    "copilot": {
        **dict.fromkeys(("rate_limit", "overloaded"), _WAITING),
        "server_error": _UNNAMED,
        **dict.fromkeys(_TOOLS, _ANY),  # it tells its session at its end
    },
    "qwen": {**dict.fromkeys(_BUSY, _SILENT), "second_try": None},
    "droid": {
        **dict.fromkeys((*_BUSY, "cut", "hang", "second_try", "denied")),  # each takes half a minute, or can't be had
        "revoked": {"answers": 0},
        **dict.fromkeys(_TOOLS, _ANY),
    },
    "pi": {
        **dict.fromkeys(("rate_limit", "overloaded"), _WAITING),
        **dict.fromkeys(("server_error", "cut"), _UNNAMED),
        "rate_limit_wait": _SILENT,
        **dict.fromkeys(("denied", "second_try")),
    },
}
