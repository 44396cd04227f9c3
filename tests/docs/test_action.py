"""The GitHub Action in action/: its steps, run in a real shell as a runner would run them."""

import re
import signal
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

import rooda
from tests.kit.needed import needs
from tests.kit.pages import PAGES, ROOT, blocks
from tests.kit.workspace import Workspace

FOLDER = ROOT / "action"
ACTION: dict[str, Any] = yaml.safe_load((FOLDER / "action.yml").read_text())
STEPS = ACTION["runs"]["steps"]
SCRIPTS = sorted(FOLDER.glob("*.sh"))


class Ran(NamedTuple):
    """What one step did: its exit code, its output, its outputs, and the summary."""

    code: int
    out: str
    outputs: dict[str, str]
    summary: str


def start_step(ws: Workspace, number: int, **inputs: str) -> "subprocess.Popen[str]":
    """Start a step of the action with these inputs; the others have their defaults."""
    values = {name: row["default"] for name, row in ACTION["inputs"].items()}
    values |= {name.replace("_", "-"): value for name, value in inputs.items()}
    given = {
        name: re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda found: values[found[1]], text)
        for name, text in STEPS[number]["env"].items()
    }
    runner = Path(ws.root, "runner")
    runner.mkdir(exist_ok=True)
    files = {name: str(runner / name) for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY", "GITHUB_PATH")}
    for path in files.values():
        Path(path).write_text("")
    env = {**ws.env, **given, **files, "RUNNER_TEMP": str(runner), "GITHUB_ACTION_PATH": str(FOLDER)}
    (runner / "step.sh").write_text(STEPS[number]["run"])
    words = ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", str(runner / "step.sh")]
    pipe = subprocess.PIPE
    return subprocess.Popen(words, cwd=ws.path, env=env, stdout=pipe, stderr=subprocess.STDOUT, text=True)


def ended_step(ws: Workspace, step: "subprocess.Popen[str]") -> Ran:
    out, _ = step.communicate()
    runner = Path(ws.root, "runner")
    outputs = dict(line.split("=", 1) for line in (runner / "GITHUB_OUTPUT").read_text().splitlines())
    return Ran(step.returncode, out, outputs, (runner / "GITHUB_STEP_SUMMARY").read_text())


def run_step(ws: Workspace, number: int, **inputs: str) -> Ran:
    return ended_step(ws, start_step(ws, number, **inputs))


@pytest.fixture
def demo(bare: Workspace) -> Workspace:
    """The demo project in the folder `demo` of the workspace."""
    assert bare.rooda("init", "--demo", "demo").code == 0
    return bare


def test_inputs_reach_the_shell_only_by_the_environment() -> None:
    """No expression is in a script; every input is used; every step that runs something names its shell."""
    ran = [step for step in STEPS if "run" in step]
    assert len(ran) == 2 and all(step["shell"] == "bash" and "${{" not in step["run"] for step in ran)
    assert not any("${{" in script.read_text() for script in SCRIPTS)
    text = (FOLDER / "action.yml").read_text()
    assert {*re.findall(r"\$\{\{ inputs\.([\w-]+) \}\}", text)} == {*ACTION["inputs"]}
    assert {row["value"] for row in ACTION["outputs"].values()} == {
        f"${{{{ steps.run.outputs.{name} }}}}" for name in ACTION["outputs"]
    }


def test_every_input_and_output_is_described() -> None:
    """In action.yml and in the table of action/README.md."""
    page = (FOLDER / "README.md").read_text()
    for name, row in {**ACTION["inputs"], **ACTION["outputs"]}.items():
        assert row["description"] and f"\n| `{name}` |" in page, name


def test_workflows_in_the_documents_fit_the_action() -> None:
    """Each use of the action names this version, and only inputs that exist."""
    jobs = [
        job
        for page in PAGES
        for text in blocks(page, "yaml")
        for job in (yaml.safe_load(text).get("jobs") or {}).values()
    ]
    uses = [step for job in jobs for step in job["steps"] if step.get("uses", "").startswith("OWNER/rooda/action@")]
    assert len(uses) >= 2
    for step in uses:
        assert step["uses"] == f"OWNER/rooda/action@v{rooda.__version__}"
        assert {*step["with"]} <= {*ACTION["inputs"]}


def test_a_loop_runs_without_a_terminal(demo: Workspace) -> None:
    """Outputs, summary, log, events and report of a run; an argument with blanks and signs of a shell stays one."""
    ran = run_step(
        demo,
        1,
        agent="demo",
        iterations="4",
        max_cost="5",
        working_directory="demo",
        arguments="a $(touch bad) 'task'\n-v\n",
    )
    assert ran.code == 0, ran.out
    folder = Path(ran.outputs.pop("folder"))
    assert ran.outputs == {"exit-code": "0", "status": "completed", "iterations": "3", "cost": ""}
    assert {path.name for path in folder.iterdir()} == {"rooda.log", "events.jsonl", "run.html"}
    assert "AI signaled SUCCESS" in (folder / "rooda.log").read_text()
    assert '"event": "run.ended"' in (folder / "events.jsonl").read_text()
    (prompt,) = Path(demo.path, "demo", ".rooda", "runs").glob("*/0001-prompt*")
    assert "a $(touch bad) 'task'\n" in prompt.read_text()
    assert "<html" in (folder / "run.html").read_text()
    assert (
        ran.summary.startswith("### rooda build: ended as asked\n") and "| 0 | completed | 3 | unknown |" in ran.summary
    )
    assert not Path(demo.path, "demo", "bad").exists()


def test_what_an_agent_prints_is_no_command_to_the_runner(ws: Workspace) -> None:
    """The loop's output is between two lines with a token that the agent can't know."""
    ws.procedure("build")
    ws.out(1, "::error::hi\n")
    ran = run_step(ws, 1, iterations="1", arguments="-v")
    lines = ran.out.splitlines()
    token = lines[0].removeprefix("::stop-commands::")
    assert len(token) == 32 and f"::{token}::" in lines
    assert [at for at, line in enumerate(lines) if "::error::hi" in line] < [lines.index(f"::{token}::")]


@pytest.mark.parametrize(
    ("iterations", "code", "state"), [("1", 1, "failed"), ("x", 2, "")], ids=["red", "wrong option"]
)
def test_the_step_exits_as_rooda_did(demo: Workspace, iterations: str, code: int, state: str) -> None:
    """A red gate at the limit, and a mistake; outputs and summary are there, too."""
    ran = run_step(demo, 1, agent="demo", iterations=iterations, working_directory="demo")
    assert (ran.code, ran.outputs["exit-code"], ran.outputs["status"]) == (code, str(code), state), ran.out
    assert f"| {code} | {state or '-'} |" in ran.summary


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_cancelled_job_ends_the_agent_and_has_outputs(ws: Workspace, number: signal.Signals) -> None:
    """The runner signals the step's first process alone."""
    ws.procedure("build")
    ws.side(1, "sleep 60")
    step = start_step(ws, 1, iterations="2")
    ws.wait_calls(1)
    step.send_signal(number)
    ran = ended_step(ws, step)
    assert (ran.code, ran.outputs["status"]) == (143, "interrupted"), ran.out
    assert ws.leftovers() == []


def test_an_older_run_is_not_reported_as_this_one(demo: Workspace) -> None:
    """A second start that starts nothing has no status of the first."""
    assert run_step(demo, 1, agent="demo", working_directory="demo").outputs["status"] == "completed"
    again = run_step(demo, 1, agent="demo", iterations="-3", working_directory="demo")
    assert (again.outputs["status"], again.outputs["iterations"], again.outputs["cost"]) == ("", "", "")


def test_a_rooda_on_the_path_is_used(ws: Workspace) -> None:
    """Without a version nothing is installed; a version that is an option of pip is refused."""
    assert re.fullmatch(r"rooda \d+\.\d+\.\d+\n", run_step(ws, 0).out)
    refused = run_step(ws, 0, version="--index-url=x")
    assert refused.code == 2 and refused.out.startswith("::error title=rooda::")


@needs("shellcheck")
@pytest.mark.parametrize("script", [*SCRIPTS, *sorted((ROOT / ".ci").iterdir())], ids=lambda path: path.name)
def test_shellcheck_has_no_complaint(script: Path) -> None:
    """In the scripts of the action, and of `.ci`."""
    done = subprocess.run(["shellcheck", "-x", "-S", "warning", str(script)], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")
