"""What a turn takes along, what it leaves out, and that no program of the clone runs next to a credential."""

import json
import os
import shlex
import shutil
from pathlib import Path

import pytest

from rooda.fleet import chain
from rooda.fleet.mirror import clone_environment
from rooda.git.repository import GitProblem
from tests.kit.fleet_git import Worker, git, new_remote

SESSION = "20260206T100000Z-build-1"
GATE = f"/elsewhere/.rooda/runs/{SESSION}/0001-gate-1.out"
SECRETS = {name: f"{name.lower()}-5up3r-S3cret-value" for name in ("GH_TOKEN", "GITHUB_TOKEN", "GITLAB_TOKEN")}
SECRETS |= {"SSH_AUTH_SOCK": "/tmp/agent.sock", "GIT_ASKPASS": "/bin/askpass", "TEMPORAL_API_KEY": "tmprl-5up3r-S3cret"}


@pytest.fixture
def blue(tmp_path: Path) -> Worker:
    """A worker with the claimed task 1 and a clone."""
    worker = Worker(tmp_path, "blue", new_remote(tmp_path, {"a.txt": "a\n", ".gitignore": "ignored\n"}))
    worker.add()
    worker.claim(1)
    worker.clone()
    return worker


def log(worker: Worker, *events: dict[str, object], session: str = SESSION) -> None:
    folder = Path(worker.root, ".rooda", "runs", session)
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "events.jsonl", "ab") as file:
        file.writelines(json.dumps(event).encode() + b"\n" for event in events)


def names(worker: Worker, commit: str) -> list[str]:
    return git(worker.mirror.url, "ls-tree", "-r", "--name-only", "-z", commit).split("\0")[:-1]


def test_FL_01_ignored_and_private_files_are_not_in_a_turn(blue: Worker) -> None:
    """Ignored files, private ones from before the loop, and secrets by name stay; an agent's new file goes along."""
    root = Path(blue.root)
    (root / "before").write_text("mine\n")
    (root / "before").chmod(0o600)
    blue.begin()
    for name in ("ignored", ".env", "new"):
        (root / name).write_text("x\n")
        (root / name).chmod(0o600)
    (root / ".rooda/.gitignore").unlink()  # an agent may delete it
    turn = blue.make_turn(1)
    assert (turn.left_out, turn.leaks) == ((".env", "before"), ())
    assert blue.push_turn(1, turn).kind == "done"
    assert names(blue, turn.record.work) == [".gitignore", "a.txt", "new"]


def test_FL_01_events_travel_once(blue: Worker) -> None:
    """Each turn has only the lines since the one before, whole lines, also of a log that was begun again."""
    blue.begin()
    log(blue, {"event": "run.started"})
    blue.turn(1)
    log(blue, {"event": "iteration.ended"})
    with open(Path(blue.root, ".rooda/runs", SESSION, "events.jsonl"), "ab") as file:
        file.write(b'{"torn')
    lost = blue.make_turn(1)  # its push is never made
    assert lost.commit
    blue.turn(1)
    blue.turn(1)
    Path(blue.root, ".rooda/runs", SESSION, "events.jsonl").unlink()
    log(blue, {"event": "a"})
    blue.turn(1)
    found = [
        git(blue.mirror.url, "ls-tree", "-r", "--name-only", f"{blue.tip}~{back}", "events/") for back in (3, 2, 1, 0)
    ]
    assert found == [f"events/{SESSION}/1.jsonl", f"events/{SESSION}/2.jsonl", "", f"events/{SESSION}/4.jsonl"]
    lines = [git(blue.mirror.url, "show", f"{blue.tip}~{back}:{found[3 - back]}") for back in (3, 2, 0)]
    assert lines == ['{"event": "run.started"}', '{"event": "iteration.ended"}', '{"event": "a"}']
    green = Worker(Path(blue.home).parent, "green", blue.mirror.url)
    green.claim(1)
    path = Path(green.clone().root, ".rooda/runs", SESSION, "events.jsonl")
    assert path.read_text().splitlines() == lines


def test_FL_03_the_output_of_failed_gates_travels(blue: Worker) -> None:
    """The next prompt quotes it, so the clone elsewhere has its end in the run's own folder, without secrets."""
    blue.begin(environ={**os.environ, **SECRETS})
    log(blue, {"event": "gate.ended", "gate": "tests", "output": GATE, "exit_code": 1})
    Path(blue.root, ".rooda/runs", SESSION, "0001-gate-1.out").write_text(f"{SECRETS['GH_TOKEN']} 3 tests failed\n")
    turn = blue.make_turn(1)
    assert not turn.leaks
    blue.push_turn(1, turn)
    green = Worker(Path(blue.home).parent, "green", blue.mirror.url)
    green.claim(1)
    assert Path(green.clone().root, ".rooda/runs", SESSION, "0001-gate-1.out").read_text() == "*** 3 tests failed\n"


