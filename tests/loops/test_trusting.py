"""Trust: what somebody else may have written is asked for before it runs; what the user wrote here is not."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from rooda.base.facts import Fact
from rooda.errors import Undecided
from rooda.loops import configuration, trusting
from rooda.settings import trust_search
from tests.kit.goal import SPEC, plan
from tests.kit.workspace import FAKE_AI, Workspace, until

TOML = f"""[loop]
ai_cmd = {json.dumps(FAKE_AI)}
default_iterations = 1

[procedures.work]
observe = "OBS"
orient = "ORI"
decide = "DEC"
act = "ACT"
"""
GATE = 'quality_gates = ["touch gate-ran"]\n'
HOOK = '[hooks]\ndone = "touch hook-ran"\n'
WITH_GATE = TOML.replace("\n\n", f"\n{GATE}\n", 1)


class Clone:
    """A repository of somebody else, `theirs`, and the workspace as its clone."""

    def __init__(self, bare: Workspace, toml: str = WITH_GATE) -> None:
        self.ws, self.theirs = bare, os.path.join(bare.root, "theirs")
        os.mkdir(self.theirs)
        self.git(self.theirs, "init", "-q")
        self.commit({"rooda.toml": toml, "README": "hello\n"})
        os.rmdir(bare.path)
        self.git(bare.root, "clone", "-q", self.theirs, bare.path)

    def git(self, folder: str, *words: str) -> str:
        return subprocess.run(
            ["git", *words], cwd=folder, env=self.ws.env, check=True, capture_output=True, text=True
        ).stdout

    def commit(self, files: dict[str, str]) -> None:
        """Somebody else commits these files."""
        for name, content in files.items():
            path = Path(self.theirs, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        self.git(self.theirs, "add", "-A")
        self.git(self.theirs, "commit", "-q", "-m", "theirs")

    def pull(self) -> None:
        self.git(self.ws.path, "pull", "-q", "--no-rebase", "origin", "main")


@pytest.fixture
def clone(bare: Workspace) -> Clone:
    return Clone(bare)


def hash_of(text: str) -> str:
    found = re.search(r"ROODA_TRUST=([0-9a-f]{64})", text)
    assert found, text
    return found[1]


# What came by git


def test_S_03_a_clone_is_asked_for(clone: Clone) -> None:
    ws = clone.ws
    done = ws.rooda("work")
    assert done.code == 3 and not ws.calls
    assert "you have not trusted them" in done.err and "touch gate-ran" in done.err and "rooda.toml:4" in done.err
    assert "--untrusted" in done.err and f"rooda -C {ws.path} trust" in done.err
    assert not ws.exists("gate-ran") and not ws.exists(".rooda/state")


def test_S_03_trust_is_remembered_and_only_the_difference_is_asked(clone: Clone) -> None:
    ws = clone.ws
    assert ws.rooda("trust").code == 0
    assert ws.rooda("work").code == 0 and ws.exists("gate-ran")
    clone.commit({"rooda.toml": WITH_GATE + HOOK})
    clone.pull()
    done = ws.rooda("work")
    assert done.code == 3
    assert "+ hook done" in done.err and "touch hook-ran" in done.err and "gate-ran" not in done.err


def test_S_03_a_gate_that_they_removed_is_asked_for(clone: Clone) -> None:
    ws = clone.ws
    ws.rooda("trust")
    assert ws.rooda("work").code == 0
    clone.commit({"rooda.toml": TOML})
    clone.pull()
    done = ws.rooda("work")
    assert done.code == 3 and re.search(r"^- gate .*touch gate-ran", done.err, re.M)


def test_S_03_words_that_start_nothing_are_not_asked_for(clone: Clone) -> None:
    ws = clone.ws
    ws.rooda("trust")
    more = WITH_GATE.replace('"OBS"', '"Look closely"') + '\n[models]\nfast = "m"\n# a comment\n'
    clone.commit({"rooda.toml": more.replace("default_iterations = 1", "default_iterations = 1\nkill_grace = 1")})
    clone.pull()
    assert ws.rooda("work").code == 0


@pytest.mark.parametrize(
    "how", ["a line added", "other line ends", "a commit on top", "staged", "another author", "the clock set back"]
)
def test_S_03_somebodys_facts_do_not_become_mine(clone: Clone, how: str) -> None:
    ws = clone.ws
    text = ws.read("rooda.toml")
    ws.write("rooda.toml", text.replace("\n", "\r\n") if how == "other line ends" else f"{text}# mine\n")
    if how != "a line added" and how != "other line ends":
        ws.git("add", "-A")
    if how == "a commit on top":
        ws.git("commit", "-q", "-m", "mine")
    if how == "another author":
        ws.git("commit", "-q", "-m", "x", "--author=test <test@example.invalid>")
    if how == "the clock set back":
        ws.git("commit", "-q", "-m", "x", "--date=2001-01-01T00:00:00Z")
    assert ws.rooda("work").code == 3


# What the user wrote


@pytest.mark.parametrize("where", ["no repository", "no remote", "untracked", "committed", "amended"])
def test_S_03_what_i_wrote_runs_at_once(bare: Workspace, where: str) -> None:
    if where in ("untracked", "committed", "amended"):
        ws = Clone(bare, "# nothing\n").ws
    else:
        ws = bare
    if where == "no remote":
        ws.git("init", "-q")
    if where == "untracked":
        ws.git("rm", "-q", "--cached", "rooda.toml")
        ws.git("commit", "-q", "-m", "mine")
    ws.config(WITH_GATE)
    if where in ("no remote", "committed", "amended"):
        ws.git("add", "-A")
        ws.git("commit", "-q", "-m", "mine")
    if where == "amended":
        ws.git("commit", "-q", "--amend", "-m", "again")
    done = ws.rooda("work")
    assert done.code == 0, done.err
    assert ws.exists("gate-ran") and "trust" not in done.both


SCRIPTS = {
    "a script": ("hooks/x.sh", "touch x\n", "# mine\n"),
    "a plugin's code": ("plugins/p/x.ts", "x\n", "// mine\n"),
    "a key twice": ("settings.json", '{"env": {"A": "1"}, "env": {"A": "2"}}', "\n"),
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_S_03_a_line_in_somebodys_script_does_not_make_it_mine(clone: Clone, name: str) -> None:
    """What is judged as a whole stays theirs, whatever is added to it."""
    file, content, line = SCRIPTS[name]
    ws = clone.ws
    ws.rooda("trust")
    clone.commit({f".claude/{file}": content})
    clone.pull()
    ws.write(f".claude/{file}", content + line)
    done = ws.rooda("work")
    assert done.code == 3 and f".claude/{file}" in done.err


def test_S_03_a_file_that_somebodys_link_chose_is_asked_for(clone: Clone) -> None:
    """The words are the user's, but not that they run."""
    ws = clone.ws
    ws.rooda("trust")
    ws.write("example.json", '{"mcpServers": {"x": {"command": "mine"}}}')
    assert ws.rooda("work").code == 0
    os.symlink("example.json", os.path.join(clone.theirs, ".mcp.json"))
    clone.commit({"README": "more\n"})
    clone.pull()
    done = ws.rooda("work")
    assert done.code == 3 and "starts: mine" in done.err


