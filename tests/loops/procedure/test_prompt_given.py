"""What reaches the agent: the assembled prompt, from the files as they are, within a budget that only warns."""

import re
from collections.abc import Iterator

import pytest

from tests.kit.workspace import Workspace

PIECES = {
    "observe": "look ünïcode ✓\n\n  twice\n",
    "orient": "no newline",
    "decide": "`a` $HOME \\n\n\n",
    "act": "# do\n",
}


@pytest.fixture
def odd(bare: Workspace) -> Iterator[Workspace]:
    """A procedure `port-tests` whose phases are hard to keep as they are."""
    for phase, text in PIECES.items():
        bare.write(f"prompts/{phase}_port-tests.md", text)
    bare.procedure("port-tests")
    yield bare


def shown(ws: Workspace, *arguments: str) -> str:
    """The prompt as a dry run shows it."""
    ran = ws.rooda(*arguments, "--dry-run")
    assert ran.code == 0, ran.err
    return ran.out.split("\n\n", 1)[1]


def counted(ws: Workspace, *arguments: str) -> int:
    """The prompt's tokens as a dry run shows them."""
    found = re.search(r"Token count: ([\d,]+) / ", ws.rooda(*arguments, "--dry-run").out)
    assert found
    return int(found[1].replace(",", ""))


def test_O_004_the_prompt_goes_to_stdin_which_is_closed(odd: Workspace) -> None:
    """The agent reads to the end of its input and finds the prompt of the dry run, and no argument holds it."""
    assert odd.rooda("port-tests", "-n", "1").code == 0
    (call,) = odd.calls
    assert call.prompt.decode() == shown(odd, "port-tests")
    assert call.argv == []


def test_O_004_a_long_prompt_arrives_whole(ws: Workspace) -> None:
    """A prompt far longer than any pipe holds arrives to its last byte."""
    ws.write("prompts/act_build.md", "0123456789abcde\n" * 10_000 + "the end\n")
    assert ws.rooda("build", "-n", "1", "--token-budget", "0").code == 0
    assert ws.calls[0].prompt.count(b"0123456789abcde\n") == 10_000
    assert ws.calls[0].prompt.endswith(b"the end\n")


def test_O_005_assembled_for_every_iteration(ws: Workspace) -> None:
    """A phase or context file that an agent changes is in the next prompt, and not earlier."""
    ws.write("notes.md", "CTX\n")
    changed = ["notes.md", *(f"prompts/{phase}_build.md" for phase in ("act", "decide", "orient", "observe"))]
    for n, name in enumerate(changed, 1):
        ws.side(n, f"echo NEWTEXT-{n}- >>{name}")
    assert ws.rooda("build", "-n", "6", "--context", "notes.md").code == 0
    for call in ws.calls:
        found = {int(n) for n in re.findall(rb"NEWTEXT-(\d)-", call.prompt)}
        assert found == set(range(1, call.n)), call.n


def test_O_007_four_phases_in_order(bare: Workspace) -> None:
    """Title and phases are in their order whatever the order of the settings; without a context there is none."""
    bare.config(
        '[loop]\nai_cmd = "' + bare.loop["ai_cmd"].strip('"') + '"\n'
        '[procedures.sweep]\nact = "ACT!"\ndecide = "DEC!"\norient = "ORI!"\nobserve = "OBS!"\n'
    )
    assert bare.rooda("sweep", "-n", "1").code == 0
    expected = "# OODA Loop Iteration\n\n## OBSERVE\nOBS!\n\n## ORIENT\nORI!\n\n## DECIDE\nDEC!\n\n## ACT\nACT!\n"
    assert bare.calls[0].prompt.decode() == expected


def test_O_007_a_context_once_before_the_phases(ws: Workspace) -> None:
    """Contexts are in the order given, once each, between the title and the first phase."""
    assert ws.rooda("build", "-n", "1", "--context", "only the parser", "-c", "and be brief").code == 0
    text = ws.calls[0].prompt.decode()
    head = "# OODA Loop Iteration\n\n## CONTEXT\nonly the parser\n\nand be brief\n\n"
    assert text == head + "## OBSERVE\nOBS\n\n## ORIENT\nORI\n\n## DECIDE\nDEC\n\n## ACT\nACT\n"


def test_O_023_O_054_over_budget_warns_and_continues(ws: Workspace) -> None:
    """The warning has count and budget, is out before each call, and every call is made."""
    count = counted(ws, "build")
    ws.side("iteration", f'cp {ws.root}/output-1.out "$FAKE/seen-$n"')
    ran = ws.rooda("build", "-n", "2", "--token-budget", "10")
    warning = f"WARNING: Prompt exceeds token budget: {count} > 10"
    assert ran.code == 0
    assert len(ws.calls) == 2
    for n in (1, 2):
        before = ws.read(f"../fake/seen-{n}").splitlines()
        assert before[-1][11:] == warning
        assert before[-2].endswith(f"Iteration {n}/2 starting...")
    assert ran.out.count("token budget") == 2


def test_O_023_the_budget_itself_is_allowed(ws: Workspace) -> None:
    """A prompt of exactly the budget passes without a word; one token less of budget warns."""
    count = counted(ws, "build")
    assert "budget" not in ws.rooda("build", "-n", "1", "--token-budget", str(count)).both
    assert f"{count} > {count - 1}" in ws.rooda("build", "-n", "1", "--token-budget", str(count - 1)).out


def test_O_022_O_055_a_dry_run_starts_no_agent(odd: Workspace) -> None:
    """A dry run shows the whole prompt, ends with 0 and starts neither agent nor gate."""
    odd.procedure("port-tests", gates={"stamp": "touch gate-ran"})
    ran = odd.rooda("port-tests", "--dry-run", "--max-iterations", "3")
    assert ran.code == 0
    for text in PIECES.values():
        assert text.rstrip("\n") in ran.out
    assert odd.calls == []
    assert not odd.exists("gate-ran")
    assert "Starting procedure" not in ran.both


def test_OA_13_a_dry_run_leaves_no_trace(ws: Workspace) -> None:
    """A dry run in a clean workspace makes no file at all."""
    assert ws.rooda("build", "--dry-run").code == 0
    assert not ws.exists(".rooda")


@pytest.mark.parametrize("status", ["interrupted", "running", "aborted", "completed"])
def test_OA_13_a_dry_run_ignores_an_earlier_run(ws: Workspace, status: str) -> None:
    """Whatever an earlier run left, a dry run works, asks nothing, and leaves the bytes alone."""
    ws.put_state(status=status)
    before = ws.read(".rooda/state/build.json")
    ran = ws.rooda("build", "--dry-run")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("[DRY RUN] Procedure: build\n")
    assert ws.read(".rooda/state/build.json") == before


def test_OA_13_a_dry_run_during_a_live_run(ws: Workspace) -> None:
    """A dry run takes no lock: it works while the same procedure runs."""
    ws.side(1, "sleep 30 & wait")
    running = ws.start("build")
    ws.wait_calls(1)
    assert ws.rooda("build", "--dry-run").code == 0
    assert running.process.poll() is None
    assert len(ws.calls) == 1
