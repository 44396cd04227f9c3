"""Whose settings, gates and repositories count: those of the user and of root, and what the user accepts, as in git."""

import json
import os
from pathlib import Path

import pytest

from rooda.settings import ownership
from tests.kit.users import ALICE, EVE, Shared

EVIL = '[procedures.evil]\nobserve = "x"\norient = "x"\ndecide = "x"\nact = "x"\n'


def refused(said: str, path: str, owner: int, runs: int) -> bool:
    words = f"detected dubious ownership in repository at '{os.path.dirname(path)}'"
    return words in said and f"{path} belongs to user {owner}, and rooda runs as user {runs}" in said


def repository(shared: Shared, name: str, uid: int) -> str:
    shared.folder(name, uid)
    shared.folder(f"{name}/.git", uid)
    shared.file(f"{name}/rooda.toml", uid, EVIL)
    return os.path.join(shared.root, name)


def test_S_05_what_lies_in_a_folder_for_all_is_nobodys_settings(shared: Shared) -> None:
    """Eve's `.git` and rooda.toml in /tmp: neither believed nor in the way of those who work below it."""
    shared.folder(".git", EVE)
    shared.file("rooda.toml", EVE, EVIL)
    said = shared.rooda(ALICE, shared.folder("alice", ALICE), "list")
    assert said.code == 0 and "build" in said.out and "evil" not in said.out + said.err


@pytest.mark.parametrize("uid", [ALICE, 0])
def test_S_05_a_repository_of_another_user_is_refused(shared: Shared, uid: int) -> None:
    """In git's words, with the line to type; for a start as for all that reads settings. TAB has its commands."""
    top = repository(shared, "eve", EVE)
    for words in (["list"], ["build", "--dry-run"], ["build", "--ai-cmd", "cat"], ["config", "show"]):
        said = shared.rooda(uid, top, *words)
        assert said.code == 2 and f"git config --global --add safe.directory {top}" in said.err
        assert f"detected dubious ownership in repository at '{top}': {top} belongs to user {EVE}" in said.err
    asked = {"_ROODA_COMPLETE": "bash_complete", "COMP_WORDS": "rooda ", "COMP_CWORD": "1"}
    said = shared.rooda(uid, top, **asked)
    assert "status" in said.out and "evil" not in said.out and not said.err


@pytest.mark.parametrize("name", ["rooda.toml", "AGENTS.md", ".rooda", ".git"])
def test_S_05_one_path_of_another_user_is_enough(shared: Shared, name: str) -> None:
    """A settings file, gates, states, a repository: Eve left it in Alice's folder."""
    top = repository(shared, "alice", ALICE)
    path = os.path.join(top, name)
    if not os.path.exists(path):
        shared.file(f"alice/{name}", ALICE)
    os.chown(path, EVE, EVE)
    assert refused(shared.rooda(ALICE, top, "list").err, path, EVE, ALICE)
    os.chown(path, 0, 0)  # root decides for all anyway
    assert shared.rooda(ALICE, top, "list").code == 0


def test_S_05_a_link_to_the_file_of_another_user(shared: Shared) -> None:
    """Owner is who wrote the text."""
    top = repository(shared, "alice", ALICE)
    target = shared.file("alice/text", EVE)
    os.symlink(target, os.path.join(top, "AGENTS.md"))
    assert refused(shared.rooda(ALICE, top, "list").err, os.path.join(top, "AGENTS.md"), EVE, ALICE)


def test_S_05_every_folder_up_to_the_repository_counts(shared: Shared) -> None:
    """Eve's folder between Alice's: she can put anything into it."""
    repository(shared, "alice", ALICE)
    shared.folder("alice/between", EVE)
    below = shared.folder("alice/between/below", ALICE)
    said = shared.rooda(ALICE, below, "-C", ".", "list")
    assert said.code == 2 and f"{os.path.dirname(below)} belongs to user {EVE}" in said.err


GIT = "[safe]\n\tdirectory = "


@pytest.mark.parametrize("listed", ["*", "TOP", "ROOT/*", "/else\n\tdirectory = TOP"])
def test_S_05_gits_safe_directory_accepts(shared: Shared, listed: str) -> None:
    """What the user told git, rooda need not be told."""
    top = repository(shared, "eve", EVE)
    shared.home(ALICE)
    shared.file(f"home-{ALICE}/.gitconfig", ALICE, GIT + listed.replace("TOP", top).replace("ROOT", shared.root))
    said = shared.rooda(ALICE, top, "list")
    assert said.code == 0 and "evil" in said.out


@pytest.mark.parametrize("listed", ["/else", "TOP\n\tdirectory =", "TOPx", "."])
def test_S_05_other_values_do_not(shared: Shared, listed: str) -> None:
    """Another folder, a list that was cleared, a longer name."""
    top = repository(shared, "eve", EVE)
    shared.home(ALICE)
    shared.file(f"home-{ALICE}/.gitconfig", ALICE, GIT + listed.replace("TOP", top))
    assert shared.rooda(ALICE, top, "list").code == 2


