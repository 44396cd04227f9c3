"""Opens, inspects and merges pull requests with the forges' commands, `gh` and `glab`, and the user's own login."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from rooda.base import files
from rooda.base.json import Json
from rooda.errors import RoodaError
from rooda.tasks import forge_issues
from rooda.tasks.sources import GH, GLAB

OPEN, MERGED, CLOSED = "open", "merged", "closed"
GREEN, RED, PENDING, NONE = "green", "red", "pending", "none"
FIELDS = "state,headRefOid,statusCheckRollup,mergeCommit,mergeable"  # of `gh pr view`
GOOD = ("SUCCESS", "NEUTRAL", "SKIPPED")
BAD = ("FAILURE", "ERROR", "TIMED_OUT", "CANCELLED", "ACTION_REQUIRED", "STARTUP_FAILURE", "STALE")
PIPELINE = {"success": GREEN, "failed": RED, "canceled": RED, "skipped": GREEN}


class Seen(NamedTuple):
    """State of a pull request, as the forge reports it."""

    state: str  # open | merged | closed
    head: str  # newest commit of its branch
    checks: str  # green | red | pending | none
    failed: str = ""  # name of a failed check
    log: str = ""  # what identifies the failed check's log at the forge: its URL, or the number of the pipeline
    commit: str = ""  # the merge commit, if the forge names it
    conflicts: bool = False  # it conflicts with its target, so the forge can't merge it


def of_url(url: str) -> str:
    """Guess the forge from a remote's URL."""
    return GLAB if "gitlab" in url.lower() else GH


class Forge:
    """The command line of one forge, in one repository."""

    def __init__(self, name: str, cwd: str, env: Mapping[str, str]) -> None:
        self.name, self._cwd, self._env = name, cwd, env

    def found(self, branch: str) -> str:
        """Return the URL of the open pull request of a branch; "" if there is none."""
        with self._reading():
            if self.name == GH:
                rows = self._json("pr", "list", "--head", branch, "--state", "open", "--json", "url")
                return next((str(row["url"]) for row in rows), "")
            rows = self._json("mr", "list", "--source-branch", branch, "--output", "json")
            return next((str(row["web_url"]) for row in rows), "")

    def create(self, branch: str, target: str, title: str, body: str) -> str:
        """Open a pull request; return its URL."""
        if self.name == GH:
            asked = ["pr", "create", "--head", branch, "--base", target, "--title", title, "--body", body]
        else:
            asked = ["mr", "create", "--source-branch", branch, "--target-branch", target, "--title", title]
            asked += ["--description", body, "--yes"]
        said = re.findall(r"https?://\S+", files.to_text(self._run(*asked)))
        if not said:
            raise RoodaError(f"{self.name} {asked[0]} create printed no URL.", f"Update {self.name}.")
        return str(said[-1])

    def look(self, url: str) -> Seen:
        """Return the state of a pull request and of its checks."""
        with self._reading():
            if self.name == GH:
                return _of_github(self._json("pr", "view", url, "--json", FIELDS))
            return _of_gitlab(self._json("mr", "view", _number(url), "--output", "json"))

    def log(self, seen: Seen) -> str:
        """Return the log of a failed check, or where to find it."""
        try:
            return self._log(seen)
        except RoodaError as problem:
            return f"The log can't be read: {problem.what}\nSee {seen.log}"

    def _log(self, seen: Seen) -> str:
        if self.name == GH:
            run = re.search(r"/actions/runs/(\d+)(?:/job/(\d+))?", seen.log)
            if not run:
                return f"See the log: {seen.log}"
            which = ["--job", run[2]] if run[2] else [run[1]]
            return files.to_text(self._run("run", "view", *which, "--log-failed"))
        with self._reading():
            jobs = self._json("api", f"projects/:fullpath/pipelines/{seen.log}/jobs?scope[]=failed")
            traces = [(job["name"], self._run("api", f"projects/:fullpath/jobs/{job['id']}/trace")) for job in jobs]
        return "\n".join(f"{name}:\n{files.to_text(trace)}" for name, trace in traces)

    def merge(self, url: str, head: str, squash: bool) -> None:
        """Merge a pull request if its newest commit is still `head`; otherwise, the forge's command fails."""
        if self.name == GH:
            self._run("pr", "merge", url, "--squash" if squash else "--merge", "--match-head-commit", head)
        else:
            self._run("mr", "merge", _number(url), "--sha", head, "--yes", *(["--squash"] if squash else []))

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Raise RoodaError if the forge's JSON does not have the expected form."""
        try:
            yield
        except (AttributeError, KeyError, TypeError) as problem:
            what = f"{self.name} printed JSON in an unknown form ({problem})."
            raise RoodaError(what, f"Update {self.name}.") from None

    def _run(self, *words: str) -> bytes:
        return forge_issues.checked(self.name, words, self._cwd, self._env)

    def _json(self, *words: str) -> Any:
        return forge_issues.printed_json(self.name, words, self._cwd, self._env)


def _number(url: str) -> str:
    return url.rstrip("/").rpartition("/")[2]


def _of_github(said: Json) -> Seen:
    checks = [each for each in said.get("statusCheckRollup") or () if isinstance(each, dict)]
    words = [(_word_of(each), each) for each in checks]
    failed = next((each for word, each in words if word in BAD), None)
    verdict = RED if failed else NONE if not checks else GREEN
    if verdict == GREEN and any(word not in GOOD for word, _ in words):
        verdict = PENDING
    state = {"MERGED": MERGED, "CLOSED": CLOSED}.get(str(said.get("state")), OPEN)
    merged = (said.get("mergeCommit") or {}).get("oid", "")
    failed = failed or {}
    name, log = failed.get("name") or failed.get("context"), failed.get("detailsUrl") or failed.get("targetUrl")
    conflicts = said.get("mergeable") == "CONFLICTING"
    return Seen(
        state, str(said.get("headRefOid", "")), verdict, str(name or ""), str(log or ""), str(merged), conflicts
    )


def _word_of(check: Json) -> str:
    """Return the conclusion of a check or commit status, or its current status while it runs."""
    if check.get("status", "COMPLETED") != "COMPLETED":
        return str(check["status"])
    return str(check.get("conclusion") or check.get("state") or "")


def _of_gitlab(said: Json) -> Seen:
    pipeline = said.get("head_pipeline") or said.get("pipeline") or {}
    state = {"merged": MERGED, "closed": CLOSED}.get(str(said.get("state")), OPEN)
    word = str(pipeline.get("status", ""))
    verdict = PIPELINE.get(word, PENDING) if pipeline else NONE
    failed = f"pipeline {pipeline['id']}" if verdict == RED else ""
    merged = str(said.get("merge_commit_sha") or said.get("squash_commit_sha") or "")
    conflicts = said.get("has_conflicts") is True or said.get("detailed_merge_status") == "conflict"
    return Seen(state, str(said.get("sha", "")), verdict, failed, str(pipeline.get("id", "")), merged, conflicts)
