"""Files that start something for people or tools: an agent's change is put back, git's own work is not."""

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
    assert "Put back, because agents and gates may not change it: " in run.err
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
