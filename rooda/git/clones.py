"""Makes clones that borrow the objects of a repository. An agent in a clone can't damage the repository.

A clone gets no hooks, no stash and only a few settings from its repository, and it can't push. `rooda-clone.json` in
its git folder, signed by this user, names that repository and the ref there that keeps the clone's work. Here, the
repository from which a clone borrows objects is called the lender.
"""

import os
from collections.abc import Mapping, Sequence
from itertools import starmap
from json import dumps
from typing import NamedTuple

from rooda.base import files, json, signing
from rooda.base.text import counted
from rooda.errors import UsageProblem
from rooda.git import command
from rooda.git.repository import Repo, find, find_at
from rooda.git.traces import CLONE_MARK, commit_of_ref

TARGET = "refs/rooda/target"  # in a task's clone: the tip of the branch that the task lands on
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


def make(lender: Repo, folder: str, branch: str, commit: str, loan: Loan, target: str = "") -> None:
    """Create a clone in `folder`, which must not exist, with `branch` checked out at `commit`.

    `target`: the commit of the clone's ref TARGET, if any. The caller must mark the clone once it is at its final path.
    Raises UsageProblem if git fails.
    """
    create(lender, folder, branch, (f"refs/heads/{branch} {commit}", *([f"{TARGET} {target}"] if target else [])))
    _git(folder, "reset", "-q", "--hard")
    has_modules = _borrow_modules(lender, folder)
    if problem := _keep(lender, loan, folder, commit, has_modules):
        raise UsageProblem(f"The clone's commit can't be saved as {loan.ref} in {loan.lender}: {problem}")


def create(lender: Repo, folder: str, branch: str, refs: Sequence[str] = ()) -> None:
    """Create a clone in `folder` with all remote branches and tags of the lender, and with nothing checked out.

    `refs`: further refs, each as `NAME COMMIT`. Raises UsageProblem if git fails.
    """
    files.make_folder(os.path.dirname(folder))
    settings = _settings(lender)
    form = next((value for key, value in settings if key == "extensions.objectformat"), None) or "sha1"
    begin = ("init", "-q", "--template=", f"--object-format={form}", "-b", branch, folder)
    _git(os.path.dirname(folder), *begin, env=lender.env)
    inner = os.path.join(folder, ".git")
    files.make_folder(os.path.join(inner, "objects", "info"))
    _borrow_objects(inner, lender.common)
    if os.path.exists(shallow := os.path.join(lender.common, "shallow")):
        files.copy(shallow, os.path.join(inner, "shallow"))
    _copy_settings(lender, folder, settings)
    rows = "".join(f"create {row}\n" for row in (*_shared_refs(lender), *refs))
    _git(folder, "update-ref", "--stdin", stdin=files.to_bytes(rows), env=lender.env)


def _borrow_objects(inner: str, common: str) -> None:
    path = os.path.join(inner, "objects", "info", "alternates")
    files.replace(path, files.to_bytes(f"{os.path.join(common, 'objects')}\n"))


def _keep(lender: Repo, loan: Loan, folder: str, commit: str, has_modules: bool) -> str:
    """Set a ref that makes the lender's `gc` keep the objects that the clone borrows; return git's error or ""."""
    if has_modules:
        return publish(loan, folder, commit)
    done = lender.run("update-ref", loan.ref, commit)
    return command.error_text(done) if done.code else ""


def mark(folder: str, loan: Loan) -> None:
    """Write the signed `rooda-clone.json`, which proves that rooda made this clone."""
    record = dumps(loan._asdict()).encode()
    files.replace(os.path.join(folder, ".git", CLONE_MARK), signing.signed(_purpose(folder), record) + b"\n")


