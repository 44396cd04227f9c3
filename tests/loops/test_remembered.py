"""A resume continues with what was typed at the start and at the latest resume; what is typed now comes first."""

import base64
import json
import os
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.kit.background import HOLD, KINDS, began, kill_all, let_go, prepare, rows
from tests.kit.loops import SMALL
from tests.kit.workspace import FAKE_AI, Ran, Workspace, until

CLAUDE = f"""#!{sys.executable}
import json, os, sys
prompt = sys.stdin.read()
with open(os.path.join(os.environ["FAKE"], "claude"), "a") as log:
    log.write(json.dumps([sys.argv[1:], prompt, os.environ.get("ROODA_MODEL", "")]) + "\\n")
if os.path.exists(os.path.join(os.environ["FAKE"], "stop")):
    os.remove(os.path.join(os.environ["FAKE"], "stop"))
    os.kill(os.getppid(), 2)
    import time
    time.sleep(30)
print(json.dumps({{"type": "result", "subtype": "success", "is_error": False, "result": "done", "num_turns": 1}}))
"""


@pytest.fixture
def claude(bare: Workspace) -> Workspace:
    """A workspace without settings, and a `claude` on the PATH that notes how it is called."""
    path = Path(bare.root, "bin", "claude")
    path.parent.mkdir()
    path.write_text(CLAUDE)
    path.chmod(0o755)
    bare.env["PATH"] = f"{path.parent}:{bare.env['PATH']}"
    bare.env |= {"ANTHROPIC_API_KEY": "sk-ant-0123456789abcdef", "IS_SANDBOX": "1"}
    return bare


def asked(ws: Workspace) -> list[tuple[list[str], str, str]]:
    """Arguments, prompt and model of each call."""
    return [tuple(json.loads(line)) for line in Path(ws.fake, "claude").read_text().splitlines()]


def stopped(ws: Workspace, *words: str) -> None:
    """A run whose first call sends it Ctrl+C."""
    Path(ws.fake, "stop").touch()
    ran = ws.rooda(*words)
    assert ran.code == 130, ran.both


def test_a_resume_needs_no_other_argument(claude: Workspace) -> None:
    """Agent, model, task, time and gates are those of the start, without a settings file; a pipe shows no note."""
    claude.write("AGENTS.md", "## Quality Gates\n\n- strict: `false`\n")
    words = ("--context", "TASK-OF-TODAY", "--model", "opus", "--iteration-timeout", "77", "--no-gates")
    stopped(claude, "build", "--agent", "claude", "-n", "3", *words)
    ran = claude.rooda("resume", "build")
    assert (ran.code, ran.notes) == (0, ""), ran.both
    first, *others = asked(claude)
    assert len(others) == 2 and all(each[0] == first[0] and each[2] == first[2] for each in others)
    assert "opus" in first[0] and all("TASK-OF-TODAY" in each[1] for each in others)
    assert "gate" not in ran.out
    start = json.loads(next(iter(sorted(Path(claude.path, ".rooda/runs").glob("*/start"), reverse=True))).read_text())
    assert start["words"] == ["resume", "build"] and "--iteration-timeout=77" in start["kept"]


@pytest.mark.parametrize("words", [("build", "--resume"), ("build",)], ids=" ".join)
def test_the_other_words_of_a_resume(claude: Workspace, words: tuple[str, ...]) -> None:
    """`rooda build --resume`, and yes to the question, continue with the same."""
    stopped(claude, "build", "--agent", "claude", "-n", "2", "--context", "TASK-OF-TODAY")
    ran = claude.rooda(*words, stdin=b"y\n")
    assert ran.code == 0 and "from iteration 1 (max 2)" in ran.out, ran.both
    assert "TASK-OF-TODAY" in asked(claude)[-1][1]


def test_the_answer_no_takes_nothing_over(claude: Workspace) -> None:
    """A fresh start is what is typed for it."""
    stopped(claude, "build", "--agent", "claude", "-n", "2", "--context", "TASK-OF-TODAY")
    assert claude.rooda("build", "--agent", "claude", "-n", "1", stdin=b"n\n").code == 0
    assert "TASK-OF-TODAY" not in asked(claude)[-1][1]
    ran = claude.rooda("build", stdin=b"n\n")
    assert ran.code == 2 and "no AI command configured" in ran.err


