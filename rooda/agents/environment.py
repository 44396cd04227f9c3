"""The environment that reaches agents and gates."""

import os
from collections.abc import Mapping, Sequence

from rooda.processes.guardian import MANAGER

# Set by an agent CLI for what runs inside it; inherited, they make a fresh agent believe that it is nested.
NESTING = frozenset(
    {
        "CLAUDECODE",
        "CLAUDE_CODE_ENTRYPOINT",
        "CLAUDE_CODE_SSE_PORT",
        "CLAUDE_CODE_SESSION_ID",
        "CODEX_SANDBOX",
        "CODEX_SANDBOX_NETWORK_DISABLED",
        "CODEX_THREAD_ID",
        "CURSOR_AGENT",
        "CURSOR_TRACE_ID",
        "GEMINI_CLI",
        "OPENCODE",
        "OPENCODE_PID",
        "QWEN_CODE",
        "COPILOT_CLI",
        "DROID_CLI",
        "KIRO_CLI",
        "AGENT_SESSION_ID",
    }
)
_OURS = ("ROODA_CALL", "ROODA_RUN", "ROODA_ITERATION", "ROODA_LOOP", "ROODA_PROCEDURE", "ROODA_MODEL")


def inherited(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Ours, without what would mislead: nesting marks, and the marks of a rooda that called us."""
    misleading = {*NESTING, *_OURS, *MANAGER}
    return {key: value for key, value in environ.items() if key not in misleading}


def without(environ: Mapping[str, str], denied: Sequence[str]) -> dict[str, str]:
    """What an agent is not to see is not there; `*` in a name stands for anything. Rooda's own marks stay."""
    import re

    patterns = [re.compile(".*".join(map(re.escape, name.split("*")))) for name in denied]
    return {
        key: value
        for key, value in environ.items()
        if key in _OURS or not any(pattern.fullmatch(key) for pattern in patterns)
    }
