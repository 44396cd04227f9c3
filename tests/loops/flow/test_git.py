"""Flows on real git in all its states: what a start refuses, and what a run tolerates."""

import json
import os
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from rooda.demo.goal import SPEC
from tests.kit.flow import Flow
from tests.kit.processes import Running, alive
from tests.kit.snapshots import add_submodule
from tests.kit.workspace import Workspace, until

PASSES = "---\nsensor: unit\nstatus: pass\n---\n"


def refused(flow: Flow, code: int, *said: str) -> None:
    """Expect a refused start: exit code, message, no branch, no run, no call."""
    branches = flow.ws.git("branch", "-a")
    ran = flow.run()
    assert ran.code == code, ran.both
    for text in said:
        assert text in ran.err
    assert flow.ws.git("branch", "-a") == branches
    assert not flow.ws.exists(".ai-loop/runs") and flow.calls == []


@pytest.mark.parametrize("kind", ["changed", "untracked", "staged", "deleted"])
def test_a_dirty_tree_is_refused(flow: Flow, kind: str) -> None:
    """Exit 3 and the file is named; with --allow-dirty it is part of the first commit, and listed."""
    flow.scenario("S1")
    name = "src.txt" if kind in ("changed", "deleted") else ".env with blanks"
    if kind == "deleted":
        os.remove(flow.ws.file(name))
    else:
        flow.ws.write(name, "secret\n")
    if kind == "staged":
        flow.ws.git("add", name)
    refused(flow, 3, name, "--allow-dirty")
    ran = flow.run("do it", "--allow-dirty")
    assert ran.code == 0 and name in ran.err
    assert name in flow.ws.git("show", "--name-only", "--format=", flow.at("0").sha)
    assert "branch -D" not in ran.out  # L-20: no printed command deletes what was the user's


def test_L_20_the_flows_own_files_are_committed_on_the_base_branch(flow: Flow) -> None:
    """Uncommitted flow files: exit 3 and they are named; --commit-setup commits them alone on the base branch."""
    flow.scenario("S1")
    flow.ws.git("rm", "-rq", "--cached", ".ai-loop", ".claude")
    flow.ws.git("commit", "-qm", "without the flow")
    refused(flow, 3, ".ai-loop/flow.yaml", "loop-actuator-main.md", "--commit-setup")
    ran = flow.run("do it", "--commit-setup")
    assert ran.code == 0 and "Committed the files of the flow" in ran.err, ran.both
    names = flow.ws.git("show", "--name-only", "--format=", "main").split()
    assert ".ai-loop/flow.yaml" in names and ".claude/agents/loop-actuator-main.md" in names
    assert not any("/runs/" in name for name in names)
    first = flow.ws.git("show", "--name-only", "--format=", flow.at("0").sha).split()
    assert all(name.startswith(".ai-loop/runs/") for name in first)
    discard = next(line for line in ran.lines if "Discard:" in line).partition("Discard:  ")[2]
    for command in discard.split(" && "):
        flow.ws.git(*command.split()[1:])
    assert flow.ws.exists(".ai-loop/flow.yaml")


def test_no_repository(bare: Workspace) -> None:
    """Outside of git: exit 2 and what to type."""
    flow = Flow(bare, git=False)
    flow.put(flow.levels)
    ran = flow.run()
    assert ran.code == 2 and "git init" in ran.err


def test_a_repository_without_a_commit(bare: Workspace) -> None:
    """A repository without a commit: exit 2."""
    flow = Flow(bare, git=False)
    flow.put(flow.levels)
    bare.git("init", "-q", "-b", "main")
    ran = flow.run()
    assert ran.code == 2 and "no commits yet" in ran.err


def test_a_branch_that_blocks_the_namespace(flow: Flow) -> None:
    """A branch `ai-loop` leaves no room for `ai-loop/…`: exit 2, before anything is made."""
    flow.scenario("S1")
    flow.ws.git("branch", "ai-loop")
    refused(flow, 2, "ai-loop")


def test_no_identity(flow: Flow) -> None:
    """Without a name and address for commits: exit 2 and the settings to make."""
    flow.scenario("S1")
    Path(flow.ws.home, ".gitconfig").write_text("[user]\n\tuseConfigOnly = true\n")
    refused(flow, 2, "user.name")


def test_an_unfinished_merge(flow: Flow) -> None:
    """An unfinished merge: exit 2."""
    flow.scenario("S1")
    git = flow.ws.git
    git("checkout", "-qb", "side")
    flow.ws.write("src.txt", "side\n")
    flow.commit("side")
    git("checkout", "-q", "main")
    flow.ws.write("src.txt", "main\n")
    flow.commit("main")
    with pytest.raises(subprocess.CalledProcessError):
        git("merge", "side")
    refused(flow, 2, "merge")


def test_a_detached_head(flow: Flow) -> None:
    """On a detached HEAD the base is the full commit id."""
    flow.scenario("S1")
    commit = flow.ws.git("rev-parse", "HEAD").strip()
    flow.ws.git("checkout", "-q", "--detach")
    ran = flow.run()
    assert ran.code == 0
    assert flow.state["base-branch"] == commit
    assert f"git checkout -b NAME {commit} && git merge ai-loop/do-it" in ran.out  # else merged into no branch


