"""A task of each kind of loop: its worker is killed in the middle of a turn, and it ends on another one."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit import kinds, temporal
from tests.kit.fleet_git import git
from tests.kit.loops import SMALL
from tests.kit.processes import until
from tests.kit.site import Site, kill_worker
from tests.kit.workspace import FAKE_AI, Workspace

GATE = """\
#!/bin/sh
echo "$ROODA_RUN $ROODA_CALL $$" >>"$NOTES/calls"
if [ -e "$NOTES/at" ] && [ "$(wc -l <"$NOTES/calls")" -ge "$(cat "$NOTES/at")" ]; then
    : >"$NOTES/reached"
    while [ -e "$NOTES/at" ]; do sleep 0.05; done
fi
exec "$AGENT" "$@"
"""
BEGIN = {  # the words that add its task
    "ooda": ("do it", "--kind", "procedure build", "-n", "2"),
    "reflex": (kinds.TASK, "--kind", "reflex", "-n", "4", "--with", "--rules rules.json --alias page"),
    "flow": ("do it", "--kind", "flow"),
    "goal": (kinds.SPEC, "--kind", "goal"),
}
TURNS = {"ooda": 2, "reflex": 1, "flow": 3, "goal": 3}
CALLS = {"ooda": 2, "reflex": 4, "flow": 5, "goal": 4}  # of a run without any trouble
CASES = [  # the call in which the worker dies, and how many calls are made twice: all those that run at that moment
    *(("ooda", 2, 1), ("goal", 3, 1)),
    *(("reflex", 1, 1), ("reflex", 2, 2), ("reflex", 4, 1)),  # two phases run in parallel
    *(("flow", 2, 1), ("flow", 3, 1), ("flow", 4, 1)),
]


@pytest.fixture
def site(server: temporal.Server, tmp_path: Path) -> Iterator[Site]:
    found = Site(tmp_path, server.address)
    yield found
    (found.notes / "at").unlink(missing_ok=True)
    found.end()


def project(site: Site, kind: str) -> Workspace:
    """Commit the small loop of this kind; its agent waits at the calls from `at` on."""
    ws = Workspace(str(site.folder / "script"))
    ws.path = str(site.desk)
    SMALL[kind].prepare(ws, **({"steps": TURNS[kind], "score": 2} if kind == "goal" else {}))
    agent = site.folder / "agent"
    agent.write_text(GATE)
    ws.write("rooda.toml", '[loop]\nretry_wait = 0\n[reflex]\nexec_checks = "run"\n')
    for machine in ("desk", "blue", "red"):
        settings = site.home(machine, worker="ticket_commands = true") / "config" / "rooda.toml"
        if kind == "flow":
            settings.write_text(settings.read_text().replace(f'"{agent}"', f'"{agent} --model {{model}}"'))
    (site.desk / ".git" / "info" / "exclude").write_text("")
    site.commit({"more.txt": "more\n"})
    return ws


@pytest.mark.parametrize(("kind", "killed", "repeated"), CASES)
def test_FL_03_FL_10_a_task_of_each_kind_ends_on_another_worker(
    kind: str, killed: int, repeated: int, site: Site
) -> None:
    """Counter, files, branches, checkpoints and usage are those of a loop that was resumed on one machine."""
    ws, pool = project(site, kind), f"{site.folder.parent.name}-{kind}-{killed}"
    (site.notes / "at").write_text(str(killed))
    keys = "roles" if kind == "flow" else ""
    env = {"FAKE": ws.fake, "FAKE_KEYS": keys, "AGENT": FAKE_AI}
    blue = site.worker("blue", 2, pool, **env)
    number = int(site.tasks("add", *BEGIN[kind], "--pool", pool).split("Added task ")[1].split(":")[0])
    until((site.notes / "reached").exists, 60, "the call in the middle")
    kill_worker(blue)
    assert blue.wait(20) == 75
    (site.notes / "at").unlink()
    site.worker("red", 2, pool, **env)
    found = site.until(number, "completed", "failed", "parked", "cancelled", seconds=90)
    assert found["state"] == "completed", (found, site.logs())
    assert len(site.calls) == CALLS[kind] + repeated
    turns = [row for row in site.chain(number) if row.startswith("turn")]
    assert [row.split(" of ")[0] for row in turns] == [f"turn {n}" for n in range(1, len(turns) + 1)]
    assert turns[-1].endswith("by red")
    (home,) = (site.folder / "homes" / "red").rglob(f"*-{number}/work")
    ws.path = str(home)
    git(home, "update-ref", "refs/heads/main", "refs/remotes/origin/main")
    assert SMALL[kind].done(ws, TURNS[kind])
    assert git(site.origin, "rev-parse", found["details"]["branch"]) == git(home, "rev-parse", "HEAD")
    used = json.loads(site.rooda("tasks", "usage", str(number), "--json", "--fleet").stdout)
    assert sum(row["calls"] for row in used["rows"]) == CALLS[kind]
