"""Finds the versions of a file that somebody else wrote: those that git fetched and that weren't committed here.

HEAD's reflog proves that a commit was made here; an author's name proves nothing. A copy of somebody else's commit
(cherry-pick, rebase) counts as somebody else's, and so does content that an amend, a squash or a soft reset merged into
a commit made here. If git can't answer (timeout, damaged repository), the file's current content counts as somebody
else's, with "" for the commit. The reflog of a `.git` unpacked from an archive is trusted, as are all files that git
did not fetch.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from rooda.base import clock, files
from rooda.git import command, repository
from rooda.git.repository import GitProblem, Repo

TIMEOUT = 20.0  # seconds for all questions about one repository
FIRST = "64"  # commits to read first, before the whole history
MOST_LINKS = 40
_COPY = re.compile(r"cherry-pick|commit \((?:cherry-pick|rebase)\)|.* \((?:pick|reword|edit|squash|fixup|continue)\)")
_MADE = re.compile(r"commit(?: \((?!cherry-pick|rebase)[a-z-]+\))?")
_LEFT = re.compile(r"commit \(amend\)|reset|.* \(start\)")  # HEAD leaves commits whose content may stay in the files
_UNFINISHED = ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REBASE_HEAD")
_REMOTE = r"^(remote\..*\.(url|vcs)|core\.ignorecase)$"
_ALTERED = (
    "filter",
    "ident",
    "working-tree-encoding",
)  # attributes of files whose content differs from what git stores
_TOUCHED = (
    "-c",
    "log.follow=false",
    "log",
    "--no-renames",
    "--full-history",
    "-c",
    "--root",
    "--format=",
    "--name-only",
    "-z",
)
_POINTERS = (b"version https://git-lfs", b"\0GITCRYPT")
Graph: TypeAlias = Mapping[str, Sequence[str]]  # commits that changed the file, each with its parents among them


class Versions(NamedTuple):
    """The newest versions of a file that were not committed here: one for each branch of its history."""

    commits: tuple[str, ...] = ()
    contents: tuple[bytes, ...] = ()  # b"" where the commit deleted the file


class _Entry(NamedTuple):
    """One line of a reflog."""

    old: str  # "" before the first commit
    new: str
    action: str  # the message up to the first colon


class _Git(NamedTuple):
    """A repository, and the deadline for git's answers."""

    repo: Repo
    until: float  # monotonic time


class _History(NamedTuple):
    """The commits of a repository, classified by its reflogs."""

    git: _Git
    head: str  # "" before the first commit
    made: frozenset[str]
    copies: frozenset[str]  # made here from other commits, whose origin must be proven
    left: tuple[str, ...]  # commits that HEAD left by an amend, a rebase or a reset, or that are being merged
    ignores_case: bool


class _Asked(NamedTuple):
    """A path to examine: the file, or a link on the way to it."""

    path: str  # as the caller gave it
    place: str  # with all links resolved except the last name
    real: str  # the file itself


def foreign_versions(workspace: str, path: str) -> Versions | None:
    """Return the newest versions of a file that were not committed here; None if git can't have fetched the file."""
    found = foreign_versions_of(workspace, (path,))
    return None if found is None else found[path]


def foreign_versions_of(workspace: str, paths: Iterable[str]) -> dict[str, Versions] | None:
    """Like `foreign_versions` for several files; None if no fetch or merge can have brought any of them."""
    found, known = dict[str, Versions](), False
    repositories: dict[str, list[_Asked]] = {}
    for path in dict.fromkeys(paths):
        found[path] = Versions()
        for asked in _places(path, os.path.abspath(os.path.join(workspace, path))):
            if top := _top(os.path.dirname(asked.place)):
                repositories.setdefault(top, []).append(asked)
    for top, all_asked in repositories.items():
        judged = _judge(top, all_asked)
        known = known or judged is not None
        for asked, versions in zip(all_asked, judged or (), strict=False):
            before = found[asked.path]
            found[asked.path] = Versions(before.commits + versions.commits, before.contents + versions.contents)
    return found if known else None