def test_FL_14_transcripts_stay_unless_they_are_asked_for(blue: Worker) -> None:
    """With logs they go along once, capped and with secrets replaced; without, only events and receipts do."""
    run = Path(blue.root, ".rooda/runs", SESSION)
    for logs in (False, True):
        publisher = blue.begin(logs=logs, environ={**os.environ, **SECRETS})
        log(blue, {"event": "agent.ended"})
        (run / f"000{int(logs)}-iteration.out").write_text("x" * 300_000 + f" {SECRETS['GH_TOKEN']} end")
        (run / "start").write_text("{}")
        assert blue.turn(1).kind == "done"
        found = [name for name in names(blue, blue.tip) if name.startswith("outputs/")]
        assert found == ([f"outputs/{SESSION}/0001-iteration.out"] if logs else [])
    text = git(blue.mirror.url, "show", f"{blue.tip}:{found[0]}")
    assert text.endswith(" end") and len(text) < 262_144 + 100 and SECRETS["GH_TOKEN"] not in text
    assert publisher and blue.turn(1).kind == "done"
    assert not [name for name in names(blue, blue.tip) if name.startswith("outputs/")]


PLACES = ["file", "commit", "message", "name", "state", "base64", "events", "link", "old turn", "odd name"]
PLACES += ["staged", "staged, without rooda's index"]


@pytest.mark.parametrize("where", PLACES)
def test_FL_12_a_turn_that_holds_a_key_is_held(where: str, blue: Worker) -> None:
    """File and variable are named, wherever the key is; nothing was pushed, and the next turn without it goes."""
    from base64 import b64encode

    root, key = Path(blue.root), SECRETS["GH_TOKEN"]
    blue.begin(environ={**os.environ, **SECRETS})
    path, text = root / "config.txt", f"token = {key}\n"
    if where == "base64":
        text = b64encode(f"user:{key}".encode()).decode()
    if where == "name":
        path = root / f"{key}.txt"
    elif where == "state":
        path = root / ".loop" / "run.json"
        path.parent.mkdir()
    elif where == "odd name":
        path = root / "config.txt\n'"
    if where == "message":
        git(root, "commit", "-q", "--allow-empty", "-m", text)
    elif where == "events":
        log(blue, {"event": "problem", "text": key})
    elif where == "link":
        path.symlink_to(key)
    else:
        path.write_text("x" if where == "name" else text)
    if where == "commit":
        git(root, "add", "config.txt")
        git(root, "commit", "-q", "-m", "one")
        git(root, "rm", "-q", "config.txt")
        git(root, "commit", "-q", "-m", "two")
    if where.startswith("staged"):
        git(root, "add", "-A")
    if where == "staged, without rooda's index":
        (root / ".git/rooda/fleet.index").unlink()
    turn = blue.make_turn(1)
    turn = blue.make_turn(1) if where == "old turn" else turn  # held already once
    assert {leak.name for leak in turn.leaks} == {"GH_TOKEN"}
    places = {"state": "state/.loop/run.json", "message": "commit ", "name": "a name in /"}
    places |= {"events": f"events/{SESSION}/1.jsonl"}
    assert any(leak.path.startswith(places.get(where, "config.txt")) for leak in turn.leaks)
    assert not any(key in str(leak) for leak in turn.leaks)
    git(root, "reset", "-q", "--hard", "origin/main")
    path.unlink(missing_ok=True)
    shutil.rmtree(root / ".rooda/runs", ignore_errors=True)
    assert not blue.make_turn(1).leaks
    assert blue.turn(1).kind == "done"


PLANTED = """
[core]
    fsmonitor = {evil}
    sshCommand = {evil}
    gitProxy = {evil}
    askPass = {evil}
    alternateRefsCommand = {evil}
    hooksPath = {hooks}
    editor = {evil}
    pager = {evil}
[credential]
    helper = !{evil}
[filter "evil"]
    clean = {evil}
    smudge = {evil}
    process = {evil}
    required = true
[diff "evil"]
    textconv = {evil}
    command = {evil}
[merge "evil"]
    driver = {evil}
[remote "origin"]
    uploadpack = {evil}
    receivepack = {evil}
[url "ext::{evil}"]
    insteadOf = /
    pushInsteadOf = /
[protocol]
    allow = always
[gpg]
    program = {evil}
[commit]
    gpgSign = true
[push]
    gpgSign = true
[pack]
    packSizeLimit = 1
"""
HOOKS = ("pre-commit", "post-commit", "pre-push", "post-checkout", "post-index-change", "reference-transaction")
HOOKS += ("post-merge", "post-rewrite", "pre-auto-gc", "fsmonitor-watchman", "post-applypatch", "commit-msg")


