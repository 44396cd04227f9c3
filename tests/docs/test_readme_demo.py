"""The README's two commands: what they print is real, and .ci/run runs just them."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.pages import ROOT, blocks
from tests.kit.workspace import Workspace, masked

README = ROOT / "README.md"


def long_lines() -> list[str]:
    """The two commands for a fresh checkout."""
    return [text.strip() for text in blocks(README, "sh") if text.startswith("python3 -m venv")]


def shell(ws: Workspace, script: str, cwd: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a script like the user would, in bash."""
    command = ["bash", "-euc", script]
    return subprocess.run(command, cwd=cwd, env=ws.env, capture_output=True, text=True, stdin=subprocess.DEVNULL)


def test_there_are_two_commands_of_one_line() -> None:
    """One to see a loop, one to run the tests; each makes the environment it needs."""
    demo, tests = long_lines()
    for line in (demo, tests):
        assert line.startswith("python3 -m venv .venv && . .venv/bin/activate && pip install -q ")
        assert "\n" not in line
    assert demo.endswith('rooda build -C "$demo" --agent demo')
    assert tests.endswith("&& pytest -n auto")


def test_the_readme_shows_what_the_demo_prints(bare: Workspace) -> None:
    """The demo's commands, behind the installation, print what the README shows; times and the folder's name differ."""
    script = long_lines()[0].partition("pip install -q . && ")[2]
    assert script
    done = shell(bare, f'rooda() {{ {sys.executable} -m rooda "$@"; }}; {script}; echo "$demo" >&2', bare.path)
    assert done.returncode == 0, done.stderr
    folder = done.stderr.splitlines()[-1]
    shown = blocks(README, "console")[0].splitlines()
    typed = [line.removeprefix("$ ") for line in shown if line.startswith("$ ")]
    assert typed == script.partition(" && ")[2].split(" && ")
    there = re.sub(r"/tmp/tmp\.\w+/demo", "FOLDER", "\n".join(line for line in shown if not line.startswith("$ ")))
    assert masked(there.splitlines()) == masked(done.stdout.replace(folder, "FOLDER").splitlines())


@pytest.mark.parametrize(("word", "place"), [("rooda build", 0), ("pytest", 1)])
def test_ci_runs_the_commands_of_the_readme(bare: Workspace, word: str, place: int) -> None:
    """.ci/run takes both commands out of the README, whole, and runs them in copies of the checkout."""
    script = (ROOT / ".ci" / "run").read_text()
    function = re.search(r"^readme\(\) \{.*?^\}$", script, re.MULTILINE | re.DOTALL)
    assert function
    found = shell(bare, f"checkout={ROOT}\n{function[0]}\nreadme '{word}'", bare.path)
    assert found.stdout == long_lines()[place] + "\n"
    asked = word if " " not in word else f"'{word}'"
    assert f"command=$(readme {asked}) ||" in script
    assert script.count('bash -euc "$command"') == 2


def test_the_last_line_of_the_demo_is_what_ci_looks_for(bare: Workspace) -> None:
    """The pattern in .ci/run fits the last line that the README shows, and no line before it."""
    pattern = re.search(r"grep -Eq '(.+)' \S+$", (ROOT / ".ci" / "run").read_text(), re.MULTILINE)
    assert pattern
    *others, last = blocks(README, "console")[0].splitlines()
    assert re.search(pattern[1], last)
    assert not any(re.search(pattern[1], line) for line in others)


def test_the_block_for_figures_is_there() -> None:
    """The marks that `python -m benchmarks --readme` writes between are in the README once, in order."""
    text = README.read_text()
    assert re.findall(r"<!-- figures:\w+ -->", text) == ["<!-- figures:begin -->", "<!-- figures:end -->"]