def _places(path: str, place: str) -> list[_Asked]:
    """Return the file and the links on the way to it, since changing a link replaces the file."""
    real, links, rest = "", list[str](), place.split("/")
    while rest:
        part = rest.pop(0)
        here = f"{real}/{part}"
        if part == "..":
            real = os.path.dirname(real)
        elif part not in ("", ".") and len(links) < MOST_LINKS and (target := _target(here)):
            links.append(here)
            real = "" if target.startswith("/") else real
            rest = target.split("/") + rest
        elif part not in ("", "."):
            real = here
    return [_Asked(path, each, real) for each in (*links, real)]


def _target(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""


def _top(folder: str) -> str:
    """Return the nearest folder with a `.git` that isn't empty; "" if there is none."""
    while not os.path.isfile(git := os.path.join(folder, ".git")) and not files.list_folder(git):
        if folder in ("", "/"):
            return ""
        folder = os.path.dirname(folder)
    return folder


def _judge(top: str, all_asked: Sequence[_Asked]) -> list[Versions] | None:
    """Return the foreign versions of each path; None if the repository has no remote and never fetched."""
    try:
        if not (history := _read(top)):
            return None
        names = [_names(history, os.path.relpath(asked.place, history.git.repo.top)) for asked in all_asked]
        never = _never_tracked(history, [name for each in names for name in each])
        commits = {name: _newest(history, name) for each in names for name in each if name not in never}
        contents = _contents(history, [(name, commit) for name in commits for commit in commits[name]])
    except GitProblem:
        return [_unknown(asked) for asked in all_asked]
    return [_versions(asked, each, commits, contents) for asked, each in zip(all_asked, names, strict=True)]


def _versions(
    asked: _Asked,
    names: Sequence[str],
    commits: Mapping[str, Sequence[str]],
    contents: Mapping[tuple[str, str], bytes | None],
) -> Versions:
    found = [(commit, contents[name, commit]) for name in names for commit in commits.get(name, ())]
    if asked.place != asked.real:
        found = [(commit, None) for commit, _ in found]
    if any(content is None for _, content in found):
        now = _unknown(asked).contents[0]
        found = [(commit, now if content is None else content) for commit, content in found]
    different = {content or b"": commit for commit, content in reversed(found)}
    return Versions((*different.values(),), (*different,))


def _unknown(asked: _Asked) -> Versions:
    """Return the current content of a file of unknown author, which counts as written by somebody else."""
    try:
        return Versions(("",), (files.read_ours(asked.real),))
    except OSError:
        return Versions(("",), (b"",))


# Reading reflogs.


def _read(top: str) -> _History | None:
    git = _Git(repository.find(top), clock.monotonic() + TIMEOUT)
    repo = git.repo
    logs = [*_logs(repo.common)]
    cloned = any(log and log[0].action == "clone" for log in logs) or _fetched(repo.common)
    rows = files.to_text(_ask(git, "config", "-z", "--get-regexp", _REMOTE, fine=(0, 1))).split("\0")
    if not cloned and not any(row.startswith("remote.") for row in rows):
        return None
    entries = [entry for log in logs for entry in log]
    made = {entry.new for entry in entries if _MADE.fullmatch(entry.action)}
    copies = {entry.new for entry in entries if _COPY.fullmatch(entry.action)} - made
    shallow = set(_text(os.path.join(repo.common, "shallow")).split())  # their parents are unknown
    head = repository.read_head(repo).commit
    left = _existing(git, dict.fromkeys(commit for commit in _left(repo, logs, head) if commit))
    ignores_case = "core.ignorecase\ntrue" in rows
    return _History(git, head, frozenset(made - shallow), frozenset(copies - shallow), left, ignores_case)


def _existing(git: _Git, commits: Iterable[str]) -> tuple[str, ...]:
    """Return the commits that still exist."""
    lines = _lines(commits)
    said = _ask(git, "rev-list", "--no-walk", "--ignore-missing", "--stdin", stdin=lines) if lines else b""
    return tuple(files.to_text(said).split())


def _logs(common: str) -> Iterator[list[_Entry]]:
    """Yield HEAD's reflog of every work tree."""
    for folder in _work_trees(common):
        lines = _text(os.path.join(folder, "logs", "HEAD")).split("\n")
        yield [entry for entry in map(_entry, lines) if entry]


def _entry(line: str) -> _Entry | None:
    found = re.match(r"([0-9a-f]{40,64}) ([0-9a-f]{40,64}) [^\t]*\t?([^:]*)", line)
    if not found:
        return None
    old, new, action = found.groups()
    return _Entry(old.strip("0") and old, new.strip("0") and new, action)


def _left(repo: Repo, logs: Iterable[list[_Entry]], head: str) -> Iterator[str]:
    for log in logs:
        for before, entry in zip([_Entry("", "", ""), *log], log, strict=False):
            if _LEFT.fullmatch(entry.action) and entry.old != entry.new:
                yield entry.old
            if not entry.old:  # the first commit of a branch without parents
                yield before.new
        if log and not head:
            yield log[-1].new
    for name in _UNFINISHED:
        yield from re.findall("^[0-9a-f]{40,64}$", _text(os.path.join(repo.folder, name)), re.MULTILINE)


def _work_trees(common: str) -> list[str]:
    others = os.path.join(common, "worktrees")
    return [common, *(os.path.join(others, name) for name in files.list_folder(others))]


def _fetched(common: str) -> bool:
    return any(os.path.lexists(os.path.join(folder, "FETCH_HEAD")) for folder in _work_trees(common))


def _text(path: str) -> str:
    try:
        return files.to_text(files.read_ours(path))
    except OSError:
        return ""


# Asking git.


def _ask(git: _Git, *words: str, stdin: str = "", fine: tuple[int, ...] = (0,), literal: bool = True) -> bytes:
    """Return git's output, without replaced, grafted or fetched objects. Raises GitProblem on failure or timeout."""
    env = {**os.environ, "GIT_NO_REPLACE_OBJECTS": "1", "GIT_GRAFT_FILE": os.devnull}
    env["GIT_NO_LAZY_FETCH"] = "1"
    given = files.to_bytes(stdin)
    left, top = max(0.0, git.until - clock.monotonic()), git.repo.top
    done = command.run([*words], top, stdin=given, env=env, timeout=left, literal=literal)
    if done.code not in fine:
        raise GitProblem(f"git {words[0]} failed in {top}: {command.error_text(done)}")
    return done.out


def _names(history: _History, path: str) -> list[str]:
    """Return the file's name and, if the file system ignores case, its other spellings in the history."""
    if not history.ignores_case or not history.head:
        return [path]
    said = _ask(history.git, *_TOUCHED, history.head, "--", f":(icase){path}", literal=False)
    return [*dict.fromkeys([path, *_split(said)])]


def _never_tracked(history: _History, names: Sequence[str]) -> set[str]:
    """Return the names that occur in no commit. With fewer than three names, skip the check and return an empty set."""
    if len(names) < 3:
        return set()
    tips = _lines(filter(None, (history.head, *history.left)))
    said = _ask(history.git, *_TOUCHED, "--stdin", "--", *names, stdin=tips) if tips else b""
    return {*names} - {*_split(said)}


def _split(names: bytes) -> list[str]:
    return [name.removeprefix("\n") for name in files.to_text(names).split("\0") if name.strip("\n")]


def _newest(history: _History, name: str) -> list[str]:
    """Return the newest commits of the file, one for each line of history, that were not made in this repository."""
    found = list[str]()
    if history.head:
        found += _first_foreign(history, name, (history.head,), (f"--max-count={FIRST}",))
    if history.left:
        tips = (*history.left, *([f"^{history.head}"] if history.head else []))
        found += _first_foreign(history, name, tips)
    return [*dict.fromkeys(found)]


def _first_foreign(history: _History, name: str, tips: Sequence[str], limit: Sequence[str] = ()) -> list[str]:
    words = ("rev-list", "--parents", *limit, "--stdin", "--", name)
    said = files.to_text(_ask(history.git, *words, stdin=_lines(tips)))
    graph = {row.split()[0]: row.split()[1:] for row in said.splitlines()}
    made = history.made
    if copies := [commit for commit in graph if commit in history.copies]:
        made |= _proven(history, name, copies)
    found, missing = _walk(graph, made)
    return _first_foreign(history, name, tips) if missing and limit else found


def _walk(graph: Graph, made: frozenset[str]) -> tuple[list[str], bool]:
    """Return the newest foreign commit of each line of history, and True if the graph lacks a needed commit."""
    later = {parent for parents in graph.values() for parent in parents}
    found, seen = list[str](), set[str]()
    todo, missing = [commit for commit in graph if commit not in later], False
    while todo:
        commit = todo.pop()
        if commit in seen:
            continue
        seen.add(commit)
        if commit not in graph:
            missing = True
        elif commit in made:
            todo += graph[commit]
        else:
            found.append(commit)
    return found, missing


def _proven(history: _History, name: str, copies: Sequence[str]) -> frozenset[str]:
    """Return the copies whose author, date and added lines all come from commits made here.

    A cherry-picked commit of somebody else may have the user's name and date, but not only the user's own lines.
    """
    authors = _authors(history, (*history.made, *copies))
    written = {authors[commit] for commit in history.made if commit in authors}
    candidates = [commit for commit in copies if authors.get(commit) in written]
    if not candidates:
        return frozenset()
    added = _added_lines(history, name, [*authors])
    own = {line for commit in history.made for line in added.get(commit, ())}
    return frozenset(commit for commit in candidates if added.get(commit, set()) <= own)


def _authors(history: _History, commits: Iterable[str]) -> dict[str, str]:
    """Return the author and date of each commit that still exists."""
    words = ("rev-list", "--no-walk", "--ignore-missing", "--date=raw", "--format=%an%x00%ae%x00%ad", "--stdin")
    rows = files.to_text(_ask(history.git, *words, stdin=_lines(commits))).split("\n")
    return {row.removeprefix("commit "): author for row, author in zip(rows[::2], rows[1::2], strict=False)}


def _added_lines(history: _History, name: str, commits: Iterable[str]) -> dict[str, set[bytes]]:
    """Return the lines that each commit adds to the file; merges add none."""
    words = ("diff-tree", "--stdin", "--root", "-p", "-U0", "--text", "--no-renames", "--no-ext-diff", "--no-textconv")
    said = _ask(history.git, *words, "--", name, stdin=_lines(commits))
    found, commit, inside = dict[str, set[bytes]](), "", False
    for row in said.split(b"\n"):
        if re.fullmatch(b"[0-9a-f]{40,64}", row):
            commit, inside = row.decode(), False
        elif row.startswith(b"@@"):
            inside = True
        elif inside and row.startswith(b"+"):
            found.setdefault(commit, set()).add(row[1:].rstrip())
    return found


def _lines(commits: Iterable[str]) -> str:
    return "".join(f"{commit}\n" for commit in commits)


def _contents(history: _History, wanted: Sequence[tuple[str, str]]) -> dict[tuple[str, str], bytes | None]:
    """Return the file's content in each commit; None if git can't read it, or stores it in another form."""
    if not wanted:
        return {}
    altered = _altered(history, [*dict.fromkeys(name for name, _ in wanted)])
    found = dict(zip(wanted, _objects(history, [f"{commit}:{name}" for name, commit in wanted]), strict=True))
    for (name, commit), content in found.items():
        if content is None and not _ask(history.git, "ls-tree", "-z", commit, "--", name):
            found[name, commit] = b""
        elif name in altered or (content or b"").startswith(_POINTERS):
            found[name, commit] = None
    return found


def _altered(history: _History, names: Sequence[str]) -> set[str]:
    """Return the files that git stores in another form, because of a filter such as LFS, or an encoding."""
    said = files.to_text(_ask(history.git, "check-attr", "-z", *_ALTERED, "--", *names)).split("\0")
    rows = zip(said[::3], said[1::3], said[2::3], strict=False)
    return {name for name, _, value in rows if value not in ("unspecified", "unset")}


def _objects(history: _History, places: Sequence[str]) -> list[bytes | None]:
    """Return the file at each `COMMIT:PATH`, following links inside the commit; None if there is no such file."""
    asked = [place for place in places if "\n" not in place]
    said = _ask(history.git, "cat-file", "--batch", "--follow-symlinks", stdin=_lines(asked))
    found, position = dict[str, bytes | None](), 0
    for place in asked:
        end = said.index(b"\n", position)
        words = said[position:end].rsplit(b" ", 2)
        position = end + 1
        found[place] = None
        if words[-1].isdigit():  # an object, or an unresolved link with its target
            size = int(words[-1])
            found[place] = said[position : position + size] if words[-2] == b"blob" else None
            position += size + 1
    return [found.get(place) for place in places]