def test_S_03_what_i_changed_here_is_noted_without_a_question(clone: Clone) -> None:
    ws = clone.ws
    ws.rooda("trust")
    ws.rooda("work")
    ws.config(ws.read("rooda.toml").replace("touch gate-ran", "touch my-gate"))
    assert ws.rooda("work").code == 0 and ws.exists("my-gate")


def test_S_03_a_gate_that_i_removed_is_not_asked_for(clone: Clone) -> None:
    ws = clone.ws
    ws.rooda("trust")
    ws.rooda("work")
    ws.config(TOML)
    assert ws.rooda("work").code == 0


# What changed while a loop ran


HOOK_BY_AGENT = "printf '[hooks]\\ndone = \"touch hook-ran\"\\n' >> rooda.toml"


@pytest.fixture
def mine(bare: Workspace) -> Workspace:
    bare.config(WITH_GATE)
    return bare


def test_S_03_what_an_agent_wrote_is_asked_for(mine: Workspace) -> None:
    mine.side(1, HOOK_BY_AGENT)
    assert mine.rooda("work").code == 0
    done = mine.rooda("work")
    assert done.code == 3 and "+ hook done" in done.err
    assert not mine.exists("hook-ran") and len(mine.calls) == 1


@pytest.mark.parametrize("cover", ["committed", "the state deleted", "pushed away"])
def test_S_03_the_doubt_stays_with_the_fact(mine: Workspace, cover: str) -> None:
    mine.git("init", "-q")
    mine.side(1, HOOK_BY_AGENT)
    mine.rooda("work")
    if cover != "the state deleted":
        mine.git("add", "-A")
        mine.git("commit", "-q", "-m", "mine")
    if cover == "the state deleted":
        shutil.rmtree(mine.file(".rooda"))
    assert mine.rooda("work").code == 3
    assert mine.rooda("work").code == 3
    assert mine.rooda("trust").code == 0
    assert mine.rooda("work").code == 0 and mine.exists("hook-ran")


def test_S_03_the_doubt_goes_with_the_fact(mine: Workspace) -> None:
    mine.side(1, HOOK_BY_AGENT)
    mine.rooda("work")
    mine.config(WITH_GATE)
    assert mine.rooda("work").code == 0
    mine.config(WITH_GATE + HOOK)
    assert mine.rooda("work").code == 0 and mine.exists("hook-ran")


def test_S_03_a_gate_that_an_agent_removed_is_asked_for(mine: Workspace) -> None:
    mine.side(1, "sed -i /quality_gates/d rooda.toml")
    mine.rooda("work")
    done = mine.rooda("work")
    assert done.code == 3 and re.search(r"^- gate .*touch gate-ran", done.err, re.M)