def test_a_work_tree_of_its_own(flow: Flow, tmp_path: Path) -> None:
    """A run in a linked work tree does not change the first work tree."""
    flow.scenario("S1")
    first = flow.ws.path
    flow.ws.git("worktree", "add", "-q", "-b", "other", str(tmp_path / "tree"))
    flow.ws.path = str(tmp_path / "tree")
    assert flow.run().code == 0
    assert flow.state["base-branch"] == "other"
    head = subprocess.run(["git", "rev-parse", "--abbrev-ref", "HEAD"], cwd=first, capture_output=True, text=True)
    assert head.stdout.strip() == "main"


def test_a_project_below_the_top(bare: Workspace) -> None:
    """With .ai-loop/ in a subfolder, paths are relative to it, and the commits contain the whole tree."""
    flow = Flow(bare, git=False).__class__(bare, git=False)
    top = bare.path
    bare.path = os.path.join(top, "inner folder")
    os.makedirs(bare.path)
    flow = Flow(bare, git=False)
    bare.path = top
    bare.git("init", "-q", "-b", "main")
    bare.git("add", "-A")
    bare.git("commit", "-qm", "all")
    bare.path = os.path.join(top, "inner folder")
    flow.scenario("S1")
    flow.say("actuator-main", "!edit ../outer.txt x\n!sh echo bad > .ai-loop/flow.yaml\n## What Was Done\n\nouter\n")
    before = bare.read(".ai-loop/flow.yaml")
    ran = flow.run()
    assert ran.code == 0, ran.both
    assert flow.labels() == ["0", "1", "2"]
    assert bare.read(".ai-loop/flow.yaml") == before
    assert "outer.txt" in bare.git("show", "--name-only", "--format=", flow.at("1").sha)


def test_ignored_artifacts_are_committed(flow: Flow) -> None:
    """The commits contain the run's files even if .gitignore lists `.ai-loop/`."""
    flow.scenario("S1")
    flow.ws.write(".gitignore", ".ai-loop/\n*.log\n")
    flow.commit("ignore")
    flow.say("actuator-main", "!edit build.log noise\n!edit src.txt one\n## What Was Done\n\nbuilt\n")
    assert flow.run().code == 0
    names = flow.ws.git("show", "--name-only", "--format=", flow.at("1").sha).split()
    assert flow.ap("main", "controller-output.md") in names and "build.log" not in names
    assert flow.clean()


def test_ignored_files_of_the_flow_are_named_at_the_start(flow: Flow) -> None:
    """Ignored flow files are not committed; a warning says that a clone of the branch can't be resumed."""
    flow.scenario("S1")
    flow.ws.write(".gitignore", ".ai-loop/\n")
    flow.ws.git("rm", "-q", "--cached", ".ai-loop/flow.yaml")
    flow.commit("ignored")
    ran = flow.run()
    assert ran.code == 0, ran.both
    assert "git ignores .ai-loop/flow.yaml: a clone of the run's branch can't be resumed without" in ran.err
    assert flow.ws.git("ls-files", ".ai-loop/flow.yaml") == "" and flow.ws.exists(".ai-loop/flow.yaml")


STRANGE = [
    "with blank.txt",
    "new\nline.txt",
    "ümläut.txt",
    '"quoted".txt',
    "back\\slash",
    "-dash",
    ":colon",
    "*star",
    "tab\t",
]


def test_unusual_file_names(flow: Flow) -> None:
    """Files with blanks, newlines, umlauts, quotes and pathspec characters are committed, compared and restored."""
    flow.scenario("S1")
    for name in STRANGE:
        flow.ws.write(name, "before\n")
    flow.commit("strange")
    quoted = " ".join("'" + name.replace("'", "'\\''") + "'" for name in STRANGE if "\n" not in name)
    flow.say("sensor-unit", f"!sh for f in {quoted}; do echo bad > \"./$f\"; done; touch 'new one'\n{PASSES}")
    flow.say("actuator-main", f'!sh for f in {quoted}; do echo good > "./$f"; done\n## What Was Done\n\nall\n')
    flow.say("sensor-unit", *[flow.scripts["sensor-unit.1"], PASSES])
    ran = flow.run()
    assert ran.code == 0, ran.both
    assert "put back" in ran.err
    shown = flow.ws.git("show", "-z", "--name-only", "--format=", flow.at("1").sha).split("\0")
    assert {name for name in STRANGE if "\n" not in name} <= set(shown)
    assert not flow.ws.exists("new one")
    zero = flow.ws.git("show", "-z", "--name-only", "--format=", flow.at("0").sha).split("\0")
    assert not set(STRANGE) & set(zero)


def hook(flow: Flow, name: str, text: str) -> None:
    path = Path(flow.ws.path, ".git", "hooks", name)
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def test_hooks_run_and_may_refuse(flow: Flow) -> None:
    """A failing hook is an error of the node, with the hook's words; what it refused is not committed."""
    flow.scenario("S1")
    hook(
        flow,
        "pre-commit",
        'git diff --cached --name-only | grep -q src.txt && { echo "no one here" >&2; exit 1; }; true',
    )
    ran = flow.run()
    assert ran.code == 1
    assert "no one here" in ran.both and "git refused the commit" in ran.both
    assert flow.labels() == ["0", "1"]
    assert flow.at("1").fields["status"] == "error"
    assert flow.ws.git("status", "--porcelain").split() == ["M", "src.txt"]
    os.remove(flow.ws.file(".git/hooks/pre-commit"))
    assert flow.resume(flow.run_id).code == 0
    assert flow.labels() == ["0", "1", "2"]
    assert flow.clean()