def renew(folder: str, loan: Loan) -> None:
    """Repair the clone's mark and its link to the lender's objects if the mark was deleted or the lender was moved."""
    if loan_of(folder) != loan and os.path.isdir(os.path.join(folder, ".git", "objects", "info")):
        _borrow_objects(os.path.join(folder, ".git"), loan.common)
        mark(folder, loan)


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

    Also fetches the HEAD of each submodule into the lender's copy of that submodule, under the ref of the loan.
    """
    if _is_published(loan, folder, commit, snapshot):
        return ""
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


def _is_published(loan: Loan, folder: str, commit: str, snapshot: str) -> bool:
    """True if the lender certainly has the commits; False if they may be missing, or if the clone has submodules."""
    wanted = {loan.ref: commit} | ({loan.snapshot: snapshot} if snapshot else {})
    has_modules = os.path.isdir(os.path.join(folder, ".git", "modules"))
    return not has_modules and all(commit_of_ref(loan.common, ref) == each for ref, each in wanted.items())


def _fetch(loan: Loan, into: str, source: str, refs: Sequence[str]) -> str:
    words = ("fetch", "-q", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance", "--no-recurse-submodules")
    done = command.run([f"--git-dir={into}", *words, source, *refs], loan.lender, protocols=_FILE)
    return command.error_text(done) if done.code else ""


def _modules(inner: str) -> list[str]:
    """Return the names of the submodules whose repositories are in a git folder; nested submodules are left out."""
    root = os.path.join(inner, "modules")
    if not os.path.isdir(root):
        return []
    return sorted(
        os.path.relpath(folder, root)
        for folder, _, names in os.walk(root)
        if "HEAD" in names and "modules" not in os.path.relpath(folder, root).split(os.sep)
    )


def _borrow_modules(lender: Repo, folder: str) -> bool:
    """Check out the lender's submodules; each borrows objects from the lender's copy. False if there are none."""
    if not (names := _modules(lender.common)):
        return False
    listed = find(folder).run("config", "-f", ".gitmodules", "--null", "--get-regexp", r"^submodule\..*\.path$").out
    for row in listed.split(b"\0"):
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
    return True


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
    """Set a ref in the clone to a commit of the lender. The clone has that commit, because it borrows objects."""
    _git(folder, "update-ref", ref, commit)


def left_alone(folder: str, loan: Loan) -> str:
    """Describe work that exists only in the clone: uncommitted files, or commits not yet in the lender; "" if none.

    Raises GitProblem if the folder has no repository of its own.
    """
    repo = find_at(folder)
    if count := len(repo.lines("status", "--porcelain", "--untracked-files=all")):
        return f"{counted(count, 'uncommitted file')}"
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


def _settings(lender: Repo) -> list[tuple[str, str | None]]:
    """Return the local settings of the lender; the value of a setting without `=` is None."""
    words = map(files.to_text, lender.run("config", "--local", "--null", "--list").out.split(b"\0"))
    return [(key, value if equals else None) for key, equals, value in (word.partition("\n") for word in words) if key]


def _copy_settings(lender: Repo, folder: str, known: Sequence[tuple[str, str | None]]) -> None:
    """Copy the URL of origin, info/exclude, and settings such as those for line endings, file modes and the author."""
    rows = [(key, value) for key, value in known if _is_kept(key)]
    url = next((value for key, value in known if key == "remote.origin.url"), "") or lender.top
    rows += [("remote.origin.url", url), ("remote.origin.pushurl", NO_PUSH)]
    rows += [("remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*"), ("gc.auto", "0")]
    path = os.path.join(folder, ".git", "config")
    files.write(path, files.read(path) + files.to_bytes("".join(starmap(_setting, rows))))
    excludes = os.path.join(lender.common, "info", "exclude")
    if os.path.isfile(excludes):
        files.make_folder(os.path.join(folder, ".git", "info"))
        files.copy(excludes, os.path.join(folder, ".git", "info", "exclude"))


def _is_kept(key: str) -> bool:
    is_module = key.startswith("submodule.") and key.endswith(".url")
    return key.startswith(KEPT) or is_module or (key.startswith("remote.origin.") and key.endswith(PARTIAL))


def _setting(key: str, value: str | None) -> str:
    """Format a setting as in git's configuration files."""
    section, _, rest = key.partition(".")
    name, _, last = rest.rpartition(".")
    head = f'[{section} "{_escaped(name)}"]' if name else f"[{section}]"
    return f"{head}\n\t{last}\n" if value is None else f'{head}\n\t{last} = "{_escaped(value)}"\n'


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")


def _shared_refs(lender: Repo) -> list[str]:
    """Return `NAME COMMIT` for each tag and remote branch."""
    form = "--format=%(refname) %(objectname) %(symref)"
    rows = [row.split(" ") for row in lender.lines("for-each-ref", form, "refs/tags", "refs/remotes")]
    return [f"{name} {commit}" for name, commit, symref in rows if not symref]


def _git(
    folder: str, *args: str, stdin: bytes = b"", protocols: str = "", env: Mapping[str, str] | None = None
) -> None:
    done = command.run([*args], folder, stdin=stdin, timeout=1800.0, protocols=protocols, env=env)
    if done.code:
        word = next(each for each in args if not each.startswith("-") and "=" not in each)
        raise UsageProblem(f"The clone {folder} can't be made: git {word}: {command.error_text(done)}")
