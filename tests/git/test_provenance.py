"""Which versions of a file somebody else wrote: real repositories, one situation each.

Every situation begins with a clone `me` of `up`, whose commit of `f` ("a") is Eve's, and is a shell script that runs in
`me`. `they TEXT` commits f in `up`; `add TEXT` appends a line to f and commits it here.
"""

import os
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from rooda.git import provenance
from rooda.git.provenance import Versions, foreign_versions, foreign_versions_of

FUNCTIONS = """set -e
eve="env GIT_AUTHOR_NAME=Eve GIT_AUTHOR_EMAIL=eve@x GIT_COMMITTER_NAME=Eve GIT_COMMITTER_EMAIL=eve@x"
they() { (cd ../up; printf "$1" >f; git add -A; $eve git commit -qm "${2:-theirs}"); }
add() { printf "$1" >>f; git add f; git commit -qm "add"; }
pull() { git pull -q --no-edit "$@"; }
"""
SETTINGS = {"init.defaultBranch": "main", "pull.rebase": "false", "protocol.file.allow": "always"}
IDENTITY = {
    **{f"GIT_{role}_NAME": "Me" for role in ("AUTHOR", "COMMITTER")},
    **{f"GIT_{role}_EMAIL": "me@x" for role in ("AUTHOR", "COMMITTER")},
    **{f"GIT_CONFIG_KEY_{n}": key for n, key in enumerate(SETTINGS)},
    **{f"GIT_CONFIG_VALUE_{n}": value for n, value in enumerate(SETTINGS.values())},
    "GIT_CONFIG_COUNT": str(len(SETTINGS)),
}


