"""What agents of a flow do to git besides their work: branches, tags, repeated offences, nested repositories."""

from pathlib import Path

import pytest

from tests.kit.flow import Flow
from tests.kit.snapshots import add_submodule

MOVES = {
    "branch -f": ("git branch -f main $(git commit-tree -m x HEAD^{tree})", "main (to "),
    "a commit there": (
        "git stash -qu; git checkout -q main; git commit -q --allow-empty -m mine; git checkout -q ai-loop/do-it; "
        "git stash pop -q",
        "main (to ",
    ),
    "deletes": ("git tag -d v1; git branch -q -D old", "old (deleted), the tag v1 (deleted)"),
    "packs first": ("git pack-refs --all; git tag -f v1", "the tag v1 (to "),
    "a link": ("git symbolic-ref refs/heads/main refs/heads/ai-loop/do-it", "main (to ref: refs/heads/ai-loop/do-it)"),
    "no ref at all": ("echo bad > .git/refs/heads/main", "main (deleted)"),
    "a folder": (
        "rm .git/refs/heads/main; mkdir .git/refs/heads/main; echo bad > .git/refs/heads/main/x",
        "main (deleted)",
    ),
    "one in the way": ("git branch -q -D old; git branch old/x; git tag -d v1", "not all can be put back"),
}


def refs(flow: Flow) -> dict[str, str]:
    """Return all refs except the run's branch."""
    rows = flow.ws.git("for-each-ref", "--format=%(refname) %(objectname)%(symref)", "refs/heads", "refs/tags")
    found = dict(row.split(" ") for row in rows.strip("\n").split("\n"))
    return {name: value for name, value in found.items() if name != "refs/heads/ai-loop/do-it"}


@pytest.mark.parametrize("name", MOVES)
def test_F_033_F_141_no_agent_moves_a_branch_or_a_tag(flow: Flow, name: str) -> None:
    """Branches and tags are restored after the call of a sensor and of an actuator, and each change is reported."""
    shell, said = MOVES[name]
    flow.scenario("S1")
    flow.ws.git("tag", "-a", "-m", "x", "v1")
    flow.ws.git("branch", "old")
    for role in ("sensor-unit", "actuator-main"):
        flow.also(f"{role}.1", f"!sh {shell}")
    before = refs(flow)
    ran = flow.run()
    assert ran.code == 0, ran.both
    assert ran.err.count(said) == 2 or "in the way" in name, ran.err
    assert said in ran.err
    after = refs(flow)
    assert after == before or "in the way" in name
    assert after["refs/tags/v1"] == before["refs/tags/v1"] and flow.labels() == ["0", "1", "2"]


def test_F_033_names_of_branches_may_have_signs_that_end_a_line_elsewhere(flow: Flow) -> None:
    """A branch that existed before the run is restored after an agent moved it."""
    flow.scenario("S1")
    name = "old\u2028x\x85y"
    flow.ws.git("branch", name)
    flow.also("sensor-unit.1", f"!sh git branch -D {name}")
    before = refs(flow)
    ran = flow.run()
    assert ran.code == 0, ran.both
    assert refs(flow) == before and flow.labels() == ["0", "1", "2"]


RUN = ".ai-loop/runs/run_*"
OTHER_KINDS = {  # what stands there, and what an agent puts in its place
    "a folder for a hook": ("T=.git/hooks/post-commit", "mkdir -p $T/in; touch $T/in/f"),
    "a file for the hooks": ("T=.git/hooks", "touch $T"),
    "a folder for git's settings": ("T=.git/config", "mkdir $T"),
    "a folder for what git ignores": ("T=.git/info/exclude", "mkdir $T"),
    "no HEAD": ("T=.git/HEAD", "true"),
    "a HEAD that is none": ("T=.git/HEAD", "echo bad >$T"),
    "a folder for the index": ("T=.git/index", "mkdir $T"),
    "a file for rooda's own folder": ("T=.git/rooda", "touch $T"),
    "a rebase that is none": ("T=.git/rebase-merge", "touch $T"),
    "a merge that is none": ("T=.git/MERGE_HEAD", "mkdir -p $T/in; touch $T/in/f"),
    "a branch that is none": ("T=.git/refs/heads/ai-loop/do-it", "echo bad >$T"),
    "a folder for the branch": ("T=.git/refs/heads/ai-loop/do-it", "mkdir -p $T/in; touch $T/in/f"),
    "a folder for the run's state": (f"T=$(echo {RUN}/run-state.md)", "mkdir $T"),
    "a folder for what comes next": (
        f"T=$(echo {RUN}/nodes/main)/controller-output.md",
        "mkdir -p $T/in; touch $T/in/f",
    ),
    "a link in the run's folder": (f"T=$(echo {RUN})/more.md", "ln -s /etc/passwd $T"),
}


