"""The entry point of the `rooda` command: fast answers, safe streams, UTF-8, and the guardian process.

Imports are inside the functions: `rooda --version` must not wait for them.
"""

import gc
import os
import sys
from io import TextIOWrapper

TYPE_CHECKING = False  # importing `typing` would take a third of the time of `rooda --version`
if TYPE_CHECKING:
    from typing import TextIO

_ENCODING = "_ROODA_ENCODING"  # the encoding that stdout had before the restart in UTF-8 mode


def main(arguments: list[str] | None = None) -> int:
    """Run the command and return its exit code. Garbage collection is off while modules load: it would find nothing."""
    gc.disable()
    try:
        if arguments is None and sys.getfilesystemencoding() == "ascii":
            _restart_in_utf8()
        return _run(arguments)
    except KeyboardInterrupt:  # Ctrl+C before rooda handles signals
        return 130
    finally:
        gc.freeze()
        gc.enable()


def _run(arguments: list[str] | None) -> int:
    """Run the command and return its exit code. `rooda --help` and `rooda --version` don't load click."""
    if None in (sys.stdin, sys.stdout, sys.stderr):
        _open_closed_streams()
    _replace_unencodable(sys.stdout, sys.stderr)
    if arguments is None:
        _escape_controls()
    if "_ROODA_COMPLETE" in os.environ:
        from rooda.cli.completion import answer

        return _print(answer(os.environ["_ROODA_COMPLETE"]))
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] == ["help"]:
        words = [*words[1:], "--help"]
    if words in ([], ["--help"], ["-h"], ["--version"]):
        if words == ["--version"]:
            from rooda import __version__

            return _print(f"rooda {__version__}\n")
        from rooda.cli.words import help_text

        return _print(help_text())
    if arguments is None and words[:1] == ["_task"]:
        words = _loop_of_a_task(words[1:])
    if arguments is None and serves(words):
        _serve(words)
    guarded_loop = arguments is None and starts_a_loop(words)
    if guarded_loop:
        from rooda.processes import guardian

        if "--detach" in words and not {"--dry-run", "-d", "--help", "-h"} & {*words}:
            _detach()
        guardian.start()
    from rooda.cli.exits import guarded

    code = guarded(words)
    if arguments is None:
        _exit(code)
    return code


def _loop_of_a_task(words: list[str]) -> list[str]:
    """Prepare a task for `rooda tasks run`, and return the command line of its loop. Exits if that fails."""
    from rooda.cli.exits import settled
    from rooda.tasks.start import prepare

    def command() -> int:
        sys.argv[1:] = prepare(*words)
        return 0

    if code := settled(command):
        _exit(code)
    return sys.argv[1:]


def _serve(words: list[str]) -> None:
    """Run `rooda worker` below a guardian that forks before anything heavy is loaded."""
    from rooda.processes import dead_man

    dead_man.start()
    from rooda.cli.exits import guarded

    code = guarded(words)
    dead_man.announce_exit(code)
    _exit(code)


def _detach() -> None:
    """Move rooda to the background: only the child process returns, in a new session."""
    from rooda.processes import detach

    try:
        detach.detach(lambda text, to_stderr: _print(f"{text}\n", sys.stderr if to_stderr else sys.stdout))
    except OSError as problem:
        _print(f"Error: rooda can't run in the background: {problem.strerror or problem}\n", sys.stderr)
        sys.exit(1)


def _exit(code: int) -> None:
    """Exit without the interpreter's shutdown, which takes ten milliseconds and which Temporal's threads may abort.

    Besides, the shutdown kills `python -m rooda` with SIGINT if a KeyboardInterrupt once interrupted an `eval`, even if
    rooda handled it (`NamedTuple` calls `eval` while a module loads).
    """
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            pass
    guardian = sys.modules.get("rooda.processes.guardian")  # loaded only if this process has one
    if guardian:
        guardian.announce_exit()
    os._exit(code)


def starts_a_loop(words: list[str]) -> bool:
    """True if the command runs a loop: a procedure, `run`, `resume`, or a subcommand such as `goal run`."""
    from rooda.cli.words import SYNONYMS, WORDS

    if _is_dry_run(words):
        return False
    verbs, skip = [], False
    for word in words:
        if not skip and word[:1] != "-":
            verbs.append(word)
        skip = word in ("-C", "--config")
    verb, mode = (*verbs, "", "")[:2]
    if verb == "resume" and "--all" in words:
        return False  # it starts each run as a separate process
    if verb in WORDS:
        return verb in ("run", "resume") or mode in WORDS[verb].starting or _starts_without_run(words, verb, mode)
    return verb != "" and verb not in SYNONYMS


def serves(words: list[str]) -> bool:
    """True if the command is `rooda worker`, which gets a guardian before anything else is loaded."""
    return words[:1] == ["worker"] and not {"drain", "--help", "-h"} & {*words}


def _starts_without_run(words: list[str], verb: str, mode: str) -> bool:
    """True for `rooda goal "a task"` and `rooda goal --file SPEC`, which leave out the word `run`."""
    from rooda.loops.registry import KINDS

    after = words[words.index(verb) + 1 :][:1]
    option = after and after[0][:1] == "-" and after[0] not in ("-h", "--help", "-C", "--config")
    return verb in KINDS and bool(option or len(mode.split()) > 1)


def _is_dry_run(words: list[str]) -> bool:
    """True if `--dry-run` is among the words, in a place where it can't be the value of the option before it."""
    pairs = zip(["", *words], words, strict=False)
    return "--" not in words and any(word in ("--dry-run", "-d") and before[:1] != "-" for before, word in pairs)


def _restart_in_utf8() -> None:
    """Restart in Python's UTF-8 mode: in a C locale Python can't handle non-ASCII paths and commands without it."""
    if sys.flags.utf8_mode or not sys.executable:
        return
    encoding = getattr(sys.stdout or sys.stderr, "encoding", None) or "ascii"
    try:
        os.execve(
            sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]], {**os.environ, _ENCODING: encoding}
        )
    except OSError:
        return


def _open_closed_streams() -> None:
    """Connect closed streams (`rooda build >&-`) to /dev/null, so that no file opened later gets their descriptors."""
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            descriptor = os.open(os.devnull, os.O_RDWR)  # the lowest free number
            os.set_inheritable(descriptor, True)
            setattr(sys, name, os.fdopen(descriptor, "r" if name == "stdin" else "w"))


def _replace_unencodable(*streams: "TextIO") -> None:
    """Make streams print `?` for characters that their encoding lacks, instead of raising an exception."""
    encoding = None
    if sys.flags.utf8_mode:
        encoding = os.environ.pop(_ENCODING, None)  # removed: child processes must not see it
    for stream in streams:
        if getattr(stream, "errors", "") in ("strict", "surrogateescape") and isinstance(stream, TextIOWrapper):
            stream.reconfigure(encoding=encoding, errors="replace")


def _escape_controls() -> None:
    """Make stdout and stderr escape all control sequences except rooda's own, whichever module prints them."""
    from rooda.base.terminal import EscapingStream

    for name in ("stdout", "stderr"):
        old = getattr(sys, name)
        how = {"encoding": old.encoding, "errors": old.errors, "line_buffering": old.line_buffering}
        through = old.write_through
        stream = EscapingStream(old.detach(), newline="\n", write_through=through, **how)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def _print(text: str, stream: "TextIO | None" = None) -> int:
    stream = stream or sys.stdout
    try:
        stream.write(text)
        stream.flush()
    except OSError:
        from rooda.base.terminal import silence

        silence(stream)
    return 0