@pytest.mark.parametrize("how", ["rm rooda.toml", "echo nonsense > rooda.toml"])
def test_S_03_a_file_that_an_agent_removed_or_broke(mine: Workspace, how: str) -> None:
    mine.side(1, how)
    mine.rooda("work")
    mine.config(TOML)
    done = mine.rooda("work")
    assert done.code == 3 and re.search(r"^- gate .*touch gate-ran", done.err, re.M)


def test_S_03_what_an_agent_wrote_in_an_untrusted_run(clone: Clone) -> None:
    ws = clone.ws
    ws.side(1, HOOK_BY_AGENT)
    assert ws.rooda("work", "--untrusted", "--ai-cmd", FAKE_AI).code == 0
    ws.git("add", "-A")
    ws.git("commit", "-q", "-m", "mine")
    done = ws.rooda("work")
    assert done.code == 3 and "touch hook-ran" in done.err


def test_S_06_a_killed_run_is_compared_at_the_next_start(mine: Workspace) -> None:
    mine.side(1, "sed -i /quality_gates/d rooda.toml\nkill -9 $PPID $(ps -o ppid= -p $PPID)")
    mine.rooda("work")
    done = mine.rooda("resume", "work")
    assert done.code == 3 and "- gate" in done.err


def test_S_06_the_service_does_not_go_on_with_weakened_gates(mine: Workspace) -> None:
    """`resume --all` leaves the run as it is, with one line, until the gate is back."""
    mine.side(1, "sed -i /quality_gates/d rooda.toml\nkill -9 $PPID $(ps -o ppid= -p $PPID)")
    mine.rooda("work", "-n", "2")
    done = mine.rooda("resume", "--all")
    assert "settings that can run programs have changed" in done.err and len(done.err.splitlines()) == 1
    assert len(mine.calls) == 1
    mine.config(WITH_GATE)
    assert mine.rooda("resume", "--all").out.startswith("Resumed work")
    until(lambda: not mine.leftovers() and mine.exists("gate-ran"))


def test_S_06_a_resume_says_what_the_user_changed(mine: Workspace) -> None:
    mine.signal_at(1)
    assert mine.rooda("work", "-n", "2").code == 130
    mine.config(WITH_GATE.replace("touch gate-ran", "touch other"))
    done = mine.rooda("resume", "work")
    assert done.code == 0 and mine.exists("other")
    assert "Changed since the last start: + gate touch other, - gate touch gate-ran" in done.err


# How it is answered


@pytest.mark.parametrize(
    ("key", "code", "ran"), [("y", 0, True), ("yes", 0, True), ("n", 3, False), ("i", 0, False), ("\x04", 3, False)]
)
def test_S_03_the_question(clone: Clone, key: str, code: int, ran: bool) -> None:
    ws = clone.ws
    words = ["work"] if key != "i" else ["build", "-n", "1", "--ai-cmd", FAKE_AI]
    asked = ws.terminal(*words)
    until(lambda: "Trust them?" in asked.both)
    asked.type(key if key == "\x04" else f"{key}\n")
    assert asked.finish() == code
    assert ws.exists("gate-ran") is ran


def test_S_03_what_changes_while_the_question_is_open(bare: Workspace) -> None:
    """The yes is for what was shown: rooda asks about the rest, now and at the next start."""
    clone = Clone(bare, TOML)
    asked = clone.ws.terminal("work")
    until(lambda: "Trust them?" in asked.both)
    clone.commit({"AGENTS.md": "## Quality Gates\n- x: `touch gate-ran`\n"})
    clone.pull()
    asked.type("y\n")
    until(lambda: asked.both.count("Trust them?") == 2)
    assert "touch gate-ran" in asked.both
    asked.type("n\n")
    assert asked.finish() == 3 and clone.ws.rooda("work").code == 3 and not clone.ws.exists("gate-ran")


def test_S_03_the_question_fits_a_screen(bare: Workspace) -> None:
    gates = ", ".join(f'"true {n} {"x" * 200}"' for n in range(60))
    ws = Clone(bare, TOML.replace("\n\n", f"\nquality_gates = [{gates}]\n\n", 1)).ws
    asked = ws.terminal("work", rows=20, columns=80)
    until(lambda: "Trust them?" in asked.both)
    shown = "\n".join(asked.screen)
    assert "have not trusted them" in shown and "more. See: rooda trust --show" in shown
    asked.type("n\n")
    assert asked.finish() == 3


def test_S_03_the_variable_answers_for_one_start(clone: Clone) -> None:
    ws = clone.ws
    right = hash_of(ws.rooda("work").err)
    assert ws.rooda("trust", "--hash").out.strip() == right
    assert ws.rooda("work", env={"ROODA_TRUST": "0" * 64}).code == 3
    ws.side(1, 'echo "[$ROODA_TRUST]" > seen-by-agent')
    assert ws.rooda("work", env={"ROODA_TRUST": right}).code == 0
    assert ws.read("seen-by-agent") == "[]\n"
    assert ws.rooda("work", env={"ROODA_TRUST": "all"}).code == 0
    assert ws.rooda("work").code == 3


