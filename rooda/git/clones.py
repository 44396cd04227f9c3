"""Makes clones that borrow the objects of a repository; an agent in a clone can't damage the repository.

A clone gets no hooks or stash and few settings of its repository, and it can't push. `rooda-clone.json` in its git
folder, signed by this user, names the repository (the lender), and the lender's ref that keeps the clone's work.
"""

import os
from collections.abc import Sequence
from json import dumps
from typing import NamedTuple

from rooda.base import files, json, signing
from rooda.errors import UsageProblem
from rooda.git import command
from rooda.git.repository import Repo, find
from rooda.git.traces import CLONE_MARK

NO_PUSH = "no-push://rooda-tasks"
KEPT = ("user.", "core.autocrlf", "core.eol", "core.ignorecase", "core.filemode", "lfs.")  # the lender's, copied
PARTIAL = (".promisor", ".partialclonefilter")  # endings of the settings of a partial clone
_FILE = "file"  # the only protocol between clone and lender


class Loan(NamedTuple):
    """The mark of a clone: the repository whose objects it borrows, and the ref that keeps its work there."""

    lender: str  # the top of the repository's work tree
    common: str  # the repository's git folder
    ref: str  # the lender's ref for the clone's HEAD

    @property
    def snapshot(self) -> str:
        """The ref under which the lender keeps the clone's newest snapshot."""
        return self.ref.replace("refs/rooda/task/", "refs/rooda/task-snapshot/")


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
    _borrow_modules(lender, folder)
    mark(folder, loan)
    if problem := publish(loan, folder, commit):  # from now on no `gc` in the lender takes away what the clone borrows
        raise UsageProblem(f"The clone's commit can't be saved as {loan.ref} in {loan.lender}: {problem}")


def mark(folder: str, loan: Loan) -> None:
    """Write the signed `rooda-clone.json`, which proves that rooda made this clone."""
    record = dumps(loan._asdict()).encode()
    files.replace(os.path.join(folder, ".git", CLONE_MARK), signing.signed(_purpose(folder), record) + b"\n")


def loan_of(top: str) -> Loan | None:
    """Read the mark of the clone `top`; None if `top` is not a clone that rooda made."""
    try:
        data = files.read_ours(os.path.join(top, ".git", CLONE_MARK))
        if not signing.is_signed(_purpose(top), data):
            return None
        return json.decode(Loan, json.parse_object(data))
    except (OSError, ValueError):
        return None


def publish(loan: Loan, folder: str, commit: str, snapshot: str = "") -> str:
    """Fetch a commit of the clone, and a snapshot if given, into the lender; return git's error, "" if there is none.

    The HEADs of submodules are fetched, too, into the lender's own copies of the submodules, under the same ref.
    """
    refs = [f"+{commit}:{loan.ref}", *([f"+{snapshot}:{loan.snapshot}"] if snapshot else [])]
    if problem := _fetch(loan, loan.common, os.path.join(folder, ".git"), refs):
        return problem
    for name in _modules(os.path.join(folder, ".git")):
        own, theirs = (os.path.join(each, "modules", name) for each in (os.path.join(folder, ".git"), loan.common))
        if not os.path.isdir(theirs):
            continue
        head = command.run([f"--git-dir={own}", "rev-parse", "--verify", "-q", "HEAD"], loan.lender)
        if head.code == 0 and (problem := _fetch(loan, theirs, own, [f"+HEAD:{loan.ref}"])):
            return f"submodule {name}: {problem}"
    return ""


