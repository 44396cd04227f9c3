"""Private files stay out of the snapshots, an agent's files are in, and a ref that an agent moved is put back."""

import os
import subprocess
from pathlib import Path

import pytest

from rooda.git.private import has_secret_name
from tests.kit.goal import Goals
from tests.kit.snapshots import moments, refs, repository, tree_of
from tests.kit.users import ALICE, EVE, AlicesWorkspace
from tests.kit.workspace import Workspace

KEY = "sk-live-0123456789\n"


def private(ws: Workspace, name: str, text: str = KEY) -> Path:
    return Path(ws.write(name, text, 0o600))


def objects(ws: Workspace) -> bytes:
    """The contents of all objects in the repository."""
    every = ["git", "cat-file", "--batch-all-objects", "--batch"]
    return subprocess.run(every, cwd=ws.path, env=ws.env, capture_output=True, check=True).stdout


def left_out(ws: Workspace) -> list[str]:
    return [path for event in ws.events() if event["event"] == "snapshot.omitted" for path in event["paths"]]


def test_S_10_a_private_file_never_becomes_an_object(ws: Workspace) -> None:
    """What only its owner may read and git does not track is named in one line, and no object of git has it."""
    repository(ws, {"a": "1\n"})
    private(ws, ".env")
    private(ws, "deploy/notes.txt")
    ws.write("public.txt", "for everybody\n")
    ws.side(1, "echo 2 >a; echo more >>.env")
    ran = ws.rooda("build", "-n", "2")
    assert ran.code == 0 and moments(ws) == ["1-after", "1-before", "2-after", "2-before"]
    assert ran.err.count("Not in the snapshots, because only you may read them: .env, deploy/notes.txt") == 1, ran.err
    assert left_out(ws) == [".env", "deploy/notes.txt"]
    assert KEY.strip().encode() not in objects(ws)
    assert {*tree_of(ws, "2-after")} >= {"a", "public.txt"} and ".env" not in tree_of(ws, "2-after")


def test_S_10_what_an_agent_makes_is_in(ws: Workspace) -> None:
    """A new file of mode 600 with an ordinary name, as editors and `mktemp` make it, is saved; a key file is not."""
    repository(ws, {"a": "1\n"})
    ws.side(1, "umask 077; echo work >new.py; echo work >id_mapping.py; echo KEY >server.pem; echo KEY >id_ed25519")
    ran = ws.rooda("build", "-n", "2")
    assert ran.code == 0
    after = tree_of(ws, "1-after")
    assert after["new.py"] == after["id_mapping.py"] == "work\n" and not {"server.pem", "id_ed25519"} & {*after}
    assert left_out(ws) == ["id_ed25519", "server.pem"]
    assert ws.rooda("undo", "1", "--yes").code == 0
    assert not ws.exists("new.py") and ws.read("server.pem") == ws.read("id_ed25519") == "KEY\n"


def test_S_10_tracked_and_open_files_are_in(ws: Workspace) -> None:
    """A committed file counts whatever its mode and name; so does a `.env` that everybody may read."""
    repository(ws, {"kept.key": "test key\n"})
    os.chmod(ws.file("kept.key"), 0o600)
    ws.write(".env", "DEBUG=1\n", 0o644)
    ws.side(1, "echo changed >kept.key; chmod 600 kept.key")
    ran = ws.rooda("build", "-n", "1")
    assert ran.code == 0 and not left_out(ws) and "Not in the snapshots" not in ran.err
    assert tree_of(ws, "1-after")["kept.key"] == "changed\n" and tree_of(ws, "1-before")[".env"] == "DEBUG=1\n"


def test_S_10_a_private_umask_leaves_out_nothing(ws: Workspace) -> None:
    """Where all files are private, mode 600 means nothing."""
    repository(ws, {"a": "1\n"})
    private(ws, "mine.txt")
    before = os.umask(0o077)
    try:
        assert ws.rooda("build", "-n", "1").code == 0
    finally:
        os.umask(before)
    assert tree_of(ws, "1-after")["mine.txt"] == KEY


def test_S_10_the_user_may_want_them(ws: Workspace) -> None:
    """`snapshot_private = true` saves and restores them."""
    repository(ws, {"a": "1\n"}, loop={"safety": "snapshot", "snapshot_private": True})
    private(ws, ".env")
    ws.side(1, "echo gone >.env")
    assert ws.rooda("build", "-n", "1").code == 0 and tree_of(ws, "1-before")[".env"] == KEY
    assert ws.rooda("undo", "--yes").code == 0 and ws.read(".env") == KEY


@pytest.mark.parametrize("later", ["same", "opened"])
def test_S_10_undo_never_touches_what_was_left_out(ws: Workspace, later: str) -> None:
    """Also if everybody may read it by the time of the undo, which names it then."""
    repository(ws, {"a": "1\n"})
    path = private(ws, "token.txt")
    ws.side(1, f"echo 2 >a; echo agent >>{path.name}")
    assert ws.rooda("build", "-n", "1").code == 0
    path.chmod(0o600 if later == "same" else 0o644)
    ran = ws.rooda("undo", "--yes")
    assert path.read_text() == f"{KEY}agent\n" and ws.read("a") == "1\n", ran.both
    assert (ran.code, "private, now or at" in ran.out) == ((0, False) if later == "same" else (1, True)), ran.both
    again = ws.rooda("undo", "--redo", "--yes")
    assert path.read_text() == f"{KEY}agent\n" and ws.read("a") == "2\n", again.both