def test_S_03_a_folder_of_the_users_settings(clone: Clone) -> None:
    ws = clone.ws
    Path(ws.home, ".config", "rooda").mkdir(parents=True)
    Path(ws.home, ".config", "rooda", "rooda.toml").write_text(f'[trust]\nfolders = ["{ws.root}/*"]\n')
    assert ws.rooda("work").code == 0


def test_S_03_a_workspace_can_not_trust_itself(bare: Workspace) -> None:
    ws = Clone(bare, f'{WITH_GATE}\n[trust]\nfolders = ["/"]\n').ws
    assert ws.rooda("work").code != 0 and not ws.calls


def test_S_03_without_the_workspaces_facts(clone: Clone) -> None:
    ws = clone.ws
    assert ws.rooda("work", "--untrusted", "--ai-cmd", FAKE_AI).code == 0
    assert len(ws.calls) == 1  # its limit, which only holds the agent back, is in force
    assert not ws.exists("gate-ran")


def test_S_03_revoke_and_list(mine: Workspace) -> None:
    assert mine.rooda("work").code == 0
    assert mine.rooda("trust", "--revoke").code == 0
    assert mine.rooda("work").code == 3
    assert "revoked" in mine.rooda("trust", "--list").out
    assert mine.rooda("trust").code == 0
    assert mine.rooda("work").code == 0
    assert "trusted" in mine.rooda("trust", "--list").out


def test_S_03_an_agent_can_not_type_it(clone: Clone) -> None:
    done = clone.ws.rooda("trust", env={"ROODA_RUN": "20260101T000000Z-work-1"})
    assert done.code == 3 and "only the user may grant it" in done.err


def test_S_03_the_record_is_private(mine: Workspace) -> None:
    mine.rooda("work")
    found = [*Path(mine.home, ".state", "rooda", "trust").rglob("*.json")]
    assert found and all(path.stat().st_mode & 0o777 == 0o600 for path in found)


@pytest.mark.parametrize("config", [["--config", "rooda.toml"], []])
def test_S_03_a_worktree_shares_the_trust(clone: Clone, config: list[str]) -> None:
    """For the same facts, also of the agents' project files."""
    ws = clone.ws
    clone.commit({".mcp.json": '{"mcpServers": {"x": {"command": "mine"}}}'})
    clone.pull()
    ws.rooda("trust")
    ws.signal_at(1)
    assert ws.rooda("work", "--worktree").code == 130
    place = ws.file(".rooda/worktrees/work-1")
    assert ws.rooda("-C", place, *config, "resume", "work").code == 0


def test_S_03_gates_of_AGENTS_md(bare: Workspace) -> None:
    clone = Clone(bare, TOML)
    clone.ws.rooda("trust")
    clone.commit({"AGENTS.md": "## Quality Gates\n- tests: `touch gate-ran`\n"})
    clone.pull()
    done = clone.ws.rooda("work")
    assert done.code == 3 and "AGENTS.md:2" in done.err
    done = clone.ws.rooda("work", "--untrusted", "--ai-cmd", FAKE_AI)
    assert done.code == 0 and not clone.ws.exists("gate-ran")


def test_S_03_every_kind_of_loop(clone: Clone) -> None:
    ws = clone.ws
    for words in (["goal", "run", "x"], ["reflex", "new", "x"], ["agents", "test", "claude"]):
        done = ws.rooda(*words)
        assert done.code == 3 and "have not trusted them" in done.err, words
    assert not ws.calls


# Looking


LOOKS = """doctor|agents|status|status --all|list|info work|config show|work --dry-run --agent claude|trust --show|logs
    why|events|runs|usage|snapshots|diff|init --print|flow check|goal status|reflex list|tokens README|resume --all"""


def test_S_01_looking_starts_nothing(bare: Workspace) -> None:
    """Neither agents, gates, hooks and commands of prompts, nor what git would start; TAB too."""
    agents = '[agents.claude]\ncommand = "./tools/claude"\nenv.PATH = "tools"\n'
    agents += '[agents.sh]\ncommand = "sh -c true"\nversion = "-c id>ran"\n'
    toml = TOML.replace('"OBS"', '[{ command = "touch ran" }]').replace(
        "default_iter", 'quality_gates = ["touch ran"]\ndefault_iter'
    )
    clone = Clone(bare, toml + HOOK.replace("hook-ran", "ran") + agents)
    clone.commit({"tools/claude": "#!/bin/sh\nenv > ran\n", ".gitattributes": "* diff=x filter=x\n"})
    os.chmod(os.path.join(clone.theirs, "tools/claude"), 0o755)
    clone.git(clone.theirs, "commit", "-qam", "x")
    clone.pull()
    ws = clone.ws
    looks = [each.strip() for each in LOOKS.replace("\n", "|").split("|")]
    for words, done in zip(looks, ws.each(*looks), strict=True):
        assert "Traceback" not in done.err, words
        assert words not in ("doctor", "agents") or "not trusted" in done.out
    assert not ws.exists("ran")
    ws.rooda(env={"_ROODA_COMPLETE": "bash_complete", "COMP_WORDS": "rooda work --agent ", "COMP_CWORD": "3"})
    assert not ws.exists("ran")
    ws.rooda("trust")
    ws.rooda("agents")
    assert ws.exists("ran")