@pytest.mark.parametrize("name", OTHER_KINDS)
def test_F_141_FQ_29_a_path_that_changed_its_type_is_restored(flow: Flow, name: str) -> None:
    """The run continues after agents replace a file by a folder, a link or nothing, or a folder by a file.

    A sensor does it first; what it left is restored before the actuator does the same.
    """
    flow.scenario("S1")
    hook = Path(flow.ws.write(".git/hooks/post-commit", "#!/bin/sh\ntrue\n", 0o755))
    flow.ws.write(".git/info/exclude", "none\n")
    place, made = OTHER_KINDS[name]
    whole = 'test "$(git rev-parse --abbrev-ref HEAD)" = ai-loop/do-it && touch "$FAKE/whole"'
    for role, before in (("sensor-unit", "true"), ("actuator-main", whole)):
        flow.also(f"{role}.1", f"!sh {before}; {place}; rm -rf $T; {made}")
    kept = {path: flow.ws.read(path) for path in (".git/config", ".git/info/exclude")}
    ran = flow.run()
    assert (ran.code, flow.labels(), flow.clean()) == (0, ["0", "1", "2"], True), ran.both
    assert Path(flow.ws.fake, "whole").exists(), "the actuator did not find what it was to damage"
    assert hook.read_text() == "#!/bin/sh\ntrue\n" and hook.stat().st_mode & 0o777 == 0o755
    assert {path: flow.ws.read(path) for path in kept} == kept
    tree = flow.ws.git("ls-tree", "-r", "--name-only", "HEAD", flow.rd()).split()
    assert all(path.endswith(("-output.md", "run-state.md")) for path in tree)


@pytest.mark.parametrize("made", ["mkdir $FAKE/away; ln -s $FAKE/away $T", "touch $T", "true", "mkdir $T"])
def test_F_044_FQ_29_a_node_s_folder_is_put_back(flow: Flow, made: str) -> None:
    """The run writes nothing through a link to elsewhere, and the child node has its folder."""
    flow.scenario("S2")
    flow.also("sensor-full.2", f"!sh T=$(echo {RUN}/nodes/delivery/impl); rm -rf $T; {made}")
    ran = flow.run()
    assert (ran.code, flow.clean()) == (0, True), ran.both
    assert flow.labels() == ["0", "1.0", "1.1", "1.2", "1", "2"]
    assert flow.fm(flow.ap("impl", "result-output.md"))["status"] == "complete"
    assert not Path(flow.ws.file(flow.ap("impl"))).is_symlink()


def test_F_044_a_removed_empty_folder_is_not_an_offence(flow: Flow) -> None:
    """The child node gets its folder back after `git clean` removed it."""
    flow.scenario("S2")
    for name, shell in (
        ("sensor-full.1", "rmdir $T/impl"),
        ("controller-delivery.1", "mkdir $T/notes; test -d $T/impl || touch bad"),
    ):
        flow.also(name, f"!sh T=$(echo {RUN}/nodes/delivery); {shell}")
    ran = flow.run()
    assert (ran.code, "put back" in ran.err) == (0, False), ran.both


def test_F_033_a_new_branch_stays_and_is_named(flow: Flow) -> None:
    """A new branch stays, because only it may hold its commits; it is not an offence."""
    flow.scenario("S3")
    flow.say("actuator-main", *[f"!sh git branch new{n}; git tag t{n}\n## What Was Done\n\nx\n" for n in (1, 2)])
    ran = flow.run()
    assert ran.code == 4, ran.both
    assert "left new branches or tags, which stay: new2, the tag t2" in ran.err
    assert "refs/heads/new1" in refs(flow)


def test_F_033_other_work_trees_may_change_freely(flow: Flow) -> None:
    """Commits, resets and new branches in another work tree during a call are neither undone nor reported."""
    flow.scenario("S1")
    other = f"{flow.ws.root}/other"
    flow.ws.git("branch", "side")
    flow.ws.git("worktree", "add", "-q", other, "side")
    shell = (
        f"cd {other}; git commit -q --allow-empty -m theirs; git checkout -q -b third; git commit -q --allow-empty -m x"
    )
    flow.say("actuator-main", f"!edit src.txt one\n!sh {shell}\n## What Was Done\n\none\n")
    ran = flow.run()
    assert ran.code == 0, ran.both
    assert "WARNING" not in ran.err
    assert flow.ws.git("log", "--format=%s", "-1", "side") == "theirs\n"


