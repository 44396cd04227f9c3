"""Reads quality gates and commands from the AGENTS.md of a project. Pure.

A line that looks like a gate but is not used is kept with the reason, so that rooda can show it to the user.
"""

import re
import shlex
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rooda.run.gate_words import ALL, refusal
from rooda.run.records import Gate, Left, Programs

# Possessive quantifiers prevent slow backtracking: AGENTS.md may have any content.
_HEADING = re.compile(r"^ {0,3}(#{1,6})\s++(.*)$")
_UNDERLINE = re.compile(r"^ {0,3}(?:=++|-++)\s*+$")
_FENCE = re.compile(r"^(?P<indent>\s*+)(?P<marks>`{3,}+|~{3,}+)\s*+(?P<info>.*?)\s*$")
_LEAD = re.compile(r"^\s*+(?:(?:[-*+]|\d{1,3}[.)])\s++)?(?:\[[ xX]\]\s++)?(?P<rest>.*)$")
_CODE = re.compile(r"(?P<ticks>`++)(?P<command>.+?)(?P=ticks)(?!`)")
_LABEL = re.compile(r"^(?P<name>[^`]*?)\s*(?::|[—–]|(?<=\s)-)\s*$")
_AFTER = re.compile(  # words after a command that only mean that it must pass
    r"^[\s,.;:—–-]*+(?:$|[(\[{]|(?:(?:must|should|has to|needs to|always|all|it|tests?|checks?|with|the|is|be|and|of"
    r"|code|status|pass(?:es|ing)?|clean(?:ly)?|green|succeeds?|successful(?:ly)?|exits?|returns?|0|zero|no|any|without|errors?|warnings?|"
    r"failures?|required|before|each|every|commit|finish(?:es|ed)?|run|runs)\b[\s,.;:!-]*+)+$)",
    re.I,
)
_BULLET = re.compile(r"^\s*+(?:[-*+]|\d{1,3}[.)])\s")
_FORBIDDEN = re.compile(r"\bnever\b|\bdo not\b|\bdon[’']?t\b|\bforbidden\b|\binstead of\b", re.I)
_GATES = re.compile(r"\bquality[ -]gates?\b", re.I)
_COMMANDS = re.compile(
    r"\b(?:build|test|lint)\b.*\b(?:build|test|lint|commands?)\b|^\W*(?:tests?|testing|linting|lint)\W*$", re.I
)
_NOT_ONE = re.compile(r"manual verification|not required", re.I)
_SHELL = ("sh", "bash", "shell", "zsh", "console", "shell-session", "shellsession", "terminal")
_SESSION = ("console", "shell-session", "shellsession", "terminal")
_DEPENDS = re.compile(  # a line that affects the next lines, or continues on them
    r"^\s*(?:cd|pushd|export|source|\.|set|unset|alias|shopt|trap|if|for|while|case|function|local|ulimit)\b|^\s*\.\s|\\$|<<|"
    r"^\s*[A-Za-z_]\w*=\S*\s*$|^\s*(?:then|do|done|fi|else|esac|\}|\))|[{(]\s*$"
)
LONGEST = 10_000  # characters; a longer line is not read
SHOWN = 60  # characters of a gate's name that is built from its commands


class Line(NamedTuple):
    """A line of the document outside comments. `fence` is the language of its code fence, None outside fences."""

    number: int
    text: str
    fence: str | None = None
    block: int = 0  # number of the fence in the document


class Found(NamedTuple):
    """The gates of a document, and the lines that are not used as gates."""

    gates: tuple[Gate, ...] = ()
    left: tuple[Left, ...] = ()


def gates(text: str, path: str = "", programs: Programs = ALL) -> tuple[Gate, ...]:
    """Return the gates in sections with "quality gates" in the heading. `path` is named in the origin of each gate."""
    return read(text, path, programs).gates


def commands(text: str, path: str = "", programs: Programs = ALL) -> tuple[Gate, ...]:
    """Return the commands in sections such as "Build/Test/Lint" as gates.

    Outside code fences, only commands with a label count.
    """
    return read_commands(text, path, programs).gates


def read(text: str, path: str = "", programs: Programs = ALL) -> Found:
    return _Reader(path, programs).found(_section(text, _GATES))


def read_commands(text: str, path: str = "", programs: Programs = ALL) -> Found:
    return _Reader(path, programs, labelled=True).found(_section(text, _COMMANDS))


