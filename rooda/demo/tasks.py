"""The scripted agent for the tasks of `rooda init --demo DIR --tasks`: writes what one task asks for, and commits it.

Two of the tasks change the same line, and two choose the same key, which only the gate notices. When such a task comes
back, the agent merges the target and repairs its own change.
"""

import os
import re
import subprocess
from typing import NamedTuple

MARK = '"""Greetings by language. Part of the demo project of rooda for tasks."""\n'
GREETINGS = "greetings.py"
TOOLS = "tools"
SOMEBODY = {"NAME": "demo", "EMAIL": "demo@example.invalid"}
GREETINGS_BEFORE = f"""{MARK}
GREETINGS = {{
    "en": "Hello",
}}
"""
TESTS = '''"""Each tool has a key of its own and works; each greeting has a language."""

import importlib
import os
import unittest

from greetings import GREETINGS

NAMES = sorted(name[:-3] for name in os.listdir("tools") if name.endswith(".py"))


class ToolsTest(unittest.TestCase):
    def test_no_two_tools_have_the_same_key(self) -> None:
        keys = [importlib.import_module(f"tools.{name}").KEY for name in NAMES]
        self.assertEqual(len(keys), len(set(keys)), dict(zip(NAMES, keys)))

    def test_each_tool_does_what_its_example_says(self) -> None:
        for name in NAMES:
            tool = importlib.import_module(f"tools.{name}")
            self.assertEqual(tool.run(tool.EXAMPLE[0]), tool.EXAMPLE[1], name)

    def test_greetings_are_words(self) -> None:
        for language, words in GREETINGS.items():
            self.assertTrue(len(language) == 2 and words)


if __name__ == "__main__":
    unittest.main()
'''


class Tool(NamedTuple):
    """A tool that a task asks for."""

    name: str
    about: str
    code: str
    example: tuple[str, str]


class Greeting(NamedTuple):
    """A greeting that a task asks for."""

    language: str
    code: str
    words: str


WISHES: tuple[Tool | Greeting, ...] = (
    Tool("count", "counts the words of a text", "str(len(text.split()))", ("two  words", "2")),
    Tool("slug", "makes a text part of a URL", '"-".join(text.lower().split())', ("Loops That End", "loops-that-end")),
    Tool("shorten", "cuts a text to ten characters", 'text if len(text) <= 10 else f"{text[:9]}…"', ("word", "word")),
    Tool("titled", "begins each word with a capital letter", "text.title()", ("loops that end", "Loops That End")),
    Tool("backwards", "turns a text around", "text[::-1]", ("loop", "pool")),
    Tool("lines", "puts each word on a line of its own", '"\\n".join(text.split())', ("a b", "a\nb")),
    Greeting("German", "de", "Guten Tag"),
    Greeting("French", "fr", "Bonjour"),
)


def title(wish: Tool | Greeting) -> str:
    """Return the text of the task."""
    return (
        f"Greet in {wish.language}" if isinstance(wish, Greeting) else f"Add the tool {wish.name}, which {wish.about}"
    )


def read(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        return ""


def write(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def is_here() -> bool:
    """True in a folder that `rooda init --demo DIR --tasks` made."""
    return read(GREETINGS).startswith(MARK)


def act(prompt: str) -> list[str]:
    """Do what the task in the prompt asks for; return what the agent says. The last line is its promise."""
    wish = next((each for each in WISHES if title(each) in prompt), None)
    if wish is None:
        return ["My script knows eight tasks, and this is none of them.", "<promise>FAILURE</promise>"]
    said = []
    if "git merge rooda/target" in prompt and _git("merge", "-q", "--no-edit", "rooda/target"):
        write(GREETINGS, _both(read(GREETINGS)))
        said.append(f"Merged the target, and kept both changes of {GREETINGS}.")
    said.append(_greet(wish) if isinstance(wish, Greeting) else _make(wish))
    _git("add", "-A")
    _git("commit", "-q", "-m", title(wish))
    return [*said, "", "<promise>SUCCESS</promise>"]


def _greet(wish: Greeting) -> str:
    line = f'    "{wish.code}": "{wish.words}",\n'
    text = read(GREETINGS)
    if line not in text:
        write(GREETINGS, text.replace("}\n", f"{line}}}\n"))
    return f"{GREETINGS} greets in {wish.language}."


def _make(wish: Tool) -> str:
    """Write a tool. Its key is the first letter of its name that is not the key of another tool."""
    path = os.path.join(TOOLS, f"{wish.name}.py")
    os.makedirs(TOOLS, exist_ok=True)
    names = [name for name in os.listdir(TOOLS) if name.endswith(".py") and name != f"{wish.name}.py"]
    others = [read(os.path.join(TOOLS, name)) for name in names]
    taken = {found[1] for text in others if (found := re.search(r'^KEY = "(.)"', text, re.MULTILINE))}
    key = next(letter for letter in wish.name if letter not in taken)
    about = wish.about[0].upper() + wish.about[1:]
    head = f'"""{about}."""\n\nKEY = "{key}"\nEXAMPLE = {wish.example!r}\n'
    write(path, f"{head}\n\ndef run(text: str) -> str:\n    return {wish.code}\n")
    return f"Wrote {path}; its key is {key}."


def _both(text: str) -> str:
    """Resolve the conflicts in a file's text by keeping both sides."""
    return "".join(row for row in text.splitlines(True) if not row.startswith(("<<<<<<<", "=======", ">>>>>>>")))


def _git(*words: str) -> int:
    names = {f"GIT_{who}_{key}": value for who in ("AUTHOR", "COMMITTER") for key, value in SOMEBODY.items()}
    return subprocess.run(["git", *words], env={**names, **os.environ}, check=False).returncode
