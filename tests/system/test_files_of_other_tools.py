"""Row L-07: files in rooda's places that rooda did not write survive, in every form."""

import json
import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.kit.loops import Loops
from tests.kit.workspace import Workspace, until

SEEDS = {  # a state file as the specification's own tool writes it
    "spec": "Refactor all routes",
    "criteria": ["tests pass", "no lint errors"],
    "criteriaStatus": {"tests pass": False, "no lint errors": {"met": True, "verification": "code-review"}},
    "exit_signal": False,
    "steps": ["one", "two", "three"],
    "completedSteps": ["one"],
    "remainingSteps": ["two", "three"],
    "iteration": 2,
    "status": "in_progress",
    "circuitBreaker": {"stuckCount": 0, "lastUnmet": "tests pass"},
}


def writes(data: bytes, mode: int = 0o644) -> Callable[[Path], object]:
    def write(path: Path) -> None:
        path.write_bytes(data)
        path.chmod(mode)

    return write


def folder(path: Path) -> None:
    path.mkdir()
    (path / "inside").write_text("kept")


def link(path: Path) -> None:
    target = path.parent / f"{path.name}.target"
    target.write_text("another tool's")
    path.symlink_to(target.name)


FORMS: dict[str, Callable[[Path], object]] = {
    "the specification's": writes(json.dumps(SEEDS).encode()),
    "another schema": writes(b'{"version": 3, "tasks": ["a"], "status": "running"}'),
    "an empty object": writes(b"{}"),
    "empty": writes(b""),
    "blanks": writes(b" \n\n"),
    "text": writes(b"# My loop\n\n- [ ] one\n"),
    "a list": writes(b'[{"id": 1}]'),
    "null": writes(b"null"),
    "binary": writes(bytes(range(256))),
    "half-written": writes(json.dumps(SEEDS).encode()[:150]),
    "front matter": writes(b"---\nstatus: running\n---\nmine\n"),
    "unreadable": writes(b"secret", 0o000),
    "a folder": folder,
    "a link": link,
    "a dangling link": lambda path: path.symlink_to("nowhere"),
    "a pipe": os.mkfifo,
}


def seen(path: Path) -> Any:
    """What is at a path, without following a link: its type, mode and content."""
    facts = path.lstat()
    if path.is_symlink():
        return "link", os.readlink(path)
    if path.is_dir():
        return "folder", {each.name: seen(each) for each in path.iterdir()}
    return facts.st_mode, path.read_bytes() if stat.S_ISREG(facts.st_mode) else b""


def put(ws: Workspace, name: str, form: str) -> Path:
    path = Path(ws.file(name))
    path.parent.mkdir(parents=True, exist_ok=True)
    FORMS[form](path)
    return path


@pytest.mark.parametrize("form", FORMS)
def test_L_07_a_goal_asks_before_it_takes_the_place(ws: Workspace, form: str) -> None:
    """Exit 3 and untouched without a yes, also by continue and cancel; with --yes it is kept beside rooda's own."""
    words = Loops(ws).goal_words("-n", "1", "--headless")
    paths = [put(ws, f".loop/{name}", form) for name in ("state.json", "summary.md", "evidence/1-tests pass.txt")]
    before = [seen(path) for path in paths]
    ran = ws.rooda(*words)
    assert ran.code == 3 and "rooda did not write these files" in ran.err and ".loop/state.json: " in ran.err, ran.both
    also_tried = "goal continue,goal cancel,goal status,goal clean --yes,status,resume --all,cancel goal"
    tried = ws.each(*also_tried.split(","))
    assert not [ran for ran in tried if "Traceback" in ran.both]
    assert "not written by rooda" in tried[2].out and not ws.calls
    assert [seen(path) for path in paths] == before
    ran = ws.rooda(*words, "--yes")
    assert ran.code in (0, 4) and len(ws.calls) == 1, ran.both
    kept = [paths[0].with_name("state.json.foreign"), paths[1].with_name("summary.md.foreign")]
    assert [seen(path) for path in (*kept, Path(ws.file(".loop/evidence.foreign"), paths[2].name))] == before
    assert ws.json(".loop/state.json")["spec"] != SEEDS["spec"]


def test_L_07_a_goal_takes_over_a_complete_state(ws: Workspace) -> None:
    """Status shows it; on a terminal a start asks; --plan takes the criteria and the open steps."""
    words = Loops(ws).goal_words("-n", "1")
    put(ws, ".loop/state.json", "the specification's")
    assert "in_progress, iteration 2, 1 of 3 steps" in ws.rooda("goal", "status").out
    (row,) = json.loads(ws.rooda("status", "--json").out)
    assert (row["state"], row["next"]) == ("foreign", None)
    terminal = ws.terminal(*words, columns=200)
    until(lambda: "Keep each as" in terminal.out, what="the question")
    terminal.type("n\r")
    assert terminal.finish() == 3 and ws.json(".loop/state.json") == SEEDS
    words[words.index("plan.json")] = ".loop/state.json"
    ran = ws.rooda(*words, "--yes", "--headless", "--shape", "tool")
    assert ran.code in (0, 4) and ws.json(".loop/state.json.foreign") == SEEDS, ran.both
    own = ws.json(".loop/state.json")
    assert [own["criteria"], own["steps"][:2]] == [SEEDS["criteria"], ["two", "three"]]


