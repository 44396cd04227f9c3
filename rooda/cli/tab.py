"""The TAB key: what may stand at the cursor. Words and names come from tables and folders; click only for options."""

import os
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from rooda.cli.words import WORDS


class Item(NamedTuple):
    """One word that may stand there; of kind `file` or `dir` the shell knows which."""

    value: str
    about: str = ""
    kind: str = "plain"


class Line(NamedTuple):
    """The command line up to the cursor."""

    words: list[str]  # behind `rooda`, whole ones
    word: str  # what has been typed of the one at the cursor


class Found(NamedTuple):
    """What the whole words say."""

    verbs: list[str]
    workspace: str
    config: str | None
    wants: str  # the option whose value is typed now, if it's one of VALUES
    word: str  # what has been typed of the one at the cursor


Names = Callable[[Found], Iterable[Item]]


def answer(environ: Mapping[str, str]) -> str:
    """What the shell's script reads. A mistake on the command line is no matter for TAB: then there is nothing."""
    shell, _, what = environ["_ROODA_COMPLETE"].partition("_")
    if what == "source":
        from rooda.cli.completion import script

        return script(shell)
    from rooda.errors import RoodaError

    try:
        items = _items(line_of(environ, shell), shell)
    except (RoodaError, OSError, ValueError):
        items = []
    return "".join(f"{_FORMS.get(shell, _FORMS['bash'])(item)}\n" for item in items)


def line_of(environ: Mapping[str, str], shell: str) -> Line:
    """bash and zsh tell which word the cursor is on, fish what that word is."""
    words, at = _split(environ.get("COMP_WORDS", "")), environ.get("COMP_CWORD", "")
    if shell == "fish":
        return Line((words[1:-1] if at and words[1:] else words[1:]), at)
    number = int(at) if at.isdecimal() else len(words)
    words, word = words[1:number], words[number] if number < len(words) else ""
    if shell == "bash" and (word == "=" or words[-1:] == ["="]):  # to bash it is a word of its own
        words, word = words[:-1] if words[-1:] == ["="] else words, "" if word == "=" else word
    return Line(words, word)


def _split(text: str) -> list[str]:
    if not set(text) & set("'\"\\"):
        return text.split()
    import shlex

    for end in ("", "'", '"'):  # what is being typed may not be closed yet
        try:
            return shlex.split(text + end)
        except ValueError:
            continue
    return text.split()


def _items(line: Line, shell: str) -> list[Item]:
    option, equals, value = line.word.partition("=")
    if equals and option in VALUES:
        found = _read(line)
        return [item._replace(value=f"{option}={item.value}") for item in _begun(VALUES[option](found), value)]
    found = _read(line)
    if found.wants:
        return _begun(VALUES[found.wants](found), line.word)
    if line.word[:1] == "-":
        return _options(line) if found.verbs and found.verbs[0] not in WORDS else _thorough(line)
    if line.words and line.words[-1][:1] == "-" and line.words[-1] not in _SWITCHES:  # its value, perhaps
        return _thorough(line)
    if not found.verbs:
        return _begun(_first(found), line.word)
    if found.verbs == ["flow", "run"] and line.words[-1] == "--resume":
        return _begun(_flows(found), line.word)
    if names := NAMES.get(" ".join(word for word in found.verbs if not word.isdecimal())):  # an iteration's number
        return _begun(names(found), line.word)
    return _thorough(line) if found.verbs[0] in WORDS and found.verbs[0] not in NAMES else []


def _begun(items: Iterable[Item], word: str) -> list[Item]:
    return [item for item in items if item.kind != "plain" or item.value.startswith(word)]


def _read(line: Line) -> Found:
    verbs: list[str] = []
    values = {"-C": os.getcwd(), "--config": ""}
    wants = ""
    for word in line.words:
        if wants:
            values[wants] = word
            wants = ""
        elif word in VALUES:
            wants = word
        elif word[:1] != "-":
            verbs.append(word)
    workspace = os.path.abspath(os.path.expanduser(values["-C"]))
    return Found(verbs, workspace, values["--config"] or None, wants, line.word)


def _first(found: Found) -> list[Item]:
    return [*(Item(name, word.help) for name, word in WORDS.items()), *_procedures(found)]


def _procedures(found: Found) -> list[Item]:
    from rooda import settings

    known = settings.load(found.workspace, found.config)
    return [Item(name, settings.resolve.summary(known, name)) for name in settings.resolve.names(known)]


def _agents(found: Found) -> list[Item]:
    from rooda import settings

    known = settings.load(found.workspace, found.config)
    tables = known.table("agents")
    return [Item(name, tables.get(name, {}).get("summary", "")) for name in settings.resolve.agents(known)]


def _models(found: Found) -> list[Item]:
    from rooda import settings

    known = settings.load(found.workspace, found.config).table("models")
    return [Item(name, str(full)) for name, full in known.items()]


def _loops(found: Found) -> list[Item]:
    """Every loop that has left something here, of any kind; runs too, once the first digit is typed."""
    from rooda.world import runfolder

    left = [name.rpartition(".") for name in _listed(found, ".rooda", "state")]
    states = [Item(name, "a procedure") for name, _, ending in left if ending in ("json", "lock")]
    goal = [Item("goal", "the goal")] if _listed(found, ".loop") else []
    runs = [Item(run, "a run") for run in _listed(found, runfolder.RUNS) if found.word[:1].isdigit()]
    items = {item.value: item for item in (*runs, *_flows(found), *_aliases(found), *goal, *states)}
    return [items[name] for name in sorted(items)]