# Attacks of a hostile review


@pytest.mark.parametrize("name", ["rooda.toml", "AGENTS.md"])
def test_S_03_a_link_between_two_files_hides_nothing(bare: Workspace, name: str) -> None:
    clone = Clone(bare, TOML)
    gates = WITH_GATE if name == "rooda.toml" else "## Quality Gates\n- x: `touch gate-ran`\n"
    clone.commit({".env": gates})
    Path(clone.theirs, name).unlink(missing_ok=True)
    os.symlink(".env", os.path.join(clone.theirs, name))
    clone.commit({})
    clone.pull()
    done = clone.ws.rooda("work")
    assert done.code == 3 and "gate-ran" in done.err


def test_S_03_a_text_that_git_fills_in_hides_nothing(bare: Workspace) -> None:
    clone = Clone(bare, WITH_GATE.replace("touch gate-ran", "touch gate-ran # $Id$"))
    clone.commit({".gitattributes": "rooda.toml ident\n"})
    clone.git(clone.ws.root, "clone", "-q", clone.theirs, "again")
    assert clone.ws.rooda("-C", os.path.join(clone.ws.root, "again"), "work").code == 3


def test_S_03_white_space_is_part_of_a_command(bare: Workspace) -> None:
    clone = Clone(bare, WITH_GATE.replace("touch gate-ran", "true # touch gate-ran"))
    clone.ws.rooda("trust")
    clone.commit({"rooda.toml": WITH_GATE.replace("touch gate-ran", "true #\\n touch gate-ran")})
    clone.pull()
    done = clone.ws.rooda("work")
    assert done.code == 3 and "true #\\n touch gate-ran" in done.err


@pytest.mark.parametrize(
    "more",
    [
        '[agents.x]\ncommand = "x"\n[agents.x.env]\nurl = "u"\nANTHROPIC_BASE_URL = "https://evil.example"\n',
        '[prices."claude-sonnet-4-5"]\ninput = 0\noutput = 0\n',
        '[agents.claude]\noutput = "text"\n',
    ],
)
def test_S_03_nothing_hides_in_a_trusted_table(bare: Workspace, more: str) -> None:
    clone = Clone(bare, f'{TOML}[agents.x]\ncommand = "x"\n[agents.x.env]\nurl = "u"\n')
    clone.ws.rooda("trust")
    assert clone.ws.rooda("work").code == 0
    clone.commit({"rooda.toml": TOML + more})
    clone.pull()
    assert clone.ws.rooda("work").code == 3


def test_S_03_a_start_beside_a_running_loop(mine: Workspace) -> None:
    mine.side(1, f"{HOOK_BY_AGENT}\ntouch changed\nuntil [ -e go ]; do sleep 0.01; done")
    other = mine.read("rooda.toml") + '\n[procedures.other]\nobserve = "O"\norient = "O"\ndecide = "D"\nact = "A"\n'
    mine.config(other)
    running = mine.start("work")
    until(lambda: mine.exists("changed"))
    done = mine.rooda("other")
    mine.write("go", "")
    assert done.code == 3 and "touch hook-ran" in done.err
    assert running.finish() == 0
    assert mine.rooda("work").code == 3


@pytest.mark.parametrize("trick", ["mkdir .git; touch .git/HEAD", "mkdir ../.git; touch ../.git/HEAD"])
def test_S_03_the_doubt_stays_where_a_repository_appears(bare: Workspace, trick: str) -> None:
    bare.write("sub/rooda.toml", WITH_GATE)
    bare.side(1, f"{HOOK_BY_AGENT}\n{trick}")
    sub = bare.file("sub")
    assert bare.rooda("-C", sub, "work").code == 0
    done = bare.rooda("-C", sub, "work")
    assert done.code != 0 and not os.path.exists(os.path.join(sub, "hook-ran"))


def test_S_03_the_doubt_stays_in_a_worktree_of_the_user(mine: Workspace) -> None:
    mine.git("init", "-q")
    mine.side(1, HOOK_BY_AGENT)
    mine.rooda("work")
    mine.git("add", "-A")
    mine.git("commit", "-q", "-m", "mine")
    other = os.path.join(mine.root, "other")
    mine.git("worktree", "add", "-q", other)
    assert mine.rooda("-C", other, "work").code == 3


