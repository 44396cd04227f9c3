"""The whole fleet on one machine: a desk, workers, a real server, real git, real loops."""

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit import temporal
from tests.kit.fleet_git import git
from tests.kit.processes import until
from tests.kit.site import ROODA, Site, kill_worker


@pytest.fixture
def site(server: temporal.Server, tmp_path: Path) -> Iterator[Site]:
    found = Site(tmp_path, server.address)
    found.home("desk", worker="ticket_commands = true")
    yield found
    (found.notes / "hold").unlink(missing_ok=True)
    found.end()


def pool_of(site: Site) -> list[str]:
    """A pool of this test's own, since all tests share the server."""
    return ["--pool", site.folder.name]


def add(site: Site, text: str, *words: str) -> int:
    said = site.tasks("add", text, *pool_of(site), *words)
    return int(said.split("Added task ")[1].split(":")[0])


def test_FL_01_FL_03_FL_15_a_task_runs_lands_and_can_be_read_anywhere(site: Site) -> None:
    """Each turn is one commit of the task's ref; branch, receipts, reasons and usage are there without the worker."""
    site.worker("blue", pool=site.folder.name)
    number = add(site, "Write three lines", "-n", "3")
    found = site.until(number, "completed")
    assert site.chain(number)[1:] == [
        f"claim 1 of {number} by blue",
        *(f"turn {n} of {number} by blue" for n in (1, 2, 3)),
    ]
    record = site.record(number)
    assert (record["kind"], record["iteration"], record["over"], record["outcome"]) == ("turn", 3, True, "success")
    assert (found["iteration"], found["details"]["turns"]) == (3, 3)
    branch = found["details"]["branch"]
    assert git(site.origin, "show", f"{branch}:work.txt").splitlines() == ["line"] * 3
    assert "Iteration 3" in site.tasks("why", str(number))
    assert "Iteration 3/3 completed" in site.tasks("logs", str(number)).replace("  ", " ") or site.tasks(
        "logs", str(number)
    )
    assert "3 calls" in site.tasks("usage", str(number)) or "3" in site.tasks("usage", str(number))
    said = site.tasks("land", "--no-gates")
    assert f"Task {number} landed" in said
    assert site.until(number, "landed")
    assert git(site.origin, "show", "main:work.txt").splitlines() == ["line"] * 3
    assert len(site.calls) == 3


def test_FL_03_FL_10_a_killed_worker_loses_nothing(site: Site) -> None:
    """SIGKILL of a worker in the middle of turn 2: another goes on; one call is repeated, and each turn counts once."""
    blue = site.worker("blue", pool=site.folder.name)
    number = add(site, "Write three lines", "-n", "3")
    until(lambda: len(site.calls) == 1, 60)
    until(lambda: f"turn 1 of {number} by blue" in site.chain(number), 60)
    site.hold()
    until(lambda: len(site.calls) == 2, 60)
    agents = [int(line.split()[2]) for line in site.calls]
    kill_worker(blue)
    until(lambda: not Path(f"/proc/{agents[-1]}").exists(), 20, "the guardian to end the agent")
    site.release()
    site.worker("red", pool=site.folder.name)
    site.until(number, "completed", seconds=90)
    turns = [row for row in site.chain(number) if row.startswith("turn")]
    assert turns == [f"turn 1 of {number} by blue", f"turn 2 of {number} by red", f"turn 3 of {number} by red"]
    assert 3 <= len(site.calls) <= 4
    assert blue.wait(20) == 75


def test_FL_11_FL_15_orders_reach_a_running_task(site: Site) -> None:
    """stop parks a task at once, continue lets it go on, pause at the turn's end; cancel is for good."""
    site.worker("blue", pool=site.folder.name)
    site.hold()
    number = add(site, "Write", "-n", "4")
    until(lambda: len(site.calls) == 1, 60)
    assert "parked" in site.tasks("stop", str(number))
    assert site.task(number)["details"]["parked_by"] == "stop"
    site.tasks("continue", str(number))
    until(lambda: len(site.calls) == 2, 60)
    site.tasks("pause", str(number), "--reason", "lunch")
    assert site.task(number)["state"] == "running"
    site.release()
    assert site.until(number, "parked")["reason"] == "paused: lunch"
    site.tasks("cancel", str(number))
    assert site.task(number)["state"] == "cancelled"
    assert "is over" in site.tasks("continue", str(number), code=2)


