"""A clone restored on another machine has the work tree, HEAD and branches that the agent left."""

import os
import stat
from pathlib import Path

import pytest

from tests.kit.fleet_git import Worker, git, new_remote

FILES = {
    "a.txt": "a\n",
    "b.txt": "b\n",
    "run.sh": "echo\n",
    "in/deep/c.txt": "c\n",
    "in/d.txt": "d\n",
    "out/e.txt": "e\n",
}
CASES = {
    "uncommitted": "echo more >>a.txt; echo more >>in/d.txt",
    "staged": "echo more >>a.txt; git add a.txt; echo new >n; git add n",
    "untracked": "mkdir -p x/y; echo new >x/y/z; echo 'odd' >'with  blank é'; printf '' >empty",
    "deleted": "rm a.txt; rm -r in",
    "staged delete": "git rm -q a.txt",
    "renamed": "git mv a.txt z.txt; mv b.txt y.txt",
    "mode": "chmod +x run.sh; chmod +x in/d.txt",
    "symlink": "ln -s a.txt link; ln -sf nowhere b.txt; ln -s /etc/passwd absolute; ln -s in folder",
    "file to folder": "rm a.txt; mkdir a.txt; echo x >a.txt/x; rm -r in; echo file >in",
    "folder to link": "rm -r in; ln -s out in",
    "sparse": "git sparse-checkout set in; echo more >>in/d.txt",
    "sparse with a file outside": "git sparse-checkout set in; mkdir -p out; echo here >out/new; echo more >>in/d.txt",
    "sparse patterns": "git sparse-checkout set --no-cone '/*' '!/out/'; echo more >>a.txt",
    "committed": "echo more >>a.txt; git commit -qam one; echo two >>a.txt",
    "branch switched": "git checkout -q -b other; echo more >>a.txt; git commit -qam other; echo two >n",
    "detached": "echo x >>a.txt; git commit -qam x; git checkout -q --detach HEAD~1; echo more >>a.txt",
    "reset": "echo x >>a.txt; git commit -qam x; git branch kept; git reset -q --hard HEAD~1",
    "another root": "git checkout -q --orphan fresh; git rm -rq --cached .; echo new >n",
    "mid-merge": "git checkout -q -b m; echo m >a.txt; git commit -qam m; git checkout -q -; echo o >a.txt;"
    " git commit -qam o; git merge -q m || true",
    "stash": "echo more >>a.txt; git stash -q; echo other >>b.txt",
    "odd names": "printf x >'a b'; printf x >'\"quoted\"'; printf y >'back\\slash'; printf z >'tab\tname'",
    "bytes": "printf 'x' >\"$(printf 'latin\\351')\"; printf 'line\\r\\nends\\r\\n' >crlf; printf '\\0\\1' >binary",
    "nested repository": "git init -q inner; echo x >inner/x; git -C inner add x; git -C inner commit -qm x; echo y >y",
}


def tree_of(root: str) -> dict[bytes, tuple[str, bytes]]:
    """Kind and content of every file below a folder, without git's own and rooda's."""
    found = {}
    for folder, inner, names in os.walk(os.fsencode(root)):
        inner[:] = [name for name in inner if name not in (b".git", b".rooda")]
        for name in [*names, *(each for each in inner if os.path.islink(os.path.join(folder, each)))]:
            path = os.path.join(folder, name)
            mode = os.lstat(path).st_mode
            kind = "link" if stat.S_ISLNK(mode) else "program" if mode & 0o100 else "file"
            content = os.readlink(path) if kind == "link" else Path(os.fsdecode(path)).read_bytes()
            found[os.path.relpath(path, os.fsencode(root))] = (kind, content)
    return found


def state_of(root: str) -> tuple[str, ...]:
    """What git says of HEAD, branches and changes; a staged new file is a new file."""
    asked = [("symbolic-ref", "-q", "--short", "HEAD"), ("rev-parse", "-q", "--verify", "HEAD")]
    said = [os.popen(f"git -C {root} {' '.join(words)} 2>&1").read() for words in asked]
    said.append(git(root, "for-each-ref", "refs/heads", "refs/stash"))
    return tuple(said)


def changes_of(root: str) -> set[str]:
    """The paths that differ from HEAD, staged or not."""
    rows = git(root, "status", "--porcelain", "--no-renames", "-uall", "-z").split("\0")
    return {row[3:] for row in rows if row}


@pytest.fixture(scope="module")
def blue(tmp_path_factory: pytest.TempPathFactory) -> Worker:
    """A worker, and a remote for the tasks of all cases."""
    folder = tmp_path_factory.mktemp("restore")
    return Worker(folder, "blue", new_remote(folder, FILES))


@pytest.fixture(scope="module")
def green(blue: Worker) -> Worker:
    return Worker(Path(blue.home.parent), "green", blue.mirror.url)


@pytest.mark.parametrize("case", CASES)
def test_FL_03_the_work_tree_is_as_it_was(case: str, blue: Worker, green: Worker) -> None:
    """Files, modes, links, HEAD, branches, and what git calls changed are the same in the restored clone."""
    number = blue.add()
    blue.claim(number)
    root = blue.clone().root
    blue.begin()
    git(root, "-c", f"alias.do=!set -e; cd {root}; {CASES[case]}", "do")
    assert blue.turn(number).kind == "done"
    assert green.claim(number).kind == "done"
    again = green.clone().root
    if case == "nested repository":  # its commits are its own; the place stays
        assert (Path(again, "inner").is_dir(), Path(again, "y").read_text()) == (True, "y\n")
        return
    if not case.startswith("sparse"):
        assert tree_of(again) == tree_of(root)
    else:
        assert {path: what for path, what in tree_of(again).items() if path in tree_of(root)} == tree_of(root)
    assert state_of(again) == state_of(root)
    assert changes_of(again) == changes_of(root)
    assert Path(again, ".git/MERGE_HEAD").exists() == Path(root, ".git/MERGE_HEAD").exists()
    git(again, "fsck", "--connectivity-only")