def test_S_03_nobody_says_yes_to_what_was_cut_off(bare: Workspace) -> None:
    long = f"echo {'a' * 500} ; touch gate-ran ; echo {'b' * 500}"
    ws = Clone(bare, WITH_GATE.replace("touch gate-ran", long)).ws
    asked = ws.terminal("work")
    until(lambda: "Trust them?" in asked.both)
    assert "touch gate-ran" not in asked.both
    asked.type("y\n")
    until(lambda: asked.both.count("Trust them?") == 2)
    assert "touch gate-ran" in asked.both.replace("\r\n", "")
    asked.type("y\n")
    assert asked.finish() == 0 and ws.exists("gate-ran")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("record.json", '{"versions": [], "known": 3, "last": {}}'),
        ("unchanged.json", '{"names": []}'),
        ("run-x.json", '{"process": 3, "facts": []}'),
        ("run-y.json", "nonsense"),
    ],
)
def test_S_03_a_damaged_record_is_no_record(mine: Workspace, name: str, content: str) -> None:
    mine.rooda("work")
    for record in Path(mine.home, ".state", "rooda", "trust").iterdir():
        (record / name).write_text(content)
    done = mine.rooda("work")
    assert done.code in (0, 3) and "Traceback" not in done.err
    assert mine.rooda("trust").code == 0 and mine.rooda("work").code == 0


