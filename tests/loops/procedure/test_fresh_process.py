"""Every iteration is a fresh process, one at a time, under one loop that lives on."""

from tests.kit.workspace import Workspace, alive

LOOKS_FOR_OTHERS = """
for meta in "$FAKE"/calls/*.meta; do
  read -r line <"$meta"
  [ "$line" = "pid=$$" ] || ! kill -0 "${line#pid=}" 2>/dev/null || echo "$line lives" >>"$FAKE/together"
done
echo "start $$" >>"$FAKE/spans"
sleep 0.03
echo "end $$" >>"$FAKE/spans"
"""


def test_O_001_O_002_a_process_per_iteration_under_one_loop(bare: Workspace) -> None:
    """Four iterations are four processes, all children of one loop, and none is left."""
    bare.procedure("tidy-up")
    ran = bare.rooda("tidy-up", "--max-iterations", "4")
    assert ran.code == 0
    assert len({call.pid for call in bare.calls}) == 4
    assert len({call.ppid for call in bare.calls}) == 1
    assert not any(alive(call.pid) for call in bare.calls)


def test_O_003_never_two_at_once(ws: Workspace) -> None:
    """An agent has ended before the next one starts, a failed one as well."""
    ws.side("iteration", LOOKS_FOR_OTHERS)
    ws.exits(0, 5, 0)
    assert ws.rooda("build", "-n", "3").code == 0
    with open(f"{ws.fake}/spans", encoding="utf-8") as spans:
        words = [line.split() for line in spans]
    pids = [str(call.pid) for call in ws.calls]
    assert words == [[word, pid] for pid in pids for word in ("start", "end")]
    assert not ws.exists("../fake/together")


def test_O_006_nothing_an_agent_prints_reaches_the_next_prompt(ws: Workspace) -> None:
    """Without a STATUS section, output on both streams, a failure and a gate's words leave the next prompt the same."""
    ws.procedure(keys="feedback = false", gates={"chatty": "echo SECRET-GATE; exit 1"})
    ws.out(1, "SECRET1\n")
    ws.err(1, "SECRET2\n")
    ws.exits(0, 1)
    ws.out(2, "SECRET3\n")
    ws.rooda("build", "-n", "3", "--failure-threshold", "9")
    first, second, third = (call.prompt for call in ws.calls)
    assert first == second == third
    assert b"SECRET" not in first


def test_O_006_files_carry_over_to_the_next_agent(ws: Workspace) -> None:
    """What an agent leaves in the workspace is there for the next one, whose folder and marks are its own."""
    ws.side(1, "echo remembered >notes.txt")
    ws.side(2, 'cat notes.txt >"$FAKE/found"')
    assert ws.rooda("build", "-n", "2").code == 0
    assert ws.read("../fake/found") == "remembered\n"
    assert [call.cwd for call in ws.calls] == [ws.path] * 2
    assert [call.env["ROODA_ITERATION"] for call in ws.calls] == ["1", "2"]
    assert {call.kind for call in ws.calls} == {"iteration"}