def test_what_is_typed_comes_first(ws: Workspace) -> None:
    """Option by option, along a chain of resumes: an AI command, or a context, replaces those of before."""
    ws.config("")
    for number in (1, 2, 3):
        ws.signal_at(number)
    words = ("--ai-cmd", f"{FAKE_AI} first", "--context", "ONE", "--context", "TWO", "--model", "opus")
    assert ws.rooda("build", "-n", "4", *words, "--param", "a=1", "--param", "b=2").code == 130
    assert ws.rooda("resume", "build", "--ai-cmd", f"{FAKE_AI} second", "--param", "b=3").code == 130
    assert ws.rooda("resume", "build", "--context", "THREE").code == 130
    assert ws.rooda("resume", "build").code == 0
    said = [call.prompt.decode() for call in ws.calls]
    assert [call.argv[-1] for call in ws.calls] == ["first", "second", "second", "second"]
    assert ["ONE" in each and "TWO" in each for each in said] == [True, True, False, False]
    assert ["THREE" in each for each in said] == [False, False, True, True]
    assert {call.env["ROODA_MODEL"] for call in ws.calls} == {"opus"}


def test_another_agent_has_its_own_model(claude: Workspace) -> None:
    """A typed --agent replaces a kept --ai-cmd and the other way round; a model's name is its agent's."""
    claude.signal_at(1)
    assert claude.rooda("build", "-n", "2", "--ai-cmd", FAKE_AI, "--model", "mine").code == 130
    assert claude.rooda("resume", "build", "--agent", "claude").code == 0
    assert "mine" not in asked(claude)[0][0]
    stopped(claude, "build", "-n", "2", "--agent", "claude", "--model", "opus", "--fresh")
    assert claude.rooda("resume", "build", "--ai-cmd", FAKE_AI).code == 0
    assert claude.calls[-1].env["ROODA_MODEL"] == "opus" and len(asked(claude)) == 2


def test_changed_settings_apply_where_nothing_was_typed(ws: Workspace) -> None:
    """They hold where nothing was typed."""
    ws.signal_at(1)
    assert ws.rooda("build", "-n", "2", "--context", "TASK-OF-TODAY").code == 130
    ws.procedure("build", loop={"ai_cmd": f"{json.loads(ws.loop['ai_cmd'])} changed", "iteration_timeout": 55})
    assert ws.rooda("resume").code == 0
    assert ws.calls[-1].argv[-1] == "changed" and b"TASK-OF-TODAY" in ws.calls[-1].prompt


def test_files_are_those_of_the_start(ws: Workspace) -> None:
    """A context and a settings file that were typed in another folder are found from anywhere."""
    place = Path(ws.root, "elsewhere")
    place.mkdir()
    (place / "notes.md").write_text("NOTES-OF-MINE\n")
    (place / "mine.toml").write_text(ws.read("rooda.toml").replace('"prompts/', f'"{ws.path}/prompts/'))
    ws.config('[loop]\nai_cmd = "false"\n')
    for number in (1, 2):
        ws.signal_at(number)
    words = ("-C", ws.path, "build", "-n", "3", "--context", "notes.md", "--config", "mine.toml")
    assert ws.rooda(*words, cwd=str(place)).code == 130
    for code in (130, 0):
        ran = ws.rooda("resume", "build")
        assert ran.code == code, ran.both
        assert b"NOTES-OF-MINE" in ws.calls[-1].prompt


def test_verbose_shows_remembered_options(claude: Workspace) -> None:
    """With --verbose a line of stderr has what was taken over, without keys and in one line."""
    key = claude.env["ANTHROPIC_API_KEY"]
    stopped(claude, "build", "--agent", "claude", "-n", "2", "--context", f"two\nlines {key} {'x' * 200}")
    ran = claude.rooda("resume", "build", "-v")
    (line,) = [row for row in ran.err.splitlines() if "Options reused from the earlier start: " in row]
    assert "--agent=claude" in line and "--context=two lines *** xx" in line and key not in ran.err and len(line) < 200


def without_agent(ws: Workspace, kind: str) -> tuple[list[str], str]:
    """The words that start a loop of this kind, and its agent, which no settings have."""
    words = prepare(ws, kind)
    ws.config((ws.read("rooda.toml") if kind == "ooda" else "").replace(json.dumps(FAKE_AI), '"false"'))
    return words, SMALL[kind].agent