def held_by_a_hook(flow: Flow) -> tuple[Running, int]:
    """A flow whose first commit waits for a hook, and the hook's pid."""
    hook(flow, "pre-commit", f"echo $$ >{flow.ws.fake}/at; sleep 1000 & wait")
    at = Path(flow.ws.fake, "at")
    run = flow.ws.start("flow", "run", "make it two")
    until(lambda: at.exists() and at.read_text().strip(), what="hook")
    return run, int(at.read_text())


def test_a_signal_ends_a_hook_that_takes_long(flow: Flow) -> None:
    """Ctrl+C while git waits for a hook ends the hook at once; the run stays open and can be resumed."""
    flow.scenario("S1")
    run, at = held_by_a_hook(flow)
    run.signal(signal.SIGINT)
    assert run.finish() == 130
    assert "Interrupted" in run.both and "refused" not in run.both and flow.labels() == []
    assert not alive(at) and flow.ws.leftovers() == []
    os.remove(flow.ws.file(".git/hooks/pre-commit"))
    assert flow.resume(flow.run_id).code == 0
    assert flow.labels() == ["0", "1", "2"]


def test_a_killed_guardian_ends_a_hook_that_takes_long(flow: Flow) -> None:
    """kill -9 while git waits for a hook leaves no process behind, and the run can be resumed."""
    flow.scenario("S1")
    run, _ = held_by_a_hook(flow)
    run.signal(signal.SIGKILL)
    run.finish()
    until(lambda: flow.ws.leftovers() == [], what="everything to be gone")
    os.remove(flow.ws.file(".git/hooks/pre-commit"))
    assert flow.resume(flow.run_id).code == 0
    assert flow.labels() == ["0", "1", "2"]


@pytest.mark.parametrize("word", ["add", "commit"])
def test_F_177_a_resume_at_once_after_a_killed_guardian_makes_no_error(flow: Flow, word: str) -> None:
    """A signal that ends a running git interrupts the loop; it is not an error of the node."""
    flow.scenario("S1")
    at = Path(flow.ws.fake, "at")
    if word == "add":
        real = shutil.which("git")
        slow = f'case "$*" in *"/dev/null add -A") mkdir "$FAKE/at" && exec sleep 1000 ;; esac\nexec {real} "$@"'
        flow.ws.write(f"{flow.ws.root}/bin/git", f"#!/bin/sh\n{slow}\n", 0o755)
    else:
        hook(flow, "pre-commit", 'mkdir "$FAKE/at" && sleep 1000 || exit 0')
    env = {"PATH": f"{flow.ws.root}/bin:{flow.ws.env['PATH']}"}
    run = flow.ws.start("flow", "run", "do it", env=env)
    until(at.exists, what="git to begin")
    run.signal(signal.SIGKILL)
    run.finish()
    ran = flow.resume(env=env)
    assert ran.code == 0, ran.both
    assert flow.labels() == ["0", "1", "2"]
    moves = flow.ws.git("log", "-g", "--format=%gs", "ai-loop/do-it")
    assert "error" not in moves and "reset" not in moves


def test_a_second_signal_ends_git(flow: Flow) -> None:
    """The first Ctrl+C lets a slow git finish, the second one ends it."""
    real = subprocess.run(["sh", "-c", "command -v git"], capture_output=True, text=True, check=True).stdout.strip()
    flow.scenario("S1")
    slow = f'case " $* " in *" add "*) echo $$ >"$FAKE/at"; sleep 1000 & wait ;; esac\nexec {real} "$@"'
    flow.ws.write(f"{flow.ws.root}/bin/git", f"#!/bin/sh\n{slow}\n", 0o755)
    at = Path(flow.ws.fake, "at")
    run = flow.ws.start("flow", "run", "make it two", env={"PATH": f"{flow.ws.root}/bin:{flow.ws.env['PATH']}"})
    until(lambda: at.exists() and at.read_text().strip(), what="git to begin")
    run.signal(signal.SIGINT)
    run.signal(signal.SIGTERM)
    assert run.finish() == 130
    assert not alive(int(at.read_text())) and flow.ws.leftovers() == []


def test_hooks_may_change_files(flow: Flow) -> None:
    """Changes that a formatting hook adds to a commit are not an offence of an agent."""
    flow.scenario("S2")
    hook(flow, "pre-commit", "date +%N > stamp.txt; git add stamp.txt; date +%N > later.txt")
    hook(flow, "post-commit", "date +%N >> after.txt")
    ran = flow.run()
    assert ran.code == 0, ran.both
    assert "put back" not in ran.both
    assert flow.labels() == ["0", "1.0", "1.1", "1.2", "1", "2"]


def test_hooks_can_be_passed_over(flow: Flow) -> None:
    """With `[flow] no_verify = true` commits skip the hooks."""
    flow.scenario("S1")
    flow.ws.config(flow.ws.read("rooda.toml") + "[flow]\nno_verify = true\n")
    flow.commit("settings")
    hook(flow, "pre-commit", "exit 1")
    assert flow.run().code == 0