class _Reader:
    """Collects the gates of a section. `labelled`: outside code fences, only commands with a label are gates."""

    def __init__(self, path: str, programs: Programs, labelled: bool = False) -> None:
        self._path, self._programs, self._labelled = path, programs, labelled
        self._gates: list[Gate] = []
        self._left: list[Left] = []

    def found(self, lines: Sequence[Line]) -> Found:
        blocks: dict[int, list[Line]] = {}
        for line in lines:
            if line.fence is None:
                self._line(line)
            elif line.block in blocks:
                blocks[line.block].append(line)
            else:
                blocks[line.block] = [line]
        for block in blocks.values():
            self._fence(block)
        order = sorted(self._gates, key=lambda gate: int(gate.origin.rpartition(":")[2]))
        if not self._path:
            order = [gate._replace(origin="") for gate in order]
        return Found(tuple(order), tuple(sorted(self._left, key=lambda left: int(left.origin.rpartition(":")[2]))))

    def _line(self, line: Line) -> None:
        codes = list(_CODE.finditer(line.text))
        if not codes:
            return
        lead = _LEAD.match(line.text)
        start = lead.start("rest") if lead else 0
        before, after = line.text[start : codes[0].start()], line.text[codes[0].end() :]
        name, why = _name(before), ""
        if self._labelled and (not name or _NOT_ONE.search(line.text)):
            return
        if line.text.lstrip().startswith("|"):
            why = "it is a row of a table"
        elif len(codes) > 1 and not _AFTER.match(after):
            why = "there is more than one command in the line"
        elif name is None or not _AFTER.match(after):
            if not _BULLET.match(line.text):
                return
            why = "the line has other text besides the command"
        elif not name and not _BULLET.match(line.text):
            return
        self._take(line, (name or "").lower() if self._labelled else name or "", codes[0]["command"].strip(), why)

    def _take(self, line: Line, name: str, command: str, why: str = "") -> None:
        """Add a command as a gate, or keep its line with the reason why it isn't one."""
        if not command:
            return
        if _FORBIDDEN.search(line.text.replace(command, "")) or _FORBIDDEN.search(name):
            why = "the line forbids something"
        why = why or refusal(command, bool(name), self._programs)
        if why:
            self._left.append(Left(self._origin(line), line.text.strip(), why))
        else:
            self._gates.append(Gate(name or command, command, origin=self._origin(line)))

    def _fence(self, block: Sequence[Line]) -> None:
        language = (block[0].fence or "").lower()
        filled = [line for line in block if line.text.strip() and not line.text.lstrip().startswith("#")]
        if language not in _SHELL:
            for line in filled if not language else ():
                self._left.append(Left(self._origin(line), line.text.strip(), "its fence names no shell"))
            return
        if language in _SESSION or any(_prompt(line.text) for line in filled):
            filled = self._typed(filled)
        plain = [line._replace(text=_without_prompt(line.text)) for line in filled]
        if any(_DEPENDS.search(line.text) for line in plain):
            self._script(plain, "bash" if language == "bash" else "sh")
        else:
            for line in plain:
                self._take(line, "", line.text.partition(" #")[0].strip())

    def _typed(self, lines: Sequence[Line]) -> list[Line]:
        """Return the lines that begin with a shell prompt; keep the others as unused, since they are output."""
        for line in lines:
            if not _prompt(line.text):
                self._left.append(Left(self._origin(line), line.text.strip(), "it is output"))
        return [line for line in lines if _prompt(line.text)]

    def _script(self, lines: Sequence[Line], shell: str) -> None:
        """Add the lines of a script as one gate, since they depend on each other."""
        body = "\n".join(line.text.rstrip() for line in lines)
        shell = "bash" if shell == "bash" and self._programs.is_program("bash") else "sh"
        name = "; ".join(" ".join(line.text.split()) for line in lines)
        why = refusal(body.replace("\\\n", " "), True, self._programs)
        command = f"{shell} -ec {shlex.quote(body)}"
        shown = name if len(name) <= SHOWN else f"{name[: SHOWN - 1]}…"
        self._take(lines[0]._replace(text=name), shown, command, why)

    def _origin(self, line: Line) -> str:
        return f"{self._path}:{line.number}"


def _name(before: str) -> str | None:
    """Return the label before a command; "" if there are no words, None if the words are not a label."""
    plain = before.strip().strip("*_").strip()
    if not plain:
        return ""
    label = _LABEL.match(before.replace("**", "").replace("__", "").rstrip())
    name = label["name"].strip().strip("*_").strip() if label else ""
    return name or None


def _prompt(text: str) -> bool:
    return text.lstrip().startswith(("$ ", "% ", "> "))


def _without_prompt(text: str) -> str:
    return text.lstrip()[2:].lstrip() if _prompt(text) else text


def _section(text: str, title: "re.Pattern[str]") -> list[Line]:
    """Return the lines below headings with this title, up to the next heading of the same or a higher level."""
    level, found = 0, []
    lines = list(_content(text))
    for place, line in enumerate(lines):
        if heading := _heading(line, lines[place + 1] if place + 1 < len(lines) else None):
            depth, words = heading
            if not level or depth <= level:
                level = depth if title.search(words) else 0
        elif level:
            found.append(line)
    return found


def _heading(line: Line, following: Line | None) -> tuple[int, str] | None:
    """Return the level and text of a heading, marked with `#` or underlined; None for any other line."""
    if line.fence is not None:
        return None
    if heading := _HEADING.match(line.text):
        return len(heading[1]), heading[2]
    words = line.text.strip()
    is_text = words and not words.startswith(("-", "*", "+", "|", ">", "`"))
    if is_text and following and following.fence is None and _UNDERLINE.match(following.text):
        return (1 if following.text.lstrip().startswith("=") else 2), words
    return None


def _content(text: str) -> Iterator[Line]:
    """Yield the lines outside comments. A line in a code fence has the fence's language and loses its indentation."""
    fence, language, comment, block, indent = "", "", False, 0, 0
    for number, line in enumerate(text.removeprefix("\ufeff").splitlines(), 1):
        if len(line) > LONGEST:
            continue
        mark = _FENCE.match(line)
        if comment or (not fence and line.lstrip().startswith("<!--")):
            comment = "-->" not in line
        elif fence:
            if mark and mark["marks"].startswith(fence) and not mark["info"]:
                fence = ""
            else:
                yield Line(number, line[min(indent, len(line) - len(line.lstrip())) :], language, block)
        elif mark and "`" not in mark["info"]:
            fence, language, block = mark["marks"], (mark["info"].split() or [""])[0].strip("{}."), block + 1
            indent = len(mark["indent"])
        else:
            yield Line(number, line)