OFFENCES = {
    "a hook": ("actuator-main", "mkdir -p .git/hooks; echo x > .git/hooks/pre-push"),
    "a commit": ("controller-main", "git commit -q --allow-empty -m no"),
    "a moved branch": ("actuator-main", "git branch -f main HEAD"),
}


@pytest.mark.parametrize("name", OFFENCES)
def test_F_141_the_second_offence_ends_the_node_whatever_it_was(flow: Flow, name: str) -> None:
    """Changes to git's own files, commits and branches count as offences, like those to the work tree."""
    key, shell = OFFENCES[name]
    flow.scenario("S3")
    text = flow.scripts[f"{key}.1"]
    flow.say(key, *[f"!sh {shell}\n{text}"] * 2)
    ran = flow.run()
    assert ran.code == 1, ran.both
    assert "made forbidden changes for the second time" in ran.err


def test_F_141_a_sensors_command_that_edits_is_ended_too(flow: Flow) -> None:
    """`sensors = "native"`: what rooda runs itself may change no more than an agent."""
    flow.scenario("S3")
    flow.ws.config(flow.ws.read("rooda.toml") + '[flow]\nsensors = "native"\n')
    flow.agent("sensor-unit", "x\n", front='command: "echo bad >> src.txt"\n')
    flow.commit("native")
    ran = flow.run()
    assert ran.code == 1 and "for the second time" in ran.err
    assert "bad" not in flow.ws.read("src.txt")


def test_F_141_a_reset_is_reported_as_a_reset(flow: Flow) -> None:
    """A reset is reported as a reset, not as a commit that was undone."""
    flow.scenario("S1")
    flow.say("actuator-main", "!sh git reset -q --hard HEAD~1\n!edit src.txt one\n## What Was Done\n\none\n")
    ran = flow.run()
    assert "moved the branch's tip off the run's commits; it is put back" in ran.err
    assert flow.labels() == ["0", "1", "2"]


def test_F_141_an_output_written_after_a_reset_is_accepted(flow: Flow) -> None:
    """An output is accepted even if the commit that the agent reset to has a file of the same name."""
    flow.scenario("S3")
    flow.sensor("unit", "fail", "fail", "pass")
    flow.also("sensor-unit.3", "!sh git reset -q --hard HEAD~1")
    ran = flow.run()
    assert "moved the branch's tip off the run's commits; it is put back" in ran.err
    assert "retrying" not in ran.err
    assert sum(role.startswith("sensor") for role in flow.roles()) == 3
    assert flow.at("2").fields["sensors"] == "unit: pass" and flow.clean()


def with_submodule(flow: Flow) -> None:
    """`lib`, with a file of its own."""
    add_submodule(flow.ws, "lib")
    flow.commit("submodule")


INSIDE = {
    "edits": "echo bad > lib/f",
    "adds": "mkdir -p lib/d/e; echo bad > lib/d/e/x",
    "deletes": "rm lib/f",
    "stages": "echo bad > lib/f; git -C lib add -A",
    "commits": "echo bad > lib/f; git -C lib commit -qam bad",
    "detaches": "git -C lib checkout -q --detach; git -C lib commit -q --allow-empty -m x",
}


@pytest.mark.parametrize("name", INSIDE)
def test_F_122_F_196_a_sensor_changes_nothing_in_a_submodule(flow: Flow, name: str) -> None:
    """Files, index and HEAD of a nested repository are restored, and the change is reported."""
    flow.scenario("S1")
    with_submodule(flow)
    head = flow.ws.git("-C", "lib", "rev-parse", "HEAD", "--symbolic-full-name", "HEAD")
    flow.also("sensor-unit.1", f"!sh {INSIDE[name]}")
    ran = flow.run()
    assert ran.code == 0, ran.both
    assert "sensors of main changed files of a nested repository; put back: lib/" in ran.err
    assert flow.ws.read("lib/f") == "as it was\n" and not flow.ws.exists("lib/d")
    assert flow.ws.git("-C", "lib", "rev-parse", "HEAD", "--symbolic-full-name", "HEAD") == head
    assert flow.clean()


def test_F_122_F_196_an_edit_in_a_submodule_is_reported(flow: Flow) -> None:
    """Changes in a nested repository are announced at the start, undone and reported; the second one is an error."""
    flow.scenario("S3")
    with_submodule(flow)
    flow.say("actuator-main", *["!edit src.txt one\n!edit lib/f new\n## What Was Done\n\nx\n"] * 2)
    ran = flow.run()
    assert ran.code == 1, ran.both
    assert "This repository contains others (lib)" in ran.err and "put back: lib/f" in ran.err
    assert flow.ws.read("lib/f") == "as it was\n" and flow.ws.read("src.txt") == "one\n"
    assert flow.clean()


