"""Putting a work tree back to a snapshot. What git ignores, now or then, is not touched; what can't be done is told."""

import os
from collections.abc import Callable, Iterable
from typing import NamedTuple

from rooda.base import files
from rooda.base.text import escape_line
from rooda.git import command
from rooda.git.repository import GitProblem, Repo, nul_terminated

_GITLINK = "160000"


class Change(NamedTuple):
    """One path that differs between the present and what is wanted."""

    status: str  # A: to be brought back, D: to be removed, M or T: another content
    path: str  # as the repository names it
    mode: str  # the present one
    blob: str


class Plan(NamedTuple):
    """What would be done, and what not."""

    present: str  # tree
    wanted: str  # tree
    changes: tuple[Change, ...]
    ignored: tuple[str, ...] = ()  # left alone: git ignores them now, or did then
    nested: tuple[str, ...] = ()  # repositories of their own, which no snapshot holds
    foreign: tuple[str, ...] = ()  # what other loops keep of themselves


def plan(repo: Repo, present: str, target: str, stays: Callable[[str], bool] = lambda path: False) -> Plan:
    """From the present tree to the target. `present` is what the work tree holds, but for ignored files."""
    rows = changes(repo, present, target)
    foreign = [row for row in rows if stays(row.path)]
    rows = _except(rows, foreign)
    nested = [row for row in rows if row.mode == _GITLINK or row.status.endswith("!")]
    rows = _except(rows, nested)
    spared = [*_blocked(repo, rows), *_ignored_at_target(repo, rows, target)]
    kept = [*foreign, *nested, *spared]
    wanted = _keeping(repo, target, kept) if kept else target
    done = tuple(_except(rows, spared))
    return Plan(present, wanted, done, *(tuple(row.path for row in each) for each in (spared, nested, foreign)))


def _except(rows: list[Change], some: list[Change]) -> list[Change]:
    gone = set(some)  # of a list every row would be looked for in every other
    return [row for row in rows if row not in gone]


def apply(repo: Repo, index: str, plan: Plan) -> None:
    """Do it. GitProblem if a file was changed since the plan was made; then nothing has been touched."""
    done = repo.ask("read-tree", "-m", "-u", plan.present, plan.wanted, index=index)
    if done.code:
        said = files.to_text(done.err).strip().replace("\n", "; ")
        raise GitProblem(f"git refuses: {said}", "Does something change files right now? End that, and try again.")


def changes(repo: Repo, old: str, new: str) -> list[Change]:
    """The paths that differ, renames as what they are: one gone, one come."""
    if old == new:
        return []
    words = repo.text("diff-tree", "-r", "-z", "--no-renames", "--raw", "--no-abbrev", old, new).split("\0")
    found = []
    for facts, path in zip(words[::2], words[1::2], strict=False):
        mode, there, blob, _, status = facts.lstrip(":").split(" ")
        found.append(Change(status + "!" * (there == _GITLINK), path, mode, blob))
    return found


def _blocked(repo: Repo, rows: list[Change]) -> list[Change]:
    """Paths to bring back at whose place something lies that git ignores."""
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
    """Files that the target lacks because git ignored them then: they were there, and are not ours to remove."""
    leaving = [row for row in rows if row.status == "D"]
    if not leaving:
        return []  # else also under the same rules as now: what is committed may be ignored all the same
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
    """Those that the .gitignore files in this folder speak of."""
    words = [f"--git-dir={repo.folder}", f"--work-tree={rules}", "check-ignore", "--no-index", "-z", "--stdin"]
    question = nul_terminated(
        f"./{row.path}" for row in rows
    )  # with ./ no name has a meaning; it knows no literal ones
    said = command.run(words, rules, stdin=question, hooks=True)
    if said.code not in (0, 1):
        raise GitProblem(f"it can't be told what was ignored then: {command.error_text(said)}")
    ignored = set(files.to_text(said.out).split("\0"))
    return [row for row in rows if f"./{row.path}" in ignored]


def _keeping(repo: Repo, target: str, kept: list[Change]) -> str:
    """The target with these paths as they are now."""
    import tempfile

    rows = [f"{'0' if row.status[:1] == 'A' else row.mode} {row.blob}\t{row.path}" for row in kept]
    with tempfile.TemporaryDirectory(prefix="rooda-") as folder:
        index = os.path.join(folder, "index")
        repo.text("read-tree", target, index=index)
        repo.text("update-index", "-z", "--index-info", index=index, stdin=nul_terminated(rows))
        return repo.text("write-tree", index=index)


def left_alone(plan: Plan) -> list[str]:
    """What is not put back, and why."""
    reasons = {
        "git ignores it, now or then": plan.ignored,
        "a repository of its own": plan.nested,
        "another loop's own": plan.foreign,
    }
    return [f"left alone  {escape_line(path)} ({why})" for why, paths in reasons.items() for path in paths]
