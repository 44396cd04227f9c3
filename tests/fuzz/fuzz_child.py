"""Targets' inputs in processes of their own, with an end to memory and to time: a hang is a failure, not a wait.

`python -m tests.fuzz.fuzz_child big SIZE SECONDS TARGET …`, or `corpus` for `big`. One process imports all there is to
import, and forks for each target. Each input is named before it is taken, so that one knows which was not survived.
"""

import gc
import os
import resource
import signal
import subprocess
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

MEMORY = 3 << 30  # bytes of address space; the program itself, with all that the tests import, takes about 0.3
HUNGRY = 1 << 30  # for the target that takes what it gets
ROOT = Path(__file__).parents[2]


def main(what: str, size: int, seconds: float, names: list[str]) -> None:
    """A line for each target that did not survive."""
    import tests.fuzz.fuzz_big  # noqa: F401 (all that the targets need, before the forks)
    from tests.fuzz.fuzz_room import room

    room()
    gc.freeze()  # a collection in a child would copy the memory of all modules
    for name in names:
        log = os.path.join(room(), "log")
        pid = os.fork()
        if not pid:
            with open(log, "w") as file:
                os.dup2(file.fileno(), 1), os.dup2(file.fileno(), 2)
            os._exit(_taken(name, what, size, seconds))
        _, status = os.waitpid(pid, 0)
        if status:
            slow = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGPROF
            how = f"took longer than {seconds} s" if slow else f"ended with {status}"
            print(f"{name}: {how}: {Path(log).read_text(errors='replace')[-1500:]}", flush=True)
    print("all", flush=True)


def _taken(name: str, what: str, size: int, seconds: float) -> int:
    from tests.fuzz.fuzz_big import big
    from tests.fuzz.fuzz_table import TARGETS, Target

    target = TARGETS.get(name) or Target(name, hang if name == "hang" else hunger, ("x",))
    inputs = big(target, size) if what == "big" else ((path.name, path.read_bytes()) for path in target.corpus())
    memory = HUNGRY if target.take is hunger else MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for word, data in inputs:
        os.write(1, f"{word}\n".encode("utf-8", "replace"))
        signal.setitimer(signal.ITIMER_PROF, seconds)  # of this process's own work; its default ends the process
        try:
            target.take(data)
        except BaseException:
            traceback.print_exc(limit=-5)
            return 1
        signal.setitimer(signal.ITIMER_PROF, 0)
    return 0


def hang(data: bytes) -> None:
    while True:
        pass


def hunger(data: bytes) -> None:
    while True:
        data += data


def faults(names: Sequence[str], what: str, size: int, seconds: float) -> list[str]:
    """What went wrong in a child that does this, target by target."""
    argv = [sys.executable, "-m", "tests.fuzz.fuzz_child", what, str(size), str(seconds), *names]
    ran = subprocess.run(argv, capture_output=True, text=True, errors="replace", cwd=ROOT)
    told = ran.stdout.removesuffix("all\n")
    return ([told] if told else []) + ([] if ran.returncode == 0 and told != ran.stdout else [ran.stderr[-3000:]])


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), sys.argv[4:])