@pytest.mark.parametrize("commit", ["git -C in commit -q --allow-empty -m x", "true"])
def test_F_122_a_repository_that_an_actuator_makes_is_named(flow: Flow, commit: str) -> None:
    """A new nested repository is reported once, because clones lack its files; it is not an offence."""
    flow.scenario("S3")
    flow.say("actuator-main", f"!sh git init -q in; echo x > in/f; {commit}\n## What Was Done\n\nx\n")
    ran = flow.run()
    assert ran.code == 4, ran.both
    assert (
        ran.err.count("created nested repositories: in; the run's commits record their commits, not their files") == 1
    )


def test_FQ_06_a_sensors_repository_without_a_commit_is_deleted(flow: Flow) -> None:
    """A nested repository without a commit, which git can't add to a tree, is deleted with its folder."""
    flow.scenario("S1")
    flow.also("sensor-unit.1", "!sh git init -q a/in; echo x > a/in/f")
    ran = flow.run()
    assert ran.code == 0, ran.both
    assert "put back: a/in" in ran.err and not flow.ws.exists("a") and flow.clean()


def test_FQ_06_folders_that_a_sensor_made_go_with_its_files(flow: Flow) -> None:
    """Folders that a sensor made are deleted, unless they hold other files."""
    flow.scenario("S1")
    flow.ws.write("kept/x", "x\n")
    flow.commit("kept")
    flow.also("sensor-unit.1", "!sh mkdir -p kept/a/b new/c; touch kept/a/b/f new/c/f")
    assert flow.run().code == 0
    assert flow.ws.exists("kept/x") and not flow.ws.exists("kept/a") and not flow.ws.exists("new")


@pytest.mark.parametrize(
    "shell",
    ["rm .gitignore", "echo '*.none' > .gitignore", "git checkout -q --detach HEAD~1; rm -f .gitignore"],
    ids=["removed", "changed", "switched"],
)
@pytest.mark.parametrize("role", ["sensor-unit", "actuator-main"])
def test_FQ_06_ignored_files_stay_when_the_rules_are_restored(flow: Flow, shell: str, role: str) -> None:
    """Files that git ignored before the call are neither removed nor committed."""
    flow.scenario("S1")
    flow.ws.write(".gitignore", "*.env\nbuilt/\n")
    flow.commit("rules")
    flow.ws.write("my.env", "secret\n")
    flow.ws.write("built/a", "a\n")
    flow.also(f"{role}.1", f"!sh {shell}")
    ran = flow.run()
    assert ran.code == 0, ran.both
    assert (flow.ws.read("my.env"), flow.ws.read("built/a")) == ("secret\n", "a\n")
    names = flow.ws.git("ls-tree", "-r", "--name-only", "HEAD").split()
    if role == "sensor-unit":
        assert flow.ws.read(".gitignore") == "*.env\nbuilt/\n"
        assert "my.env" not in names and "built/a" not in names and flow.clean()


def test_FQ_06_a_new_file_is_not_hidden_by_rules_that_are_put_back(flow: Flow) -> None:
    """A .gitignore that a sensor writes and the files that it ignores are undone and reported."""
    flow.scenario("S1")
    flow.also("sensor-unit.2", "!sh echo stray > stray.txt; echo 'stray*' > .gitignore")
    ran = flow.run()
    assert ran.code == 0, ran.both
    assert "put back: .gitignore, stray.txt" in ran.err
    assert not flow.ws.exists("stray.txt") and flow.clean()
    assert "stray.txt" not in flow.ws.git("ls-tree", "-r", "--name-only", "HEAD")


def test_FQ_06_files_ignored_by_a_submodule_stay_when_its_rules_are_restored(flow: Flow) -> None:
    """Ignore rules of a nested repository that a sensor deletes are restored, and the ignored files stay."""
    flow.scenario("S1")
    flow.ws.write("sm/.gitignore", "*.env\n")
    for words in (("init", "-q"), ("add", "-A"), ("commit", "-q", "-m", "inside")):
        flow.ws.git("-C", "sm", *words)
    flow.commit("with a repository inside")
    flow.ws.write("sm/my.env", "secret\n")
    flow.also("sensor-unit.1", "!sh rm sm/.gitignore")
    ran = flow.run()
    assert ran.code == 0, ran.both
    assert "put back: sm/.gitignore" in ran.err
    assert (flow.ws.read("sm/.gitignore"), flow.ws.read("sm/my.env")) == ("*.env\n", "secret\n")
