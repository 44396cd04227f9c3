"""Cancels a run of a flow: writes `cancelled` into its run-state.md, in the work tree and on the run's branch."""

import os
import tempfile

from rooda.base import files
from rooda.git.repository import Repo, read_head
from rooda.loops.flow import artifacts, repository, runs
from rooda.loops.flow.artifacts import STATE, STEP, RunFiles
from rooda.loops.flow.model import CANCELLED, ERROR, LIMIT, RUNNING, run_folder
from rooda.loops.flow.runs import FlowRun


def cancel(workspace: str, name: str) -> str:
    """Cancel the run NAME; return a sentence about what is kept, or "" if the run has already ended."""
    repo = repository.find(workspace)
    run = runs.find(runs.find_all(repo), name)
    if run.status not in (RUNNING, ERROR, LIMIT):
        return ""
    state = {key: value for key, value in run.state.items() if key != STEP} | {"status": CANCELLED}
    if run.in_work_tree:
        artifacts.write_state(RunFiles(repo.workspace, run.id), state)
    if repository.tip_of(repo, run.branch):
        _commit(repo, run, artifacts.state_text(state))
    if run.parked:
        files.remove_tree(run.parked.root)
    return f"Its commits are kept on {run.branch}. Delete them with: git branch -D {run.branch}"


def _commit(repo: Repo, run: FlowRun, text: str) -> None:
    """Commit run-state.md on the run's branch, whatever is checked out, staged or changed."""
    path, branch = repo.inside(f"{run_folder(run.id)}/{STATE}"), repository.head_of(run.branch)
    tip = repository.tip_of(repo, run.branch)
    with tempfile.TemporaryDirectory(prefix="rooda-") as folder:
        index = os.path.join(folder, "index")
        blob = repo.text("hash-object", "-w", "--stdin", stdin=files.to_bytes(text))
        repo.run_checked("read-tree", tip, index=index)
        repo.run_checked("update-index", "--add", "--cacheinfo", f"100644,{blob},{path}", index=index)
        tree = repo.text("write-tree", index=index)
    message = files.to_bytes(f"ai-loop: {run.id} was cancelled\n")
    commit = repo.text("commit-tree", tree, "-p", tip, "-F", "-", stdin=message)
    repo.run_checked("update-ref", branch, commit, tip)
    if read_head(repo).branch == run.branch:
        repo.run("reset", "-q", "--", path)
