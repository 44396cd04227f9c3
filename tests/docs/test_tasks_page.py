"""docs/tasks.md can be typed: the demo ends green, and the lists of its examples are taken."""

import json
import subprocess
import sys

from tests.kit.pages import ROOT, blocks
from tests.kit.workspace import Workspace

PAGE = ROOT / "docs" / "tasks.md"


def typed(ws: Workspace, block: str, cwd: str) -> subprocess.CompletedProcess[str]:
    """Type a block of the page; each command must end with 0."""
    script = f'rooda() {{ {sys.executable} -m rooda "$@"; }}\n{block}'
    command = ["bash", "-euc", script]
    return subprocess.run(command, cwd=cwd, env=ws.env, capture_output=True, text=True, stdin=subprocess.DEVNULL)


def test_T_20_the_demo_of_the_page_ends_green(bare: Workspace) -> None:
    """What came back is repaired, all eight land, the gate passes, and nothing uncommitted is left."""
    demo, own = blocks(PAGE, "sh")[:2]
    done = typed(bare, demo, bare.path)
    assert done.returncode == 0, done.stderr
    folder = bare.file("shop")
    assert done.stdout.splitlines()[-8].split()[:2] == ["1", "landed"], done.stdout
    found = json.loads(bare.rooda("-C", folder, "tasks", "--json").out)
    assert [task["state"] for task in found] == ["landed"] * 8
    assert {task["details"]["source"] for task in found} == {"TASKS.md"}
    assert {"German", "French"} <= {task["details"]["title"].split()[-1] for task in found}
    greetings = bare.read("shop/greetings.py")
    assert '"de": "Guten Tag"' in greetings and '"fr": "Bonjour"' in greetings
    assert bare.git("-C", folder, "status", "--porcelain") == ""
    subprocess.run([sys.executable, "-m", "unittest", "-q"], cwd=folder, check=True, capture_output=True)
    assert bare.rooda("init", "--tasks").code == 2 and bare.rooda("init", "--demo", "shop", "--tasks").code == 2
    bare.write("shop/TODO.md", "- [ ] Write the manual\n")
    assert typed(bare, own.partition("rooda tasks run")[0], folder).returncode == 0
    (*_, newest) = json.loads(bare.rooda("-C", folder, "tasks", "--json").out)
    assert newest["details"]["title"] == "Write the manual"