def test_FL_11_a_drained_worker_repeats_nothing_and_exits_with_0(site: Site) -> None:
    """The turn is ended and published before the task goes to another worker."""
    name = f"drained-{os.urandom(4).hex()}"  # a drain concerns all workers of this name, and other tests have some
    blue = site.worker(name, pool=site.folder.name)
    site.hold()
    number = add(site, "Write", "-n", "3")
    until(lambda: len(site.calls) == 1, 60)
    draining = subprocess.Popen(
        [*ROODA, "worker", "drain", name], cwd=site.desk, env=site.environment("desk"),
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    until(lambda: "drain" in site.logs(), 20, "the order to drain")
    site.worker("red", pool=site.folder.name)
    site.release()
    assert blue.wait(60) == 0
    draining.wait(60)
    site.until(number, "completed")
    assert len(site.calls) == 3
    assert next(row for row in site.chain(number) if row.startswith("turn")).endswith(f"by {name}")


def test_FL_05_a_worker_that_is_ended_hands_its_tasks_on_at_once(site: Site) -> None:
    """SIGTERM, as from a service manager: it does not wait for the agent; another worker makes the turn again."""
    blue = site.worker("blue", pool=site.folder.name)
    site.hold()
    number = add(site, "Write", "-n", "2")
    until(lambda: len(site.calls) == 1, 60)
    blue.send_signal(signal.SIGTERM)
    assert blue.wait(20) == 143
    assert "its worker was ended" in site.logs().split("Draining")[1]
    site.release()
    site.worker("red", pool=site.folder.name)
    assert site.until(number, "completed", "parked", "failed")["state"] == "completed"
    assert len(site.calls) == 3
    assert git(site.origin, "show", f"{site.task(number)['details']['branch']}:work.txt").splitlines() == ["line"] * 2


def test_FL_15_a_running_task_hears_of_a_change(site: Site) -> None:
    """A lower limit ends the loop after the turn that runs, and the next prompt has the new text."""
    site.worker("blue", pool=site.folder.name)
    site.hold()
    number = add(site, "Write", "-n", "9")
    until(lambda: len(site.calls) == 1, 60)
    site.tasks("edit", str(number), "--text", "Write something else", "-n", "2")
    until(lambda: list(site.folder.glob("homes/blue/.local/share/rooda/fleet/tasks/**/messages/*.json")), 30)
    site.release()
    assert site.until(number, "completed")["iteration"] == 2
    assert any("Write something else" in path.read_text() for path in site.notes.glob("prompt.*"))


def test_FL_12_a_secret_reaches_neither_ticket_nor_agent(site: Site) -> None:
    """A key in a text is refused without showing it; agents see no credential; a key in a file holds the turn."""
    key = "ghp_" + "aB3dE6gH9kL2nP5rS8uV1xY4zA7cF0iJ3mQ6"
    said = site.tasks("add", f"Use {key} to push", code=2, GH_TOKEN=key)
    assert key not in said and "GH_TOKEN" not in said
    site.worker("blue", pool=site.folder.name, GH_TOKEN=key, SSH_AUTH_SOCK="/nowhere", TEMPORAL_EXTRA="x")
    number = add(site, "Write", "-n", "1")
    site.until(number, "completed")
    seen = "\n".join(path.read_text() for path in site.notes.glob("env.*"))
    assert "ROODA_RUN=" in seen
    assert not any(name in seen for name in (key, "GH_TOKEN", "SSH_AUTH_SOCK", "TEMPORAL_", "ROODA_LEG", "ROODA_TRUST"))
    (site.notes / "script.sh").write_text(f"echo {key} > config.txt")
    number = add(site, "Leak", "-n", "2")
    found = site.until(number, "parked")
    assert "config.txt" in found["reason"] and "GH_TOKEN" in found["reason"] and key not in json.dumps(found)
    assert [row for row in site.chain(number) if row.startswith("turn")] == []
    assert subprocess.run(["grep", "-r", key, str(site.origin)], capture_output=True).returncode == 1


def test_FL_13_a_worker_runs_only_what_its_own_settings_allow(site: Site) -> None:
    """Each worker's reason is in `why`; the task waits; commands of a ticket are refused at the desk."""
    site.home("narrow", worker="max_cost = 1.0")
    site.worker("narrow", pool=site.folder.name)
    number = add(site, "Write", "-n", "1", "--max-cost", "5")
    until(lambda: site.task(number)["details"]["refusals"], 60)
    assert "narrow refused it: the task may cost $5" in site.tasks("why", str(number))
    assert site.task(number)["state"] == "waiting"
    site.home("desk")
    assert "ticket_commands" in site.tasks("add", "Write", "--gate", "true", code=2)
    assert site.calls == []


def test_FL_15_a_task_is_taken_home_with_its_state(site: Site) -> None:
    """The clone has the work of the last turn, and goes on with `rooda resume`; no worker starts a call any more."""
    site.worker("blue", pool=site.folder.name)
    number = add(site, "Write", "-n", "4")
    until(lambda: f"turn 1 of {number} by blue" in site.chain(number), 60)
    site.hold()
    site.tasks("stop", str(number))
    calls = len(site.calls)
    said = site.tasks("take", str(number), "--yes")
    home = site.desk / str(number)
    assert str(home) in said
    site.release()
    lines = len((home / "work.txt").read_text().splitlines())
    assert lines >= 1 and len(site.calls) == calls
    ran = site.rooda("-C", str(home), "resume", "build", code=None)
    assert "completed" in ran.stdout + ran.stderr
    assert len((home / "work.txt").read_text().splitlines()) > lines
    assert git(home, "remote", "get-url", "--push", "origin") == str(site.origin)


def test_FL_15_a_task_that_has_not_begun_is_taken_home_with_its_start(site: Site) -> None:
    """No worker of its pool ever ran it: the words printed start its loop in the clone."""
    site.worker("elsewhere", pool=f"not-{site.folder.name}")  # workers of every pool carry out orders
    number = add(site, "It's new", "-n", "1")
    said = site.tasks("take", str(number))
    start = said.split("Start the task: ")[1].splitlines()[0]
    words = shlex.split(start.split(" && ")[1])
    assert start.startswith(f"cd {number} && rooda ") and "It's new" in words
    ran = site.rooda("-C", str(site.desk / str(number)), *words[1:], code=None)
    assert "completed" in ran.stdout + ran.stderr and len(site.calls) == 1


def test_FL_14_a_task_that_was_handed_back_is_not_called_cut_off(site: Site) -> None:
    """Its run has no end in the ref, since it goes on on the next worker; `why` gives the fleet's reason."""
    name = f"drained-{os.urandom(4).hex()}"
    blue = site.worker(name, pool=site.folder.name)
    site.hold()
    number = add(site, "Write", "-n", "3")
    until(lambda: len(site.calls) == 1, 60)
    site.rooda("worker", "drain", name, "--no-wait")
    until(lambda: "Draining" in site.logs(), 20)
    site.release()
    assert blue.wait(60) == 0
    site.until(number, "waiting")
    said = site.tasks("why", str(number))
    assert f"Task {number} is waiting: {name} is drained." in said
    assert "cut off" not in said and "began" in said


def test_FL_15_answers_and_notes_reach_the_next_prompt(site: Site) -> None:
    """On whichever worker: that of a question, and a note for a task that is parked."""
    asking = """case $ROODA_ITERATION in
1) echo "<question>Which colour?</question>"; exit ;;
esac"""
    (site.notes / "script.sh").write_text(asking)
    blue = site.worker("blue", pool=site.folder.name)
    number = add(site, "Paint it", "-n", "2")
    assert site.until(number, "parked")["details"]["question"] == "Which colour?"
    assert f"rooda tasks answer {number}" in site.tasks("why", str(number))
    assert "waits for an answer" in site.tasks("continue", str(number), code=2)
    blue.send_signal(signal.SIGTERM)
    blue.wait(20)
    site.tasks("say", str(number), "Keep it short")
    site.tasks("answer", str(number), "Blue, please")
    site.worker("red", pool=site.folder.name)
    site.until(number, "completed")
    prompts = [path.read_text() for path in site.notes.glob("prompt.*")]
    assert len([each for each in prompts if "Blue, please" in each and "Keep it short" in each]) == 1


def test_FL_04_a_batch_spends_at_most_its_limit(site: Site) -> None:
    """Once the batch has spent its limit, no further call starts; its tasks wait or are parked, none failed."""
    site.home("blue", more="[budget]\nunknown_call = 0.5\n")
    site.worker("blue", slots=2, pool=site.folder.name)
    numbers = [add(site, f"Write {n}", "-n", "9", "--batch", "night", "--batch-cost", "2") for n in range(2)]
    for number in numbers:
        found = site.until(number, "parked", "waiting", "failed") and site.until(number, "parked")
        assert "batch" in found["reason"].lower()
    assert 4 <= len(site.calls) <= 5


def test_FL_18_nothing_of_the_fleet_is_loaded_without_it(site: Site) -> None:
    """`tasks` without --fleet, and --help, load neither the room nor Temporal."""
    for words in (["tasks"], ["tasks", "--help"], ["--help"], ["status"]):
        python = [sys.executable, "-X", "importtime", "-m", "rooda", *words]
        ran = subprocess.run(python, cwd=site.desk, env=site.environment("desk"), capture_output=True, text=True)
        assert "rooda.startup" in ran.stderr
        assert not [line for line in ran.stderr.splitlines() if "temporalio" in line or "rooda.fleet" in line], words
