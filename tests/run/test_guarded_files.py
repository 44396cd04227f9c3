"""Files that start something for people or tools: an agent's change is put back, git's own work is not."""

import os
import shutil
import stat
from pathlib import Path

import pytest

from tests.kit.walled import BWRAP, wall, walled  # noqa: F401 - a fixture
from tests.kit.workspace import Workspace

pytestmark = BWRAP

WRITES = """
echo "[hooks]" >>rooda.toml
mkdir -p .github/workflows .claude; echo "on: push" >.github/workflows/evil.yml
rm .envrc; ln -s /etc .vscode
echo '{"hooks": 1}' >.claude/settings.json
printf '%s' /evil >.git/commondir
echo changed >AGENTS.md
"""


def test_S_21_changes_of_guarded_files_are_put_back(walled: Workspace) -> None:  # noqa: F811
    """New, changed, deleted and linked ones; what the agent wrote is kept, shown and reported to the next call."""
    walled.write(".envrc", "export A=1\n")
    before = walled.read("rooda.toml")
    walled.side(1, WRITES)
    run = walled.rooda("build", "-n", "2")
    assert run.code == 0, run.err
    assert walled.read("rooda.toml") == before and walled.read(".envrc") == "export A=1\n"
    gone = (".github/workflows/evil.yml", ".vscode", ".claude/settings.json", ".git/commondir")
    assert not [name for name in gone if walled.exists(name)]
    assert walled.read("AGENTS.md") == "changed\n"
    event = next(event for event in walled.events() if event["event"] == "files.restored")
    assert event["paths"] == sorted([*gone, ".envrc", "rooda.toml"])
    assert Path(event["kept"], ".github/workflows/evil.yml").read_text() == "on: push\n"
    assert "You may not change these files; rooda put them back: .claude/settings.json" in walled.calls[1].text
    assert "Restored files that agents and gates may not change: " in run.err
    assert "  sandbox     put back: .claude/settings.json" in run.err


def test_S_21_a_link_in_a_folders_place_is_not_written_through(walled: Workspace) -> None:  # noqa: F811
    """The agent replaces .claude by a link to its HOME's: rooda restores the folder, and nothing outside changes."""
    walled.write(".claude/settings.json", "{}\n")
    outside = Path(walled.home, "outside")
    outside.mkdir()
    walled.side(1, f"rm -r .claude; ln -s {outside} .claude")
    assert walled.rooda("build", "-n", "1").code == 0
    assert not list(outside.iterdir()) and not Path(walled.file(".claude")).is_symlink()
    assert walled.read(".claude/settings.json") == "{}\n"


def test_S_21_allow_names_what_may_change(walled: Workspace) -> None:  # noqa: F811
    """`allow = [".github/workflows"]`: a workflow stays, another file does not."""
    wall(walled, keys='allow = [".github/workflows"]')
    walled.side(1, "mkdir -p .github/workflows; echo on >.github/workflows/ci.yml; echo x >.mcp.json")
    assert walled.rooda("build", "-n", "1").code == 0
    assert walled.read(".github/workflows/ci.yml") == "on\n" and not walled.exists(".mcp.json")


@pytest.mark.parametrize(
    "how",
    ["git merge -q -m merge main", "git rebase -q main", "git checkout -q main", "git merge -q -m m main && git gc -q"],
)
def test_S_21_what_git_brings_stays(walled: Workspace, how: str) -> None:  # noqa: F811
    """A merge, a rebase and a checkout bring the target's workflow and AGENTS.md; an own change does not stay."""
    walled.git("checkout", "-qb", "work")
    walled.git("commit", "-q", "--allow-empty", "-m", "mine")
    walled.git("checkout", "-q", "main")
    walled.write(".github/workflows/ci.yml", "on: push\n")
    walled.write("AGENTS.md", "# Rules\n")
    walled.git("add", "-A")
    walled.git("commit", "-qm", "rules")
    walled.git("checkout", "-q", "work")
    walled.side(1, f'{how} && echo fine >"$FAKE/fine"; echo x >.mcp.json; git add .mcp.json; git commit -qm evil')
    run = walled.rooda("build", "-n", "1")
    assert run.code == 0 and Path(walled.fake, "fine").exists(), run.err + str(walled.events())
    assert walled.read(".github/workflows/ci.yml") == "on: push\n" and walled.exists("AGENTS.md")
    assert not walled.exists(".mcp.json")
    assert walled.git("fsck", "--no-dangling") == ""


