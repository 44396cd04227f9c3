"""A task's ref that rooda did not write: nothing outside of the clone changes, and an error says why it is refused."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from rooda.errors import UsageProblem
from tests.kit.fleet_git import Worker, git, new_remote

SESSION = "20260206T100000Z-build-1"
EVENT = {"v": 1, "ts": "2026-02-06T10:00:00.000Z", "run": SESSION, "loop": "ooda", "seq": 1, "event": "run.started"}
FILE, PROGRAM, LINK, NESTED, FOLDER = "100644", "100755", "120000", "160000", "40000"
GOOD = {
    "state/.rooda/state/build.json": (FILE, b"{}\n"),
    f"events/{SESSION}/1.jsonl": (FILE, json.dumps(EVENT).encode() + b"\n"),
}
BAD: dict[str, dict[str, tuple[str, bytes]]] = {
    "a state file above": {"state/../../evil": (FILE, b"x")},
    "git's settings": {"state/.git/config": (FILE, b"x")},
    "git's settings, in disguise": {"state/.loop/.GIT/config": (FILE, b"x")},
    "git's settings, with an invisible sign": {"state/.loop/.g\u200cit/config": (FILE, b"x")},
    "settings of rooda": {"state/rooda.toml": (FILE, b"x")},
    "rooda's own folder": {"state/.rooda/goal.seal": (FILE, b"x")},
    "a lock": {"state/.rooda/locks/x.lock": (FILE, b"x")},
    "a start": {f"state/.rooda/runs/{SESSION}/start": (FILE, b"{}")},
    "an order": {f"state/.rooda/runs/{SESSION}/order": (FILE, b"{}")},
    "a log beside the events": {f"state/.rooda/runs/{SESSION}/events.jsonl": (FILE, b"{}")},
    "a message": {f"state/.rooda/runs/{SESSION}/messages/1": (FILE, b"{}")},
    "a link": {"state/.loop/run.json": (LINK, b"/etc/passwd")},
    "a folder that is a link": {"state/.loop": (LINK, b"/tmp")},
    "a program": {"state/.loop/run.json": (PROGRAM, b"x")},
    "a line end": {"state/.loop/a\nb": (FILE, b"x")},
    "a control sequence": {"state/.loop/\x1b[2J": (FILE, b"x")},
    "a backslash": {"state/.loop/..\\x": (FILE, b"x")},
    "odd bytes": {"state/.loop/\udcff": (FILE, b"x")},
    "a session that is a path": {"events/../1.jsonl": (FILE, b"x")},
    "a session with an odd name": {"events/x/1.jsonl": (FILE, b"x")},
    "a piece with an odd name": {f"events/{SESSION}/start": (FILE, b"x")},
    "a piece that is a link": {f"events/{SESSION}/2.jsonl": (LINK, b"/etc/passwd")},
}
TREES: dict[str, dict[str, tuple[str, bytes]]] = {
    "a work tree with rooda's folder": {".rooda/state/x.json": (FILE, b"{}")},
    "a work tree whose .rooda is a link": {".rooda": (LINK, b"/tmp")},
    "a work tree with git's folder": {".git/hooks/post-checkout": (PROGRAM, b"#!/bin/sh\ntouch evil\n")},
    "a work tree with a name above": {"../evil": (FILE, b"x")},
    "a work tree whose .rooda is a file": {".rooda": (FILE, b"x")},
}
RECORDS: dict[str, dict[str, Any]] = {
    "a branch above": {"branch": "../../../evil"},
    "a branch with a line end": {"branch": "x\nupdate refs/heads/y"},
    "an option as a commit": {"head": "--upload-pack=touch evil"},
    "an option as a work tree": {"work": "--prefix=../evil"},
    "no work tree": {"work": ""},
    "a commit that is missing": {"head": "1" * 40},
    "a ref outside": {"refs": {"refs/heads/../../evil": "1" * 40}},
    "a ref of something else": {"refs": {"refs/remotes/origin/main": "1" * 40}},
    "a ref that is no commit": {"refs": {"refs/heads/x": "main"}},
    "a ref with a line end": {"refs": {"refs/heads/x\ny": "1" * 40}},
    "another sparse form": {"sparse": "odd\n*"},
}


def tree(remote: str, files: dict[str, tuple[str, bytes]]) -> str:
    """A tree object with any names, also those that git would not make."""
    inner: dict[str, dict[str, tuple[str, bytes]]] = {}
    rows = []
    for path, (mode, data) in files.items():
        name, slash, rest = path.partition("/")
        if slash:
            inner.setdefault(name, {})[rest] = (mode, data)
        else:
            rows.append((name, mode, git(remote, "hash-object", "-w", "--stdin", stdin=data)))
    rows += [(name, FOLDER, tree(remote, found)) for name, found in inner.items()]
    rows.sort(key=lambda row: os.fsencode(row[0] + ("/" if row[1] == FOLDER else "")))
    data = b"".join(f"{mode} ".encode() + os.fsencode(name) + b"\0" + bytes.fromhex(sha) for name, mode, sha in rows)
    return git(remote, "hash-object", "-w", "-t", "tree", "--literally", "--stdin", stdin=data)


@pytest.fixture(scope="module")
def green(tmp_path_factory: pytest.TempPathFactory) -> Worker:
    """A worker whose mirror knows a task with one good turn, on a remote that checks nothing."""
    folder = tmp_path_factory.mktemp("hostile")
    url = new_remote(folder)
    blue = Worker(folder, "blue", url)
    blue.add()
    blue.claim(1)
    blue.clone()
    blue.begin()
    blue.turn(1)
    git(url, "update-ref", "refs/first", "refs/rooda/task/1")
    return Worker(folder, "green", url)


def forge(green: Worker, state: dict[str, Any], work: dict[str, Any], record: dict[str, Any]) -> None:
    """Put a turn of somebody else onto the ref, and fetch it."""
    remote = green.mirror.url
    first = "refs/first"
    said = json.loads(git(remote, "show", f"{first}:task.json"))
    if work:
        made = tree(remote, {"a.txt": (FILE, b"a\n"), **work})
        said["work"] = git(remote, "commit-tree", "-m", "work", "-p", said["head"], made)
    content = {"task.json": (FILE, json.dumps(said | record).encode()), "ticket.json": (FILE, b"{}")}
    parents = ["-p", f"{first}^", "-p", said["work"]]
    commit = git(remote, "commit-tree", "-m", "turn 1 of 1 by eve", *parents, tree(remote, {**content, **state}))
    git(remote, "update-ref", "refs/rooda/task/1", commit)
    green.tip = green.mirror.fetch(1)


def outside(green: Worker) -> dict[str, bytes]:
    """Everything beside the mirror: names and contents."""
    found = {}
    for folder, inner, names in os.walk(green.home):
        inner[:] = [name for name in inner if name != "mirrors"]
        found |= {os.path.join(folder, name): Path(folder, name).read_bytes() for name in names}
    return found


def test_the_forged_turn_itself_is_restored(green: Worker) -> None:
    """What the other tests forge is refused for its fault alone."""
    forge(green, GOOD, {"b.txt": (FILE, b"b\n")}, {})
    root = green.clone().root
    assert Path(root, "b.txt").read_text() == "b\n"
    assert Path(root, ".rooda/state/build.json").exists() and Path(root, f".rooda/runs/{SESSION}/events.jsonl").exists()


@pytest.mark.parametrize("case", [*BAD, *TREES, *RECORDS])
def test_FL_03_a_hostile_ref_is_refused(case: str, green: Worker) -> None:
    """A sentence says why, no clone is left, and nothing is written elsewhere."""
    forge(green, GOOD | BAD.get(case, {}), TREES.get(case, {}), RECORDS.get(case, {}))
    before = outside(green)
    with pytest.raises(UsageProblem) as refused:
        green.clone()
    assert "can't be restored" in refused.value.what or "is a link" in refused.value.what
    assert outside(green) == before


def test_FL_03_state_is_not_written_through_a_link(green: Worker, tmp_path: Path) -> None:
    """A link in the work tree where the state belongs is refused; what it points to is untouched."""
    target = tmp_path / "target"
    target.mkdir()
    for link in (".loop", ".ai-factory"):
        state = {f"state/{link}/evolution/x/run.json": (FILE, b"{}")}
        forge(green, GOOD | state, {link: (LINK, os.fsencode(target))}, {})
        with pytest.raises(UsageProblem, match="is a link"):
            green.clone()
    assert not list(target.iterdir())
