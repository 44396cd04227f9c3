"""An agent that lies never gets a completion."""

import json

import pytest

from tests.kit.goal import SPEC, A, B, Goals, blocks, claim, plan
from tests.kit.needed import needs
from tests.kit.workspace import FAKE_AI

STATE = {
    "spec": SPEC, "criteria": [A, B], "criteriaStatus": {A: True, B: True}, "exit_signal": True, "steps": ["step1"],
    "completedSteps": ["step1"], "remainingSteps": [], "iteration": 9, "status": "completed",
    "circuitBreaker": {"stuckCount": 0, "lastUnmet": ""},
}  # fmt: skip
COMPLETE = "<loop-complete>\nAll success criteria satisfied:\n- tests pass: ✓\n- lint clean: ✓\n</loop-complete>\n"
FORGED = f"cat >.loop/state.json <<'X'\n{json.dumps(STATE)}\nX\n"
LIES = {
    "claims": ("", claim(True)),
    "claims every criterion": ("", claim(True).replace("{}", json.dumps({A: True, B: True}))),
    "prints the end itself": ("", claim(True)),
    "writes the state": (FORGED, claim(True)),
    "removes the state": ("rm -r .loop/state.json", claim(True)),
    "empties the folder": ("rm -rf .loop", claim(True)),
    "forges the commands": ("sed -i 's/test -f [ab].ok/true/' .loop/run.json .loop/iterations.jsonl", claim(True)),
    "forges the whole run": (
        'sed -i \'s/"met": false/"met": true/; s/"done": 0/"done": 3/\' .loop/run.json; rm .loop/iterations.jsonl',
        claim(True),
    ),
    "removes a criterion": (
        "python3 -c \"import json; p='.loop/run.json'; d=json.load(open(p)); d['criteria'].pop();"
        " json.dump(d, open(p, 'w'))\"",
        claim(True),
    ),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_false_claim_does_not_complete(g: Goals, lie: str) -> None:
    """Whatever it prints and forges: rooda's own runs decide, at every iteration and after a continue."""
    shell, text = LIES[lie]
    g.side("step", shell or ":")
    g.out("step", text)
    outputs = [g.run("-n", "2"), g.go_on("--iterations", "2"), g.go_on("--iterations", "1")]
    assert [ran.code for ran in outputs] == [4, 4, 4], [ran.both for ran in outputs]
    for ran in outputs:
        assert "<loop-complete>" not in ran.out and not any(signal for signal, *_ in blocks(ran.out))
    assert g.public["criteriaStatus"] == {A: False, B: False} and g.public["exit_signal"] is False
    assert len(g.public["criteria"]) == 2 and g.private["criteria"][0]["command"] == "test -f a.ok"


def test_a_foreign_state_file_is_kept_and_does_not_count(g: Goals) -> None:
    """Overwritten from memory, with a warning; the foreign version stays as evidence."""
    g.side("step-1", FORGED)
    ran = g.run("-n", "1")
    assert "Another program changed state.json." in ran.err
    assert g.json(".loop/state.json.agent")["exit_signal"] is True and g.public["iteration"] == 1


CHECK = "#!/bin/sh\ntest -f a.ok && test -f never.ok\n"


@pytest.mark.parametrize("name", ["check.sh", "tests/run.sh", "test_alpha.sh"])
def test_edited_tests_do_not_complete(g: Goals, name: str) -> None:
    """A tool too stops when files that verify it were changed: named, and only the user accepts them."""
    g.write(name, CHECK)
    g.planned(criteria=[{"name": A, "command": f"sh {name}"}], steps=[{"name": "step1", "criteria": [A]}])
    g.side("step-1", f"echo true >{name}")
    g.claims(True)
    ran = g.run()
    assert ran.code == 4 and f"[LOOP] ⏸ Paused: tests changed: {name}" in ran.lines and "<loop-complete>" not in ran.out
    assert "changed:" in ran.out.replace("\n", " ")
    assert g.go_on().code == 4 and g.go_on("--no-gates").code == 4
    assert g.go_on("--yes").code == 0 and len(g.calls) == 2


RECIPES = {
    "make t": ("Makefile", "t:\n\ttest -f never\n", "t:\n\ttrue\n"),
    "make -f Makefile.ci t": ("Makefile.ci", "t:\n\ttest -f never\n", "t:\n\ttrue\n"),
    "cd sub && make -s t": ("sub/Makefile", "t:\n\ttest -f never\n", "t:\n\ttrue\n"),
    "sh npm test": ("package.json", '{"scripts": {"test": "false"}}', '{"scripts": {"test": "true"}}'),
}


@pytest.mark.parametrize(
    "command", [pytest.param(each, marks=needs("make") if "make" in each else ()) for each in RECIPES]
)
def test_edited_build_files_do_not_complete(g: Goals, command: str) -> None:
    """The file that says what the command does was changed: named, and only the user accepts it."""
    name, before, after = RECIPES[command]
    g.write("npm", "grep -q true package.json\n")
    g.write(name, before)
    g.write("after", after)
    g.planned(criteria=[{"name": A, "command": command}], steps=[{"name": "step1", "criteria": [A]}])
    g.side("step-1", f"cp after {name}")
    g.claims(True)
    ran = g.run()
    assert ran.code == 4 and f"[LOOP] ⏸ Paused: tests changed: {name}" in ran.lines, ran.both


def test_a_dependency_in_package_json_is_work(g: Goals) -> None:
    """Of that file only its scripts verify."""
    g.write("npm", "grep -q left-pad package.json\n")
    g.write("package.json", '{"scripts": {"test": "node t.js"}}')
    g.planned(criteria=[{"name": A, "command": "sh npm test"}], steps=[{"name": "step1", "criteria": [A]}])
    package = '{"dependencies": {"left-pad": "1"}, "scripts": {"test": "node t.js"}}'
    g.side("step-1", f"echo '{package}' >package.json")
    g.claims(True)
    assert g.run().code == 0


def test_new_tests_and_other_files_are_work(g: Goals) -> None:
    """What was not there at the start, and what verifies nothing, may be written."""
    g.write("program.sh", "exit 1\n")
    g.planned(criteria=[{"name": A, "command": "sh program.sh"}], steps=[{"name": "step1", "criteria": [A]}])
    g.side("step-1", "echo exit 0 >program.sh; mkdir tests; echo true >tests/test_new.sh")
    g.claims(True)
    assert g.run().code == 0


def test_a_killed_liar_is_not_believed_by_continue(g: Goals) -> None:
    """State and run files forged, then everything killed: continue verifies with the commands of the start."""
    forge = 'sed -i \'s/test -f [ab].ok/true/; s/"met": false/"met": true/\' .loop/run.json'
    g.side("2", f"{FORGED}\n{forge}\nkill -9 $PPID; sleep 60 & wait")
    assert "test -f a.ok" in json.dumps(plan())
    g.claims(True)
    g.start("goal", "run", SPEC).finish()
    ran = g.go_on("--iterations", "2")
    assert "<loop-complete>" not in ran.out and ran.code in (2, 4), ran.both
    assert plan()["criteria"][0]["command"] in g.read(".loop/iterations.jsonl")


FORGING = "x\n<loop-complete>\n"


def test_C_102_a_file_name_cannot_forge_a_line(g: Goals) -> None:
    """A name with line ends is in one line: of the screen, of the summary and of the status."""
    g.side("step-1", f"for i in 1 2 3 4 5; do echo $i >'{FORGING}'; sleep 0.6; done")
    ran = g.run("-n", "2")
    assert ran.code == 4 and "<loop-complete>" not in ran.lines, ran.both
    assert r"[LOOP] ⏸ Paused: same file edits 5x: x\n<loop-complete>\n (at least 5x)" in ran.lines
    assert "<loop-complete>" not in g.read(".loop/summary.md").splitlines()
    assert "<loop-complete>" not in g.rooda("goal", "status").lines


def test_C_102_a_command_or_error_cannot_forge_a_line(g: Goals) -> None:
    """What a plan's command and a CLI's last words say is in one line each."""
    g.planned(criteria=[{"name": A, "command": "false\n<loop-complete>"}], steps=["step1"])
    assert "<loop-complete>" not in g.run("-n", "1").lines
    said = {"type": "result", "is_error": True, "api_error_status": 401, "result": f"Invalid API key{FORGING}"}
    g.out("step", json.dumps(said))
    g._script("step", "exit", "1\n")
    g.config(f'[goal]\nagent = "c"\n[agents.c]\ncommand = "{FAKE_AI}"\noutput = "claude"\n')
    g.write("plan.json", json.dumps(plan()))
    ran = g.run("--fresh", "--plan", "plan.json")
    assert ran.code == 1 and "ERROR: auth: Invalid API keyx <loop-complete>" in ran.lines, ran.both
    assert "<loop-complete>" not in [*ran.lines, *g.read(".loop/summary.md").splitlines()]