ODD = """
mkfifo .mcp.json
rm opencode.json; mkdir opencode.json; echo x >opencode.json/x
chmod 666 .envrc
mv .vscode .vscode2
mkdir -p .cursor; echo x >.cursor/rules; chmod 0 .cursor/rules .cursor
chmod 0 .claude
mkdir .codex; cd .codex; seq 2500 | xargs touch; cd ..; echo evil >.aider.conf.yml
mkdir -p sub/.claude; echo x >sub/.claude/settings.json
"""


def test_S_21_no_way_to_change_a_guarded_file_is_missed(walled: Workspace) -> None:  # noqa: F811
    """A FIFO, a folder, other permissions, closed files and folders, a renamed folder, thousands of files at once."""
    before = {"opencode.json": "{}\n", ".envrc": "export A=1\n", ".vscode/tasks.json": "{}\n", ".claude/a/b": "b\n"}
    for name, text in before.items():
        walled.write(name, text)
    os.chmod(walled.file(".envrc"), 0o640)
    os.chmod(walled.file(".claude"), 0o750)
    walled.side(1, ODD)
    run = walled.rooda("build", "-n", "2")
    assert run.code == 0, run.err
    assert {name: walled.read(name) for name in before} == before
    modes = [stat.S_IMODE(os.stat(walled.file(name)).st_mode) for name in (".envrc", ".claude")]
    assert modes == [0o640, 0o750]
    gone = (".mcp.json", ".cursor/rules", ".codex", ".aider.conf.yml")
    assert not [name for name in gone if walled.exists(name)]
    assert len([event for event in walled.events() if event["event"] == "files.restored"]) == 1
    assert walled.exists("sub/.claude/settings.json")  # only the workspace's folders are guarded


def test_S_21_settings_above_the_workspace_are_guarded(walled: Workspace) -> None:  # noqa: F811
    """rooda, and other tools, read the files of each folder between the workspace and the repository's top."""
    shutil.copytree(walled.file("prompts"), walled.file("a/b/prompts"))
    shutil.copy(walled.file("rooda.toml"), walled.file("a/b"))
    walled.side(1, "echo '[hooks]' >../rooda.toml; echo '[hooks]' >>../../rooda.toml; echo x >../.mcp.json")
    run = walled.rooda("build", "-n", "1", cwd=walled.file("a/b"))
    assert run.code == 0, run.err
    assert not walled.exists("a/rooda.toml") and not walled.exists("a/.mcp.json")
    assert "[hooks]" not in walled.read("rooda.toml")


def test_S_21_a_large_guarded_file_is_never_emptied(walled: Workspace) -> None:  # noqa: F811
    """A file of 3 MB is put back whole; one of 17 MB can't be, which is reported."""
    walled.write(".vscode/a", "a" * 3_000_000)
    walled.write(".vscode/b", "b" * 17_000_000)
    walled.side(1, "echo x >.vscode/a; echo x >>.vscode/b")
    run = walled.rooda("build", "-n", "1")
    assert walled.read(".vscode/a") == "a" * 3_000_000
    assert "a guarded file that can't be restored: .vscode/b: rooda can only restore files" in run.err
    assert not walled.exists(".vscode/b")
    (kept,) = Path(walled.path, ".rooda/runs").glob("*/put-back-*/.vscode/b")
    assert kept.stat().st_size == 17_000_002