def test_commits_are_never_signed(flow: Flow) -> None:
    """commit.gpgsign with a program that can't sign: commits are made, unsigned."""
    flow.scenario("S1")
    flow.ws.git("config", "gpg.program", "/bin/false")
    flow.ws.git("config", "commit.gpgsign", "true")
    assert flow.run().code == 0
    assert flow.labels() == ["0", "1", "2"]


@pytest.mark.parametrize(
    "settings",
    [
        {"core.autocrlf": "true", "core.safecrlf": "true"},
        {"commit.verbose": "true", "commit.status": "true", "commit.cleanup": "strip"},
        {"core.quotepath": "true", "status.relativePaths": "true", "status.short": "true", "color.ui": "always"},
        {
            "i18n.commitEncoding": "latin1",
            "log.showSignature": "true",
            "log.decorate": "full",
            "diff.renames": "copies",
        },
        {"core.fsmonitor": "true", "core.untrackedCache": "true", "index.version": "4", "core.splitIndex": "true"},
        {"checkout.defaultRemote": "origin", "branch.autoSetupMerge": "always", "advice.detachedHead": "true"},
    ],
    ids=lambda settings: next(iter(settings)),
)
def test_git_settings_of_the_user_have_no_effect(flow: Flow, settings: dict[str, str]) -> None:
    """The user's git configuration does not change the commits and their messages."""
    flow.scenario("S2")
    for key, value in settings.items():
        flow.ws.git("config", key, value)
    ran = flow.run("größer — do it")
    assert ran.code == 0, ran.both
    assert flow.labels() == ["0", "1.0", "1.1", "1.2", "1", "2"]
    assert flow.ws.git("status", "--porcelain") == ""


def test_called_from_a_hook(flow: Flow) -> None:
    """GIT_DIR and similar variables in the environment are ignored."""
    flow.scenario("S1")
    strange = {"GIT_DIR": "/nowhere", "GIT_INDEX_FILE": "/nowhere/index", "GIT_WORK_TREE": "/nowhere"}
    assert flow.run(env=strange).code == 0
    assert flow.labels() == ["0", "1", "2"]


@pytest.mark.parametrize("name", ["GIT_ICASE_PATHSPECS", "GIT_GLOB_PATHSPECS", "GIT_NOGLOB_PATHSPECS"])
def test_pathspec_settings_of_the_user_have_no_effect(flow: Flow, name: str) -> None:
    """The setting does not change the commits of a run."""
    flow.scenario("S1")
    ran = flow.run(env={name: "1"})
    assert ran.code == 0, ran.both
    assert flow.labels() == ["0", "1", "2"] and flow.clean()


@pytest.mark.parametrize("how", ["--cone", "--no-cone"])
def test_F_122_F_196_in_a_sparse_checkout(flow: Flow, how: str) -> None:
    """An actuator's files outside of the sparse patterns are committed, a sensor's are deleted."""
    flow.scenario("S1")
    flow.ws.write("out/o.txt", "o\n")
    flow.commit("out")
    shown = ["/*", "!/out/"] if how == "--no-cone" else [".ai-loop", ".claude"]
    flow.ws.git("sparse-checkout", "set", how, *shown)
    assert not flow.ws.exists("out")
    flow.also("sensor-unit.1", "!edit out/bad.txt x")
    flow.say("actuator-main", "!edit out/new.txt x\n## What Was Done\n\nmade\n")
    ran = flow.run()
    assert ran.code == 0, ran.both
    assert "put back: out/bad.txt" in ran.err
    names = flow.ws.git("ls-tree", "-r", "--name-only", "HEAD").split()
    assert {"out/o.txt", "out/new.txt"} <= {*names} and "out/bad.txt" not in names
    assert flow.labels() == ["0", "1", "2"] and flow.clean() and not flow.ws.exists("out/o.txt")


@pytest.mark.parametrize(("settings", "begun"), [("input", "a\r\nb\r\n"), ("true", "a\nb\n")])
def test_F_196_where_line_ends_are_translated(flow: Flow, settings: str, begun: str) -> None:
    """A file that a sensor changed is restored so that git sees no difference."""
    flow.scenario("S1")
    flow.ws.git("config", "core.autocrlf", settings)
    Path(flow.ws.path, "lines.txt").write_bytes(begun.encode())
    flow.commit("lines")
    flow.also("sensor-unit.2", "!edit lines.txt bad")
    ran = flow.run()
    assert ran.code == 0, ran.both
    assert "put back: lines.txt" in ran.err
    assert flow.labels() == ["0", "1", "2"] and flow.clean()


def test_a_submodule(flow: Flow) -> None:
    """The run records a new commit of a submodule."""
    flow.scenario("S1")
    add_submodule(flow.ws, "lib")
    flow.commit("submodule")
    move = "!sh cd lib && git commit -q --allow-empty -m two\n## What Was Done\n\nmoved lib\n"
    flow.say("actuator-main", move)
    ran = flow.run()
    assert ran.code == 0, ran.both
    assert "lib" in flow.ws.git("show", "--name-only", "--format=", flow.at("1").sha).split()


