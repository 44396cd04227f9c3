"""Several rooda commands one after another, each in a process of its own that is forked once rooda is loaded.

`python -m tests.kit.several FILE`: the file is a JSON list of commands, each a list of words. Prints the results as
JSON, one a line: exit code, stdout, stderr. It is for commands that only look, where the start is not what is tested.
"""

import gc
import importlib
import json
import os
import sys
import tempfile
import traceback

COMMON = ("cli.app", "cli.exits", "loops.configuration", "loops.overview", "loops.trusting", "views.lines")
COMMANDS = ("status", "logs", "why", "usage", "resume", "verbs")
KINDS = ("procedure", "reflex", "flow", "goal")


def main(file: str) -> None:
    with open(file, encoding="utf-8") as given:
        commands = json.load(given)
    os.unlink(file)
    _load({word for words in commands for word in words})
    for words in commands:
        print(json.dumps(_run(words)), flush=True)


def _load(words: set[str]) -> None:
    """Import what these commands need; what is missing here is imported by the command itself."""
    gc.disable()  # as at each start of rooda
    modules = [f"cli.{name}" for name in COMMANDS if name in words]
    modules += [f"loops.{kind}.{name}" for kind in KINDS if kind in words for name in ("cli", "kind", "view")]
    for name in (*COMMON, *modules):
        importlib.import_module(f"rooda.{name}")
    gc.freeze()


def _run(words: list[str]) -> tuple[int, str, str]:
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        pid = os.fork()
        if not pid:
            os.dup2(out.fileno(), 1)
            os.dup2(err.fileno(), 2)
            os._exit(_answer(words))
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        texts = [os.pread(each.fileno(), os.fstat(each.fileno()).st_size, 0) for each in (out, err)]
    return (status, *(text.decode("utf-8", "replace") for text in texts))  # type: ignore[return-value]


def _answer(words: list[str]) -> int:
    from rooda.startup import main

    sys.argv = ["rooda", *words]
    try:
        code = main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    return code  # without the clean-up of an interpreter, which takes as long as the command


if __name__ == "__main__":
    main(sys.argv[1])