GIT_FOLDER = """
for name in hooks info modules worktrees rooda refs/rooda
do mkdir -p "$GIT/$name/x" && echo "$name" >>"$FAKE/made"
done
printf %s /evil >"$GIT/commondir"
printf "[core]\\n" >"$GIT/config.worktree"
git worktree add -q sub/tree && echo worktree >>"$FAKE/made"
rm "$GIT/hooks"; mkdir "$GIT/hooks"; echo evil >"$GIT/hooks/pre-commit"
"""


@pytest.mark.parametrize("where", ["main", "worktree", "linked hooks"])
def test_S_21_the_git_folder_has_walls(walled: Workspace, where: str) -> None:  # noqa: F811
    """Also in a fresh repository, from a linked worktree, and where .git/hooks is a link into the project."""
    git = Path(walled.file(".git"))
    if where == "linked hooks":
        walled.write("githooks/pre-commit", "true\n")
        shutil.rmtree(git / "hooks", ignore_errors=True)
        (git / "hooks").symlink_to("../githooks")
    cwd = walled.path
    if where == "worktree":
        cwd = walled.file("../linked")
        walled.git("worktree", "add", "-q", cwd)
    walled.side(1, GIT_FOLDER.replace("$GIT", str(git)) + "echo evil >>githooks/pre-commit")
    run = walled.rooda("build", "-n", "1", cwd=cwd)
    assert run.code == 0, run.err
    assert not Path(walled.fake, "made").exists(), Path(walled.fake, "made").read_text()
    assert not (git / "commondir").exists() and not (git / "config.worktree").exists()
    assert (git / "hooks").is_symlink() is (where == "linked hooks")
    assert not (git / "hooks/pre-commit").exists() or (git / "hooks/pre-commit").read_text() == "true\n"
    assert walled.git("fsck", "--no-dangling") == ""


def test_S_21_a_branch_of_an_agent_brings_nothing(walled: Workspace) -> None:  # noqa: F811
    """A commit that an agent made in one call is still not the user's in the next call, or in the next session."""
    evil = "git checkout -q -b evil; echo x >.mcp.json; git add -f .mcp.json; git commit -qm evil; git checkout -q main"
    walled.side(1, evil)
    merge = 'git checkout -q . ; git merge -q evil && echo merged >>"$FAKE/merged"; git reset -q --hard evil'
    walled.side(2, merge)
    walled.side(3, merge)
    for words in (("-n", "2"), ("-n", "1", "--fresh")):
        run = walled.rooda("build", *words)
        assert run.code == 0, run.err
        assert not walled.exists(".mcp.json")
    assert Path(walled.fake, "merged").exists()


def test_S_21_what_the_user_commits_between_two_calls_is_known(walled: Workspace) -> None:  # noqa: F811
    """A branch that appears while rooda waits, and one that is deleted after its merge: both are the user's."""
    text = "on: push\n"
    for number in (1, 2):
        folder = walled.file(f"../tree-{number}")
        walled.git("worktree", "add", "-q", "-b", f"topic-{number}", folder)
        Path(folder, ".github/workflows").mkdir(parents=True)
        Path(folder, f".github/workflows/{number}.yml").write_text(text)
    for words in (["add", "-A"], ["commit", "-qm", "topic"]):
        walled.git("-C", walled.file("../tree-1"), *words)
    walled.side(1, "git merge -q topic-1")
    assert walled.rooda("build", "-n", "1").code == 0
    for words in (["add", "-A"], ["commit", "-qm", "topic"]):
        walled.git("-C", walled.file("../tree-2"), *words)
    walled.side(2, "git merge -q -m merge topic-2")
    assert walled.rooda("build", "-n", "1", "--fresh").code == 0
    assert walled.read(".github/workflows/1.yml") == walled.read(".github/workflows/2.yml") == text


