"""`rooda flow list` and `rooda flow merge`: list the runs of a project; merge a run's work into its base branch."""

from rooda.base.text import counted
from rooda.errors import OK, RoodaError, Undecided, UsageProblem
from rooda.git import command
from rooda.git.repository import Repo, read_head
from rooda.loops.flow import commits, kind, repository, runs
from rooda.loops.flow.boundaries import SUMMARY, one_line, subject
from rooda.loops.flow.commits import LoggedCommit
from rooda.loops.flow.model import CANCELLED, COMPLETE, ERROR, LIMIT, RUNS
from rooda.loops.flow.runs import FlowRun
from rooda.run.ended import of_file
from rooda.settings.where import Where
from rooda.views.say import say

ENDED = (COMPLETE, LIMIT, ERROR, CANCELLED)
FIRST = "Commit or stash your changes first."


def show_runs(where: Where, as_json: bool) -> int:
    """Print every run of the project, newest first."""
    import json

    from rooda.base.text import columns, escape_line

    found = runs.find_all(repository.find(where.workspace))
    if as_json:
        keys = ("branch", "base-branch", "task")
        rows = [
            {"run_id": run.id, "status": of_file(run.status), "file_status": run.status}
            | {key.replace("-", "_"): run.state[key] for key in keys}
            for run in found
        ]
        say(json.dumps(rows, indent=2, ensure_ascii=False, default=str))
        return OK
    lines = [[run.id, of_file(run.status), run.branch, one_line(str(run.state["task"]), SUMMARY)] for run in found]
    say("\n".join(map(escape_line, columns(lines))) if lines else "No flow has run here.")
    return OK


def merge(where: Where, name: str | None) -> int:
    """Commit a run's work, without the run's files, as one commit on its base branch; the message has the evidence."""
    repo = repository.find(where.workspace)
    run = _ended_run(repo, name)
    if kind.locks(repo.workspace):
        raise Undecided("A flow is running in this work tree.", "Wait for its end, or stop it: rooda stop")
    repository.hide_parked(repo)
    try:
        return _merge(repo, run)
    finally:
        repository.show_parked(repo)


def _merge(repo: Repo, run: FlowRun) -> int:
    base = str(run.state["base-branch"])
    repository.require_ready(repo)
    _require_mergeable(repo, run, base)
    before = read_head(repo)
    logged = [each for each in commits.history(repo, run.root, run.id, run.tip) if each.boundary]
    repository.check_out(repo, base)
    try:
        _squash(repo, run)
        if not repo.run("diff", "--cached", "--quiet").code:
            say(f"{run.id} has no work that {base} does not have; nothing was committed.")
            return OK
        commits.commit_staged(repo, evidence(run, logged))
    except RoodaError:
        repo.run("reset", "-q", "--merge")
        repo.run("checkout", "-q", before.branch or before.commit)
        raise
    say(f"Merged {run.id} into {base}: {repo.text('log', '-1', '--format=%h %s')}")
    say(f"Its branch {run.branch} stays; delete it with: git branch -D {run.branch}")
    return OK


def _ended_run(repo: Repo, name: str | None) -> FlowRun:
    """Return the run NAME, or the newest that met its target; raise UsageProblem if it can't be merged."""
    known = runs.find_all(repo)
    if name is None:
        done = next((run for run in known if run.status == COMPLETE), None)
        if done is None:
            raise UsageProblem("No run here has met its target.", "Name the run to merge: rooda flow merge RUN")
        return done
    run = runs.find(known, name)
    if run.status not in ENDED:
        hint = f"Let it end: rooda flow resume {name}"
        raise UsageProblem(f"{name} has not ended.", hint)
    return run


def _require_mergeable(repo: Repo, run: FlowRun, base: str) -> None:
    if repo.run("rev-parse", "-q", "--verify", repository.head_of(base)).code:
        raise UsageProblem(
            f"The base of {run.id}, {base}, is not a branch.", f"Merge it yourself: git merge {run.branch}"
        )
    if repo.run("rev-parse", "-q", "--verify", repository.head_of(run.branch)).code:
        raise UsageProblem(f"The branch {run.branch} of {run.id} does not exist here.", "Fetch it first.")
    if dirty := repository.dirty(repo):
        raise Undecided(f"The work tree has uncommitted changes: {dirty[0][1]!r}; nothing was merged.", FIRST)


def _squash(repo: Repo, run: FlowRun) -> None:
    """Merge the run's branch with `git merge --squash`, and leave out the folder that holds the files of runs.

    Raises Undecided if the run conflicts with the base branch.
    """
    done = repo.run("merge", "--squash", "-q", repository.head_of(run.branch))
    repo.run("restore", "--source=HEAD", "--staged", "--worktree", "--", repo.inside(RUNS))
    if left := repo.lines("diff", "--name-only", "--diff-filter=U"):
        hint = f"Rebase {run.branch} onto it, or merge it yourself."
        raise Undecided(f"{run.id} conflicts with its base branch in {left[0]!r}; nothing was merged.", hint)
    if done.code and not repo.lines("diff", "--cached", "--name-only"):
        raise RoodaError(f"git can't merge {run.branch}: {command.error_text(done)}", FIRST)


def evidence(run: FlowRun, logged: list[LoggedCommit]) -> str:
    """Return the commit message: the task, how the run ended, the last readings and the run's commits."""
    task = str(run.state["task"])
    top = [each.boundary for each in logged if each.boundary and each.boundary.path == run.root]
    readings = top[-1].state.readings if top else ()
    rows = [one_line(task, SUMMARY), ""]
    rows += [task, ""] if one_line(task, SUMMARY) != task else []
    rows += [
        f"Flow {run.id}: {run.status} at iteration {top[-1].label if top else '?'}, {counted(len(logged), 'commit')}"
    ]
    rows += [f"Sensors: {', '.join(f'{each.sensor}: {each.status}' for each in readings) or 'none'}", ""]
    rows += [f"- {each.commit[:10]} {subject(each.boundary)}" for each in logged if each.boundary]
    return "\n".join(rows) + "\n"