OWN = {"reflex": ("reflex", "resume"), "flow": ("flow", "resume"), "goal": ("goal", "continue")}
AGAIN = [(kind, words) for kind in KINDS for words in (("resume",), OWN.get(kind, ("resume", "build")))]


@pytest.mark.parametrize(("kind", "again"), AGAIN, ids=str)
def test_every_kind(ws: Workspace, kind: str, again: tuple[str, ...]) -> None:
    """The AI command of the start and its options, with `rooda resume` and with the kind's own word."""
    words, agent = without_agent(ws, kind)
    assert ws.rooda(*words, "--ai-cmd", agent, "--model", "sonnet", "--idle-timeout", "99", "--detach").code == 0
    began(ws)
    os.kill(rows(ws)[0]["pid"], signal.SIGTERM)
    until(lambda: not ws.leftovers(), what="the end")
    let_go(ws)
    ran = ws.rooda(*again)
    assert ran.code == 0, ran.both
    (folder,) = sorted(Path(ws.path, ".rooda/runs").glob("*/start"))[-1:]
    kept = json.loads(folder.read_text())["kept"]
    assert {f"--ai-cmd={agent}", "--model=sonnet", "--idle-timeout=99"} <= {*kept}
    assert ("--sequential" in kept) == (kind == "reflex")


@pytest.mark.parametrize(("again", "stdin"), [(("--resume",), None), ((), b"r\n")], ids=["--resume", "answered"])
def test_a_flow_that_is_asked_about(ws: Workspace, again: tuple[str, ...], stdin: bytes | None) -> None:
    """`flow run --resume`, and the answer r, continue with the agent of the start."""
    words, agent = without_agent(ws, "flow")
    assert ws.rooda(*words, "--ai-cmd", agent, "--detach").code == 0
    began(ws)
    kill_all(ws)
    let_go(ws)
    ran = ws.rooda("flow", "run", *again, stdin=stdin)
    assert ran.code == 0, ran.both


@pytest.mark.parametrize("again", [("resume", "build"), ("build", "--resume"), ("build",)], ids=" ".join)
def test_a_state_that_is_not_of_the_latest_run(ws: Workspace, again: tuple[str, ...]) -> None:
    """A completed run has left no state: one that lies there was put there, and nothing typed or used then is of it."""
    words = ("--context", "OF-THE-FIRST", "--ai-cmd", f"{FAKE_AI} first", "--no-gates", "--max-duration", "1")
    ws.procedure(gates={"never": "false"})
    ws.side(1, "sleep 1.2")
    assert ws.rooda("build", "-n", "1", *words).code == 0
    ws.put_state(max_iterations=4)
    ran = ws.rooda(*again, stdin=b"y\n")
    assert ran.code == 1 and "Quality gates failed: never (exit 1)" in ran.out, ran.both
    assert b"OF-THE-FIRST" not in ws.calls[-1].prompt and ws.calls[-1].argv == [] and len(ws.calls) == 2


def test_a_state_without_a_start(ws: Workspace) -> None:
    """A state file of somebody else, with no run beside it: nothing is taken over."""
    ws.put_state()
    ran = ws.rooda("resume", "build", "-n", "4")
    assert (ran.code, ran.notes) == (0, "")


BROKEN: list[Any] = [
    *("", "{", "[]", "null", '{"words": 3, "folder": "", "inside": ""}', "[" * 100_000, '{"words": []}', "\udcff"),
    {"words": ["--agent"], "folder": "/", "inside": ""},
    {"words": ["build", "--iteration-timeout", "soon", "--safety=none"], "folder": "\0", "inside": ""},
    {"words": ["--config", "\0\0", {}, None], "folder": 7, "inside": "", "kept": 5},
    {"words": ["--context", "\0HOME\0"], "folder": "/", "inside": ""},
    {"words": ["--context", "\0", "--param", "x"], "folder": "\0/", "inside": ""},
    {"words": ["--config=x\0"], "kept": {"--agent": 1}, "folder": "\0/", "inside": ""},
    {"words": ["--ai-cmd", "nosuch '", "--context", "\udcff" * 5000], "folder": "/", "inside": ""},
]


