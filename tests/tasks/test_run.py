"""Running tasks: T-10 and following of the page on tasks."""

import json

from tests.kit.workspace import Workspace


def test_T_10_tasks_run_in_clones_of_their_own(repo: Workspace) -> None:
    """Each has a clone outside of the repository, a branch, and a slot; the user's checkout stays as it is."""
    repo.rooda("tasks", "add", "Left", "-n", "1")
    repo.rooda("tasks", "add", "Right", "-n", "1")
    for call in (1, 2):
        repo.side(call, 'echo "$ROODA_SLOT" > made; git add made; git commit -qm work')
    done = repo.rooda("tasks", "run", "-j", "2", timeout=60)
    assert done.code == 0, done.text
    found = json.loads(repo.rooda("tasks", "--json").out)
    assert [task["state"] for task in found] == ["completed", "completed"]
    assert repo.git("status", "--porcelain") == "" and repo.git("branch", "--show-current") == "main\n"
    for task, branch in zip(found, ("rooda/1-left", "rooda/2-right"), strict=True):
        assert task["details"]["branch"] == branch and task["details"]["clone"].startswith(repo.home)
        assert repo.git("log", "-1", "--format=%s", branch) == "work\n"
    slots = {repo.git("show", f"{task['details']['branch']}:made") for task in found}
    assert slots == {"0\n", "1\n"}
    assert "origin\tno-push" in repo.git("-C", found[0]["details"]["clone"], "remote", "-v")