def test_a_repository_that_an_agent_makes(flow: Flow) -> None:
    """A nested repository with a commit does not end the run."""
    flow.scenario("S1")
    made = "!sh git init -q sub && git -C sub commit -q --allow-empty -m x\n## What Was Done\n\nmade sub\n"
    flow.say("actuator-main", made)
    assert flow.run().code == 0
    assert flow.labels() == ["0", "1", "2"]


AGENT_MOVES: dict[str, tuple[str, str]] = {
    "commits": ("git add -A && git commit -qm mine", "moved the branch's tip"),
    "commits on a new branch": (
        "git checkout -qb elsewhere && git add -A && git commit -qm mine",
        "switched to elsewhere",
    ),
    "detaches": ("git checkout -q --detach", "switched to"),
    "resets": ("git reset -q --hard HEAD~1; echo one > src.txt", "moved the branch's tip"),
    "goes to main": ("git stash -qu; git checkout -q main; echo one > src.txt", "switched to main"),
    "renames the branch": ("git branch -m other-name", "switched to other-name"),
    "stages": ("git add -A", ""),
    "removes the index": ("rm .git/index", ""),
    "a lock left by a killed git": ("touch .git/index.lock .git/HEAD.lock .git/refs/heads/ai-loop/do-it.lock", ""),
    "hides the file from git": ("git update-index --skip-worktree src.txt", ""),
    "calls the file unchanged": ("git update-index --assume-unchanged src.txt", ""),
    "spoils git's settings": ("git config core.bare true; git config core.hooksPath /none", "put back: .git/config"),
    "a filter that fails": (
        "echo '* filter=f' > .gitattributes; git config filter.f.clean false; git config filter.f.required true",
        "put back: .git/config",
    ),
    "a hook that refuses": (
        "mkdir -p .git/hooks; echo 'exit 1' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit",
        "pre-commit",
    ),
    "a link as a hook": (
        "mkdir -p .git/hooks; ln -s $FAKE/evil .git/hooks/post-commit",
        "put back: .git/hooks/post-commit",
    ),
    "a link as the folder of hooks": (
        "mkdir $FAKE/h && cp $FAKE/evil $FAKE/h/post-commit; mv .git/hooks $FAKE/old; ln -s $FAKE/h .git/hooks",
        "put back: .git/hooks, .git/hooks/post-commit",
    ),
    "a link as git's settings": ("cp .git/config $FAKE/c; ln -sf $FAKE/c .git/config", "put back: .git/config"),
    "a sparse work tree": ("git sparse-checkout set none; echo one > src.txt", "put back"),
    "deletes the branch": ("git checkout -q --detach; git branch -q -D ai-loop/do-it", "switched to"),
    "half a merge": (
        'git merge -q --no-commit --no-ff "$(git commit-tree -p main~1 -m side "main~1^{tree}")"',
        "left a merge half done; it was ended",
    ),
}


@pytest.mark.parametrize("name", AGENT_MOVES)
def test_F_141_branch_and_tip_are_restored(flow: Flow, name: str) -> None:
    """After an actuator commits, switches or resets, branch and tip are restored, and its edits stay."""
    shell, said = AGENT_MOVES[name]
    flow.scenario("S1")
    flow.ws.write("other.txt", "stays\n")
    flow.commit("another file")
    evil = Path(flow.ws.fake, "evil")
    evil.write_text(f"#!/bin/sh\ntouch {evil}.ran\n")
    evil.chmod(0o755)
    flow.say("actuator-main", f"!edit src.txt one\n!sh {shell}\n## What Was Done\n\none\n")
    ran = flow.run()
    assert ran.code == 0, ran.both
    assert said in ran.err and not os.path.exists(f"{evil}.ran")
    assert flow.labels() == ["0", "1", "2"]
    assert flow.ws.git("rev-parse", "--abbrev-ref", "HEAD").strip() == "ai-loop/do-it"
    assert flow.ws.read("src.txt") == "one\n" and flow.ws.read("other.txt") == "stays\n"
    assert flow.ws.git("show", f"{flow.at('1').sha}:src.txt") == "one\n"
    assert flow.ws.git("rev-list", "--merges", "main..HEAD") == ""
    assert flow.clean()


@pytest.mark.parametrize(
    "shell",
    [
        "echo 'exit 1' > $FAKE/new; chmod +x $FAKE/new; mv $FAKE/new .git/hooks/post-commit",
        "ln -sf $FAKE/evil .git/hooks/post-commit",
        "rm .git/hooks/post-commit",
    ],
)
def test_a_linked_hook_is_put_back_as_a_link(flow: Flow, shell: str) -> None:
    """A linked hook that an agent overwrites, redirects or removes is restored and runs at each commit."""
    flow.scenario("S1")
    evil, mine = Path(flow.ws.fake, "evil"), Path(flow.ws.fake, "mine")
    for path in (evil, mine):
        path.write_text(f"#!/bin/sh\necho x >> {path}.ran\n")
        path.chmod(0o755)
    linked = Path(flow.ws.path, ".git", "hooks", "post-commit")
    linked.parent.mkdir(exist_ok=True)
    linked.symlink_to(mine)
    flow.say("actuator-main", f"!edit src.txt one\n!sh {shell}\n## What Was Done\n\none\n")
    ran = flow.run()
    assert ran.code == 0 and "put back: .git/hooks/post-commit" in ran.err, ran.both
    assert os.readlink(linked) == str(mine) and not os.path.exists(f"{evil}.ran")
    assert Path(f"{mine}.ran").read_text().count("x") == 3


