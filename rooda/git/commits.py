"""Commits the changes of an iteration as the user's own `git commit` would: with hooks, on the current branch."""

import os
import re
from typing import NamedTuple

from rooda.base import files
from rooda.git import command
from rooda.git.repository import GIT_TIMEOUT, Repo, nul_terminated, read_head

SUBJECT = 72  # characters
BODY = 4_000  # characters
UNFINISHED = {  # operations, keyed by the file in the git folder that shows it
    "MERGE_HEAD": "a merge",
    "CHERRY_PICK_HEAD": "a cherry-pick",
    "REVERT_HEAD": "a revert",
    "rebase-merge": "a rebase",
    "rebase-apply": "a rebase",
    "BISECT_LOG": "a bisection",
}
_DECORATION = re.compile(r"^(?:[#>*\-\s]+|\d+\.\s+)|[*_`]{1,3}(?=\w)|(?<=\w)[*_`]{1,3}")


class Committed(NamedTuple):
    """The result of committing the changes of an iteration."""

    commit: str = ""  # "": nothing to commit, or refused
    refused: str = ""  # why git or a hook refused
    tree: str = ""  # the work tree whose changes are committed now
    detached: bool = False
    lost: bool = False  # the repository lacks the tree that the changes are compared with


def message(said: str, otherwise: str, run: str, iteration: int) -> str:
    """Build a commit message from `said`, the agent's final message, or else `otherwise`; add `run` and `iteration`."""
    rows = [row.rstrip() for row in said.strip().splitlines() if "<promise>" not in row]
    while rows and not _plain(rows[0]):
        rows.pop(0)
    subject = _plain(rows[0]) if rows else otherwise
    body = "\n".join(rows[1:]).strip()[:BODY]
    if len(subject) > SUBJECT:
        cut = subject[: SUBJECT - 1].rpartition(" ")[0] or subject[: SUBJECT - 1]
        subject, body = f"{cut}…", "\n".join(rows).strip()[:BODY]
    trailers = f"Rooda-Run: {run}\nRooda-Iteration: {iteration}\n"
    return "\n\n".join(part for part in (subject, body, trailers) if part)


def _plain(row: str) -> str:
    """Return a line of the agent's message without Markdown and control characters."""
    return " ".join(_DECORATION.sub("", "".join(sign if sign.isprintable() else " " for sign in row)).split())


def commit(repo: Repo, base: str, now: str, text: str) -> Committed:
    """Commit only the paths that changed from tree `base` to tree `now` and differ from HEAD."""
    if what := unfinished(repo):
        return Committed(refused=f"{what} is not finished")
    changed = _changed(repo, base, now)
    if changed is None:
        return Committed(tree=now, lost=True)
    paths = _to_commit(repo, changed)
    if not paths:
        return Committed(tree=now)
    before, used = read_head(repo), repo._replace(env=command.with_identity(repo.top, repo.env or os.environ))
    problem = _commit(used, paths, text)
    head = read_head(repo)
    if head.commit == before.commit:  # a failing post-commit hook does not undo the commit
        return Committed(refused=problem or "git made no commit")
    return Committed(head.commit, tree=now, detached=not head.branch)


def unfinished(repo: Repo) -> str:
    """Return the git operation that is in progress in the work tree, such as a merge; "" if none."""
    return next((what for name, what in UNFINISHED.items() if os.path.lexists(os.path.join(repo.folder, name))), "")


def _changed(repo: Repo, base: str, now: str) -> set[str] | None:
    """Return the paths that differ between two trees, except new nested repositories; None if `base` is missing."""
    if not base or repo.run("cat-file", "-e", base).code:
        return None
    words = repo.text("diff-tree", "-r", "-z", "--no-renames", "--raw", base, now).split("\0")
    rows = zip(words[::2], words[1::2], strict=False)
    return {path for facts, path in rows if not (facts.split(" ")[1] == "160000" and facts.endswith(" A"))}


def _to_commit(repo: Repo, changed: set[str]) -> list[str]:
    """Return the paths in `changed` that `git status` lists, without rooda's own files."""
    rows = repo.text("status", "--porcelain", "-z", "--untracked-files=all", "--no-renames").split("\0")
    found = {row[3:].rstrip("/") for row in rows if row}
    own = repo.inside(".rooda/")
    return sorted(path for path in found & changed if not path.startswith(own))


def _commit(repo: Repo, paths: list[str], text: str) -> str:
    """Add and commit only these paths; return why git or a hook refused, "" if neither did."""
    import tempfile

    with tempfile.TemporaryDirectory(prefix="rooda-") as folder:  # a list on stdin could be cut off
        listed = os.path.join(folder, "paths")
        files.write(listed, nul_terminated(f":(top,literal){path}" for path in paths))
        chosen = [f"--pathspec-from-file={listed}", "--pathspec-file-nul"]
        added = repo.run("--no-literal-pathspecs", "add", "-A", *chosen)
        if added.code:
            return command.error_text(added)
        words = ["commit", "-q", "--only", "--cleanup=verbatim", "--no-status", "-F", "-", *chosen]
        where = [f"--git-dir={repo.folder}", f"--work-tree={repo.top}"] if repo.separate else []
        done = command.run(
            [*where, *words], repo.top, stdin=files.to_bytes(text), env=repo.env, hooks=True, timeout=GIT_TIMEOUT
        )
    said = b"\n".join((done.err, done.out)).decode("utf-8", "replace").strip()
    return (said[-600:] or f"git exit {done.code}") if done.code else ""
