"""Quality gates: when they run, what a failing one does, and that none hides another."""

import os
import signal
from pathlib import Path

import pytest

from tests.kit.workspace import Workspace, alive, masked, until


def warnings(lines: list[str]) -> list[str]:
    """The warnings, without their stamps."""
    return [line[11:] for line in lines if "WARNING" in line]


def test_O_027_O_061_a_failing_gate_fails_the_iteration(bare: Workspace) -> None:
    """The gate runs after every call; its failure is counted, named, and on disk; the line of the iteration follows."""
    bare.procedure("harden", gates={"lint": 'echo "$ROODA_ITERATION" >>ran; exit 4'})
    bare.copy_state_at(2, name="harden")
    ran = bare.rooda("harden", "-n", "2")
    assert ran.code == 1
    assert bare.read("ran") == "1\n2\n"
    assert warnings(ran.lines) == [
        f"WARNING: Quality gates failed: lint (exit 4), consecutive failures: {n}/3" for n in (1, 2)
    ]
    assert (bare.copies[2]["consecutive_failures"], bare.copies[2]["iteration"]) == (1, 1)
    assert masked(ran.lines)[2:4][1] == "[T] Iteration 1/2 completed in D"


def test_OA_08_failing_gates_reach_the_threshold(ws: Workspace) -> None:
    """A gate that never passes aborts after three good calls."""
    ws.procedure(gates={"never": "false"})
    ran = ws.rooda("build", "-n", "10")
    assert ran.code == 1
    assert len(ws.calls) == 3
    assert masked(ran.lines)[-2:] == [
        "[T] WARNING: Quality gates failed: never (exit 1), consecutive failures: 3/3",
        "[T] ERROR: Aborting after 3 consecutive failures (3 iterations completed, total: D)",
    ]
    assert ws.state()["status"] == "aborted"


def test_OA_08_calls_and_gates_fail_into_one_counter(ws: Workspace) -> None:
    """A failed call, a failed gate and a failed call in a row abort; the good call between them forgives nothing."""
    ws.procedure(gates={"second": '[ "$ROODA_ITERATION" != 2 ]'})
    ws.exits(1, 0, 1)
    ran = ws.rooda("build", "-n", "9")
    assert ran.code == 1
    assert [line[-3:] for line in warnings(ran.lines)] == ["1/3", "2/3", "3/3"]


def test_OA_08_O_059_passing_gates_reset(ws: Workspace) -> None:
    """A good call whose gates pass sets the counter to 0."""
    ws.procedure(gates={"late": '[ "$ROODA_ITERATION" -ge 3 ]'})
    ws.copy_state_at(1, 2, 3, 4)
    assert ws.rooda("build", "-n", "4").code == 0
    assert [copy["consecutive_failures"] for copy in ws.copies.values()] == [0, 1, 2, 0]


def test_O_060_OA_16_only_after_a_good_call(ws: Workspace) -> None:
    """After a failed, killed or timed-out call no gate runs."""
    ws.procedure(gates={"stamp": 'echo "$ROODA_ITERATION" >>stamps'})
    ws.exits(1, 0)
    ws.side(3, "kill -9 $$")
    ws.side(4, "sleep 30 & wait")
    assert ws.rooda("build", "-n", "5", "--failure-threshold", "9", "--iteration-timeout", "0.4").code == 0
    assert ws.read("stamps") == "2\n5\n"


def test_O_060_none_configured_none_run(ws: Workspace) -> None:
    """Without gates there is no gate step and no word of one, and --no-gates takes configured ones away."""
    ran = ws.rooda("build", "-n", "1", "--verbose")
    assert "gate" not in ran.both.lower()
    assert not [record for record in ws.events() if record["event"].startswith("gate")]
    ws.procedure(gates={"stamp": "touch stamp; false"})
    ran = ws.rooda("build", "-n", "1", "--no-gates")
    assert not warnings(ran.lines)
    assert not ws.exists("stamp")


