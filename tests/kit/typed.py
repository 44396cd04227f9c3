"""Type the commands of a page in one shell, in the order in which they appear, and compare what they print.

`python -m tests.kit.typed PAGE…` writes today's outputs into pages.

`sh` blocks are typed whole and must exit with 0. Of `console` blocks each line with `$ ` is typed; the lines below it
are what it prints: a line `…` stands for any lines, a final ` …` for the rest of a line. A block below a comment
`<!-- not run: needs … -->` is not typed. Lines that begin with `rooda` are tried with --help by test_pages.py anyway.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from .pages import ROOT
from .workspace import Workspace

NEEDS = {"an account", "a network", "a service manager", "Docker", "a Temporal server", "two machines"}
HOME = "/home/me"  # what pages show in place of the test's workspace
END = "\x1e"
BLOCK = re.compile(
    r"^(?:<!-- not run: needs (?P<needs>[^\n]+) -->\n)?```(?P<word>sh|console)\n(?P<text>.*?)^```$", re.M | re.S
)
MASKS = (
    (r"\d{8}T\d{6}Z-([\w-]+?)-\d+", r"RUN-\1"),
    (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?Z?", "TIME"),
    (r"\d{4}-\d\d-\d\d", "DAY"),
    (r"\[\d\d:\d\d:\d\d\]", "[TIME]"),
    (r"\b(?:\d+h)?(?:\d+m)?\d+(?:\.\d+)?s\b", "LONG"),
    (r"\bpid \d+", "pid N"),
    (r"undo-\d+", "undo-N"),
    (r"\b[0-9a-f]{7,40}\b", "HASH"),
    (r"[ \t]+", " "),
)


class Step(NamedTuple):
    """A command of a page, or a whole block of commands, and what the page shows below it."""

    command: str
    shown: str | None  # None: the page shows nothing, and the exit code must be 0


class Typed(NamedTuple):
    """A step that was typed."""

    step: Step
    printed: str
    code: int


def not_run(page: Path) -> list[str]:
    """What the blocks of a page that are not typed need."""
    return [found["needs"] for found in BLOCK.finditer(page.read_text()) if found["needs"]]


def steps(page: Path) -> list[Step]:
    """What a reader types, in order."""
    found: list[Step] = []
    for block in BLOCK.finditer(page.read_text()):
        if block["needs"]:
            continue
        if block["word"] == "sh":
            found.append(Step(block["text"], None))
            continue
        for part in re.split(r"^\$ ", block["text"], flags=re.MULTILINE)[1:]:
            command, _, shown = part.partition("\n")
            found.append(Step(command + "\n", shown))
    return found


def script(found: list[Step]) -> str:
    """The shell script that types the steps; each ends with its exit code between two separators."""
    lines = ["exec 2>&1"]
    for step in found:
        run = f"set -e\n{step.command}set +e\n" if step.shown is None else step.command
        lines.append(f"{run}code=$?; printf '{END}%s{END}' $code; (exit $code)")
    return "\n".join(lines)


def typed(page: Path, ws: Workspace) -> list[Typed]:
    """Type a page's commands: a how-to page's in a demo project, any other page's in an empty folder."""
    found, folder = steps(page), ws.path
    if page.parent.name == "how-to":
        folder = ws.file("project")
        assert ws.rooda("init", "--demo", folder).code == 0
    run = subprocess.run(
        ["bash", "-uc", script(found)],
        cwd=folder,
        env=ws.env,
        stdout=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
    )
    parts = run.stdout.replace(ws.path, HOME).replace(ws.home, HOME).split(END)
    done = [
        Typed(step, printed, int(code)) for step, printed, code in zip(found, parts[::2], parts[1::2], strict=False)
    ]
    assert len(done) == len(found), f"{found[len(done)].command}\n{parts[-1]}"
    return done


def masked(text: str) -> list[str]:
    """The lines with everything that differs from run to run replaced: times, durations, IDs, hashes, widths."""
    for pattern, word in MASKS:
        text = re.sub(pattern, word, text)
    return [line.rstrip() for line in text.splitlines()]


def fits(shown: str, printed: str) -> bool:
    """True if a command printed what its page shows."""
    pattern = ""
    for line in masked(shown):
        if line == "…":
            pattern += r"(?:.*\n)*?"
        elif line.endswith(" …"):
            pattern += re.escape(line[:-2]) + r".*\n"
        else:
            pattern += re.escape(line) + r"\n"
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in masked(printed))) is not None


def typed_pages() -> list[Path]:
    """The pages whose commands are typed as they are written."""
    return [ROOT / "docs" / "tutorial.md", *sorted((ROOT / "docs" / "how-to").glob("*.md"))]


def renewed(shown: str, printed: str) -> str:
    """What was printed, shortened where the page has shortened it: by one line `…`, or ` …` at the ends of lines."""
    lines, new = shown.splitlines(keepends=True), printed.splitlines(keepends=True)
    if "…\n" in lines:
        head = lines.index("…\n")
        tail = len(lines) - head - 1
        new = [*new[:head], "…\n", *new[len(new) - tail :]]
    if len(new) != len(lines):
        return "".join(new)
    return "".join(old if old.endswith(" …\n") else line for old, line in zip(lines, new, strict=True))


def filled(page: Path, ws: Workspace) -> str:
    """The page with the outputs of its commands as they are now."""
    text, at = page.read_text(), 0
    for step, printed, _ in typed(page, ws):
        if step.shown is not None:
            at = text.index(f"$ {step.command}{step.shown}", at) + len(f"$ {step.command}")
            new = renewed(step.shown, printed)
            text = text[:at] + new + text[at + len(step.shown) :]
            at += len(new)
    return text


if __name__ == "__main__":
    for name in sys.argv[1:]:
        with tempfile.TemporaryDirectory() as folder:
            Path(name).write_text(filled(Path(name).resolve(), Workspace(folder)))
