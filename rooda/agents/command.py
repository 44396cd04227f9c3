"""Builds the command line and environment of an agent. Placeholders are filled per word, so quoting can't break."""

import os
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from functools import lru_cache

from rooda.agents.records import Agent
from rooda.base.signing import PRIVATE

_split = lru_cache(16)(shlex.split)  # cached: every call has the same command
_PLACEHOLDER = re.compile(r"\{(model|prompt|python|report|session)\}")
_OF_A_CALL = ("{report}", "{session}")


def argv(agent: Agent, prompt: str | None = None, transcript: str = "") -> list[str]:
    """Return the agent's command line with its placeholders filled in.

    `prompt`: the text or path of the prompt, for {prompt}; None if the prompt is sent on stdin. `transcript`: the path
    of the call's output, from which {report} and {session} are derived; without it, they are not filled in.
    """
    fillings = {"model": agent.model or None, "prompt": prompt, "python": sys.executable}
    fillings |= {"report": "{report}", "session": "{session}"} if not transcript else _of_call(transcript)
    words: list[str] = []
    for word in _split(agent.command):
        if not words:  # the program: a placeholder without a value stays, so that it is reported missing
            words.append(_PLACEHOLDER.sub(lambda found: fillings[found[1]] or found[0], word))
        elif any(fillings[name] is None for name in _PLACEHOLDER.findall(word)):
            _drop_option(words, word)
        else:
            words.append(_PLACEHOLDER.sub(lambda found: fillings[found[1]] or "", word))
    if prompt is not None and "{prompt}" not in agent.command:
        words.append(prompt)
    return words + _budget_option(agent)


def _of_call(transcript: str) -> dict[str, str | None]:
    return {"report": report_path(transcript), "session": session_id(transcript)}


def report_path(transcript: str) -> str:
    """Return the path at which a CLI whose command has {report} reports a call: a file or a folder."""
    return f"{transcript.removesuffix('.out')}.report"


def session_id(transcript: str) -> str:
    """Return the ID of a call's session, a UUID, for CLIs that let rooda choose it with {session}."""
    import uuid  # few agents need it

    return str(uuid.uuid5(uuid.NAMESPACE_URL, transcript))


def env_of_call(agent: Agent, transcript: str) -> Mapping[str, str]:
    """Return the agent's own variables, with {report} and {session} filled in."""
    if not any(mark in value for value in agent.env.values() for mark in _OF_A_CALL):
        return agent.env
    filled = {"{report}": report_path(transcript), "{session}": session_id(transcript)}
    return {
        key: re.sub(r"\{(?:report|session)\}", lambda found: filled[found[0]], value)
        for key, value in agent.env.items()
    }


def _budget_option(agent: Agent) -> list[str]:
    """Return the option for the CLI's own cost limit; none if the CLI or the call has no such limit."""
    if not agent.budget or agent.cap <= 0:
        return []
    dollars = f"{agent.cap:.4f}".rstrip("0").rstrip(".")
    return [word.replace("{budget}", dollars) for word in _split(agent.budget)]


def describe(agent: Agent) -> str:
    """Return the command line for display; {prompt} is not filled in."""
    if not _PLACEHOLDER.search(agent.command) and agent.prompt == "stdin" and not _budget_option(agent):
        return agent.command
    words = argv(agent, "{prompt}" if agent.prompt != "stdin" else None)
    return " ".join(word if word in ("{prompt}", *_OF_A_CALL) else shlex.quote(word) for word in words)


def _drop_option(words: list[str], word: str) -> None:
    """Remove the last of `words` if it is an option and `word`, which is left out, would be its value."""
    if not word.startswith("-") and len(words) > 1 and words[-1].startswith("-") and words[-1].strip("-"):
        words.pop()


def has_option(argv: Sequence[str], word: str) -> bool:
    """True if the command line has this option, as `OPTION` or `OPTION=…`."""
    return any(each == word or each.startswith(f"{word}=") for each in argv)


def option_value(argv: Sequence[str], option: str) -> str:
    """Return an option's value, which is the next word or the part after `=`; "" if there is none."""
    for place, word in enumerate(argv):
        if word == option:
            return argv[place + 1] if place + 1 < len(argv) else ""
        if word.startswith(f"{option}="):
            return word.partition("=")[2]
    return ""


# The environment of agents and gates. An agent CLI sets these for its children; an agent that inherits them believes
# that it is nested.
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
IN_TASK = "ROODA_MAY_ASK"  # set by the scheduler of `rooda tasks run`: the loop works for a task, and may ask
IN_LEG = "ROODA_LEG"  # the socket of the worker of the fleet that started this loop
HIDDEN = "ROODA_HIDDEN"  # names of further variables, separated by commas, that agents and gates must not get
_OURS = ("ROODA_CALL", "ROODA_RUN", "ROODA_ITERATION", "ROODA_LOOP", "ROODA_PROCEDURE", "ROODA_MODEL")


def base_environment(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the environment for agents and gates.

    Leaves out the variables that ROODA_HIDDEN names, those of an enclosing agent, an enclosing rooda run or the service
    manager, and those with rooda's key and trust.
    """
    from rooda.processes.guardian import MANAGER_VARIABLES

    misleading = {*NESTING, *_OURS, *MANAGER_VARIABLES, *PRIVATE, IN_TASK, IN_LEG}
    misleading |= {HIDDEN, *environ.get(HIDDEN, "").split(",")}
    return {key: value for key, value in environ.items() if key not in misleading}


def without_denied(environ: Mapping[str, str], denied: Sequence[str]) -> dict[str, str]:
    """Return the environment without the denied variables; rooda's own variables are always kept.

    In `denied`, `*` matches anything.
    """
    import re

    patterns = [re.compile(".*".join(map(re.escape, name.split("*")))) for name in denied]
    return {
        key: value
        for key, value in environ.items()
        if key in _OURS or not any(pattern.fullmatch(key) for pattern in patterns)
    }