def test_FL_12_nothing_of_the_clone_runs_and_no_git_in_it_has_a_credential(
    blue: Worker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hooks, filters, helpers and settings that an agent plants do not run; every git in a clone has no credential."""
    seen, evil = tmp_path / "seen", tmp_path / "evil"
    evil.write_text(f'#!/bin/sh\necho "$0 $*" >>{tmp_path}/ran; env >>{tmp_path}/ran; cat\n')
    evil.chmod(0o755)
    real = shutil.which("git")
    (tmp_path / "bin").mkdir()
    spy = tmp_path / "bin" / "git"
    record = f'{{ echo "CALL $PWD $*"; env | grep -E "^({"|".join(SECRETS)})="; true; }} >>{seen}'
    spy.write_text(f'#!/bin/sh\n{record}\nexec {shlex.quote(str(real))} "$@"\n')
    spy.chmod(0o755)
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin{os.pathsep}{os.environ['PATH']}")
    blue = Worker(tmp_path, "blue", blue.mirror.url)
    blue.claim(1)
    root = Path(blue.clone().root)
    blue.begin()
    for name in HOOKS:
        shutil.copy(evil, root / ".git" / name)
        (root / ".git" / "hooks").mkdir(exist_ok=True)
        shutil.copy(evil, root / ".git" / "hooks" / name)
    with open(root / ".git" / "config", "a") as config:
        config.write(PLANTED.format(evil=evil, hooks=root / ".git"))
    (root / ".gitattributes").write_text("* filter=evil diff=evil merge=evil\n")
    (root / "b.txt").write_text("b\n")
    assert blue.turn(1).kind == "done"
    assert not (tmp_path / "ran").exists()
    assert git(blue.mirror.url, "show", f"{blue.tip}^2:b.txt") == "b"
    calls = seen.read_text().split("CALL ")[1:]
    in_clone = [call for call in calls if f"{root}" in call.partition("\n")[0].replace(".new", "")]
    with_key = [call for call in calls if "=" in call.partition("\n")[2]]
    assert in_clone and with_key and not {*in_clone} & {*with_key}
    assert {call.split(" ", 1)[0] for call in with_key} == {blue.mirror.folder, blue.mirror.url}


def test_FL_12_credentials_are_removed_from_an_environment() -> None:
    """The variables of the row, and every name that looks like a key, are gone; git's own settings stay."""
    kept = clone_environment({**SECRETS, "MY_API_KEY": "x", "PATH": "/bin", "GIT_CONFIG_NOSYSTEM": "1", "LANG": "C"})
    assert kept == {"PATH": "/bin", "GIT_CONFIG_NOSYSTEM": "1", "LANG": "C"}


def test_a_push_reads_only_the_objects_of_clone_and_mirror(blue: Worker, tmp_path: Path) -> None:
    """An alternate that an agent adds is removed; a git folder that was replaced is an error with a sentence."""
    git(tmp_path, "init", "-q", "other")
    blob = git(tmp_path / "other", "hash-object", "-w", "--stdin", stdin=b"private\n")
    blue.begin()
    alternates = Path(blue.root, ".git/objects/info/alternates")
    alternates.write_text(f"{alternates.read_text()}{tmp_path}/other/.git/objects\n")
    git(blue.root, "update-index", "--add", "--cacheinfo", f"100644,{blob},stolen")
    assert blue.turn(1).kind == "done"
    assert str(tmp_path / "other") not in alternates.read_text()
    os.rename(Path(blue.root, ".git/objects"), tmp_path / "objects")
    os.symlink(tmp_path / "objects", Path(blue.root, ".git/objects"))
    with pytest.raises(GitProblem, match="no longer a folder"):
        blue.make_turn(1)


def test_FL_01_a_damaged_clone_is_an_error(blue: Worker) -> None:
    """HEAD that names a missing commit, and a missing git folder, are errors with a sentence; the ref stays."""
    blue.begin(environ={**os.environ, **SECRETS})
    Path(blue.root, ".git/HEAD").write_text("1" * 40 + "\n")
    with pytest.raises(GitProblem, match="can't be searched"):
        blue.make_turn(1)
    shutil.rmtree(Path(blue.root, ".git"))
    with pytest.raises(GitProblem, match="no longer a folder"):
        blue.make_turn(1)
    assert git(blue.mirror.url, "rev-parse", "refs/rooda/task/1") == blue.tip


def test_FL_01_the_size_of_a_chain_is_linear(blue: Worker) -> None:
    """The last of many turns adds as many objects as one at the beginning."""
    blue.begin()
    added = []
    for number in range(1, 13):
        log(blue, *({"event": "iteration.started", "n": n, "turn": number} for n in range(200)))
        Path(blue.root, "a.txt").write_text(f"{number}\n")
        before = blue.tip
        assert blue.turn(1).kind == "done"
        added.append(len(git(blue.mirror.url, "rev-list", "--objects", blue.tip, f"^{before}").splitlines()))
    assert added[-1] == added[2] < 12
    assert chain.next_seq(blue.remote.entries(blue.tip)) == 13


def test_FL_01_what_a_turn_lacks_is_said_in_it(blue: Worker) -> None:
    """Content of Git LFS stays on the machine; turn and task.json say so."""
    blue.begin()
    assert not blue.make_turn(1).trouble
    Path(blue.root, ".git/lfs/objects/ab").mkdir(parents=True)
    turn = blue.make_turn(1)
    assert "Git LFS" in turn.trouble
    assert blue.push_turn(1, turn).kind == "done"
    assert json.loads(git(blue.mirror.url, "show", f"{blue.tip}:task.json"))["trouble"] == turn.trouble


def test_FL_03_a_workspace_in_a_folder_of_the_repository(tmp_path: Path) -> None:
    """State and events are those of the workspace; the whole repository is the work tree."""
    url = new_remote(tmp_path, {"app/a.txt": "a\n", "lib/b.txt": "b\n"})
    blue, green = Worker(tmp_path, "blue", url), Worker(tmp_path, "green", url)
    blue.add()
    blue.claim(1)
    workspace = Path(blue.clone(prefix="app/").workspace)
    assert workspace == Path(blue.root, "app")
    blue.begin(prefix="app/")
    state = workspace / ".rooda/state/build.json"
    state.parent.mkdir(parents=True)
    state.write_text("{}\n")
    run = workspace / ".rooda/runs" / SESSION
    run.mkdir(parents=True)
    (run / "events.jsonl").write_text('{"event": "run.started"}\n')
    (workspace / "new").write_text("new\n")
    Path(blue.root, "lib/b.txt").write_text("changed\n")
    assert blue.turn(1).kind == "done"
    assert names(blue, f"{blue.tip}^2") == ["app/a.txt", "app/new", "lib/b.txt"]
    green.claim(1)
    again = green.clone(prefix="app/")
    for path in ("app/new", "lib/b.txt", "app/.rooda/state/build.json", f"app/.rooda/runs/{SESSION}/events.jsonl"):
        assert Path(again.root, path).read_bytes() == Path(blue.root, path).read_bytes()


def test_FL_01_a_mirror_is_usable_after_a_kill(blue: Worker) -> None:
    """Lock files that a killed git left, and half a mirror, are in nobody's way; loose objects are packed in time."""
    folder = Path(blue.mirror.folder)
    for name in ("packed-refs.lock", "refs/rooda/fleet/1.lock", "HEAD.lock", "config.lock"):
        (folder / name).touch()
    git(blue.mirror.url, "update-ref", "refs/heads/other", "main")
    git(blue.mirror.url, "update-ref", "-d", "refs/rooda/task/1")
    git(blue.mirror.url, "update-ref", "refs/rooda/task/1", "main")
    assert blue.mirror.fetch(1) == git(blue.mirror.url, "rev-parse", "main")
    assert blue.mirror.branch("other")
    for number in range(40):
        git(folder, "hash-object", "-w", "--stdin", stdin=b"%d" % number)
        (folder / "objects/17").mkdir(exist_ok=True)
        (folder / "objects/17" / f"tmp_obj_{number}").touch()
    loose = git(folder, "count-objects")
    blue.mirror.fetch(1)
    assert git(folder, "count-objects").split()[0] == "0" != loose.split()[0]
    assert git(folder, "cat-file", "-p", git(folder, "hash-object", "--stdin", stdin=b"39")) == "39"
    (folder.parent / "other.new").mkdir()
    os.rename(folder, folder.with_name("gone"))
    (folder.with_name(f"{folder.name}.new") / "refs").mkdir(parents=True)
    assert blue.mirror.fetch(1)