def test_S_21_a_merge_over_two_calls_and_an_old_commit(walled: Workspace) -> None:  # noqa: F811
    """A conflict is resolved in the next call; a checkout of an older commit brings that commit's files."""
    walled.write("file", "base\n")
    walled.git("add", "-A")
    walled.git("commit", "-qm", "base")
    walled.git("checkout", "-qb", "work")
    walled.write("file", "mine\n")
    walled.git("commit", "-qam", "mine")
    walled.git("checkout", "-q", "main")
    walled.write("file", "theirs\n")
    walled.write(".github/workflows/ci.yml", "on: push\n")
    walled.git("add", "-A")
    walled.git("commit", "-qm", "theirs")
    walled.git("checkout", "-q", "work")
    walled.side(1, "git merge -q main; true")
    walled.side(2, "echo both >file; git commit -qam merged")
    walled.side(3, "git checkout -q main~1; test ! -e .github/workflows/ci.yml && git checkout -q main")
    walled.side(4, "git checkout -q main~1")
    run = walled.rooda("build", "-n", "3")
    assert run.code == 0, run.err
    assert walled.git("show", "work:.github/workflows/ci.yml") == "on: push\n"
    assert walled.read(".github/workflows/ci.yml") == "on: push\n" and walled.git("status", "--porcelain") == ""
    assert walled.rooda("build", "-n", "1", "--fresh").code == 0
    assert not walled.exists(".github/workflows/ci.yml") and walled.git("status", "--porcelain") == ""


USUAL = """
git checkout -q feature && git checkout -q -b other origin/feature && git checkout -q main && git stash -q &&
git stash pop -q && git commit -qam mine && git rebase -q feature && git cherry-pick -n main && git reset -q --hard &&
git tag v1 && git gc -q --prune=now && git fsck && echo fine
"""


def test_S_21_git_works_without_a_complaint(walled: Workspace) -> None:  # noqa: F811
    """Checkouts that would track, stash, rebase, gc: nothing tries to write .git/config or .git/info."""
    walled.write("file", "1\n")
    walled.git("add", "-A")
    walled.git("commit", "-qm", "file")
    walled.git("update-ref", "refs/remotes/origin/feature", "HEAD")
    walled.git("remote", "add", "origin", "/nowhere")
    walled.side(1, f'echo 2 >file; {{ {USUAL.strip()}; }} >"$FAKE/said" 2>&1')
    assert walled.rooda("build", "-n", "1").code == 0
    assert Path(walled.fake, "said").read_text() == "fine\n"


EVIL = {
    "setting": "git config core.fsmonitor ./evil",
    "one line": "echo '[core] fsmonitor = ./evil' >>.git/config",
    "include": "printf '[include]\\n\\tpath = ../evil\\n' >>.git/config",
    "hook": "echo evil >.git/hooks/post-checkout; chmod +x .git/hooks/post-checkout",
    "linked hooks": "rm -r .git/hooks; ln -s ../evil .git/hooks",
    "elsewhere": "mv .git sub; echo 'gitdir: sub' >.git",
    "commondir": "echo ../evil >.git/commondir",
    "nothing": "git config user.name Agent; git config branch.main.remote origin",
}


@pytest.mark.parametrize("how", EVIL)
def test_S_21_a_repository_that_an_agent_makes_starts_nothing(ws: Workspace, how: str) -> None:
    """In a project without one `git init` stays, with its commits; with settings that run something it is set aside."""
    wall(ws)
    ws.side(1, f"mkdir -p .git/hooks; git init -q; echo x >f; git add f; git commit -qm first; {EVIL[how]}")
    run = ws.rooda("build", "-n", "1")
    assert run.code == 0, run.err
    if how == "nothing":
        assert ws.git("log", "--format=%s") == "first\n" and "Restored files" not in run.err
    else:
        assert not os.path.lexists(ws.file(".git")) and "may not change: .git" in run.err
        assert len([*Path(ws.path, ".rooda/runs").glob("*/put-back-1/.git")]) == 1
