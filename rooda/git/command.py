"""Runs git with fixed settings: no prompts, no signing, no localized output, and hooks only on request."""

import os
from collections.abc import Mapping

from rooda.processes.capture import Captured, capture

SETTINGS = (
    "core.quotepath=false",
    "core.safecrlf=false",
    "core.fsmonitor=false",
    "commit.gpgsign=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "i18n.commitEncoding=UTF-8",
    "i18n.logOutputEncoding=UTF-8",
    "advice.addEmbeddedRepo=false",
    "log.showSignature=false",
)
ENVIRONMENT = {
    "LC_ALL": "C",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_EDITOR": "true",
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_ADVICE": "0",
}
PATHSPECS = (
    "GIT_GLOB_PATHSPECS",
    "GIT_NOGLOB_PATHSPECS",
    "GIT_ICASE_PATHSPECS",
)  # they conflict with literal pathspecs
HOOK_VARIABLES = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR")
DEFAULT_IDENTITY = {"GIT_AUTHOR_NAME": "rooda", "GIT_AUTHOR_EMAIL": "rooda@localhost"}
DEFAULT_IDENTITY |= {key.replace("AUTHOR", "COMMITTER"): value for key, value in DEFAULT_IDENTITY.items()}
_OPTIONS = [word for setting in SETTINGS for word in ("-c", setting)]


def run(
    args: list[str],
    cwd: str,
    *,
    stdin: bytes = b"",
    env: Mapping[str, str] | None = None,
    index: str = "",
    hooks: bool = False,
    literal: bool = True,
    timeout: float = 120.0,
) -> Captured:
    """Run one git command in `cwd`; exit code 127 if git is missing. `index` names another index file.

    Raises Interrupted at the user's second signal; with hooks, which may take any time, at the first.
    """
    inherited = os.environ if env is None else env
    removed = HOOK_VARIABLES if hooks else (*HOOK_VARIABLES, *PATHSPECS)
    used = {key: value for key, value in inherited.items() if key not in removed}
    used |= {"GIT_TERMINAL_PROMPT": "0"} if hooks else ENVIRONMENT  # hooks get the user's locale and path rules
    if index:
        used["GIT_INDEX_FILE"] = index
    if not literal:
        del used["GIT_LITERAL_PATHSPECS"]
    quiet = [] if hooks else ["-c", f"core.hooksPath={os.devnull}"]
    return capture(["git", *_OPTIONS, *quiet, *args], stdin=stdin, env=used, cwd=cwd, timeout=timeout, brief=not hooks)


def with_identity(cwd: str, env: Mapping[str, str]) -> dict[str, str]:
    """Add a default author and committer if the user has configured none."""
    known = run(["var", "GIT_COMMITTER_IDENT"], cwd, env=env).code == 0
    return {**env} if known else {**DEFAULT_IDENTITY, **env}


def first_commit(folder: str, subject: str, env: Mapping[str, str]) -> tuple[str, str]:
    """Make the folder a repository, everything committed. Returns the git command that failed and its error."""
    begin = ["-c", "init.defaultBranch=main", "init", "-q", "--template="]
    for word, args in (("init", begin), ("add", ["add", "-A"]), ("commit", ["commit", "-q", "-m", subject])):
        done = run(args, folder, env=env)
        if done.code:
            return word, error_text(done)
    return "", ""


def error_text(done: Captured) -> str:
    """git's error message, as one line."""
    rows = [row.strip() for row in done.err.decode("utf-8", "replace").splitlines() if row.strip()]
    fatal = [row for row in rows if row.startswith(("fatal:", "error:"))]
    return (fatal or rows or [f"git exit {done.code}"])[-1]
