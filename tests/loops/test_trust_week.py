"""How often trust asks in a week of ordinary work: only when somebody else brought something new that runs."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from rooda.loops import configuration
from rooda.settings import trust, trust_record, trust_search

TOML = '[loop]\nagent = "claude"\nquality_gates = ["make test"]\n'


class Week:
    """A team's repository, the user's clone of it, and a count of questions."""

    def __init__(self, root: Path) -> None:
        self.theirs, self.mine, self.bare = root / "theirs", root / "mine", root / "origin.git"
        self.asked: list[str] = []
        self.starts = 0
        git(root, "init", "-q", "--bare", "-b", "main", str(self.bare))
        git(root, "clone", "-q", str(self.bare), str(self.theirs))
        self.change("rooda.toml", TOML)
        git(root, "clone", "-q", str(self.bare), str(self.mine))

    def change(self, name: str, content: str) -> None:
        """The colleague commits and pushes."""
        if git(self.theirs, "ls-remote", "origin"):
            git(self.theirs, "pull", "-q", "--rebase", "origin", "main")
        path = self.theirs / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        git(self.theirs, "add", "-A")
        git(self.theirs, "commit", "-q", "-m", f"their {name}")
        git(self.theirs, "push", "-q", "origin", "HEAD:main")

    def start(self, after: str) -> None:
        """Start a loop, and say yes if it asks."""
        seen = trust_search.look(configuration.load(str(self.mine)))
        record = trust_record.Record(seen.top)
        verdict = trust.judge(seen, record)
        self.starts += 1
        if verdict.asks:
            self.asked.append(after)
        record.settle(seen, verdict.versions)


def git(folder: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def week(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Week:
    monkeypatch.setenv("ROODA_STATE_HOME", str(tmp_path / "state"))
    for kind in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{kind}_NAME", "test")
        monkeypatch.setenv(f"GIT_{kind}_EMAIL", "test@example.invalid")
    return Week(tmp_path)


def test_S_03_a_week_of_ordinary_work(week: Week) -> None:
    mine, toml = week.mine, week.mine / "rooda.toml"

    def commit(name: str, content: str) -> Callable[[], object]:
        def work() -> None:
            (mine / name).write_text(content)
            git(mine, "add", "-A")
            git(mine, "commit", "-q", "-m", f"my {name}")

        return work

    def run(*words: str) -> Callable[[], object]:
        return lambda: git(mine, *words)

    own = TOML.replace('"make test"', '"make test", "make lint"')
    days: list[tuple[str, Callable[[], object]]] = [
        ("clone", lambda: None),
        ("the same again", lambda: None),
        ("a gate of mine", lambda: toml.write_text(own)),
        ("its commit", commit("rooda.toml", own)),
        ("its push", run("push", "-q", "origin", "HEAD:main")),
        ("their documents", lambda: week.change("README.md", "docs")),
        ("pull of documents", run("pull", "-q", "--rebase", "origin", "main")),
        ("a branch", run("checkout", "-q", "-b", "topic")),
        ("a prompt of mine", commit("observe.md", "Look.")),
        ("back to main", run("checkout", "-q", "main")),
        ("their model", lambda: week.change("rooda.toml", own + '[models]\nfast = "m"\n')),
        ("pull of a model", run("pull", "-q", "--no-rebase", "origin", "main")),
        ("their gate", lambda: week.change("AGENTS.md", "## Quality Gates\n- x: `make check`\n")),
        ("PULL OF A GATE", run("pull", "-q", "--no-rebase", "origin", "main")),
        ("to the branch", run("checkout", "-q", "topic")),
        ("rebase of the branch", run("rebase", "-q", "main")),
        ("a stash", run("stash", "list")),
        ("a limit of mine", commit("rooda.toml", own + "[procedures.build]\ndefault_iterations = 9\n")),
        ("its amend", run("commit", "-q", "--amend", "-m", "my limit")),
        ("main again", run("checkout", "-q", "main")),
        ("a pick", run("cherry-pick", "topic~1")),
        ("their hook", lambda: week.change("rooda.toml", own + '[models]\nfast = "m"\n[hooks]\ndone = "notify"\n')),
        ("PULL OF A HOOK", run("pull", "-q", "--no-rebase", "origin", "main")),
        ("the branch on Friday", run("checkout", "-q", "topic")),
        ("main on Friday", run("checkout", "-q", "main")),
    ]
    for what, work in days:
        work()
        week.start(what)
    print(f"{len(week.asked)} questions in {week.starts} starts: {', '.join(week.asked)}")
    assert week.asked == ["clone", "PULL OF A GATE", "PULL OF A HOOK"]
