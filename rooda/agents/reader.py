"""Defines the properties of agent CLIs: how to read their output, how they end, what they need (see `clis/`)."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from rooda.agents.gathered import Gathered
    from rooda.base.json import Json

# Registry of output formats, each a file in `clis/`. Settings list them in this order.
ACP = "acp"  # agents that speak the Agent Client Protocol; a client in between writes the transcript
# Programs that ask over it before they change anything, and programs that change files without asking.
ASKING = frozenset({"claude-agent-acp", "copilot", "gemini", "goose", "grok", "qwen", "vibe-acp"})
NOT_ASKING = frozenset({"codex-acp", "kilo", "kimi", "omp", "opencode"})
OUTPUTS = (
    *("claude", "codex", "gemini", "opencode", "copilot", "droid", "pi", "aider", ACP),
    *("goose", "kimi", "vibe", "cline", "cn", "nanocoder", "openhands", "mini"),
)
PROGRAMS = (*OUTPUTS, "amp", "qwen")  # each a file in `clis/`; the last two print claude's records
NEWEST = "newest"  # matches the last two names in a sorted folder, which are the newest dates


class RequiredOption(NamedTuple):
    """An option without which the CLI changes nothing, yet exits with 0."""

    words: tuple[str, ...]
    what: str
    cure: str


class SessionFiles(NamedTuple):
    """The location of a CLI's session files, and how to read one."""

    home: tuple[str, str]  # the variable that moves its folder, and the path below that variable's value
    folder: str  # the folder in HOME if that variable is not set
    place: tuple[str, ...]  # path in the folder; {session} is the ID, {short} its beginning, patterns match any name
    markers: tuple[bytes, ...]  # each relevant line contains one of these
    take: Callable[["Json", "Gathered"], None]
    whole: bool = False  # the file is one JSON document, not one for each line


class Report(NamedTuple):
    """The JSON file in which a CLI reports a call at the end; the agent's command names the file as {report}."""

    file: str  # path below that place; "" if the place is the file itself
    take: Callable[["Json", "Gathered"], None]


class Reader(NamedTuple):
    """The properties of a CLI or an output format; each file in `clis/` defines one, named READER."""

    record: Callable[["Json", "Gathered"], None] | None = None  # takes one JSON record
    line: Callable[[str, "Gathered"], None] | None = None  # takes one line, if the output is not JSON
    unparsed: Callable[[str, "Gathered"], None] | None = None  # takes a line that is not a record
    kinds: tuple[str, ...] = ()  # types of its records; "session." stands for all that begin with it; empty: not known
    spread: bool = False  # a record takes several lines, from `{` alone to `}` alone
    kind: str = "type"  # the key of a record that has its type
    last: tuple[str, ...] = ()  # types of its final record; the CLI may hang after it
    compacts_forever: bool = False  # may compact a full context again and again
    tells_edits: bool = False  # its records name every file that a tool writes
    status_of_exit: Mapping[int, int] = {}  # HTTP status per exit code
    sessions: tuple[SessionFiles, ...] = ()
    report: Report | None = None
    log_error: Callable[[str], str] | None = None  # the error in a line of the CLI's own log; "" if it has none
    powerless: RequiredOption | None = None
    refusal: Callable[[Sequence[str], Mapping[str, str], bool], tuple[str, str]] | None = None  # argv, env, root
    warnings: Callable[[Sequence[str], Mapping[str, str]], list[str]] | None = None  # argv, env
    shell: tuple[str, ...] = ()  # names of its tools that run commands, if not claude's
    runs_commands: bool = True  # False: it can only edit files
    telemetry: Mapping[str, str] = {}  # variables that switch on its own telemetry; {endpoint} is the collector
    telemetry_options: Sequence[str] = ()  # options that do so


NONE = Reader()


def is_read(output: str) -> bool:
    """True if rooda can parse this output format; for others, such as `text`, rooda knows only the exit code."""
    return output in OUTPUTS


def reader(output: str) -> Reader:
    """Return the reader of an output format; no other reader is imported."""
    return _loaded(output) if output in OUTPUTS else NONE


def of_program(program: str) -> Reader:
    """Return the reader of a program, whatever output format it is run with."""
    return _loaded(program) if program in PROGRAMS else NONE


def _loaded(name: str) -> Reader:
    import importlib

    found: Reader = importlib.import_module(f"rooda.agents.clis.{name}").READER
    return found
