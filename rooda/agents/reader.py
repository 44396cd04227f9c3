"""What rooda knows of an agent CLI: how its output is read, how it ends, what it needs. One file each in `readers/`."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from rooda.agents.gathered import Gathered
    from rooda.base.json import Json

# The registry: forms of output, each with a file of that name in `readers/`. Settings offer them in this order.
OUTPUTS = ("claude", "codex", "gemini", "opencode", "copilot", "droid", "pi", "aider")
PROGRAMS = (*OUTPUTS, "amp", "qwen")  # each with a file; the last two print claude's records
NEWEST = "newest"  # stands for the last two names of a folder, as those of dates sort


class RequiredOption(NamedTuple):
    """Without one of these words the CLI changes nothing, and exits with 0 all the same."""

    words: tuple[str, ...]
    what: str
    cure: str


class SessionFiles(NamedTuple):
    """Where a CLI keeps its sessions, and what a record of one adds."""

    home: tuple[str, str]  # a variable that moves its folder, and what comes below that
    folder: str  # its folder else, in HOME
    place: tuple[str, ...]  # in it; {session} is the id, {short} its beginning, a pattern is any that fits
    telling: tuple[bytes, ...]  # one of these is in each line that matters
    take: Callable[["Json", "Gathered"], None]


class Reader(NamedTuple):
    """Facts about one CLI, and about others that print its records. Each file in `readers/` has one, named READER."""

    record: Callable[["Json", "Gathered"], None] | None = None  # takes one JSON record
    line: Callable[[str, "Gathered"], None] | None = None  # takes one line, where the output is not JSON
    unparsed: Callable[[str, "Gathered"], None] | None = None  # takes a line that is no record but tells something
    last: tuple[str, ...] = ()  # types of its final record; it may hang after that
    compacts_forever: bool = False  # may sum up a context that is too full, and begin again, without end
    tells_edits: bool = False  # its records name every file that a tool writes
    status_of_exit: Mapping[int, int] = {}  # HTTP status by exit code, where the CLI puts one into the other
    sessions: tuple[SessionFiles, ...] = ()
    powerless: RequiredOption | None = None
    refusal: Callable[[Sequence[str], Mapping[str, str], bool], tuple[str, str]] | None = None  # argv, env, root
    warnings: Callable[[Sequence[str], Mapping[str, str]], list[str]] | None = None  # argv, env
    shell: tuple[str, ...] = ()  # what it calls its tools that run commands, where not as claude does
    runs_commands: bool = True
    testable: bool = False  # by `rooda agents test`: the model server can stand in for its service


NONE = Reader()


def is_read(output: str) -> bool:
    """False for `text`: then the exit code is all that is known."""
    return output in OUTPUTS


def reader(output: str) -> Reader:
    """The reader of a form of output. Only this one is imported."""
    return _loaded(output) if output in OUTPUTS else NONE


def of_program(program: str) -> Reader:
    """What is known of a program, whatever form of output it is asked for."""
    return _loaded(program) if program in PROGRAMS else NONE


def _loaded(name: str) -> Reader:
    import importlib

    found: Reader = importlib.import_module(f"rooda.agents.clis.{name}").READER
    return found
