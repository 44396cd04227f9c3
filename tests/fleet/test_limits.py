"""Usage limits and red gates end to end: what stops a task is heard on every machine, and it goes on afterwards."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit import temporal
from tests.kit.fleet_git import git
from tests.kit.processes import until
from tests.kit.site import Site

AWAY = 20  # seconds until the usage limit is over; rooda adds 15 to what the agent says
MARGIN = 15
# Each call notes when it began. The first one of the task "limited" meets the usage limit.
SCRIPT = """
echo "$(date +%s.%N) $(grep -o 'limited\\|working\\|queued' "$NOTES/prompt.$$" | head -1)" >> "$NOTES/began"
if grep -q limited "$NOTES/prompt.$$" && mkdir "$NOTES/limit" 2>/dev/null; then
    while [ ! -e "$NOTES/go" ]; do sleep 0.05; done
    end=$(($(date +%s) + SECONDS_AWAY))
    echo $end > "$NOTES/until"
    printf '{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":%d}}\\n' $((end - MARGIN))
    echo '{"type":"result","is_error":true,"api_error_status":429,"result":"You have hit your limit"}'
    exit 1
fi
echo '{"type":"result","subtype":"success","is_error":false,"result":"done"}'
"""


@pytest.fixture
def site(server: temporal.Server, tmp_path: Path) -> Iterator[Site]:
    found = Site(tmp_path, server.address)
    yield found
    (found.notes / "hold").unlink(missing_ok=True)
    (found.notes / "go").touch()
    found.end()


def began(site: Site, word: str) -> list[float]:
    """When the calls for a task began."""
    path = site.notes / "began"
    rows = [line.split() for line in path.read_text().splitlines()] if path.exists() else []
    return [float(row[0]) for row in rows if row[1:] == [word]]


def test_FL_02_FL_04_a_usage_limit_stops_the_next_call_on_every_machine(site: Site) -> None:
    """One machine meets it: no call of that account begins anywhere before it is over; then all tasks are completed."""
    text = SCRIPT.replace("SECONDS_AWAY", str(AWAY)).replace("MARGIN", str(MARGIN))
    (site.notes / "script.sh").write_text(text)
    pool = f"limit-{site.folder.parent.name}"
    for name in ("desk", "blue", "red"):
        settings = site.home(name) / "config" / "rooda.toml"
        own = f'[agents.tester]\noutput = "claude"\naccount = "{pool}"\n'
        settings.write_text(settings.read_text().replace("[agents.tester]\n", own))
    for name in ("blue", "red"):
        site.worker(name, 1, pool)
    numbers = []
    for word in ("limited", "working", "queued"):
        said = site.tasks("add", word, "-n", "2", "--pool", pool)
        numbers.append(int(said.split("Added task ")[1].split(":")[0]))
        if word == "limited":
            until((site.notes / "limit").exists, 30, "the call that meets the limit")
            site.hold()
        if word == "working":
            until(lambda: len(began(site, "working")) == 1, 30, "the other machine's call")
    (site.notes / "go").touch()
    site.until(numbers[0], "waiting")
    site.release()
    waiting = {number: site.until(number, "waiting", seconds=30) for number in numbers}
    end = float((site.notes / "until").read_text())
    assert all(pool in json.dumps(waiting[number]) for number in numbers)
    for number in numbers:
        assert site.until(number, "completed", "failed", "parked", seconds=90)["state"] == "completed"
    assert [len(began(site, word)) for word in ("limited", "working", "queued")] == [3, 2, 2]
    later = [*began(site, "limited")[1:], *began(site, "working")[1:], *began(site, "queued")]
    assert min(later) >= end - 1
    for name in ("blue", "red"):  # one project on each machine, whatever the task
        home = site.folder / "homes" / name
        lines = [line for path in home.rglob("ledger/*.jsonl") for line in path.read_text().splitlines()]
        (project,) = {json.loads(line)["project"] for line in lines}
        assert project.startswith(f"{home}/") and "/tasks/" not in project, project


CHECK = "if [ -e b.txt ] && [ -e c.txt ] && [ ! -e both.txt ]; then echo THEY DO NOT FIT; exit 1; fi"
MENDING = """
case "$(cat "$NOTES/prompt.$$")" in
    *"THEY DO NOT FIT"*) touch both.txt ;;
    *"make b"*) touch b.txt ;;
    *"make c"*) touch c.txt ;;
esac
"""


def completed_two(site: Site) -> list[int]:
    """Two completed tasks, each of which is green alone; the agent mends its work once it hears of the other's."""
    site.commit({"AGENTS.md": "## Quality Gates\n\n- check: `sh check.sh`\n", "check.sh": f"{CHECK}\n"})
    (site.notes / "script.sh").write_text(MENDING)
    pool = f"gate-{site.folder.parent.name}"
    site.worker("blue", 2, pool)
    added = [site.tasks("add", f"make {name}", "-n", "1", "--pool", pool) for name in "bc"]
    numbers = [int(said.split("Added task ")[1].split(":")[0]) for said in added]
    for number in numbers:
        assert site.until(number, "completed", "failed", "parked")["state"] == "completed"
    return numbers


def test_FL_15_T_21_a_red_gate_goes_back_to_its_agent_and_lands(site: Site) -> None:
    """The second task is sent back with the gate's words, mended on a worker, and lands with the next landing."""
    one, two = completed_two(site)
    said = site.tasks("land", code=4)
    assert f"Task {one} landed" in said and "check" in said
    assert site.until(two, "completed", "parked")["state"] == "completed"
    assert len(site.calls) == 3
    assert f"Task {two} landed" in site.tasks("land")
    assert {"b.txt", "c.txt", "both.txt"} <= {*git(site.origin, "ls-tree", "--name-only", "main").splitlines()}
    assert [site.task(number)["state"] for number in (one, two)] == ["landed", "landed"]


def test_FL_15_a_landing_without_the_git_server_says_so(site: Site) -> None:
    """It fails with the reason, and nothing is lost: the next one lands."""
    one, _ = completed_two(site)
    away = site.origin.with_name("away")
    os.rename(site.origin, away)
    assert "can't be fetched" in site.tasks("land", code=1)
    os.rename(away, site.origin)
    assert f"Task {one} landed" in site.tasks("land", code=4)
