"""What a desk refuses, and what a worker refuses that a desk has let through."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from rooda.fleet import policy
from rooda.fleet.policy import Policy
from rooda.fleet.ticket import Ticket
from rooda.tasks.model import Limits, Task
from tests.kit import temporal
from tests.kit.fleet_git import git
from tests.kit.site import ROODA, Site

HIDING = """import sys
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "temporalio":
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Hidden())
"""


@pytest.fixture
def site(server: temporal.Server, tmp_path: Path) -> Iterator[Site]:
    found = Site(tmp_path, server.address)
    yield found
    found.end()


def refs(site: Site) -> str:
    return git(site.origin, "for-each-ref", "refs/rooda")


def test_FL_13_FL_17_what_a_desk_refuses_takes_no_number(site: Site) -> None:
    """Commands of a ticket, names that are none, a text that Temporal can't hold: exit 2, one sentence, no ref."""
    for words, said in (
        (("--kind", "reflex", "--with", "--rules r.json"), "ticket_commands"),
        (("--with", "--ai-cmd evil"), "ticket_commands"),
        (("--pool", "a/../b"), "can't be a name"),
        (("--batch", "b" * 3000), "can't be a name"),
        (("--batch-cost", "5"), "--batch NAME"),
    ):
        shown = site.tasks("add", "Write", *words, code=2)
        assert said in shown and "Traceback" not in shown and len(shown) < 300
    site.commit({"TODO.md": "- [ ] Long\n" + f"  {'x' * 98}\n" * 5_000})
    assert "400,000" in site.tasks("add", "--from", "TODO.md", code=2)
    nowhere = site.folder / "homes" / "desk" / "config" / "rooda.toml"
    nowhere.write_text(nowhere.read_text().replace(site.address, "temporal://127.0.0.1:1/default"))
    assert "does not answer" in site.tasks("add", "Write", code=1)
    assert refs(site) == ""


def test_FL_17_what_is_missing_is_one_sentence(site: Site) -> None:
    """Neither the extra nor a home folder: what, and what next."""
    hidden = site.folder / "hidden"
    hidden.mkdir()
    (hidden / "sitecustomize.py").write_text(HIDING)
    for words in (("tasks", "--fleet"), ("worker",), ("fleet", "status"), ("fleet", "doctor")):
        done = site.rooda(*words, code=2, PYTHONPATH=str(hidden))
        assert "pip install 'rooda[fleet]'" in done.stderr and len(done.stderr.splitlines()) == 2
    assert "ROODA_DATA_HOME" in site.tasks("add", "Write", code=1, ROODA_DATA_HOME="/proc/nowhere")


def ticket(**more: object) -> Ticket:
    task = Task(id=1, title="x", text="x", target="main")._replace(**more)  # type: ignore[arg-type]
    return Ticket(1, "a", "/srv/a.git", "/srv/a.git", task)


def test_FL_12_a_reason_with_a_key_and_an_empty_text_are_refused(site: Site) -> None:
    """The engine keeps reasons as it keeps texts; a note or a text that says nothing changes nothing."""
    number = site.tasks("add", "Write").split("Added task ")[1].split(":")[0]
    key = "sk-ant-api03-" + "abcdefghijklmnopqrstuvwxyz0123456789" * 2
    for words in (("pause", number), ("stop", number), ("pause",)):
        said = site.tasks(*words, "--reason", key, code=2)
        assert "looks like a key" in said and key not in said
    for words in (("say", number, " "), ("edit", number, "--text", " ")):
        assert "empty" in site.tasks(*words, code=2)
    found = site.task(int(number))
    assert found["state"] == "waiting" and "Write" in json.dumps(found)


def test_FL_11_an_order_without_any_worker_says_so(tmp_path: Path) -> None:
    """It waits in the engine: the command does not, and a worker that comes carries it out."""
    server = temporal.start()
    site = Site(tmp_path, server.address)
    try:
        site.tasks("add", "Write")
        assert "No worker is running, so the order waits" in site.tasks("cancel", "1", code=1)
        site.worker("blue")
        assert site.until(1, "cancelled", "completed")["state"] == "cancelled"
    finally:
        site.end()
        server.end()


def test_FL_13_a_worker_caps_what_a_task_may_cost() -> None:
    """A task without a limit gets the worker's own; a changed task is judged like a new one."""
    own = Policy(repositories=("/srv/a",), max_cost=2.0)
    assert policy.capped(own, Limits()).cost == 2.0
    assert policy.capped(own, Limits(cost=1.0)).cost == 1.0
    assert policy.capped(Policy(), Limits()).cost == 0.0
    assert policy.refusal(own, ticket()) == ""
    assert "max_cost" in policy.refusal(own, ticket(limits=Limits(cost=3.0)))
    elsewhere = ticket()._replace(state="/srv/other.git")
    assert "/srv/other.git" in policy.refusal(own, elsewhere)
    assert policy.refusal(own._replace(state="/srv/other"), elsewhere) == ""
    assert "ticket_commands" in policy.refusal(own, ticket(options=("--ai-cmd", "evil")))


def test_FL_02_two_imports_at_once_make_each_task_once(site: Site) -> None:
    """The loser of a number takes back only its own ref, also within one second and on one machine."""
    site.commit({"TODO.md": "- [ ] alpha\n- [ ] beta\n"})
    words = [*ROODA, "tasks", "add", "--from", "TODO.md", "--fleet"]
    desks = [subprocess.Popen(words, cwd=site.desk, env=site.environment("desk")) for _ in range(3)]
    assert [desk.wait(60) for desk in desks] == [0, 0, 0]
    found = json.loads(site.rooda("tasks", "--json", "--fleet").stdout)
    assert sorted(each["details"]["title"] for each in found) == ["alpha", "beta"]
    kept = {row.rpartition("/")[2] for row in refs(site).splitlines()}
    assert kept == {each["name"] for each in found}


def test_FL_02_FL_15_a_paused_repository_begins_nothing(site: Site) -> None:
    """A task that is added while all are paused never begins; it waits for `continue`."""
    site.commit({"rooda.toml": '[fleet]\naddress = "temporal://127.0.0.1:1/x"\n'})
    assert "fleet: is ignored here" in site.tasks("pause")
    number = int(site.tasks("add", "Later", "--pool", site.folder.name).split("task ")[1].split(":")[0])
    assert site.task(number)["state"] == "parked"
    assert "all tasks are paused" in site.tasks("why", str(number))
    (site.desk / str(number)).mkdir()
    assert "already exists" in site.tasks("take", str(number), code=2)
    assert "taken" not in site.task(number)["reason"]
    site.tasks("continue")
    site.worker("blue", pool=site.folder.name)
    site.until(number, "completed", "running")
