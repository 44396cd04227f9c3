"""`python -m tests.fuzz [TARGET …] --seconds N`: atheris on each target, from its corpus; what is new and small stays.

A crash is written as `corpus/TARGET/crash-HASH`, and from then on it is a test. Each target runs in a process of its
own with a limit of memory and of time per input, so that a hang is a crash too. Needs `pip install -e ".[test,fuzz]"`.
"""

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent

MEMORY, PATIENCE = 2048, 10  # megabytes, seconds per input
LONGEST = 4096  # bytes of an input that is tried
SMALL, MOST = 1024, 12  # bytes of an input that is kept, and how many of a target


def child(name: str, seconds: int, work: str) -> None:
    """In the child: libFuzzer's own loop, which ends the process."""
    import atheris

    with atheris.instrument_imports(include=["rooda"], enable_loader_override=False):
        from tests.fuzz.fuzz_table import TARGETS

    target = TARGETS[name]
    dictionary = os.path.join(work, "dictionary")
    Path(dictionary).write_text("".join(f'"{_escaped(piece)}"\n' for piece in target.pieces if len(piece) < 60))
    options = [
        f"-max_total_time={seconds}",
        f"-timeout={PATIENCE}",
        f"-rss_limit_mb={MEMORY}",
        f"-max_len={LONGEST}",
        f"-dict={dictionary}",
        f"-artifact_prefix={work}/crashes/",
        "-print_final_stats=1",
        "-verbosity=0",
        f"{work}/new",
        str(target.folder),
    ]
    atheris.Setup([sys.argv[0], *options], target.take)
    atheris.Fuzz()


def _escaped(piece: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in piece.encode("utf-8", "surrogatepass"))


def fuzzed(name: str, seconds: int) -> str:
    """One target for so long; gives a line about it."""
    folder = HERE / "corpus" / name
    with tempfile.TemporaryDirectory(prefix="rooda-fuzz-") as work:
        os.mkdir(f"{work}/new"), os.mkdir(f"{work}/crashes")
        log = Path(work, "log")
        with log.open("wb") as out:
            argv = [sys.executable, "-m", "tests.fuzz", "--child", work, "--seconds", str(seconds), name]
            env = {**os.environ, "TMPDIR": work}
            code = subprocess.run(argv, stdout=out, stderr=subprocess.STDOUT, env=env, cwd=HERE.parents[1]).returncode
        crashes = [_kept(folder, "crash", path.read_bytes()) for path in sorted(Path(work, "crashes").iterdir())]
        found = sorted(Path(work, "new").iterdir(), key=lambda path: path.stat().st_size)
        new = [path for path in found if path.stat().st_size <= SMALL]
        room = max(0, MOST - len(list(folder.glob("input-*"))))
        for path in _spread(new, room):
            _kept(folder, "input", path.read_bytes())
        told = log.read_text("utf-8", "replace")
        runs = [line.split()[-1] for line in told.splitlines() if "number_of_executed" in line]
        if crashes or code:
            print(told[-3000:], flush=True)
        said = f"{runs[-1] if runs else '?'} inputs, {len(found)} new"
        return f"{name}: {said}, {len(crashes)} crashes{': ' + ', '.join(crashes) if crashes else ''} (exit {code})"


def _spread(paths: list[Path], count: int) -> list[Path]:
    """So many of them, small and large."""
    step = max(1, len(paths) // max(1, count))
    return paths[::step][:count]


def _kept(folder: Path, kind: str, data: bytes) -> str:
    name = f"{kind}-{hashlib.sha256(data).hexdigest()[:12]}"
    folder.mkdir(parents=True, exist_ok=True)
    folder.joinpath(name).write_bytes(data)
    return name


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="a row of fuzz_table.py; none: all of them")
    parser.add_argument("--seconds", type=int, default=60, help="for each target")
    parser.add_argument("--child", metavar="FOLDER", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.child:
        child(asked.targets[0], asked.seconds, asked.child)
        return 0
    from tests.fuzz.fuzz_table import TARGETS

    unknown = [name for name in asked.targets if name not in TARGETS]
    if unknown:
        parser.error(f"no such target: {', '.join(unknown)}; there are {', '.join(TARGETS)}")
    told = []
    for name in asked.targets or TARGETS:
        told.append(fuzzed(name, asked.seconds))
        print(told[-1], flush=True)
    return 1 if any(", 0 crashes" not in line for line in told) else 0


if __name__ == "__main__":
    sys.exit(main())