def test_OA_17_all_gates_run_in_order(ws: Workspace) -> None:
    """Every gate runs in its turn, and the summary names each failing one with its reason."""
    gates = {"one": "echo 1 >>order; exit 3", "two": "echo 2 >>order", "three": "echo 3 >>order; kill -9 $$"}
    ws.procedure(gates=gates)
    ran = ws.rooda("build", "-n", "1")
    assert ws.read("order") == "1\n2\n3\n"
    assert warnings(ran.lines) == [
        "WARNING: Quality gates failed: one (exit 3), three (exit 137), consecutive failures: 1/3"
    ]


def test_OA_17_a_gate_is_a_shell_command_in_the_workspace(ws: Workspace) -> None:
    """Pipes and quotes work, the folder is the workspace, stdin is empty, the group is the gate's own."""
    probe = (
        "pwd >probe; cat | wc -c >>probe; ps -o pgid= -p $$ >>probe; echo $$ >>probe; printf %s 'a b' | grep -q 'a b'"
    )
    ws.procedure(gates={"probe": probe})
    ran = ws.rooda("build", "-n", "1", stdin=b"typed\n")
    assert ran.code == 0
    assert not warnings(ran.lines)
    folder, size, group, pid = (line.strip() for line in ws.read("probe").splitlines())
    assert (folder, size, group) == (ws.path, "0", pid)


def test_OA_17_a_gate_has_its_own_time(ws: Workspace) -> None:
    """A gate over its time is ended with all it started, and the next one still runs."""
    slow = '{ name = "slow", command = "sleep 60 & echo $! >pid; wait", timeout = 0.3 }'
    ws.procedure(keys=f'quality_gates = [{slow}, "touch after"]\n')
    ran = ws.rooda("build", "-n", "1")
    assert warnings(ran.lines) == ["WARNING: Quality gates failed: slow (timeout 0.3s), consecutive failures: 1/3"]
    assert ws.exists("after")
    assert not alive(int(ws.read("pid")))


def test_OA_17_the_output_of_a_gate_is_kept(ws: Workspace) -> None:
    """What a gate prints is in a file of the run; the screen has its last line on stderr, the log its verdict."""
    ws.procedure(gates={"noisy": "echo to-stdout; echo to-stderr >&2; exit 7"})
    ran = ws.rooda("build", "-n", "1")
    assert "to-std" not in ran.out and "to-stdout" not in ran.err  # the last line only
    kept = [
        os.path.join(at, name) for at, _, names in os.walk(ws.file(".rooda/runs")) for name in names if "gate" in name
    ]
    with open(kept[0], encoding="utf-8") as file:
        assert file.read() == "to-stdout\nto-stderr\n"
    (ended,) = (record for record in ws.events() if record["event"] == "gate.ended")
    assert (ended["gate"], ended["verdict"]) == ("noisy", "exit 7")


def test_OA_17_only_a_gate_that_passes_silently_leaves_no_file(ws: Workspace) -> None:
    """Each path in the log exists, also that of a failed gate that printed nothing; no prepared file is left."""
    ws.procedure(gates={"silent": "true", "loud": "echo fine", "red": "exit 3"})
    ws.rooda("build", "-n", "2")
    outputs = [record["output"] for record in ws.events() if record["event"] == "gate.ended"]
    (folder,) = Path(ws.file(".rooda/runs")).iterdir()
    names = ["", "0001-gate-2.out", "0001-gate-3.out", "", "0002-gate-2.out", "0002-gate-3.out"]
    assert outputs == [name and str(folder / name) for name in names]
    left = {path.name: path.read_text() for path in folder.iterdir() if "gate" in path.name or "next" in path.name}
    assert left == {name: "fine\n" if "gate-2" in name else "" for name in names if name}


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_OA_17_a_signal_during_a_gate(ws: Workspace, number: int, code: int) -> None:
    """The gate is ended, the iteration is closed without a line, and the failures stay as they were."""
    ws.exits(1)
    ws.procedure(gates={"long": "echo $$ >gate; sleep 30", "after": "touch after"})
    running = ws.start("build", "-n", "8")
    until(lambda: ws.exists("gate") and ws.read("gate").endswith("\n"), what="the gate")
    running.signal(number)
    assert running.finish() == code
    assert masked(running.lines)[-2:] == [
        "[T] Iteration 2/8 starting...",
        "[T] Interrupted. State saved. Resume with: rooda resume build",
    ]
    state = ws.state()
    assert (state["iteration"], state["consecutive_failures"], state["status"]) == (2, 1, "interrupted")
    assert len(state["elapsed_per_iteration"]) == 2
    assert not alive(int(ws.read("gate")))
    assert not ws.exists("after")


