"""The scripted agent of demos: no model, no network, no cost. Each call takes one visible step and ends.

It is a separate program (`python -m rooda.demo.agent`) and, like any agent, changes files itself. For a
procedure, it writes only to the demo project below: in the folder of `rooda init --demo`, else in a new `rooda-demo/`.
"""

import os
import sys
from typing import NamedTuple

FOLDER = "rooda-demo"
MARK = "# The demo project of rooda. Its three mistakes are there on purpose.\n"


class Fault(NamedTuple):
    """A mistake in the demo project: the wrong line, and the right line."""

    function: str
    about: str
    wrong: str
    right: str


FAULTS = (
    Fault(
        "slug",
        "capital letters were kept",
        '    return "-".join(title.split())\n',
        '    return "-".join(title.lower().split())\n',
    ),
    Fault(
        "count_words",
        "two spaces in a row counted as a word",
        '    return len(text.split(" "))\n',
        "    return len(text.split())\n",
    ),
    Fault(
        "shorten",
        "the three dots were not counted",
        '    return text if len(text) <= width else text[:width] + "..."\n',
        '    return text if len(text) <= width else text[: width - 3] + "..."\n',
    ),
)

PROGRAM = f'''{MARK}

def slug(title: str) -> str:
    """Return the title as part of a URL: lower case, words joined by hyphens."""
{FAULTS[0].wrong}

def count_words(text: str) -> int:
    """Return the number of words, however much white space separates them."""
{FAULTS[1].wrong}

def shorten(text: str, width: int) -> str:
    """Return the text, cut to at most `width` characters, with three dots at the end if something was cut."""
{FAULTS[2].wrong}'''

TESTS = """import unittest

from textkit import count_words, shorten, slug


class TextkitTest(unittest.TestCase):
    def test_slug_is_lower_case(self) -> None:
        self.assertEqual(slug("Loops That End"), "loops-that-end")

    def test_words_are_counted_whatever_the_spaces(self) -> None:
        self.assertEqual(count_words("two  words"), 2)

    def test_shortened_text_fits(self) -> None:
        self.assertEqual(shorten("a long sentence", 10), "a long ...")


if __name__ == "__main__":
    unittest.main()
"""


def say(*lines: str) -> None:
    print(*lines, sep="\n", flush=True)


def promise(word: str) -> None:
    say("", f"<promise>{word}</promise>")


def read(path: str) -> str:
    """Read a file; "" if it does not exist."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read()
    except FileNotFoundError:
        return ""


def write(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(text)


def project() -> str:
    """Return the demo project's folder, relative to the current directory; "" if it is the current directory."""
    return "" if read("textkit.py").startswith(MARK) else FOLDER


def begin(folder: str) -> None:
    """Create the demo project. This is the agent's first step in a workspace without one."""
    os.makedirs(folder, exist_ok=True)
    write(os.path.join(folder, "textkit.py"), PROGRAM)
    write(os.path.join(folder, "test_textkit.py"), TESTS)
    say(f"This folder isn't one of my demo projects, so I work in {folder}/ and leave everything else alone.")
    say(f"Made {folder}/textkit.py and {folder}/test_textkit.py: three functions, three mistakes, three failing tests.")


def fix(path: str, program: str, fault: Fault) -> str:
    """Repair one function, show the change, and return the new program."""
    program = program.replace(fault.wrong, fault.right)
    write(path, program)
    say(f"Fixed {fault.function}() in {path}: {fault.about}.")
    say(f"  - {fault.wrong.strip()}", f"  + {fault.right.strip()}")
    return program


def step() -> None:
    """Create the demo project, repair one mistake, or report that nothing is left to do."""
    folder = project()
    path = os.path.join(folder, "textkit.py")
    program = read(path)
    if not program and not (os.path.lexists(folder) and os.listdir(folder)):
        begin(folder)
        return
    known = program.startswith(MARK)
    left = [fault for fault in FAULTS if known and fault.wrong in program]
    if left:
        program = fix(path, program, left[0])
    if len(left) > 1:
        say(f"Mistakes left: {len(left) - 1}.")
    elif known and all(fault.right in program for fault in FAULTS):
        say("All three functions are right." if left else "Nothing to do: all three functions are right.")
        promise("SUCCESS")
    else:
        say(f"{path} was changed since my last call. I am only a script and don't know what to do here.")
        promise("FAILURE")


def _text(prompt: bytes) -> str:
    return prompt.decode("utf-8", "surrogateescape")


def _put(path: str, text: str) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    write(path, text)


def answered(prompt: bytes) -> bool:
    """Print only the answer to a call from a reflex or goal loop; return False if the script has no answer."""
    loop, kind, words = os.environ.get("ROODA_LOOP"), os.environ.get("ROODA_CALL", ""), _text(prompt)
    text = None
    if loop == "reflex":
        from rooda.demo.reflex import answer

        text = answer(kind, words)
    elif loop == "goal":
        from rooda.demo.goal import act

        text = act(kind, words, _put)
    if text is not None:
        sys.stdout.buffer.write(text.encode("utf-8", "surrogateescape") + b"\n")
    return text is not None


def main() -> int:
    prompt = b"" if sys.stdin is None or sys.stdin.isatty() else sys.stdin.buffer.read()
    if answered(prompt):
        return 0
    from rooda.demo import tasks

    size = len(prompt)
    say("I am the scripted demo agent: no model, no network, no cost.")
    say(f"Read a prompt of {size:,} bytes. A real agent would follow it; I do the next step of my script.")
    kind = os.environ.get("ROODA_CALL", "iteration")
    if kind != "iteration":
        say(f"My script is for procedures such as `rooda build`; it has no answer to a `{kind}` call.")
        return 1
    try:
        if tasks.is_here():
            say(*tasks.act(_text(prompt)))
        else:
            step()
    except OSError as problem:
        say(f"Could not continue: {problem}")
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