def test_S_05_a_repository_does_not_declare_itself_safe(shared: Shared) -> None:
    """Its own settings of git, and its own [trust], count for nothing."""
    top = repository(shared, "eve", EVE)
    shared.file("eve/.git/config", EVE, GIT + "*\n")
    shared.file("eve/rooda.toml", EVE, '[trust]\nfolders = "/"\n')
    assert "dubious ownership" in shared.rooda(ALICE, top, "list").err
    mine = shared.folder("mine", ALICE)
    path = shared.file("mine/rooda.toml", ALICE, '[trust]\nfolders = "/"\n')
    said = shared.rooda(ALICE, mine, "list")
    assert said.code == 2 and f"{path}:1: trust: only your own settings can have this table" in said.err


@pytest.mark.parametrize("folders", ['"/"', '["/else", "ROOT/e*"]', '"ROOT"'])
def test_S_05_the_users_own_settings_accept(shared: Shared, folders: str) -> None:
    """A folder means all that is below it."""
    top = repository(shared, "eve", EVE)
    own = shared.folder("own", ALICE)
    shared.file("own/rooda.toml", ALICE, f"[trust]\nfolders = {folders.replace('ROOT', shared.root)}\n")
    assert shared.rooda(ALICE, top, "list", ROODA_CONFIG_HOME=own).code == 0


def test_S_05_the_environment_accepts(shared: Shared) -> None:
    """For this start only."""
    top = repository(shared, "eve", EVE)
    assert shared.rooda(ALICE, top, "list", ROODA_TRUST="all").code == 0
    assert shared.rooda(ALICE, top, "list").code == 2


def test_S_05_root_in_a_container_over_a_checkout_of_a_user(shared: Shared) -> None:
    """As git: `sudo rooda` in one's own checkout, or safe.directory; SUDO_UID counts for root only."""
    top = repository(shared, "alice", ALICE)
    assert shared.rooda(0, top, "list").code == 2
    assert shared.rooda(0, top, "list", SUDO_UID=str(ALICE)).code == 0
    assert shared.rooda(0, top, "list", SUDO_UID=str(EVE)).code == 2
    assert shared.rooda(EVE, top, "list", SUDO_UID=str(ALICE)).code == 2
    words = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*"}
    assert shared.rooda(0, top, "list", **words).code == 0


def test_S_05_what_only_looks_shows_it(shared: Shared) -> None:
    """`status` reads no settings; `status --all` shows every workspace, whoever owns one of them."""
    top = repository(shared, "eve", EVE)
    assert shared.rooda(ALICE, top, "status").code == 0
    home = shared.home(ALICE)
    state = shared.folder(f"home-{ALICE}/state", ALICE)
    mine = shared.folder("mine", ALICE)
    assert shared.rooda(ALICE, mine, "build", "--ai-cmd", "false", "-n", "3", ROODA_STATE_HOME=state).code
    name = Path(state, "workspaces", "x.json")
    name.write_text(json.dumps({"workspace": top}))
    os.chown(name, ALICE, ALICE)
    said = shared.rooda(ALICE, home, "status", "--all", ROODA_STATE_HOME=state)
    assert said.code == 0 and mine in said.out


def test_S_05_another_users_loop_is_not_signalled(shared: Shared) -> None:
    """A lock file of hers names any process that she likes."""
    top = repository(shared, "eve", EVE)
    for word in ("stop", "pause", "continue"):
        said = shared.rooda(0, top, word)
        assert said.code == 2 and "dubious ownership" in said.err


def test_S_07_a_file_that_may_not_be_read(shared: Shared) -> None:
    """Mode 000, for a user without privileges: exit 2 with the reason, and no loop without gates."""
    top = repository(shared, "alice", ALICE)
    for name in ("AGENTS.md", "rooda.toml"):
        path = shared.file(f"alice/{name}", ALICE, "## Quality Gates\n\n- own: `false`\n")
        os.chmod(path, 0)
        said = shared.rooda(ALICE, top, "build", "--ai-cmd", "cat", "-n", "1")
        assert said.code == 2 and f"{path}" in said.err and "Permission denied" in said.err
        os.remove(path)


def test_S_05_patterns(tmp_path: Path) -> None:
    """Of `[trust] folders`; the name is not a prefix."""
    folder = str(tmp_path / "a" / "b")
    table = {"trust": {"folders": [str(tmp_path / "a")]}}
    assert ownership.trusted_folder(folder, {}, table)
    assert not ownership.trusted_folder(str(tmp_path / "ab"), {}, table)
    assert not ownership.trusted_folder(str(tmp_path / "ab"), {}, {"trust": {"folders": str(tmp_path / "a")}})
    assert ownership.trusted_folder(folder, {}, {"trust": {"folders": str(tmp_path / "a")}})
    assert not ownership.trusted_folder(folder, {"ROODA_TRUST": "0123abcd"}, {})
    assert not ownership.trusted_folder(folder, {}, {"trust": {"folders": ["", "*", "b", 1]}})
