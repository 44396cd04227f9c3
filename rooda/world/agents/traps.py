"""Command lines with which a CLI fails or does nothing, known before anything is paid for. Measured: docs/agents.md."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple


class Powerless(NamedTuple):
    """Without one of these words the CLI changes nothing, and exits with 0 all the same."""

    words: tuple[str, ...]
    what: str
    cure: str


_POWERLESS = {
    "claude": Powerless(
        ("--dangerously-skip-permissions", "--permission-mode", "--allowedTools", "--allowed-tools", "--tools"),
        "claude denies every tool that changes something",
        "--dangerously-skip-permissions, or --permission-mode acceptEdits",
    ),
    "codex": Powerless(
        ("--dangerously-bypass-approvals-and-sandbox", "--sandbox", "-s", "--approve-for-me", "--profile", "-p", "-c",
         "--config"),
        "codex runs in a read-only sandbox",
        "--dangerously-bypass-approvals-and-sandbox, or --sandbox workspace-write",
    ),
    "copilot": Powerless(
        ("--allow-all-tools", "--allow-all", "--yolo", "--allow-tool"),
        "copilot denies every tool",
        "--allow-all-tools",
    ),
    "gemini": Powerless(
        ("--yolo", "-y", "--approval-mode"),
        "gemini is not offered the tools that write files and run commands",
        "--yolo",
    ),
}  # fmt: skip


def refusal(program: str, argv: Sequence[str], env: Mapping[str, str], root: bool) -> tuple[str, str]:
    """What makes this start pointless, and what to do; ("", "") if nothing does."""
    if program == "claude" and root and _skips_permissions(argv) and env.get("IS_SANDBOX") != "1":
        return (
            "claude refuses to skip permissions as root; nothing was started",
            "In a container made for it, say so with IS_SANDBOX=1 in the environment. Else run rooda as another user,\n"
            "or give [agents.claude] a command with --permission-mode acceptEdits.",
        )
    return "", ""


def _skips_permissions(argv: Sequence[str]) -> bool:
    return "--dangerously-skip-permissions" in argv or _value(argv, "--permission-mode") == "bypassPermissions"


def warnings(program: str, argv: Sequence[str], env: Mapping[str, str]) -> list[str]:
    """What will probably make it fail or idle: settings of the CLI's own, which rooda does not read, may prevent it."""
    found = []
    powerless = _POWERLESS.get(program)
    if powerless and not any(_said(argv, word) for word in powerless.words):
        found.append(f"{powerless.what}, and exits with 0 all the same. Its command should have {powerless.cure}.")
    if program == "gemini" and not _said(argv, "--skip-trust") and env.get("GEMINI_CLI_TRUST_WORKSPACE") != "true":
        found.append("gemini ends with exit 55 in a folder it does not trust. Its command should have --skip-trust.")
    if program == "claude" and _value(argv, "--output-format") == "stream-json" and not _said(argv, "--verbose"):
        found.append("claude ends with exit 1 if --output-format stream-json stands without --verbose.")
    if program == "amp" and not env.get("AMP_API_KEY"):
        found.append("amp waits for ever where it is not logged in, and AMP_API_KEY is not set.")
    return found


def _said(argv: Sequence[str], word: str) -> bool:
    return any(each == word or each.startswith(f"{word}=") for each in argv)


def _value(argv: Sequence[str], option: str) -> str:
    """What follows the option, as its own word or after `=`."""
    for place, word in enumerate(argv):
        if word == option:
            return argv[place + 1] if place + 1 < len(argv) else ""
        if word.startswith(f"{option}="):
            return word.partition("=")[2]
    return ""
