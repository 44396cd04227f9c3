"""Restores a work tree to a snapshot, except for files that git ignores now or ignored at the snapshot."""

import os
from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple

from rooda.base import files
from rooda.base.text import escape_line
from rooda.git import command
from rooda.git.repository import GitProblem, Repo, nul_terminated

_GITLINK = "160000"
SHOWN = 5  # paths in a message
MOST = 500  # paths that are examined for notes


class Change(NamedTuple):
    """A path that differs between the work tree and the snapshot."""

    status: str  # A: to restore, D: to delete, M or T: other content
    path: str  # relative to the repository
    mode: str  # in the work tree now
    blob: str


class Plan(NamedTuple):
    """The changes that restore a snapshot, and the paths that are not restored."""

    present: str  # tree before the restore
    wanted: str  # tree after the restore
    changes: tuple[Change, ...]
    ignored: tuple[str, ...] = ()  # ignored by git, now or at the snapshot
    nested: tuple[str, ...] = ()  # repositories inside the work tree, which snapshots leave out
    foreign: tuple[str, ...] = ()  # state of other loops
    private: tuple[str, ...] = ()  # private files, which snapshots leave out


def plan(
    repo: Repo,
    present: str,
    target: str,
    is_foreign: Callable[[str], bool] = lambda path: False,
    private: Collection[str] = (),
) -> Plan:
    """Return the changes from the tree `present`, the work tree without ignored files, to the tree `target`.

    `private`: files that snapshots leave out now or left out at the target; they are not changed.
    """
    rows = changes(repo, present, target)
    foreign = [row for row in rows if is_foreign(row.path)]
    rows = _except(rows, foreign)
    left_out = [row for row in rows if row.path in private]
    rows = _except(rows, left_out)
    nested = [row for row in rows if row.mode == _GITLINK or row.status.endswith("!")]
    rows = _except(rows, nested)
    spared = [*_blocked(repo, rows), *_ignored_at_target(repo, rows, target)]
    kept = [*foreign, *nested, *spared, *left_out]
    wanted = _keeping(repo, target, kept) if kept else target
    done = tuple(_except(rows, spared))
    return Plan(
        present, wanted, done, *(tuple(row.path for row in each) for each in (spared, nested, foreign, left_out))
    )


def _except(rows: list[Change], some: list[Change]) -> list[Change]:
    gone = set(some)  # comparing two lists would take quadratic time
    return [row for row in rows if row not in gone]


def apply(repo: Repo, index: str, plan: Plan) -> None:
    """Restore the work tree. If a file has changed since the plan was made, change nothing and raise GitProblem.

    Ignores the patterns of a sparse checkout, since git would remove the files outside of them.
    """
    words = ("-c", "core.sparseCheckout=false", "read-tree", "-m", "-u")
    done = repo.run(*words, plan.present, plan.wanted, index=index)
    if done.code:
        said = files.to_text(done.err).strip().replace("\n", "; ")
        raise GitProblem(
            f"git refuses to restore the files: {said}", "If a program is changing files, stop it and try again."
        )
    wanted = (row.path for row in plan.changes if row.status != "D")
    if lost := [escape_line(path) for path in wanted if not os.path.lexists(os.path.join(repo.top, path))]:
        what = f"git did not restore {', '.join(lost[:SHOWN])}{' …' if lost[SHOWN:] else ''}; the rest is restored"
        raise GitProblem(what, "The replaced state is in the newest snapshot. To restore it: rooda undo --redo")


def notes(repo: Repo, plan: Plan) -> list[str]:
    """Return notes for the user about the files to restore: line endings that git converts, and hidden changes."""
    paths = [row.path for row in plan.changes if row.status != "D"]
    if not paths:
        return []
    return [*_hidden(repo, paths), *_converted(repo, paths)]


def _hidden(repo: Repo, paths: list[str]) -> Iterable[str]:
    """Yield a note about files whose changes git doesn't show: the user set skip-worktree or assume-unchanged."""
    rows = files.to_text(repo.run("ls-files", "-z", "-v", "--", *paths[:MOST]).out).split("\0")
    if hidden := [row[2:] for row in rows if row[:1] == "S" or row[:1].islower()]:
        yield f"git hides changes of these files (skip-worktree); they are restored, too: {_few(hidden)}"


def _converted(repo: Repo, paths: list[str]) -> Iterable[str]:
    """Yield a note about text files whose line endings git converts, since a snapshot has them as git stores them."""
    setting = repo.run("config", "core.autocrlf").out.decode().strip().lower()
    ends = {"true": "CRLF", "input": "LF"}.get(setting, "")
    rows = files.to_text(repo.run("ls-files", "-z", "--eol", "-c", "-o", "--", *paths[:MOST]).out).split("\0")
    found = []
    for facts, _, path in (row.partition("\t") for row in rows if row):
        stored, there, attributes = [*facts.split(), "", ""][:3]
        is_text = "-text" not in stored + there + attributes
        if is_text and ((ends and "eol=" not in attributes) or "w/crlf" in there or "w/mixed" in there):
            found.append(path)
    if found:
        how = f"core.autocrlf = {setting}" if ends else "its attributes"
        with_ends = f"with {ends}" if ends else "as the attributes say"
        yield f"git converts line ends here ({how}): restored {with_ends}, whatever they were before: {_few(found)}"