@pytest.mark.parametrize("again", [("resume", "build"), ("resume", "--all")], ids=" ".join)
def test_damaged_start_files(ws: Workspace, again: tuple[str, ...]) -> None:
    """Damaged, or written by an agent: it continues, or a sentence says what is the matter."""
    ws.signal_at(1, "KILL")
    ws.rooda("build", "-n", "2")
    until(lambda: not ws.leftovers(), what="the end")
    kept = f"{ws.root}/kept"
    shutil.copytree(ws.file(".rooda"), kept)
    for start in BROKEN:
        shutil.rmtree(ws.file(".rooda"))
        shutil.copytree(kept, ws.file(".rooda"))
        (path,) = Path(ws.path, ".rooda/runs").glob("*/start")
        path.write_bytes((start if isinstance(start, str) else json.dumps(start)).encode("utf-8", "surrogateescape"))
        ran = ws.rooda(*again)
        assert ran.code in (0, 1, 2, 3) and "Traceback" not in ran.both, (start, ran.both)
        until(lambda: not ws.leftovers(), what="the end")


SECRET = "p0stgres-key"


def notes(ws: Workspace) -> str:
    """All that was kept of how runs were started."""
    return "".join(path.read_text() for path in Path(ws.path, ".rooda/runs").glob("*/start"))


def cut_short(ws: Workspace, *words: str) -> Ran:
    ws.signal_at(1)
    ran = ws.rooda("build", "-n", "3", *words)
    assert ran.code == 130, ran.both
    return ran


def test_a_key_in_a_word_is_filled_in_again(ws: Workspace) -> None:
    """The record has its variable's name; the rest of the words is not lost. Along a chain of resumes, too."""
    ws.env |= {"DB_PASSWORD": SECRET, "DATABASE_URL": "pg://me:hunter2hunter2@db/x"}
    task = f"migrate the {SECRET} schema of pg://me:hunter2hunter2@db/x"
    cut_short(ws, "--context", task, "--context=SECOND", "--ai-cmd", f"{FAKE_AI} --login {SECRET}")
    ws.signal_at(2)
    assert ws.rooda("resume", "build").code == 130
    assert ws.rooda("resume", "build").code == 0
    assert SECRET not in notes(ws) and "hunter2" not in notes(ws) and "DB_PASSWORD" in notes(ws)
    for call in ws.calls:
        assert task.encode() in call.prompt and b"SECOND" in call.prompt and call.argv[-1] == SECRET


def test_resume_all_works_with_masked_options(ws: Workspace) -> None:
    """`rooda resume --all` too."""
    ws.env["DB_PASSWORD"] = SECRET
    ws.side("iteration-1", HOLD)
    assert ws.rooda("build", "-n", "2", "--context", f"migrate the {SECRET} schema", "--detach").code == 0
    began(ws)
    kill_all(ws)
    let_go(ws)
    ran = ws.rooda("resume", "--all")
    assert ran.code == 0 and ran.out.startswith("Resumed build"), ran.both
    until(lambda: not ws.leftovers(), what="the end")
    assert len(ws.calls) > 1 and all(f"migrate the {SECRET} schema".encode() in call.prompt for call in ws.calls)


def test_a_key_that_is_gone(ws: Workspace) -> None:
    """Without it the run would be another one: a sentence names option and variable; typed again, it continues."""
    ws.env["DB_PASSWORD"] = SECRET
    cut_short(ws, "--context", f"migrate the {SECRET} schema")
    del ws.env["DB_PASSWORD"]
    ran = ws.rooda("resume", "build")
    assert ran.code == 2 and "--context contained the value of DB_PASSWORD, which is not set now" in ran.err
    assert ws.rooda("resume", "build", "--context", "another").code == 0
    assert b"another" in ws.calls[-1].prompt


def test_a_key_in_a_coded_form(ws: Workspace) -> None:
    """It is not kept, and it is said which option is to be typed again."""
    ws.env["DB_PASSWORD"] = key = "correct-horse-battery"
    code = base64.b64encode(f"me:{key}".encode()).decode()
    cut_short(ws, "--context", f"send Basic {code}", "--ai-cmd", f"{FAKE_AI} mine")
    assert code[4:-4] not in notes(ws)
    ran = ws.rooda("resume", "build")
    assert ran.code == 2 and "--context contained an encoded secret" in ran.err and "Give --context again" in ran.err
    assert ws.rooda("resume", "build", "--context", "x").code == 0
    assert ws.calls[-1].argv[-1] == "mine"
