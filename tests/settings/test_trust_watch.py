"""What the fast answer of a start notices: everything that can change what a workspace would start."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from rooda.loops import configuration, trusting
from rooda.loops.options import RunOptions
from rooda.settings import trust_watch

TOML = '[loop]\nagent = "claude"\n[procedures.p]\nobserve = "look.md"\norient = "O"\ndecide = "D"\nact = "A"\n'


@pytest.fixture
def known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace whose facts are noted as trusted."""
    monkeypatch.setenv("ROODA_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("ROODA_CONFIG_HOME", str(tmp_path / "config"))
    folder = tmp_path / "work"
    (folder / ".claude" / "commands").mkdir(parents=True)
    (folder / "rooda.toml").write_text(TOML)
    (folder / "look.md").write_text("Look.")
    (folder / ".claude" / "settings.json").write_text("{}")
    (tmp_path / "secret").write_text("key")
    old = time.time() - 60
    for place, names, inner in os.walk(tmp_path):
        for name in (*names, *inner):
            os.utime(os.path.join(place, name), (old, old))
    monkeypatch.setattr(trust_watch, "YOUNG", -3600.0)  # the files' change times can't be set back
    trusting.checked(configuration.load(str(folder)), RunOptions({}), None)
    assert is_known(folder)
    return folder


def is_known(folder: Path, config: str | None = None) -> bool:
    return trust_watch.unchanged(configuration.load(str(folder), config), config) is not None


def append(name: str, text: str = "\n# x\n") -> Callable[[Path], object]:
    def change(folder: Path) -> None:
        with (folder / name).open("a") as file:
            file.write(text)

    return change


def make(name: str, text: str = "{}") -> Callable[[Path], object]:
    def change(folder: Path) -> None:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)

    return change


def same_size_and_time(folder: Path) -> None:
    path = folder / "rooda.toml"
    facts = path.stat()
    path.write_text(TOML.replace('"claude"', '"sh-x-y"'))
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))


def link_out(folder: Path) -> None:
    (folder / "look.md").unlink()
    (folder / "look.md").symlink_to(folder.parent / "secret")


@pytest.mark.parametrize(
    "change",
    [
        append("rooda.toml"),
        same_size_and_time,
        lambda folder: (folder / "rooda.toml").unlink(),
        make("AGENTS.md"),
        make(".mcp.json"),
        make("opencode.json"),
        make(".aider.conf.yml"),
        append(".claude/settings.json", " "),
        make(".claude/settings.local.json"),
        make(".claude/commands/x.md"),
        make(".claude/skills/x/SKILL.md"),
        make(".codex/config.toml"),
        make("../config/rooda.toml", "# x"),
        link_out,
        lambda folder: (folder / ".git").mkdir(),
    ],
)
def test_S_03_every_change_is_looked_at(known: Path, change: Callable[[Path], object]) -> None:
    change(known)
    assert not is_known(known)


@pytest.mark.parametrize(
    "change", [append("look.md"), make("src/main.py"), make("README.md"), make("node_modules/.x/y")]
)
def test_S_03_ordinary_work_is_not(known: Path, change: Callable[[Path], object]) -> None:
    change(known)
    assert is_known(known)


def test_S_03_another_settings_file_is_looked_at(known: Path) -> None:
    (known / "other.toml").write_text(TOML)
    assert not is_known(known, str(known / "other.toml"))


def test_S_03_a_young_file_is_looked_at_again(known: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trust_watch, "YOUNG", 3600.0)
    append("rooda.toml")(known)
    trusting.checked(configuration.load(str(known)), RunOptions({}), None)
    assert not is_known(known)


def test_S_03_a_note_of_a_run_is_looked_at(known: Path) -> None:
    folder = trust_watch.record_folder(trust_watch.top_of(str(known)))
    Path(folder, "run-x.json").write_text('{"appeared": [["rooda.toml", "hooks.done", "x"]], "vanished": []}')
    assert not is_known(known)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"key": 1}', "\0", '{"facts": []}'])
def test_S_03_a_damaged_note_is_not_believed(known: Path, content: str) -> None:
    folder = trust_watch.record_folder(trust_watch.top_of(str(known)))
    Path(folder, trust_watch.UNCHANGED).write_text(content)
    assert not is_known(known)