def _few(paths: list[str]) -> str:
    return ", ".join(map(escape_line, paths[:SHOWN])) + (f" and {len(paths) - SHOWN} more" if paths[SHOWN:] else "")


def changes(repo: Repo, old: str, new: str) -> list[Change]:
    """Return the paths that differ between two trees; a rename counts as a deletion and an addition."""
    if old == new:
        return []
    words = repo.text("diff-tree", "-r", "-z", "--no-renames", "--raw", "--no-abbrev", old, new).split("\0")
    found = []
    for facts, path in zip(words[::2], words[1::2], strict=False):
        mode, there, blob, _, status = facts.lstrip(":").split(" ")
        found.append(Change(status + "!" * (there == _GITLINK), path, mode, blob))
    return found


def _blocked(repo: Repo, rows: list[Change]) -> list[Change]:
    """Return the changes that an ignored file or folder blocks."""
    leaving = {row.path for row in rows if row.status == "D"}
    return [row for row in rows if row.status == "A" and _occupied(repo.top, row.path, leaving)]


def _occupied(top: str, path: str, leaving: set[str]) -> bool:
    parts = path.split("/")
    above = ["/".join(parts[:count]) for count in range(1, len(parts))]
    if any(_is_file(os.path.join(top, each)) and each not in leaving for each in above):
        return True
    place = os.path.join(top, path)
    if not os.path.isdir(place) or os.path.islink(place):
        return os.path.lexists(place)
    inside = (os.path.relpath(os.path.join(at, name), top) for at, name in _files_below(place))
    return any(each not in leaving for each in inside)


def _is_file(path: str) -> bool:
    return os.path.lexists(path) and (os.path.islink(path) or not os.path.isdir(path))


def _files_below(folder: str) -> Iterable[tuple[str, str]]:
    for at, folders, names in os.walk(folder):
        links = (name for name in folders if os.path.islink(os.path.join(at, name)))
        yield from ((at, name) for name in (*names, *links))


def _ignored_at_target(repo: Repo, rows: list[Change], target: str) -> list[Change]:
    """Return the deletions to skip: files that git ignored at the target may have existed then without being saved."""
    leaving = [row for row in rows if row.status == "D"]
    if not leaving:
        return []  # unchanged ignore rules are not enough to return: a committed file can match them
    import tempfile

    with tempfile.TemporaryDirectory(prefix="rooda-") as folder:
        index, rules = os.path.join(folder, "index"), os.path.join(folder, "rules")
        files.make_folder(rules)
        repo.text("read-tree", target, index=index)
        listed = repo.text("ls-files", "-z", index=index).split("\0")
        wanted = nul_terminated(path for path in listed if os.path.basename(path) == ".gitignore")
        repo.text("checkout-index", "-z", "--stdin", f"--prefix={rules}/", index=index, stdin=wanted)
        return _matching_rules(repo, rules, leaving)


def _matching_rules(repo: Repo, rules: str, rows: list[Change]) -> list[Change]:
    """Return the changes whose paths match the .gitignore files in the folder `rules`."""
    words = [f"--git-dir={repo.folder}", f"--work-tree={rules}", "check-ignore", "--no-index", "-z", "--stdin"]
    question = nul_terminated(
        f"./{row.path}" for row in rows
    )  # without ./ a name could be an option or a pattern; check-ignore has no literal paths
    said = command.run(words, rules, stdin=question, hooks=True)
    if said.code not in (0, 1):
        raise GitProblem(f"can't find out what git ignored at the snapshot: {command.error_text(said)}")
    ignored = set(files.to_text(said.out).split("\0"))
    return [row for row in rows if f"./{row.path}" in ignored]


def _keeping(repo: Repo, target: str, kept: list[Change]) -> str:
    """Write the target tree with these paths as they are in the work tree, and return its id."""
    import tempfile

    rows = [f"{'0' if row.status[:1] == 'A' else row.mode} {row.blob}\t{row.path}" for row in kept]
    with tempfile.TemporaryDirectory(prefix="rooda-") as folder:
        index = os.path.join(folder, "index")
        repo.text("read-tree", target, index=index)
        repo.text("update-index", "-z", "--index-info", index=index, stdin=nul_terminated(rows))
        return repo.text("write-tree", index=index)


def left_alone(plan: Plan) -> list[str]:
    """Return lines that say which paths are not restored, and why."""
    reasons = {
        "ignored by git, now or at the snapshot": plan.ignored,
        "a repository of its own": plan.nested,
        "state of another loop": plan.foreign,
        "private, now or at the snapshot: not saved": plan.private,
    }
    return [f"left alone  {escape_line(path)} ({why})" for why, paths in reasons.items() for path in paths]