def _aliases(found: Found) -> list[Item]:
    return [Item(name, "a reflex loop") for name in _folders(found, ".ai-factory", "evolution")]


def _flows(found: Found) -> list[Item]:
    """Those in the work tree, and those that have run here: their files may be on another branch now."""
    from rooda.policy.flow_labels import RUN_ID
    from rooda.world import runfolder

    ran = filter(RUN_ID.fullmatch, map(runfolder.named, _listed(found, runfolder.RUNS)))
    return [Item(name, "a flow run") for name in sorted({*_folders(found, ".ai-loop", "runs"), *ran})]


def _runs(found: Found) -> list[Item]:
    """Those that snapshots are kept of, newest first; of the loop alone that is named."""
    from rooda.policy.snapshots import ref
    from rooda.world import gitfolder, runfolder

    names = [word for word in found.verbs[1:] if not word.isdecimal()]
    runs = [run for run in _listed(found, runfolder.RUNS) if not names or runfolder.named(run) in names]
    saved = gitfolder.with_refs(gitfolder.around(found.workspace), [ref(run, "") for run in runs])
    return [Item(run) for run in reversed(runs) if ref(run, "") in saved]


def _resumable(found: Found) -> list[Item]:
    names = {name.removesuffix(".json") for name in _listed(found, ".rooda", "state") if name.endswith(".json")}
    return [item for item in _loops(found) if item.about != "a procedure" or item.value in names]


def _running(found: Found) -> list[Item]:
    from rooda.world import flow_lock, gitfolder, lock

    def held(folder: str, name: str) -> bool:
        return name.endswith(".lock") and lock.is_held(os.path.join(found.workspace, ".rooda", folder, name))

    names = [name for name in _listed(found, ".rooda", "state") if held("state", name)]
    names += [name.partition("-")[2] for name in _listed(found, ".rooda", "locks") if held("locks", name)]
    flow = flow_lock.path_in(gitfolder.around(found.workspace))
    names += [flow_lock.running_name(flow)] if lock.is_held(flow) else []
    return [Item(name.removesuffix(".lock"), "running") for name in names if name]


def _listed(found: Found, *path: str) -> list[str]:
    from rooda.world import files

    return sorted(files.entries(os.path.join(found.workspace, *path)))


def _folders(found: Found, *path: str) -> list[str]:
    place = os.path.join(found.workspace, *path)
    return [name for name in _listed(found, *path) if os.path.isdir(os.path.join(place, name))]


def _options(line: Line) -> list[Item]:
    """Those of a procedure: they are the same for all, so no settings are read."""
    import click

    from rooda.cli import options

    known = [option for option in options.for_start() if isinstance(option, click.Option) and not option.hidden]
    typed = {word for word in line.words if word[:1] == "-"}
    free = (option for option in known if option.multiple or not typed & {*option.opts, *option.secondary_opts})
    items = [Item(name, option.help or "") for option in free for name in (*option.opts, *option.secondary_opts)]
    return _begun((item for item in items if item.value[:2] == "--" or line.word == "-"), line.word)


def _thorough(line: Line) -> list[Item]:
    """What only the commands themselves know: options, their values, and the words of groups."""
    from click.shell_completion import ShellComplete

    from rooda.cli.app import app

    found = ShellComplete(app, {}, "rooda", "_ROODA_COMPLETE").get_completions(line.words, line.word)
    return [Item(str(item.value), item.help or "", item.type) for item in found]


NAMES: dict[str, Names] = {
    **dict.fromkeys(("run", "info"), _procedures),
    "agents test": _agents,
    **dict.fromkeys(("status", "logs", "why", "events", "usage", "snapshots", "diff", "undo", "prune"), _loops),
    **dict.fromkeys(("stop", "pause", "continue", "attach"), _running),
    **dict.fromkeys((f"flow {verb}" for verb in ("resume", "status", "log")), _flows),
    **dict.fromkeys((f"reflex {verb}" for verb in ("resume", "status", "history", "clean", "show", "diff")), _aliases),
    "resume": _resumable,
}
VALUES: dict[str, Names] = {
    "-C": lambda _: [Item("", kind="dir")],
    "--config": lambda _: [Item("", kind="file")],
    "--agent": _agents,
    "--ai-cmd-alias": _agents,
    "--model": _models,
    "--run": _runs,
    **dict.fromkeys(("--reason", "--iteration", "--since"), lambda _: []),
}
_SWITCHES = (
    *("-u", "--unlimited", "--preamble", "--no-preamble", "-d", "--dry-run", "--resume", "--fresh", "--worktree"),
    *("--detach", "--no-gates", "-v", "--verbose", "-q", "--quiet", "--json", "-y", "--yes", "--redo", "--stat"),
    *("--name-only", "--watch", "--all", "--now", "-f", "--follow", "--wait", "--force", "--artifact"),
)
_FORMS: dict[str, Callable[[Item], str]] = {
    "bash": lambda item: f"{item.kind},{item.value}",
    "zsh": lambda item: f"{item.kind}\n{item.value}\n{item.about or '_'}",
    "fish": lambda item: f"{item.kind},{item.value}" + (f"\t{item.about}" if item.about else ""),
}