READERS = ("sensor-unit", "controller-main")


@pytest.mark.parametrize(
    "what",
    ["edits", "adds", "deletes", "spoils the state", "commits", "another runs files", "hides", "repository", "link"],
)
def test_read_only_roles_change_nothing(flow: Flow, what: str) -> None:
    """Changes of a sensor and of a controller to other files are undone and reported."""
    shell = {
        "edits": "echo bad > src.txt",
        "adds": "mkdir -p deep/er; echo bad > deep/er/new.txt",
        "deletes": "rm src.txt .ai-loop/flow.yaml",
        "spoils the state": "for f in .ai-loop/runs/run_*/run-state.md; do echo bad > $f; done",
        "commits": "echo bad > src.txt; git commit -qam bad",
        "hides": "git update-index --skip-worktree src.txt; echo bad > src.txt",
        "repository": "git init -q in; echo bad > in/x; git -C in add -A; git -C in commit -qm x",
        "link": 'mv .ai-loop/runs "$FAKE/moved"; ln -s "$FAKE/moved" .ai-loop/runs',
        "another runs files": "mkdir -p .ai-loop/runs/run_20000101_001; echo bad > .ai-loop/runs/run_20000101_001/x",
    }[what]
    flow.scenario("S1")
    for role in READERS:
        flow.also(f"{role}.1", f"!sh mkdir {flow.ws.fake}/{role} && {{ {shell}; }}")
        if what == "link":  # its own file goes with it, so it is asked once more
            flow.script(f"{role}.3", flow.scripts[f"{role}.2"])
            flow.script(f"{role}.2", flow.scripts[f"{role}.1"])
    ran = flow.run()
    assert ran.code == 0, ran.both
    reported = [line for line in ran.err.splitlines() if "put back" in line]
    assert all(any(who in line for line in reported) for who in ("sensors of main", "loop-controller-main.md")), ran.err
    assert flow.labels() == ["0", "1", "2"]
    assert not os.path.islink(flow.ws.file(".ai-loop/runs")) and not flow.ws.exists("in")
    log = flow.ws.git("log", "-p", "--format=", "main..HEAD")
    assert "+bad" not in log and "-zero" in log
    assert flow.ws.exists(".ai-loop/flow.yaml")


def test_the_second_offence_is_an_error(flow: Flow) -> None:
    """The second forbidden change by the same agent in a run ends its node."""
    flow.scenario("S1")
    bad = "!sh echo bad > src.txt\n---\nsensor: unit\nstatus: fail\n---\n"
    flow.say("sensor-unit", bad, bad)
    ran = flow.run()
    assert ran.code == 1
    assert "for the second time" in ran.both
    assert flow.ws.read("src.txt") == "one\n"


def test_the_actuator_may_not_touch_the_loops_own_files(flow: Flow) -> None:
    """An actuator's changes to flow.yaml, agent files and the run's files are undone; its other edits stay."""
    flow.scenario("S1")
    spoil = "echo bad > .ai-loop/flow.yaml; echo bad > .claude/agents/loop-sensor-unit.md; echo ok > .claude/notes.md"
    more = "for f in .ai-loop/runs/run_*/nodes/main/*; do echo bad > $f; done"
    flow.say("actuator-main", f"!sh {spoil}\n!sh {more}\n!edit src.txt one\n## What Was Done\n\none\n")
    ran = flow.run()
    assert ran.code == 0, ran.both
    log = flow.ws.git("log", "-p", "--format=", "main..HEAD")
    assert "+bad" not in log and "+ok" in log


def test_sensors_may_change_ignored_files(flow: Flow) -> None:
    """A sensor may change files that git ignores, such as build output."""
    flow.scenario("S1")
    flow.ws.write(".gitignore", "build/\n")
    flow.commit("ignore")
    flow.say(
        "sensor-unit", "!edit build/out.o x\n---\nsensor: unit\nstatus: fail\n---\n", f"!edit build/out.o y\n{PASSES}"
    )
    ran = flow.run()
    assert ran.code == 0 and "put back" not in ran.err
    assert flow.ws.read("build/out.o") == "y\n"


def test_locks_of_a_killed_git_are_removed(flow: Flow) -> None:
    """A run was killed while git held its locks: `resume` removes them, says so, and continues."""
    from tests.kit.flow_kills import kill_at

    flow.scenario("S1")
    kill_at(flow, "controller-main.1", whole=True)
    for name in ("index.lock", "HEAD.lock", "refs/heads/ai-loop/do-it.lock"):
        flow.ws.write(f".git/{name}", "")
    ran = flow.resume()
    assert ran.code == 0, ran.both
    assert "index.lock" in ran.err
    assert flow.labels() == ["0", "1", "2"]