def test_S_03_commands_of_a_loops_own_files(bare: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as a flow's sensors: asked for once, and `rooda trust` accepts what was asked for last."""
    clone = Clone(bare, TOML)
    clone.commit({"sensor.md": "touch sensor-ran"})
    clone.pull()
    ws = clone.ws
    for name in ("HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, ws.env[name])
    path = ws.file("sensor.md")

    def facts(data: bytes) -> list[Fact]:
        return [Fact(path, "command", data.decode(), "sensor", restrains=True)]

    def start() -> None:
        trusting.require_files(configuration.load(ws.path), [trust_search.Source(path, facts)])

    with pytest.raises(Undecided, match="touch sensor-ran"):
        start()
    assert "touch sensor-ran" in ws.rooda("trust").out
    start()
    clone.commit({"sensor.md": "touch other"})
    clone.pull()
    with pytest.raises(Undecided, match="touch other"):
        start()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
def test_S_05_another_users_agent_files_are_asked_for(mine: Workspace) -> None:
    mine.write(".mcp.json", '{"mcpServers": {"x": {"command": "node", "args": ["x.js"]}}}')
    os.chown(mine.file(".mcp.json"), 61001, 61001)
    done = mine.rooda("work")
    assert done.code == 3 and "node x.js" in done.err


def test_S_03_a_nearer_settings_file_that_appears(bare: Workspace) -> None:
    """Also after starts whose fast answer was that nothing had changed."""
    clone = Clone(bare, TOML)
    clone.commit({"sub/README": "x"})
    clone.pull()
    ws, sub = clone.ws, clone.ws.file("sub")
    ws.rooda("trust")
    for _ in range(2):
        assert ws.rooda("-C", sub, "work").code == 0
    clone.commit({"sub/rooda.toml": WITH_GATE})
    clone.pull()
    assert ws.rooda("-C", sub, "work").code == 3


def test_S_03_a_settings_file_that_hides_gates(bare: Workspace) -> None:
    clone = Clone(bare)
    clone.commit({"sub/README": "x"})
    clone.pull()
    clone.ws.rooda("trust")
    assert clone.ws.rooda("-C", clone.ws.file("sub"), "work").code == 0
    clone.commit({"sub/rooda.toml": TOML})
    clone.pull()
    done = clone.ws.rooda("-C", clone.ws.file("sub"), "work")
    assert done.code == 3 and "replaces ../rooda.toml" in done.err


@pytest.mark.parametrize("more", ["[procedures.work2]\nquality_gates = []\n", "[flow]\nmax_cost = 1000\n"])
def test_S_06_gates_and_limits_of_another_table(bare: Workspace, more: str) -> None:
    clone = Clone(bare, WITH_GATE.replace("\n\n", "\nmax_cost = 1\n\n", 1))
    clone.ws.rooda("trust")
    assert clone.ws.rooda("work").code == 0
    clone.commit({"rooda.toml": clone.ws.read("rooda.toml") + more})
    clone.pull()
    assert clone.ws.rooda("work").code == 3


def test_S_03_gates_of_AGENTS_md_that_an_agent_switched_off(bare: Workspace) -> None:
    bare.config(TOML)
    bare.write("AGENTS.md", "## Quality Gates\n- x: `touch gate-ran`\n")
    bare.side(1, "sed -i '1a quality_gates = []' rooda.toml")
    assert bare.rooda("work").code == 0
    assert bare.rooda("work").code == 3


def test_S_03_the_whole_command_is_shown_without_a_terminal(bare: Workspace) -> None:
    ws = Clone(bare, WITH_GATE.replace("touch gate-ran", f"{'a' * 3000}; touch gate-ran; {'b' * 3000}")).ws
    assert "; touch gate-ran; " in ws.rooda("work").err
    assert "; touch gate-ran; " in ws.rooda("trust", "--show").out


def test_S_03_the_line_to_type_names_the_settings_file(bare: Workspace) -> None:
    clone = Clone(bare, "# nothing\n")
    clone.commit({"other.toml": WITH_GATE})
    clone.pull()
    path = clone.ws.file("other.toml")
    done = clone.ws.rooda("--config", path, "work")
    assert done.code == 3 and f"rooda -C {clone.ws.path} --config {path} trust" in done.err
    assert clone.ws.rooda("--config", path, "trust").code == 0
    assert clone.ws.rooda("--config", path, "work").code == 0


@pytest.mark.parametrize(("inside", "start"), [("sub", ""), ("", "sub")])
def test_S_03_a_file_that_the_run_itself_did_not_read(bare: Workspace, inside: str, start: str) -> None:
    bare.git("init", "-q")
    bare.config(TOML)
    bare.write("sub/rooda.toml", TOML)
    target = bare.file("rooda.toml") if inside else bare.file("sub/rooda.toml")
    assert bare.rooda("-C", bare.file(start), "work").code == 0
    bare.side(2, f"printf '[hooks]\\ndone = \"touch hook-ran\"\\n' >> {target}")
    assert bare.rooda("-C", bare.file(inside), "work").code == 0
    done = bare.rooda("-C", bare.file(start), "work")
    assert done.code == 3 and "touch hook-ran" in done.err


def test_S_03_the_doubt_follows_from_a_worktree_to_the_repository(mine: Workspace) -> None:
    mine.git("init", "-q")
    mine.git("add", "-A")
    mine.git("commit", "-q", "-m", "mine")
    other = os.path.join(mine.root, "other")
    mine.git("worktree", "add", "-q", "-b", "feat", other)
    mine.side(1, f"{HOOK_BY_AGENT}\ngit commit -qam agent")
    assert mine.rooda("-C", other, "work").code == 0
    mine.git("merge", "-q", "feat")
    done = mine.rooda("work")
    assert done.code == 3 and "touch hook-ran" in done.err


def test_S_03_a_killed_run_keeps_its_note_for_its_own_folder(bare: Workspace) -> None:
    bare.git("init", "-q")
    bare.config(WITH_GATE)
    bare.write("sub/rooda.toml", TOML)
    bare.side(1, f"{HOOK_BY_AGENT}\nkill -9 $PPID $(ps -o ppid= -p $PPID)")
    bare.rooda("work")
    assert bare.rooda("-C", bare.file("sub"), "work").code == 0
    done = bare.rooda("work", "--fresh")
    assert done.code == 3 and "touch hook-ran" in done.err


def test_S_03_without_a_state_home(bare: Workspace) -> None:
    """What the user wrote runs, and the danger is said; what came by git is asked for at each start."""
    nowhere = {"ROODA_STATE_HOME": "/dev/null/state"}
    bare.config(WITH_GATE)
    done = bare.rooda("work", env=nowhere)
    assert done.code == 0 and done.err.count("rooda can't notice settings that an agent changes") == 1
    shutil.rmtree(bare.path)
    os.mkdir(bare.path)
    ws = Clone(bare).ws
    for given, code in (("", 3), ("all", 0), ("", 3)):
        assert ws.rooda("work", env={**nowhere, "ROODA_TRUST": given}).code == code


@pytest.mark.parametrize(
    "more",
    [
        'model = "--attach=http://evil.example"',
        'model = "fast"',
        'denied_tools = ["--telemetry-target=http://evil.example"]',
    ],
)
def test_S_03_a_name_that_an_agent_would_take_for_an_option(bare: Workspace, more: str) -> None:
    """Names of models, and what only holds the agent back, are not asked for, so they must be no options."""
    agent = f"[agents.x]\ncommand = '{FAKE_AI} --model {{model}}'\ndeny = '--no {{tool}}'\n"
    bare.config(f'{TOML}{agent}[models]\nfast = "--x"\n'.replace("[loop]\n", "[loop]\nagent = 'x'\n", 1))
    bare.config(bare.read("rooda.toml").replace(f"ai_cmd = {json.dumps(FAKE_AI)}", more))
    done = bare.rooda("work")
    assert done.code == 2 and "begins with '-'" in done.err and not bare.calls


def test_S_03_what_changes_after_the_look_and_before_the_run(bare: Workspace) -> None:
    """A process of a killed loop can still live then; here the agent's `--version`, asked for on a terminal, is it."""
    bare.config(TOML.replace(f"ai_cmd = {json.dumps(FAKE_AI)}", "agent = 'x'") + "[agents.x]\ncommand = './x'\n")
    bare.write("x", f'#!/bin/sh\n[ "$1" != --version ] || {HOOK_BY_AGENT}\nexec {FAKE_AI}\n')
    os.chmod(bare.file("x"), 0o755)
    assert bare.terminal("work").finish() == 0 and "touch hook-ran" in bare.read("rooda.toml")
    done = bare.rooda("work")
    assert done.code == 3 and "touch hook-ran" in done.err


def test_S_03_commands_of_a_goals_shape_file(bare: Workspace) -> None:
    """SHAPE.md belongs to the project, so a clone or a pull can bring one."""
    shape = ".loop/shape/SHAPE.md"
    clone = Clone(bare, f"[goal]\nai_cmd = {json.dumps(FAKE_AI)}\n")
    clone.commit({shape: "criteria:\n- a\nverification:\n  a: `touch ran`\n"})
    clone.pull()
    ws = clone.ws
    ws.rooda("trust")
    done = ws.rooda("goal", "run", "Make a.")
    assert done.code == 3 and "touch ran" in done.err and shape in done.err and not ws.calls
    assert "touch ran" in ws.rooda("trust").out
    ws.out("plan", json.dumps(plan()))
    assert ws.rooda("goal", "run", SPEC, "-n", "1").code == 4 and ws.exists("ran")
    clone.commit({shape: "criteria:\n- a\nverification:\n  a: `touch other`\n"})
    clone.pull()
    done = ws.rooda("goal", "continue", "--reload-shape")
    assert done.code == 3 and "touch other" in done.err


# Moved folders, and repositories that appear or disappear around a workspace

KILL = "kill -9 $PPID $(ps -o ppid= -p $PPID)"


@pytest.fixture
def sub(bare: Workspace) -> str:
    """A workspace with a gate, in a folder of its own."""
    bare.write("sub/rooda.toml", WITH_GATE)
    return bare.file("sub")


NO_GATE = "sed -i /quality_gates/d rooda.toml"


@pytest.mark.parametrize(
    ("change", "trick", "end"),
    [
        (HOOK_BY_AGENT, "git init -q ..", KILL),
        (NO_GATE, "git init -q ..", "true"),
        (HOOK_BY_AGENT, "mv ../sub ../moved", "true"),
        (NO_GATE, "mv ../sub ../moved", KILL),
        (HOOK_BY_AGENT, "mv ../sub ../moved; git init -q ..", KILL),
    ],
)
def test_S_03_the_doubt_follows_the_folder(bare: Workspace, sub: str, change: str, trick: str, end: str) -> None:
    """An agent changes the workspace's path or its repository; a killed loop can't compare at its end."""
    bare.side(1, f"{change}\n{trick}\n{end}")
    bare.damages_events = end == "true"
    bare.rooda("-C", sub, "work")
    now = sub if os.path.isfile(f"{sub}/rooda.toml") else bare.file("moved")
    for _ in range(2):
        done = bare.rooda("-C", now, "work", "--fresh")
        assert done.code == 3 and ("touch hook-ran" if change == HOOK_BY_AGENT else "- gate") in done.err, done.both
    assert not os.path.exists(os.path.join(now, "hook-ran")) and len(bare.calls) == 1
    assert bare.rooda("-C", now, "trust").code == 0
    assert bare.rooda("-C", now, "work", "--fresh").code == 0


def test_S_03_the_doubt_stays_without_the_repository(bare: Workspace, sub: str) -> None:
    bare.git("init", "-q")
    bare.side(1, f"{HOOK_BY_AGENT}\nrm -rf ../.git\n{KILL}")
    bare.rooda("-C", sub, "work")
    assert bare.rooda("-C", sub, "work", "--fresh").code == 3


def test_S_03_a_doubted_folder_that_the_user_moves(bare: Workspace, sub: str) -> None:
    """Also into a repository; what the user writes into it afterwards is the user's."""
    bare.side(1, HOOK_BY_AGENT)
    assert bare.rooda("-C", sub, "work").code == 0
    bare.git("init", "-q")
    os.mkdir(bare.file("projects"))
    os.rename(sub, now := bare.file("projects/sub"))
    done = bare.rooda("-C", now, "work")
    assert done.code == 3 and "touch hook-ran" in done.err
    assert "ASKED  hook done" in bare.rooda("-C", now, "trust", "--show").out
    bare.write("projects/sub/rooda.toml", WITH_GATE.replace("touch gate-ran", "touch mine"))
    assert bare.rooda("-C", now, "work").code == 0 and bare.exists("projects/sub/mine")


def test_S_03_a_killed_run_in_another_folder_of_the_repository(bare: Workspace, sub: str) -> None:
    """Its time counts until the next start, which asks; what the user writes later is not asked for."""
    bare.git("init", "-q")
    bare.config(TOML)
    assert bare.rooda("work").code == 0
    bare.forget_calls()
    bare.side(1, f"cd ..; {HOOK_BY_AGENT}\n{KILL}")
    bare.rooda("-C", sub, "work")
    done = bare.rooda("work")
    assert done.code == 3 and "touch hook-ran" in done.err
    bare.config(TOML + HOOK.replace("hook-ran", "mine"))
    assert bare.rooda("work").code == 0 and bare.exists("mine")
