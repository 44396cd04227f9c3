"""`rooda init --demo DIR --tasks`: eight tasks, two that conflict, and two that break a gate only together."""

import json

from tests.kit.workspace import Workspace


def test_T_20_the_demo_ends_green(bare: Workspace) -> None:
    """Run and land, twice: what came back is repaired, all land, the gate passes, and the tree is clean."""
    made = bare.rooda("init", "--demo", "demo", "--tasks")
    assert made.code == 0 and made.lines[-1] == "Next: cd demo && rooda tasks run -j 4", made.both
    folder = bare.file("demo")
    codes = []
    for words in (["run", "-j", "4"], ["land"], ["run", "-j", "4"], ["land"]):
        codes.append(bare.rooda("-C", folder, "tasks", *words, timeout=120).code)
    found = json.loads(bare.rooda("-C", folder, "tasks", "--json").out)
    assert codes == [0, 4, 0, 0] and [task["state"] for task in found] == ["landed"] * 8
    assert {task["details"]["source"] for task in found} == {"TASKS.md"}
    assert bare.git("-C", folder, "status", "--porcelain") == ""
    assert '"de": "Guten Tag"' in bare.read("demo/greetings.py") and '"fr": "Bonjour"' in bare.read("demo/greetings.py")
    again = bare.rooda("-C", folder, "build", "-n", "1")
    assert "Quality gates failed" not in again.both
    assert bare.rooda("init", "--tasks").code == 2 and bare.rooda("init", "--demo", "demo", "--tasks").code == 2