def test_answers_on_stdout(flow: Flow) -> None:
    """If an agent prints its artifact, with or without a fence, rooda writes the file unchanged."""
    flow.ws.env |= {"DB_PASSWORD": "Postgres-dev-1"}
    flow.scenario("S1")
    flow.say(
        "controller-main",
        "!stdout\n```markdown\n---\ntarget-met: false\n---\n## Action Plan\n\n1. Postgres-dev-1\n```\n",
        "!stdout\n---\ntarget-met: true\n---\n",
    )
    ran = flow.run()
    assert ran.code == 0, ran.both
    written = flow.shown("1", flow.ap("main", "controller-output.md"))
    assert written.startswith("---\ntarget-met: false\n---\n") and "1. Postgres-dev-1\n" in written


CONTRACT: dict[str, tuple[str, str]] = {
    "no front matter": ("controller-main", "words\n"),
    "target-met a word": ("controller-main", "---\ntarget-met: perhaps\n---\n"),
    "target-met missing": ("controller-main", "---\nx: y\n---\n"),
    "nothing written": ("controller-main", "!nowrite\n"),
    "another sensor": ("sensor-unit", "---\nsensor: other\nstatus: pass\n---\n"),
    "no sensor named": ("sensor-unit", "---\nsensor:\nstatus: pass\n---\n"),
    "pending": ("sensor-unit", "---\nsensor: unit\nstatus: pending\n---\n"),
    "an empty report": ("actuator-main", "\n"),
}


@pytest.mark.parametrize("name", CONTRACT)
def test_one_more_try_then_an_error(flow: Flow, name: str) -> None:
    """An agent that breaks its contract is called once more, with the breach quoted; then the node ends.

    A resume continues there; tried with one fault of each role.
    """
    key, text = CONTRACT[name]
    flow.scenario("S1")
    flow.say(key, text, text)
    ran = flow.run()
    assert ran.code == 1, ran.both
    role = key.partition("-")[0]
    mine = [call for call in flow.calls if call["role"] == role]
    first, second = [call["prompt"] for call in mine]
    assert second.startswith(f"{first.rstrip()}\n\n# Your last answer was refused") and "-output.md " in second
    if name not in ("no front matter", "no sensor named", "an empty report"):
        return
    good = {"controller": "---\ntarget-met: true\n---\n", "sensor": PASSES, "actuator": "x\n"}[role]
    flow.say(key, text, text, text, good)
    again: Any = flow.resume(flow.run_id)
    assert again.code == 0, again.both


def test_a_composite_plan_must_say_something(flow: Flow) -> None:
    """`target-met: false` without an Action Plan gives a child no task: one more call, then an error."""
    flow.scenario("S2")
    flow.say(
        "controller-delivery", "---\ntarget-met: false\n---\n## Action Plan\n\n\n", "---\ntarget-met: false\n---\n"
    )
    ran = flow.run()
    assert ran.code == 1 and "Action Plan" in ran.both
    assert flow.labels() == ["0", "1"]


def test_agents_that_hang_are_ended(flow: Flow) -> None:
    """A call that exceeds its time limit has failed."""
    flow.scenario("S1")
    flow.say("controller-main", "!wait /nowhere\n")
    ran = flow.run("do it", "--iteration-timeout", "1")
    assert ran.code == 1 and "ended after 1 s" in ran.both


def test_native_sensors(flow: Flow) -> None:
    """`sensors = "native"`: rooda runs the commands; same files, same commits, no sensor call."""
    flow.scenario("S1")
    flow.ws.config(flow.ws.read("rooda.toml") + '[flow]\nsensors = "native"\n')
    flow.agent("sensor-unit", "x\n", front='command: "grep -q one src.txt || { echo not one; exit 3; }"\n')
    flow.commit("native")
    ran = flow.run()
    assert ran.code == 0, ran.both
    assert [call["role"] for call in flow.calls] == ["controller", "actuator", "controller"]
    assert [commit.fields["sensors"] for commit in flow.log()] == ["unit: fail", "unit: pass", "unit: pass"]
    text = flow.shown("0", flow.ap("main", "sensor-unit-output.md"))
    assert text.startswith("---\nsensor: unit\nstatus: fail\n---\n# Sensor Output: unit\n")
    assert "not one" in text and "Exit code: 3" in text


def test_native_sensors_need_commands(flow: Flow) -> None:
    """A native sensor without a command is refused before the start, with its node and file."""
    flow.scenario("S1")
    flow.ws.config(flow.ws.read("rooda.toml") + '[flow]\nsensors = "native"\n')
    flow.commit("native")
    refused(flow, 2, "loop-sensor-unit.md", "command")
    block = "Run the following command:\n\n    true\n\nThen write {output-path}.\n"
    flow.agent("sensor-unit", block)
    flow.commit("block")
    assert flow.run().code == 0


