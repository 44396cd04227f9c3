"""`rooda init --demo DIR --tasks`: creates a project with eight tasks; agents work on several of them in parallel."""

import os

from rooda.base import files
from rooda.demo import tasks
from rooda.demo.project import taken
from rooda.errors import RoodaError, UsageProblem
from rooda.git import command
from rooda.run import task_lists
from rooda.tasks import sources
from rooda.tasks.model import Task
from rooda.tasks.store import Maker, Store, place_of

SETTINGS = """\
# Settings of this project. `rooda config show --origin` lists every setting, its value and where it comes from.

[loop]
agent = "demo" # a scripted stand-in for an agent. For real work: "claude", "codex", "gemini", …

[[loop.quality_gates]] # runs after each iteration of a task, and before each landing
name = "tests"
command = "python3 -m unittest -q"
"""
LIST = "TASKS.md"
SUBJECT = "Greetings, and tests for the tools to come"
MADE = (
    (tasks.GREETINGS, tasks.GREETINGS_BEFORE, "greetings by language"),
    ("tools/.gitkeep", "", "where the tools will be"),
    ("test_tools.py", tasks.TESTS, "what every tool and greeting must keep"),
    (LIST, "# Tasks\n\n" + "".join(f"- [ ] {tasks.title(each)}\n" for each in tasks.WISHES), "the eight tasks"),
    ("rooda.toml", SETTINGS, "settings: the agent `demo`, the gate `tests`"),
    (".gitignore", "__pycache__/\n", "what git should not keep"),
)


def scaffold(folder: str) -> list[Task]:
    """Create the project in a missing or empty folder, commit it, and add its tasks to its task list."""
    if taken(folder):
        raise UsageProblem(
            f"{folder} already exists and is not an empty folder.",
            "Name a new folder: rooda init --demo my-demo --tasks",
        )
    try:
        for name, text, _ in MADE:
            path = os.path.join(folder, name)
            files.make_folder(os.path.dirname(path))
            files.create(path, files.to_bytes(text))
    except OSError as problem:
        raise UsageProblem(
            f"Can't create the demo project in {folder}: {problem.strerror or problem}.", "Name another folder."
        ) from None
    env = {f"GIT_{who}_{key}": value for who in ("AUTHOR", "COMMITTER") for key, value in tasks.SOMEBODY.items()}
    failed, why = command.first_commit(folder, SUBJECT, {**env, **os.environ})
    if failed:
        raise RoodaError(
            f"git {failed} failed in {folder}: {why}", "Tasks need git. Correct this, and try again in a new folder."
        )
    return _add(os.path.abspath(folder))


def _add(folder: str) -> list[Task]:
    text = next(text for name, text, _ in MADE if name == LIST)
    drafts = sources.of_list(task_lists.read(text, LIST), LIST)
    return Store(place_of(folder)).add_all(lambda: [_maker(draft) for draft in drafts], "imported")


def _maker(draft: sources.Draft) -> Maker:
    source = sources.source_of(draft, sources.FILE, False)
    return lambda number: Task(number, sources.title_of(draft), draft.text, "main", source=source)
