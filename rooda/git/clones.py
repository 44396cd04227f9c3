"""Makes clones that borrow the objects of a repository, in which an agent can harm nothing of it.

A clone has no hooks, stash or settings of its repository, and it can't push. `rooda-clone.json` in its git folder,
signed by this user, names the repository (the lender) and the ref under which the lender keeps the clone's work.
"""

import os
from json import dumps
from typing import NamedTuple

from rooda.base import files, json, signing
from rooda.errors import UsageProblem
from rooda.git import command
from rooda.git.repository import Repo, find

MARK = "rooda-clone.json"
NO_PUSH = "no-push://rooda-tasks"
KEPT = ("user.", "core.autocrlf", "core.eol", "core.ignorecase", "core.filemode", "lfs.")  # settings of the lender
_FILE = "file"  # the only protocol between clone and lender


class Loan(NamedTuple):
    """What a clone's mark says."""

    lender: str  # the top of the repository's work tree
    common: str  # the repository's git folder
    ref: str  # where the lender keeps the clone's HEAD


def make(lender: Repo, folder: str, branch: str, commit: str, loan: Loan) -> None:
    """Create a clone in `folder`, which must not exist, with `branch` checked out at `commit`.

    Raises UsageProblem if git fails.
    """
    files.make_folder(os.path.dirname(folder))
    form = lender.text("rev-parse", "--show-object-format")
    _git(os.path.dirname(folder), "init", "-q", "--template=", f"--object-format={form}", "-b", branch, folder)
    inner = os.path.join(folder, ".git")
    files.make_folder(os.path.join(inner, "objects", "info"))
    objects = os.path.join(lender.common, "objects")
    files.write(os.path.join(inner, "objects", "info", "alternates"), files.to_bytes(f"{objects}\n"))
    if os.path.exists(shallow := os.path.join(lender.common, "shallow")):
        files.copy(shallow, os.path.join(inner, "shallow"))
    _copy_settings(lender, folder)
    refs = "".join(f"create {row}\n" for row in _shared_refs(lender))
    _git(folder, "update-ref", "--stdin", stdin=files.to_bytes(f"{refs}create refs/heads/{branch} {commit}\n"))
    _git(folder, "reset", "-q", "--hard")
    mark(folder, loan)


def mark(folder: str, loan: Loan) -> None:
    """Sign that rooda made this clone."""
    record = dumps(loan._asdict()).encode()
    files.replace(os.path.join(folder, ".git", MARK), signing.signed(_purpose(folder), record) + b"\n")


def loan_of(top: str) -> Loan | None:
    """Return what the repository `top` borrows from; None if rooda did not make it as a clone."""
    try:
        data = files.read_ours(os.path.join(top, ".git", MARK))
        if not signing.is_signed(_purpose(top), data):
            return None
        return json.decode(Loan, json.parse_object(data))
    except (OSError, ValueError):
        return None


def publish(loan: Loan, folder: str, commit: str) -> str:
    """Bring a commit of the clone into the lender, as `loan.ref`; return git's error, "" if there was none."""
    source = os.path.join(folder, ".git")
    words = ("fetch", "-q", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance", source)
    done = command.run([f"--git-dir={loan.common}", *words, f"+{commit}:{loan.ref}"], loan.lender, protocols=_FILE)
    return command.error_text(done) if done.code else ""


def bring(folder: str, loan: Loan, commit: str, ref: str) -> None:
    """Set a ref of the clone to a commit of the lender, whose objects the clone borrows."""
    _git(folder, "update-ref", ref, commit)


def left_alone(folder: str, loan: Loan) -> str:
    """Return what only the clone has: uncommitted files, or commits that the lender lacks; "" if nothing."""
    repo = find(folder)
    if count := len(repo.lines("status", "--porcelain", "--untracked-files=all")):
        return f"{count} uncommitted file{'' if count == 1 else 's'}"
    tips = set(repo.lines("for-each-ref", "--format=%(objectname)", "refs/heads", "refs/stash"))
    tips.add(repo.text("rev-parse", "HEAD"))
    missing = [tip for tip in sorted(tips) if not _has(loan, tip)]
    return f"{len(missing)} branch{'' if len(missing) == 1 else 'es'} with unpublished commits" if missing else ""


def _has(loan: Loan, commit: str) -> bool:
    words = [f"--git-dir={loan.common}", "for-each-ref", "--count=1", f"--contains={commit}"]
    done = command.run(words, loan.lender)
    return done.code == 0 and bool(done.out.strip())


def _purpose(folder: str) -> str:
    return f"clone {os.path.realpath(folder)}"


def _copy_settings(lender: Repo, folder: str) -> None:
    """Copy the few local settings that decide how files look and who commits, the upstream's address, and excludes."""
    words = lender.run("config", "--local", "--null", "--list").out.split(b"\0")
    rows = [files.to_text(word).partition("\n")[::2] for word in words if word]
    for key, value in rows:
        is_module = key.startswith("submodule.") and key.endswith(".url")
        if key.startswith(KEPT) or is_module:
            _git(folder, "config", "--add", key, value)
    url = next((value for key, value in rows if key == "remote.origin.url"), "") or lender.top
    _git(folder, "config", "remote.origin.url", url)
    _git(folder, "config", "remote.origin.pushurl", NO_PUSH)
    _git(folder, "config", "remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*")
    _git(folder, "config", "gc.auto", "0")
    excludes = os.path.join(lender.common, "info", "exclude")
    if os.path.isfile(excludes):
        files.make_folder(os.path.join(folder, ".git", "info"))
        files.copy(excludes, os.path.join(folder, ".git", "info", "exclude"))


def _shared_refs(lender: Repo) -> list[str]:
    """Return name and commit of each tag and remote branch."""
    form = "--format=%(refname) %(objectname) %(symref)"
    rows = [row.split(" ") for row in lender.lines("for-each-ref", form, "refs/tags", "refs/remotes")]
    return [f"{name} {commit}" for name, commit, symref in rows if not symref]


def _git(folder: str, *args: str, stdin: bytes = b"") -> None:
    done = command.run([*args], folder, stdin=stdin, timeout=1800.0)
    if done.code:
        raise UsageProblem(f"The clone {folder} can't be made: git {args[0]}: {command.error_text(done)}")