def test_another_loop_as_the_actuator(flow: Flow) -> None:
    """`strategy: loop` runs a procedure with the plan as its context; its work is in the iteration's commit."""
    import yaml

    from tests.kit.flow import AGENTS

    flow.scenario("S1")
    data = yaml.safe_load(flow.ws.read(".ai-loop/flow.yaml"))
    data["flow"]["actuator"] = {"strategy": "loop", "loop": "ooda", "procedure": "mend", "max_iterations": 2}
    flow.ws.write(".ai-loop/flow.yaml", yaml.safe_dump(data))
    phases = "".join(f'{phase} = "{phase} it"\n' for phase in ("observe", "orient", "decide", "act"))
    sh = flow.ws.write("mend.sh", "#!/bin/sh\ngrep -q 'do it' && echo two >> src.txt\n", 0o755)
    flow.ws.config(flow.ws.read("rooda.toml") + f'\n[procedures.mend]\nai_cmd = "{sh}"\n{phases}')
    flow.commit("mend")
    ran = flow.run()
    assert ran.code == 0, ran.both
    assert flow.ws.git("show", f"{flow.at('1').sha}:src.txt") == "zero\ntwo\ntwo\n"
    assert flow.at("1").subject.endswith("— mend: completed")
    assert AGENTS


INNER = """\
#!/bin/sh
case $ROODA_CALL in
plan) echo '{"plan": ["a", "b", "c"]}' ;;
produce | refine) echo "two, as planned" ;;
prepare) echo '{"checks":[{"rule_id":"a.correctness.two","type":"content","search":"two","expected":"it"}]}' ;;
esac
"""


def test_a_reflex_loop_as_the_actuator(flow: Flow) -> None:
    """The reflex loop's artifact is in the iteration's commit; flow.yaml has its rules and limit."""
    acting(flow, {"loop": "reflex", "rules": "rules.json", "max_iterations": 2})
    rules = [{"id": "a.correctness.two", "severity": "fail", "description": "two", "phase": "A", "weight": 2}]
    flow.ws.write("rules.json", json.dumps(rules))
    flow.commit("rules")
    ran = flow.run()
    assert ran.code == 0, ran.both
    shown = flow.ws.git("show", "--name-only", "--format=", flow.at("1").sha)
    assert ".ai-factory/evolution/" in shown and "artifact.md" in shown
    assert flow.at("1").subject.endswith("— reflex: completed")


def test_a_goal_as_the_actuator(flow: Flow) -> None:
    """A specification that is not ready fails the node with the goal's message; nothing else starts."""
    acting(flow, {"loop": "goal", "max_iterations": 2})
    flow.commit("goal")
    ran = flow.run()
    assert ran.code == 1, ran.both
    assert "the loop goal failed" in ran.both


def test_a_goal_reached_as_the_action(flow: Flow) -> None:
    """The controller's plan is the specification; what the goal's steps made is in the iteration's commit."""
    acting(flow, {"loop": "goal", "max_iterations": 6})
    flow.ws.config(flow.ws.read("rooda.toml").partition("[goal]")[0] + '[goal]\nagent = "demo"\n')
    flow.controller("main", False, True, plan=SPEC)
    flow.commit("goal")
    ran = flow.run()
    assert ran.code == 0, ran.both
    assert flow.ws.git("show", f"{flow.at('1').sha}:hello-goal/greeting.sh")
    assert flow.at("1").subject.endswith("— goal: completed")


def acting(flow: Flow, keys: dict[str, object]) -> None:
    """S1, whose actuator is another loop with a script of its own."""
    import yaml

    flow.scenario("S1")
    data = yaml.safe_load(flow.ws.read(".ai-loop/flow.yaml"))
    data["flow"]["actuator"] = {"strategy": "loop", **keys}
    flow.ws.write(".ai-loop/flow.yaml", yaml.safe_dump(data))
    command = json.dumps(flow.ws.write("inner.sh", INNER, 0o755))
    flow.ws.config(flow.ws.read("rooda.toml") + f"\n[reflex]\nai_cmd = {command}\n\n[goal]\nai_cmd = {command}\n")


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"loop": "reflex"}, "exactly one of rules and template"),
        ({"loop": "goal", "procedure": "build"}, "unknown key actuator.procedure"),
        ({}, "actuator.loop must be one of ooda, reflex, goal, got nothing"),
        ({"loop": "spiral"}, "actuator.loop must be one of ooda, reflex, goal, got 'spiral'"),
    ],
)
def test_check_reports_a_faulty_loop_as_actuator(flow: Flow, keys: dict[str, object], said: str) -> None:
    """`rooda flow check` reports the fault before anything starts."""
    acting(flow, keys)
    ran = flow.ws.rooda("flow", "check")
    assert ran.code == 2 and said in ran.both, ran.both


def test_staged_ignored_files_are_not_committed(flow: Flow) -> None:
    """An ignored file that an agent forced into the index is not committed."""
    flow.scenario("S1")
    flow.ws.write(".gitignore", ".env\n")
    flow.commit("ignore")
    force = "echo secret > .env; git add -f .env"
    flow.say("actuator-main", f"!sh {force}\n!edit src.txt one\n## What Was Done\n\none\n")
    assert flow.run().code == 0
    assert ".env" not in flow.ws.git("ls-tree", "-r", "--name-only", "HEAD")
    assert flow.ws.read(".env") == "secret\n"


def test_many_changed_files(flow: Flow) -> None:
    """More paths than fit on a command line are all committed."""
    flow.scenario("S1")
    make = "mkdir many; for n in $(seq 1200); do echo $n > many/file-$n; done"
    flow.say("actuator-main", f"!sh {make}\n## What Was Done\n\nmany\n")
    assert flow.run().code == 0
    assert flow.ws.git("show", "--name-only", "--format=", flow.at("1").sha).count("many/") == 1200
    assert flow.clean()
