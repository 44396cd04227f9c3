"""The README's two commands: what they print is real, and .ci/run runs just them."""

import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from tests.kit.pages import ROOT, blocks
from tests.kit.processes import until
from tests.kit.workspace import Workspace, masked

README = ROOT / "README.md"
SVG = "{http://www.w3.org/2000/svg}"


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


def picture() -> list[str]:
    """The last screen of the recording that the README shows."""
    return screen(ROOT / "docs" / "demo.svg")


def screen(path: Path) -> list[str]:
    """The rows of a recording that stay, from the top; what is replaced later is left out."""
    rows = [each for each in ElementTree.parse(path).iter(f"{SVG}text") if each.get("class") != "s"]
    rows.sort(key=lambda each: int(each.get("y", "0")))
    return ["".join(each.itertext()) for each in rows]


def known(lines: list[str]) -> list[str]:
    """Without what differs from run to run: times, durations, run IDs."""
    return [re.sub(r"\d{8}T\d{6}Z-(\w+)-\d+", r"RUN-\1", line) for line in masked(lines)]


def test_the_picture_is_what_the_demo_prints(tmp_path: Path) -> None:
    """A recording made now has the rows of docs/demo.svg, commands included, and the README shows it."""
    subprocess.run([sys.executable, ROOT / "tools" / "recording.py", tmp_path / "new.svg"], check=True)
    assert known(screen(tmp_path / "new.svg")) == known(picture()), "make it again: python tools/recording.py"
    assert "](docs/demo.svg)" in README.read_text()
    assert {"$ rooda init --demo demo", "$ rooda build"} <= {*picture()}


def test_a_recording_knows_the_sequences_of_a_terminal(tmp_path: Path) -> None:
    """Colours stay, a row that is written again is shown in its time, and an unknown sequence is an error."""
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import recording as r\n"
        "said = [(0.1, 'one\\r\\n\\x1b[33mtwo'), (0.3, '\\r\\x1b[K\\x1b[0mthree <&')]\n"
        "open(sys.argv[2], 'w').write(r.svg(r.versions(said)))\n"
        "r.versions([(0.1, '\\x1b[2J')])"
    )
    made = [sys.executable, "-c", code, str(ROOT / "tools"), str(tmp_path / "made.svg")]
    done = subprocess.run(made, capture_output=True, text=True)
    assert done.returncode == 1 and "unknown control sequence: ESC[2J" in done.stderr
    assert screen(tmp_path / "made.svg") == ["one", "three <&"]
    text = (tmp_path / "made.svg").read_text()
    assert '<tspan fill="#e3b341">two</tspan>' in text and "animation:show 0.20s step-end 0.10s" in text


def test_the_readme_is_short() -> None:
    """At most 150 lines, and the first own task is on the first screen."""
    lines = README.read_text().splitlines()
    assert len(lines) <= 150
    assert any(line.startswith("rooda build ") for line in lines[:24])


RESULT = '{"type":"result","subtype":"success","is_error":false,"result":"<promise>SUCCESS</promise>"}'
CLAUDE = f"""#!/bin/sh
[ "$1" = --version ] && echo "2.1.328 (Claude Code)" && exit
cat > prompt
echo '{RESULT}'
"""


def test_the_first_block_ends_with_a_success(bare: Workspace) -> None:
    """After the installation its lines can be typed in a repository: the task is in the agent's prompt."""
    bare.git("init", "-q")
    bare.write("bin/claude", CLAUDE, 0o755)
    install, cd, *lines = blocks(README, "sh")[0].splitlines()
    assert install.startswith("uv tool install rooda ") and cd == "cd your-project"
    bare.env["PATH"] = f"{bare.path}/bin{os.pathsep}{bare.env['PATH']}"
    bare.env["IS_SANDBOX"] = "1"  # claude refuses root without it
    done = typed(bare, lines, bare.path)
    assert done.returncode == 0, done.stderr
    assert "AI signaled SUCCESS" in done.stdout
    assert "Make the date parser accept week numbers." in bare.read("prompt")


def test_what_one_types_every_day_works_in_the_demo(bare: Workspace) -> None:
    """After a run of the demo, each line of `Every day` and the commands of the promises can be typed."""
    daily = next(text for text in blocks(README, "sh") if "rooda doctor" in text).splitlines()
    promises = re.findall(r"\| `(rooda [^`]+)` \|$", README.read_text(), re.MULTILINE)
    assert len(daily) == 5 and len(promises) == 4
    assert typed(bare, ["rooda init --demo demo", "cd demo", "rooda build"], bare.path).returncode == 0
    promises.remove("rooda resume")  # there is nothing to resume
    for line in [*promises, *daily]:
        done = typed(bare, [line], bare.file("demo"))
        assert done.returncode == 0, line + done.stderr
        until(lambda: "Nothing is running" in bare.rooda("-C", "demo", "status").out, what="the end of the loop")


def test_the_tasks_of_the_readme_are_those_of_the_page() -> None:
    """The three lines of the README are at the top of docs/tasks.md, whose test types them."""
    assert any(blocks(ROOT / "docs" / "tasks.md", "sh")[0].startswith(text) for text in blocks(README, "sh"))


def typed(ws: Workspace, lines: list[str], cwd: str) -> subprocess.CompletedProcess[str]:
    """Type lines; the first one that fails ends it."""
    return shell(ws, "\n".join([f'rooda() {{ {sys.executable} -m rooda "$@"; }}', *lines]), cwd)


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
    """The pattern in .ci/run fits one line of the picture, so that it can be missing."""
    pattern = re.search(r"grep -Eq '(.+)' \S+$", (ROOT / ".ci" / "run").read_text(), re.MULTILINE)
    assert pattern
    assert len([line for line in picture() if re.search(pattern[1], line)]) == 1


def test_the_figures_of_the_documents_are_current(tmp_path: Path) -> None:
    """README, docs/figures.md and docs/comparison.md have the blocks that `--readme` makes of benchmarks/results."""
    pages = ("README.md", "docs/figures.md", "docs/comparison.md")
    code = (
        "import sys; from benchmarks import documents as d, results as r; "
        "d.filled(r.load(r.FOLDER), r.FOLDER, sys.argv[1])"
    )
    (tmp_path / "docs").mkdir()
    for page in pages:
        shutil.copy(ROOT / page, tmp_path / page)
    subprocess.run([sys.executable, "-c", code, tmp_path], cwd=ROOT, check=True)
    for page in pages:
        assert (tmp_path / page).read_text() == (ROOT / page).read_text(), "run: python -m benchmarks --readme"


def test_every_block_has_its_marks() -> None:
    """Each block that `--readme` can make is in one document, once, in order; the README has at most eight figures."""
    from benchmarks.documents import BLOCKS, DOCUMENTS

    text = "".join((ROOT / page).read_text() for page in DOCUMENTS)
    for block in BLOCKS:
        assert re.findall(f"<!-- {block}:\\w+ -->", text) == [f"<!-- {block}:begin -->", f"<!-- {block}:end -->"], block
    figures = README.read_text().partition("<!-- figures:begin -->")[2].partition("<!-- figures:end -->")[0]
    assert 1 <= figures.count("\n|") - 2 <= 8