def test_L_07_a_state_that_appears_between_two_sessions_is_kept(ws: Workspace) -> None:
    """Another tool takes the state file of a paused goal, and of one that is over: both are on disk afterwards."""
    loops = Loops(ws)
    assert ws.rooda(*loops.words("goal", "--plan", "plan.json", "-n", "1", "--yes", steps=2, score=2)).code == 4
    path = put(ws, "theirs", "the specification's")
    shutil.copy(path, ws.file(".loop/state.json"))
    ran = ws.rooda("goal", "continue", "--yes")
    assert ran.code == 0 and ".loop/state.json.foreign." in ran.both
    assert ws.json(".loop/state.json.foreign") == SEEDS
    shutil.copy(path, ws.file(".loop/state.json"))
    ws.rooda("goal", "continue")
    assert ws.json(".loop/state.json") == SEEDS
    assert ws.rooda(*loops.goal_words("--headless")).code == 3
    assert ws.json(".loop/state.json") == SEEDS


@pytest.mark.parametrize("words", [("goal", "cancel"), ("cancel", "goal"), ("goal", "clean", "--yes")], ids="-".join)
def test_L_07_a_refused_start_claims_nothing(ws: Workspace, words: tuple[str, ...]) -> None:
    """A start that its precheck refuses leaves .loop/.gitignore; another tool's state file survives all the same."""
    criterion = {"name": "hello", "verification": "execution", "command": "test -f hello"}
    ws.write("plan.json", json.dumps({"criteria": [criterion], "steps": ["write hello"]}))
    start = ("Improve it", "--plan", "plan.json", "--ai-cmd", "false")
    for form in ("another schema", "text"):
        path = put(ws, ".loop/state.json", form)
        before = seen(path)
        assert ws.rooda("goal", "run", *start, "--headless", "--yes").code == 3
        assert os.path.exists(ws.file(".loop/.gitignore"))
        ws.rooda(*words)
        found = [each for each in path.parent.iterdir() if each.name.startswith("state.json") and seen(each) == before]
        assert found, form
        path.unlink(missing_ok=True)


def test_L_07_a_reflex_loop_is_written_beside_others(ws: Workspace) -> None:
    """Each form as run.json, as a loop's folder, as history, and as the pointer: all as before after a whole loop."""
    words = Loops(ws).words("reflex")
    home = ".ai-factory/evolution"
    paths = [put(ws, f"{home}/page-{number}/run.json", form) for number, form in enumerate(FORMS, 10)]
    paths += [put(ws, f"{home}/page-{number}/history.jsonl", form) for number, form in enumerate(FORMS, 40)]
    paths += [put(ws, f"{home}/{name}/artifact.md", "text") for name in ("page", "page-2")]
    paths += [put(ws, f"{home}/{name}", "text") for name in ("page-3", "page-4/notes.md", "page-5/run.json.tmp")]
    before = [seen(path) for path in paths]
    for number, form in enumerate(FORMS):
        pointer = put(ws, f"{home}/current.json", form)
        known = seen(pointer)
        if number == 0:
            ran = ws.rooda(*words)
            assert ran.code == 0 and ws.json(f"{home}/page-6/run.json")["status"] == "completed", ran.both
        assert not [ran for ran in ws.each("reflex list", "reflex status", "reflex stop") if "Traceback" in ran.both]
        assert seen(pointer) == known, form
        shutil.rmtree(pointer) if known[0] == "folder" else pointer.unlink()
    assert [seen(path) for path in paths] == before


def test_L_07_a_flow_is_written_beside_others(ws: Workspace) -> None:
    """Each form as run-state.md of another run: as before after a whole run."""
    flow = Loops(ws).flow_ready("S1")
    paths = [put(ws, f".ai-loop/runs/run_20200101_{n:03}/run-state.md", form) for n, form in enumerate(FORMS, 1)]
    paths.append(put(ws, ".ai-loop/notes.json", "another schema"))
    before = [seen(path) for path in paths]
    ran = flow.run("do it", "--allow-dirty")
    assert ran.code == 0 and ws.rooda("flow", "list").code == 0, ran.both
    assert [seen(path) for path in paths] == before


@pytest.mark.parametrize("form", FORMS)
def test_L_07_a_procedure_keeps_what_was_there(ws: Workspace, form: str) -> None:
    """Each form twice: both are kept, by a start and by a resume."""
    path = put(ws, ".rooda/state/build.json", form)
    before = seen(path)
    assert ws.rooda("build", "-n", "1").code == 0
    put(ws, ".rooda/state/build.json", "text")
    assert ws.rooda("resume", "build").code == 2
    assert seen(path.with_name("build.json.corrupt")) == before
    assert path.with_name("build.json.corrupt-2").read_text().startswith("# My loop")