def _fetch(loan: Loan, into: str, source: str, refs: Sequence[str]) -> str:
    words = ("fetch", "-q", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance", "--no-recurse-submodules")
    done = command.run([f"--git-dir={into}", *words, source, *refs], loan.lender, protocols=_FILE)
    return command.error_text(done) if done.code else ""


def _modules(inner: str) -> list[str]:
    """Return the names of the submodules that have a repository below a git folder, without nested submodules."""
    root = os.path.join(inner, "modules")
    if not os.path.isdir(root):
        return []
    return sorted(
        os.path.relpath(folder, root)
        for folder, _, names in os.walk(root)
        if "HEAD" in names and "modules" not in os.path.relpath(folder, root).split(os.sep)
    )


def _borrow_modules(lender: Repo, folder: str) -> None:
    """Check out the submodules that the lender has; each borrows objects from the lender's copy."""
    names = _modules(lender.common)
    listed = find(folder).run("config", "-f", ".gitmodules", "--null", "--get-regexp", r"^submodule\..*\.path$").out
    for row in listed.split(b"\0") if names else ():
        key, _, path = files.to_text(row).partition("\n")
        name = key.removeprefix("submodule.").removesuffix(".path")
        if name not in names:
            continue
        theirs = os.path.join(lender.common, "modules", name)
        url = _value(folder, f"submodule.{name}.url") or _value(theirs, "remote.origin.url")
        _git(folder, "config", f"submodule.{name}.url", theirs)
        update = ("submodule", "-q", "update", "--init", "--reference", theirs, "--", path)
        _git(folder, "-c", "init.templateDir=", "-c", "protocol.file.allow=always", *update, protocols=_FILE)
        _git(folder, "config", f"submodule.{name}.url", url or theirs)
        own = os.path.join(folder, ".git", "modules", name)
        _git(own, f"--git-dir={own}", "config", "remote.origin.url", url or theirs)
        _git(own, f"--git-dir={own}", "config", "remote.origin.pushurl", NO_PUSH)


def _value(folder: str, key: str) -> str:
    where = [] if os.path.isdir(os.path.join(folder, ".git")) else [f"--git-dir={folder}"]
    return files.to_text(command.run([*where, "config", "--local", "--get", key], folder).out).strip()


def doubts(lender: Repo) -> list[str]:
    """Return warnings about a shallow or partial repository, since its clones lack the same history or files."""
    found = []
    if os.path.exists(os.path.join(lender.common, "shallow")):
        found.append("The repository is shallow; the clones of the tasks have the same short history.")
    if lender.run("config", "--local", "--get-regexp", r"^remote\..*\.promisor$").code == 0:
        found.append("The repository is a partial clone; the clones of the tasks lack the same files.")
    return found


def bring(folder: str, loan: Loan, commit: str, ref: str) -> None:
    """Set a ref of the clone to a commit of the lender, whose objects the clone borrows."""
    _git(folder, "update-ref", ref, commit)


def left_alone(folder: str, loan: Loan) -> str:
    """Describe what only the clone has, such as uncommitted files or commits that the lender lacks; "" if nothing."""
    repo = find(folder)
    if count := len(repo.lines("status", "--porcelain", "--untracked-files=all")):
        return f"{count} uncommitted file{'' if count == 1 else 's'}"
    tips = set(repo.lines("for-each-ref", "--format=%(objectname)", "refs/heads", "refs/stash"))
    tips.add(repo.text("rev-parse", "HEAD"))
    missing = [tip for tip in sorted(tips) if not _has(loan.common, loan, tip)]
    if missing:
        return f"{len(missing)} branch{'' if len(missing) == 1 else 'es'} with unpublished commits"
    for name in _modules(repo.folder):
        own = os.path.join(repo.folder, "modules", name)
        words = [f"--git-dir={own}", "for-each-ref", "--format=%(objectname)", "refs/heads", "refs/stash"]
        inner = {*files.to_text(command.run(words, folder).out).split()}
        inner |= {*files.to_text(command.run([f"--git-dir={own}", "rev-parse", "HEAD"], folder).out).split()}
        if not all(_has(os.path.join(loan.common, "modules", name), loan, tip) for tip in inner):
            return f"commits of the submodule {name}"
    return ""


def _has(common: str, loan: Loan, commit: str) -> bool:
    words = [f"--git-dir={common}", "for-each-ref", "--count=1", f"--contains={commit}"]
    done = command.run(words, loan.lender)
    return done.code == 0 and bool(done.out.strip())


def _purpose(folder: str) -> str:
    return f"clone {os.path.realpath(folder)}"


def _copy_settings(lender: Repo, folder: str) -> None:
    """Copy local settings about line endings, file modes and the author; also the URL of origin, and info/exclude."""
    words = lender.run("config", "--local", "--null", "--list").out.split(b"\0")
    rows = [files.to_text(word).partition("\n")[::2] for word in words if word]
    for key, value in rows:
        is_module = key.startswith("submodule.") and key.endswith(".url")
        if key.startswith(KEPT) or is_module or (key.startswith("remote.origin.") and key.endswith(PARTIAL)):
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


def _git(folder: str, *args: str, stdin: bytes = b"", protocols: str = "") -> None:
    done = command.run([*args], folder, stdin=stdin, timeout=1800.0, protocols=protocols)
    if done.code:
        word = next(each for each in args if not each.startswith("-") and "=" not in each)
        raise UsageProblem(f"The clone {folder} can't be made: git {word}: {command.error_text(done)}")
