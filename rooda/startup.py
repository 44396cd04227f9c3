"""The way in: fast answers, streams that always work, UTF-8, and the fork of the guardian. Imports nothing at first."""

import gc
import os
import sys
from io import TextIOWrapper

TYPE_CHECKING = False  # typing's own would cost a third of `rooda --version`
if TYPE_CHECKING:
    from typing import TextIO

_SPOKEN = "_ROODA_SPOKEN"  # the encoding of whoever reads what we print


def main(arguments: list[str] | None = None) -> int:
    """The whole command: arguments in, exit code out. Start and end skip the search for garbage: there is none yet."""
    gc.disable()
    try:
        if arguments is None and sys.getfilesystemencoding() == "ascii":
            _insist_on_utf8()
        return _answered(arguments)
    except KeyboardInterrupt:  # before anybody listened
        return 130
    finally:
        gc.freeze()
        gc.enable()


def _answered(arguments: list[str] | None) -> int:
    """The two cheapest questions never load click."""
    if None in (sys.stdin, sys.stdout, sys.stderr):
        _open_closed_streams()
    _never_refuse_a_character(sys.stdout, sys.stderr)
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
    guarded_loop = arguments is None and _starts_a_loop(words)
    if guarded_loop:
        from rooda.processes import guardian

        if "--detach" in words and not {"--dry-run", "-d", "--help", "-h"} & {*words}:
            _detach()
        guardian.start()
    from rooda.cli.exits import guarded

    code = guarded(words)
    if guarded_loop:
        _leave(code)
    return code


def _detach() -> None:
    """Only the child comes back, in a session of its own."""
    from rooda.processes import detach

    try:
        detach.detach(lambda text, aside: _print(f"{text}\n", sys.stderr if aside else sys.stdout))
    except OSError as problem:
        _print(f"Error: it can't go into the background: {problem.strerror or problem}\n", sys.stderr)
        sys.exit(1)


def _leave(code: int) -> None:
    """Out at once: after a signal somebody waits, and taking the interpreter apart costs ten milliseconds."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            pass
    from rooda.processes import guardian

    guardian.announce_exit()
    os._exit(code)


def _starts_a_loop(words: list[str]) -> bool:
    """A procedure, `run`, `resume`, or a mode of another kind of loop that is going to do something."""
    from rooda.cli.words import WORDS

    verbs, skip = [], False
    for word in words:
        if not skip and word[:1] != "-":
            verbs.append(word)
        skip = word in ("-C", "--config")
    verb, mode = (*verbs, "", "")[:2]
    if verb == "resume" and "--all" in words:
        return False  # they run beside us
    if verb in WORDS:
        return verb in ("run", "resume") or mode in WORDS[verb].starting
    return verb != ""


def _insist_on_utf8() -> None:
    """Restart in Python's UTF-8 mode: in a C locale without it no path or command can have an `é`."""
    if sys.flags.utf8_mode or not sys.executable:
        return
    spoken = getattr(sys.stdout or sys.stderr, "encoding", None) or "ascii"
    try:
        os.execve(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]], {**os.environ, _SPOKEN: spoken})
    except OSError:
        return


def _open_closed_streams() -> None:
    """Give what was closed (`rooda build >&-`) an end that leads nowhere, so that no file of ours takes its number."""
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            descriptor = os.open(os.devnull, os.O_RDWR)  # the lowest that is free
            os.set_inheritable(descriptor, True)
            setattr(sys, name, os.fdopen(descriptor, "r" if name == "stdin" else "w"))


def _never_refuse_a_character(*streams: "TextIO") -> None:
    """What a stream's encoding does not have is shown as `?`; an exception in its place would end the reports."""
    encoding = None
    if sys.flags.utf8_mode:
        encoding = os.environ.pop(_SPOKEN, None)  # no process of ours sees it
    for stream in streams:
        if getattr(stream, "errors", "") in ("strict", "surrogateescape") and isinstance(stream, TextIOWrapper):
            stream.reconfigure(encoding=encoding, errors="replace")


def _print(text: str, stream: "TextIO | None" = None) -> int:
    stream = stream or sys.stdout
    try:
        stream.write(text)
        stream.flush()
    except OSError:
        from rooda.views.screen import silence

        silence(stream)
    return 0