def test_S_10_a_resume_keeps_what_was_in(ws: Workspace) -> None:
    """An agent's own private file stays in the snapshots of the next session; the user's stays out."""
    repository(ws, {"a": "1\n"})
    private(ws, "mine.txt")
    ws.side(1, "umask 077; echo work >new.py")
    ws.signal_at(2)
    assert ws.rooda("build", "-n", "3").code == 130
    assert ws.rooda("resume", "build").code == 0
    last = tree_of(ws, "3-after")
    assert last["new.py"] == "work\n" and "mine.txt" not in last


def test_S_10_an_older_snapshot_does_not_keep_them_in(ws: Workspace) -> None:
    """A file that was saved when everybody could read it, and then made private, is dropped from the next run's."""
    repository(ws, {"a": "1\n"})
    path = Path(ws.write(".env", "old\n", 0o644))
    assert ws.rooda("build", "-n", "1").code == 0 and ".env" in tree_of(ws, "1-after")
    path.write_text(KEY)
    path.chmod(0o600)
    assert ws.rooda("build", "-n", "1", "--fresh").code == 0
    assert ".env" not in tree_of(ws, "1-before") and KEY.strip().encode() not in objects(ws)


def test_S_10_a_diff_shows_no_private_file(ws: Workspace) -> None:
    """`rooda diff` of an iteration that is cut off reads the work tree without them, and makes no object of them."""
    repository(ws, {"a": "1\n"})
    private(ws, ".env")
    ws.side(1, "echo 2 >a; echo agent >>.env")
    ws.signal_at(1, "KILL")
    ws.rooda("build", "-n", "1")
    shown = ws.rooda("diff").out
    assert "+2" in shown and "agent" not in shown and KEY.strip().encode() not in objects(ws)


def test_S_10_checkpoints_of_goals_leave_them_out(g: Goals) -> None:
    """A goal's checkpoints have no private file, and a rollback changes none; an agent's own file is rolled back."""
    private(g, ".env")
    g.planned(reversibility="2B")
    g.side("step", "umask 077; echo agent >>.env; echo $ROODA_ITERATION >work.txt")
    assert g.run("-n", "3").code == 4 and KEY.strip().encode() not in objects(g)
    assert g.rooda("goal", "rollback", "2").code == 0
    assert g.read("work.txt") == "1\n" and g.read(".env") == KEY + 3 * "agent\n"
    assert KEY.strip().encode() not in objects(g)


MOVES = {
    "moved": 'git update-ref "$ref" HEAD',
    "deleted": 'git update-ref -d "$ref"',
    "packed and deleted": 'git pack-refs --all; git update-ref -d "$ref"',
    "a file": 'echo garbage >".git/$ref"',
}


@pytest.mark.parametrize("how", MOVES)
def test_S_10_a_ref_that_an_agent_changes_is_put_back(ws: Workspace, how: str) -> None:
    """It is said at once, and afterwards the run can be undone as if nothing had happened."""
    repository(ws, {"a": "1\n"})
    ws.side(1, f'echo 2 >a; for ref in $(git for-each-ref --format="%(refname)" refs/rooda); do {MOVES[how]}; done')
    ws.side(2, "echo 3 >a")
    ran = ws.rooda("build", "-n", "2")
    assert ran.code == 0 and ran.err.count("A snapshot was changed: refs/rooda/") == 1, ran.err
    found = [event["text"] for event in ws.events() if event["event"] == "problem"]
    assert len(found) == 1 and "put back" in found[0]
    assert {*moments(ws)} == {"1-after", "1-before", "2-after", "2-before"}
    assert ws.rooda("undo", "1", "--yes").code == 0 and ws.read("a") == "1\n"


def test_S_10_a_lost_snapshot_is_said(ws: Workspace) -> None:
    """The agent deletes refs and objects: one warning, and the next snapshots are taken."""
    repository(ws, {"a": "1\n"})
    gone = "git reflog expire --expire=now --all; git gc -q --prune=now"
    delete = 'for ref in $(git for-each-ref --format="%(refname)" refs/rooda); do git update-ref -d $ref; done'
    ws.side(1, f"echo 2 >a; rm -f .rooda/snapshots/*; {delete}; {gone}")
    ran = ws.rooda("build", "-n", "2")
    assert ran.code == 0 and "The newest snapshot is lost" in ran.err and len(refs(ws)) >= 3, ran.err


def test_S_10_another_user_finds_no_key_in_git(alices: AlicesWorkspace) -> None:
    """The attack of the review: a stranger reads all objects of a world-readable repository."""
    alices.give(os.geteuid())
    repository(alices, {"a": "1\n"})
    private(alices, ".env")
    alices.give(ALICE)
    ran = alices.rooda_as(ALICE, "build", "-n", "2")
    assert ran.code == 0, ran.err
    alices.env |= {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*"}
    read = alices.run_as(EVE, "git", "cat-file", "--batch-all-objects", "--batch")
    assert read.code == 0 and "the beginning" in read.out and "sk-live" not in read.out, read.err


def test_S_10_names_of_secrets() -> None:
    """Names of key files, not those of ordinary sources."""
    secret = (".env", ".env.local", "a/server.pem", "x.KEY", "id_rsa", "id_ed25519", ".netrc", "credentials.json")
    plain = (
        "env",
        "id_mapping.py",
        "keys.py",
        "pem.md",
        "monkey",
        "identity",
        "test_key.py",
        "src/credentials_test.go",
    )
    assert all(map(has_secret_name, secret)) and not any(map(has_secret_name, plain))
