"""Runs git with fixed settings: no prompts, no signing, no localized output, and hooks only on request."""

import os
from collections.abc import Mapping, Sequence

from rooda.base import files
from rooda.base.signing import PRIVATE
from rooda.git import programs
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
    "submodule.recurse=false",
    "diff.ignoreSubmodules=dirty",  # otherwise git runs in submodules, with their settings
    "protocol.ext.allow=never",
    "safe.bareRepository=explicit",
)
LONGEST_ERROR = 500  # characters of what a remote says about a refused push
_OF_PUSH = ("To ", "hint:", "error: failed to push some refs")  # lines that don't say why a push failed
ENVIRONMENT = {
    "LC_ALL": "C",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_EDITOR": "true",
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_ADVICE": "0",
    "GIT_ALLOW_PROTOCOL": "none",  # otherwise git may start any program to fetch a partial clone's missing objects
}
PATHSPECS = (
    "GIT_GLOB_PATHSPECS",
    "GIT_NOGLOB_PATHSPECS",
    "GIT_ICASE_PATHSPECS",
)  # they conflict with literal pathspecs
HOOK_VARIABLES = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR")
DEFAULT_IDENTITY = {"GIT_AUTHOR_NAME": "rooda", "GIT_AUTHOR_EMAIL": "rooda@localhost"}
DEFAULT_IDENTITY |= {key.replace("AUTHOR", "COMMITTER"): value for key, value in DEFAULT_IDENTITY.items()}
SHOWN = 5  # paths in a warning
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
    protocols: str = "",
    objects: str = "",
    kept: Sequence[int] = (),
    quiet: float = 0.0,
) -> Captured:
    """Run a git command in `cwd`. The exit code is 127 if git is missing.

    `index`: another index file to use. `protocols`: those that git may use to fetch and push, such as "file"; none by
    default. `objects`: the folder in which git reads and writes objects, if it is not the repository's own. `kept`:
    descriptors that git keeps open. `quiet`: seconds without output after which git is ended.
    Raises Interrupted at the user's second signal; with `hooks`, which may take any time, at the first.
    """
    inherited = os.environ if env is None else env
    removed = (*HOOK_VARIABLES, *PRIVATE) if hooks else (*HOOK_VARIABLES, *PRIVATE, *PATHSPECS)
    used = {key: value for key, value in inherited.items() if key not in removed}
    used |= {"GIT_TERMINAL_PROMPT": "0"} if hooks else ENVIRONMENT  # hooks get the user's locale and path rules
    if protocols:
        used["GIT_ALLOW_PROTOCOL"] = protocols
    if index:
        used["GIT_INDEX_FILE"] = index
    if objects:
        used["GIT_OBJECT_DIRECTORY"] = objects
    if not literal:
        del used["GIT_LITERAL_PATHSPECS"]
    unhooked = [] if hooks else ["-c", f"core.hooksPath={os.devnull}"]
    words, variables = programs.arguments(programs.of(cwd, args, used), used)
    argv = ["git", *_OPTIONS, *unhooked, *words, *args]
    used |= variables
    return capture(argv, stdin=stdin, env=used, cwd=cwd, timeout=timeout, brief=not hooks, kept=kept, quiet=quiet)


def warning(cwd: str) -> str:
    """Return a warning about filters that aren't run because the repository itself defines them; "" if none."""
    if not (filters := programs.of(cwd, (), os.environ).filters):
        return ""
    listed = run(["ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd).out
    said = files.to_text(run(["check-attr", "-z", "--stdin", "filter"], cwd, stdin=listed).out).split("\0")
    found = {path: name for path, name in zip(said[::3], said[2::3], strict=False) if name in filters}
    if not found:
        return ""
    more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    names = ", ".join(sorted({*found.values()}))
    return (
        f"git filters that the repository itself defines are not run ({names}); the files that "
        f"they cover are saved and restored unchanged: {', '.join(sorted(found)[:SHOWN])}{more}. Filters in your own "
        "settings (git config --global) are run."
    )


def with_identity(cwd: str, env: Mapping[str, str]) -> dict[str, str]:
    """Return the environment with a default author and committer if the user has configured none."""
    known = run(["var", "GIT_COMMITTER_IDENT"], cwd, env=env).code == 0
    return {**env} if known else {**DEFAULT_IDENTITY, **env}


def first_commit(folder: str, subject: str, env: Mapping[str, str]) -> tuple[str, str]:
    """Create a repository with everything committed; return the failed git command and its error, if any."""
    begin = ["-c", "init.defaultBranch=main", "init", "-q", "--template="]
    for word, args in (("init", begin), ("add", ["add", "-A"]), ("commit", ["commit", "-q", "-m", subject])):
        done = run(args, folder, env=env)
        if done.code:
            return word, error_text(done)
    return "", ""


def error_text(done: Captured) -> str:
    """Return git's error message as one line."""
    rows = [row.strip() for row in done.err.decode("utf-8", "replace").splitlines() if row.strip()]
    fatal = [row for row in rows if row.startswith(("fatal:", "error:"))]
    return (fatal or rows or [f"git exit {done.code}"])[-1]


def push_error(done: Captured) -> str:
    """Return why a push failed, as one line: the ref that was rejected, and what the remote or a hook said about it."""
    rows = [row.strip() for row in done.err.decode("utf-8", "replace").splitlines()]
    rejected = [row.removeprefix("!").strip() for row in rows if "rejected]" in row]
    others = [row for row in rows if "rejected]" not in row and not row.startswith(_OF_PUSH)]
    said = [row.removeprefix("remote:").strip() for row in others]
    shown = ": ".join(filter(None, [" ".join(rejected[:1]), " ".join(filter(None, said))])) or error_text(done)
    return " ".join("".join(sign if sign.isprintable() else " " for sign in shown).split())[:LONGEST_ERROR]