COMMANDS = """\
## Build/Test/Lint Commands

**Build:** Not required (`make` does nothing)
- **Test:** `echo test >>ran`
**Lint**: `echo lint >>ran; exit 3`
**Format:** `echo format >>ran` (Manual verification)

## Other

**Deploy:** `echo deploy >>ran`
"""


def test_OA_15_command_lines_are_gates_only_if_asked(bare: Workspace) -> None:
    """The Test and Lint lines of AGENTS.md run with the opt-in, not without, and never those for people."""
    bare.write("AGENTS.md", COMMANDS)
    bare.procedure("harden")
    assert bare.rooda("harden", "-n", "1").code == 0
    assert not bare.exists("ran")
    bare.write("AGENTS.md", COMMANDS.replace("Lint Commands\n", "Lint Commands ##\n"))  # as some close their headings
    bare.procedure("harden", loop={"gates_from_commands": True})
    ran = bare.rooda("harden", "-n", "1")
    assert bare.read("ran") == "test\nlint\n"
    assert warnings(ran.lines) == ["WARNING: Quality gates failed: lint (exit 3), consecutive failures: 1/3"]


@pytest.mark.parametrize("fence", ["````", "~~~~", "```"])
def test_OA_15_an_example_of_a_gate_is_none(bare: Workspace, fence: str) -> None:
    """What is in a code block is an example, also if it shows a code block; what comes behind it counts."""
    inner = "~~~" if fence == "```" else "```"
    shown = f"{fence}markdown\n{inner}\n- shown: `echo shown >>ran`\n{inner}\n{fence}\n"
    bare.write("AGENTS.md", f"## Quality Gates\n\n{shown}\n- own: `echo own >>ran`\n")
    bare.procedure("harden")
    assert bare.rooda("harden", "-n", "1").code == 0
    assert bare.read("ran") == "own\n"


def test_OA_15_named_gates_come_before_command_lines(bare: Workspace) -> None:
    """An AGENTS.md that has the section for gates is asked for nothing else."""
    bare.write("AGENTS.md", f"## Quality Gates\n\n- own: `echo own >>ran`\n\n{COMMANDS}")
    bare.procedure("harden", loop={"gates_from_commands": True})
    assert bare.rooda("harden", "-n", "1").code == 0
    assert bare.read("ran") == "own\n"


def test_S_07_an_agents_md_that_cannot_be_read_is_refused(bare: Workspace) -> None:
    """Otherwise the loop would run without its gates: a pipe, a broken link, a folder, a link out of the repository."""
    bare.procedure("build")
    path = bare.file("AGENTS.md")
    for make in (
        os.mkfifo,
        os.mkdir,
        lambda path: os.symlink("gone", path),
        lambda path: os.symlink("/etc/passwd", path),
    ):
        make(path)
        run = bare.rooda("build", "-n", "1")
        assert run.code == 2 and f"{path} can't be read, so its quality gates are unknown" in run.err
        assert "--no-gates" in run.err and "root:" not in run.err
        os.rmdir(path) if os.path.isdir(path) else os.unlink(path)
    assert not bare.calls


def test_an_agents_md_with_a_byte_order_mark(bare: Workspace) -> None:
    """Its first line counts all the same."""
    bare.procedure("build")
    bare.write("AGENTS.md", "\ufeff## Quality Gates\n\n- own: `echo own >>ran`\n")
    assert bare.rooda("build", "-n", "1").code == 0 and bare.read("ran") == "own\n"