def shell(folder: Path, script: str) -> None:
    env = {**os.environ, **IDENTITY}
    done = subprocess.run(["bash", "-c", FUNCTIONS + script], cwd=folder, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    world = tmp_path_factory.mktemp("world")
    shell(world, "git init -q --template= up; mkdir x; cd x; they 'a\\n'; cd ..; rmdir x")
    shell(world, "git -C up config receive.denyCurrentBranch updateInstead")
    shell(world, "git clone -q --template= up me; git -C me remote set-url origin ../up")
    return world


@pytest.fixture
def world(template: Path, tmp_path: Path) -> Path:
    shutil.copytree(template, tmp_path / "world", symlinks=True)
    return tmp_path / "world"


def texts(versions: Versions | None) -> list[str] | None:
    return None if versions is None else sorted(content.decode() for content in versions.contents)


class Case(NamedTuple):
    script: str
    expected: list[str] | None
    path: str = "f"
    workspace: str = "me"


PICKED = "they 'a\\nb\\n'; git fetch -q; git checkout -q -b w; git cherry-pick origin/main"
CASES = {
    # what came, and what a person adds to it
    "a clone": Case("", ["a\n"]),
    "a line added to their file": Case("echo b >>f", ["a\n"]),
    "a line added and committed": Case("add 'b\\n'", ["a\n"]),
    "other line ends": Case("printf 'a\\r\\n' >f; git commit -qam crlf", ["a\n"]),
    "their newest version is the one": Case("they 'b\\n'; they 'c\\n'; pull", ["c\n"]),
    "a commit of one's own between theirs": Case("add 'b\\n'; git push -q; they 'c\\n'; pull; add 'd\\n'", ["c\n"]),
    "an own file, untracked": Case("echo x >g", [], "g"),
    "an own file, committed": Case("echo x >g; git add g; git commit -qm g", [], "g"),
    "an own file, committed again and pushed": Case(
        "for i in 1 2 3; do echo $i >g; git add g; git commit -qm g; done; git push -q; they 'b\\n'; pull", [], "g"
    ),
    "an own file that they change": Case(
        "echo x >g; git add g; git commit -qm g; git push -q; (cd ../up; echo y >g; they b); pull", ["y\n"], "g"
    ),
    "an ignored file": Case("echo g >.gitignore; echo x >g; git add .gitignore; git commit -qm i", [], "g"),
    "a file that doesn't exist": Case("", [], "none/at/all"),
    "their commit under the user's name": Case("eve=; they 'b\\n'; pull; add 'c\\n'", ["b\n"]),
    # deletions and renames
    "deleted here": Case("git rm -q f; git commit -qm d", ["a\n"]),
    "deleted here, written again": Case("git rm -q f; git commit -qm d; echo a >f", ["a\n"]),
    "deleted by them": Case("(cd ../up; git rm -q f; $eve git commit -qm d); pull", [""]),
    "deleted by them, written here": Case("(cd ../up; git rm -q f; $eve git commit -qm d); pull; add 'x\\n'", [""]),
    "renamed by them": Case("(cd ../up; git mv f g; $eve git commit -qm m); pull", ["a\n"], "g"),
    "renamed here": Case("git mv f g; git commit -qm m", [], "g"),
    # merges
    "a merge that leaves the file alone": Case(
        "add 'b\\n'; (cd ../up; echo y >g; git add g; $eve git commit -qm g); pull", ["a\n"]
    ),
    "a merge that takes their file": Case("echo x >g; git add g; git commit -qm g; they 'b\\n'; pull", ["b\n"]),
    "a merge of both sides' lines by git": Case(
        "they '1\\n2\\n3\\n4\\n5\\n'; pull; sed -i 1s/1/mine/ f; git commit -qam 1;"
        "they '1\\n2\\n3\\n4\\nyours\\n'; pull",
        ["mine\n2\n3\n4\nyours\n"],
    ),
    "a merge resolved here": Case(
        "add 'b\\n'; they 'c\\n'; pull || true; echo mixed >f; git commit -qam m", ["a\n", "c\n"]
    ),
    "an own merge without conflicts": Case(
        "they 'b\\n'; git fetch -q; echo x >g; git add g; git commit -qm g; git merge -q --no-commit origin/main;"
        "git commit -qm m",
        ["b\n"],
    ),
    "an octopus": Case(
        "for b in 1 2; do git checkout -q -b b$b origin/main; echo $b >g$b; git add .; git commit -qm $b; done;"
        "git checkout -q main; add 'x\\n'; git merge -q --no-edit b1 b2",
        ["a\n"],
    ),
    "a criss-cross": Case(
        "git branch other; add 'b\\n'; git checkout -q other; echo x >g; git add g; git commit -qm g;"
        "git merge -q --no-edit main; git checkout -q main; git merge -q --no-edit other~1;"
        "git merge -q --no-edit other",
        ["a\n"],
    ),
    "an unfinished merge": Case(
        "they 'b\\n'; git fetch -q; add 'x\\n'; git merge -q origin/main || true", ["a\n", "b\n"]
    ),
    "an unfinished cherry-pick": Case(
        "they 'b\\n'; git fetch -q; add 'x\\n'; git cherry-pick origin/main || true", ["a\n", "b\n"]
    ),
    "a squashed merge is a commit made here": Case(
        "they 'b\\n'; git fetch -q; git merge -q --squash origin/main; git commit -qm s", ["a\n"]
    ),
    # copies
    "a rebase of own commits": Case(
        "add 'x\\n'; echo 1 >g; git add g; git commit -qm g; they 'a\\n' || (cd ../up; echo 1 >h; they 'a\\n');"
        "git fetch -q; git rebase -q origin/main",
        ["a\n"],
    ),
    "pull --rebase": Case(
        "they '1\\n2\\n3\\n4\\n'; pull; add 'x\\n'; they '0\\n2\\n3\\n4\\n'; pull --rebase;grep -q x f",
        ["0\n2\n3\n4\n"],
    ),
    "a rebase, twice, and reworded": Case(
        "add 'x\\n'; (cd ../up; echo 1 >h; they 'a\\n'); pull --rebase; git commit -q --amend -m other;"
        "(cd ../up; echo 2 >h; they 'a\\n'); pull --rebase",
        ["a\n"],
    ),
    "own commits squashed": Case(
        "add 'x\\n'; add 'y\\n'; GIT_SEQUENCE_EDITOR='sed -i 2s/pick/squash/' GIT_EDITOR=true git rebase -q -i HEAD~2",
        ["a\n"],
    ),
    "an own commit picked": Case("git branch old; add 'x\\n'; git checkout -q old; git cherry-pick main", ["a\n"]),
    "their commit picked": Case(PICKED, ["a\nb\n"]),
    "their commit picked, then a commit": Case(f"{PICKED}; add 'c\\n'", ["a\nb\n"]),
    "their commit picked, with the user's name and date": Case(
        "add 'x\\n'; git push -q; export GIT_AUTHOR_DATE=$(git log -1 --format=%ad --date=raw);"
        "git checkout -q -b w; eve=; they 'a\\nx\\nevil\\n'; git fetch -q; git cherry-pick origin/main",
        ["a\nx\nevil\n"],
    ),
    "their commit of lines that are written here too": Case(
        "git branch w; add 'x\\n'; git checkout -q w; they 'a\\nx\\n'; git fetch -q; git cherry-pick origin/main",
        ["a\nx\n"],
    ),
    "their content committed in a rebase": Case(
        "they 'b\\n'; pull; add 'c\\n'; echo 'exec git checkout -q ORIG_HEAD -- f && git commit -qm x' >../todo;"
        "GIT_SEQUENCE_EDITOR='cp ../todo' git rebase -q -i HEAD~2",
        ["a\n", "b\n"],
    ),
    "their commit picked after a conflict": Case(
        "add 'x\\n'; they 'b\\n'; git fetch -q; git cherry-pick origin/main || true; echo b >f; git add f;"
        "git -c core.editor=true cherry-pick --continue",
        ["b\n"],
    ),
    "their commit rebased": Case(
        "echo x >g; git add g; git commit -qm g; they 'b\\n'; git fetch -q; git checkout -q -b w origin/main;"
        "git rebase -q main",
        ["b\n"],
    ),
    "their commit amended": Case(
        "they 'b\\n'; pull; echo c >>f; git commit -qa --amend --reset-author -m x", ["b\n", "a\n"]
    ),
    "their commit melted into an own one": Case(
        "add 'x\\n'; git push -q; they 'a\\nx\\nevil\\n'; pull;"
        "GIT_SEQUENCE_EDITOR='sed -i 2s/pick/fixup/' git rebase -q -i HEAD~2",
        ["a\nx\nevil\n"],
    ),
    "their commit taken back and committed": Case(
        "they 'b\\n'; pull; git reset -q --soft HEAD~1; git commit -qm x", ["a\n", "b\n"]
    ),
    "their commit as a patch": Case(
        "they 'b\\n'; git -C ../up format-patch -q -1 -o ..; git checkout -q -b w; git am -q ../0001*", ["b\n"]
    ),
    "a revert": Case("they 'b\\n'; pull; git revert --no-edit HEAD", ["a\n"]),
    "a branch whose name looks like a pick": Case(
        "(cd ../up; git checkout -q -b 'x/(pick)'; they 'b\\n'); git fetch -q; git merge -q 'origin/x/(pick)';"
        "git pull -q . 'origin/x/(pick)'",
        ["b\n"],
    ),
    "a branch whose name is commit": Case("git checkout -q -b commit; they 'b\\n'; pull origin main", ["b\n"]),
    "own changes stashed": Case("echo b >>f; git stash -q; git stash pop -q", ["a\n"]),
    # reflogs
    "no reflog": Case("add 'b\\n'; rm -r .git/logs", ["a\nb\n"]),
    "a trimmed reflog": Case("add 'b\\n'; git reflog expire --expire=now --all", ["a\nb\n"]),
    "a reflog that is a pipe": Case("add 'b\\n'; rm .git/logs/HEAD; mkfifo .git/logs/HEAD", ["a\nb\n"]),
    "lost objects": Case(
        "add 'b\\n'; git commit -q --amend -m other; git reflog expire --expire=now --all; add 'c\\n';"
        "git gc -q --prune=now",
        ["a\nb\n"],
    ),
    # repositories
    "no repository": Case("rm -rf .git", None),
    "an empty .git": Case("rm -rf .git; mkdir .git", None),
    "a damaged repository": Case("rm .git/HEAD; echo now >f", ["now\n"]),
    "lost files of git": Case("rm -rf .git/objects; mkdir .git/objects; echo now >f", ["now\n"]),
    "no remote": Case("rm -rf .git; git init -q; git add .; git commit -qm x", None),
    "a remote that was removed": Case("git remote remove origin", ["a\n"]),
    "only fetched from": Case(
        "rm -rf .git; git init -q; git pull -q ../up main 2>/dev/null || git reset -q --hard FETCH_HEAD", ["a\n"]
    ),
    "an own repository with a remote": Case(
        "rm -rf .git; git init -q; git remote add origin ../up; git add .; git commit -qm x; add 'b\\n'", []
    ),
    "before the first commit": Case("rm -rf .git; git init -q; git remote add origin ../up", []),
    "a branch without parents": Case("git checkout -q --orphan o; git commit -qm x; git branch -D main", ["a\n"]),
    "a branch without parents or commits": Case("git checkout -q --orphan o", ["a\n"]),
    "a detached HEAD": Case("they 'b\\n'; git fetch -q; git checkout -q --detach; add 'x\\n'", ["a\n"]),
    "a shallow clone": Case("they 'b\\n'; cd ..; git clone -q --depth 1 file://$PWD/up new", ["b\n"], "f", "new"),
    "history cut off below an own commit": Case(
        "add 'b\\n'; git push -q; git remote set-url origin file://$PWD/../up; git fetch -q --depth 1", ["a\nb\n"]
    ),
    "a replaced commit": Case("add 'b\\n'; git replace --graft HEAD", ["a\n"]),
    "a graft": Case("add 'b\\n'; mkdir -p .git/info; git rev-parse HEAD >.git/info/grafts", ["a\n"]),
    "sha256": Case(
        "cd ..; rm -rf me up; git init -q --object-format=sha256 up; git init -q me; cd me; they 'a\\n'; cd ..;"
        "rm -rf me; git clone -q up me; cd me; add 'b\\n'",
        ["a\n"],
    ),
    "a linked work tree": Case("git worktree add -q ../tree; cd ../tree; add 'b\\n'", ["a\n"], "f", "tree"),
    "a commit of another work tree": Case(
        "git worktree add -q ../tree; cd ../tree; echo x >g; git add g; git commit -qm g; cd ../me; git merge -q tree",
        [],
        "g",
    ),
    "a work tree of a bare repository": Case(
        "cd ..; git clone -q --bare up bare; git -C bare worktree add -q ../tree main; cd tree; add 'b\\n'",
        ["a\n"],
        "f",
        "tree",
    ),
    "a submodule": Case(
        "echo x >g; git add g; git commit -qm g; git submodule --quiet add ../up sub; git commit -qm sub",
        ["a\n"],
        "sub/f",
    ),
    "a subfolder": Case(
        "(cd ../up; mkdir d; echo y >d/g; they 'a\\n'); pull; echo z >>d/g; git commit -qam z", ["y\n"], "g", "me/d"
    ),
    # what is on the disk is not what git stores
    "their link to an own file": Case(
        "echo mine >h; (cd ../up; rm f; ln -s h f; git add f; $eve git commit -qm l); pull", ["mine\n"]
    ),
    "an own link to their file": Case("ln -s f g; git add g; git commit -qm l", ["a\n"], "g"),
    "an own link to a folder of theirs": Case(
        "(cd ../up; mkdir d; echo y >d/g; they 'a\\n'); pull; ln -s d e", ["y\n"], "e/g"
    ),
    "a link to itself": Case("ln -s g g", [], "g"),
    "their link, replaced by a file": Case(
        "(cd ../up; git mv f h; ln -s h f; git add f; $eve git commit -qm l); pull; rm f; echo x >f", ["a\n"]
    ),
    "a filter": Case(
        "git config filter.up.smudge 'tr a-z A-Z'; git config filter.up.clean 'tr A-Z a-z';"
        "(cd ../up; echo 'f filter=up' >.gitattributes; they 'b\\n'); pull; echo X >>f",
        ["B\nX\n"],
    ),
    "a pointer of LFS": Case("they 'version https://git-lfs.github.com/spec/v1\\n'; pull; echo evil >f", ["evil\n"]),
    "another case": Case("git config core.ignorecase true; they 'b\\n'; pull", ["b\n"], "F"),
    "a name with blanks, stars and colons": Case(
        "(cd ../up; echo y >' :(top)*[a].x'; they 'a\\n'); pull", ["y\n"], " :(top)*[a].x"
    ),
    "a name with a line end": Case("(cd ../up; echo y >$'x\\ny'; they 'a\\n'); pull", ["y\n"], "x\ny"),
}


@pytest.mark.parametrize("name", CASES)
def test_S_03_the_newest_version_made_elsewhere(name: str, world: Path) -> None:
    """The newest version, in each line of history, that was not made here."""
    case = CASES[name]
    shell(world / "me", case.script)
    found = foreign_versions(str(world / case.workspace), case.path)
    assert texts(found) == (case.expected if case.expected is None else sorted(case.expected))
    assert found is None or len(found.commits) == len(found.contents)


def test_S_03_several_files_at_once(world: Path) -> None:
    """Files of several repositories, and of none, each with its own versions."""
    shell(world / "me", "git submodule --quiet add ../up sub; git commit -qm sub; echo x >g; ln -s /etc/hostname out")
    found = foreign_versions_of(str(world / "me"), ["f", "g", "none", "sub/f", "/etc/hostname", "out"])
    assert found and {path: texts(each) for path, each in found.items()} == {
        "f": ["a\n"], "g": [], "none": [], "sub/f": ["a\n"], "/etc/hostname": [], "out": [],
    }  # fmt: skip


def test_S_03_a_file_added_by_a_merge_commit_is_found(world: Path) -> None:
    """The walk that sorts out untracked names sees what only a merge commit added."""
    script = """cd ../up; git checkout -q -b b; they b; git checkout -q main; they c || true
    $eve git merge -q -s ours --no-commit b; echo y >g; git add g; $eve git commit -qm m; cd ../me; pull"""
    shell(world / "me", script)
    found = foreign_versions_of(str(world / "me"), ["g", "f", "h"])
    assert found and {path: texts(each) for path, each in found.items()} == {"f": ["c"], "g": ["y\n"], "h": []}


def test_S_03_a_long_history_is_read_to_its_end(world: Path) -> None:
    """Own commits on top of somebody's version, more than the first question asks for."""
    shell(world / "me", "for n in $(seq 70); do echo $n >>f; git commit -qam $n; done")
    assert texts(foreign_versions(str(world / "me"), "f")) == ["a\n"]


def test_S_03_without_git_a_file_counts_as_foreign(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If git can't be run, all that the file holds now counts as foreign."""
    monkeypatch.setenv("PATH", str(world))
    assert foreign_versions(str(world / "me"), "f") == Versions(("",), (b"a\n",))


def test_S_03_a_git_that_takes_too_long_is_not_waited_for(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the file holds now counts as somebody else's."""
    monkeypatch.setattr(provenance, "TIMEOUT", 0.0)
    assert foreign_versions(str(world / "me"), "f") == Versions(("",), (b"a\n",))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_S_03_a_repository_of_another_user_counts_as_foreign(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """git refuses it as "dubious ownership"."""
    shell(world / "me", "rm -rf .git; git init -q; git add .; git commit -qm x; chown 4002 .git .")
    assert foreign_versions(str(world / "me"), "f") == Versions(("",), (b"a\n",))
