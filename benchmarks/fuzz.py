"""How a parser's time grows with its input: processor time for n, 2n and 4n bytes of inputs that are large and simple.

`python -m benchmarks.fuzz [TARGET …] [--size N]`. A ratio of 4 between n and 4n is work that grows as the input does,
16 is its square.
"""

import argparse
import os
import signal
import sys

LEAST = 0.2  # seconds for 4n that are worth a row
LIMIT = 60.0


def seconds(name: str, word: str, size: int) -> float:
    """Of one input, in a process of its own."""
    from tests.fuzz.fuzz_big import big
    from tests.fuzz.fuzz_table import TARGETS

    data = dict(big(TARGETS[name], size))[word]
    pid = os.fork()
    if not pid:
        signal.setitimer(signal.ITIMER_PROF, LIMIT)
        try:
            TARGETS[name].take(data)
        finally:
            os._exit(0)
    _, _, used = os.wait4(pid, 0)
    return used.ru_utime + used.ru_stime


def rows(name: str, size: int) -> list[tuple[str, str, list[float]]]:
    """Of the inputs that take longest."""
    from tests.fuzz.fuzz_big import big
    from tests.fuzz.fuzz_table import TARGETS

    found = []
    for word, _ in big(TARGETS[name], 64):
        longest = seconds(name, word, 4 * size)
        if longest >= LEAST:
            found.append((name, word, [seconds(name, word, size), seconds(name, word, 2 * size), longest]))
    return found


def main() -> int:
    from tests.fuzz.fuzz_table import TARGETS

    parser = argparse.ArgumentParser(prog="python -m benchmarks.fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET")
    parser.add_argument("--size", type=int, default=250_000, help="n, in bytes")
    asked = parser.parse_args()
    print(f"| target | input | n = {asked.size:,} | 2n | 4n | ratio |\n|---|---|---|---|---|---|")
    for name in asked.targets or TARGETS:
        for _, word, (one, two, four) in rows(name, asked.size):
            figures = f"{one:.2f} s | {two:.2f} s | {four:.2f} s | {four / max(one, 0.01):.1f}"
            print(f"| {name} | {word} | {figures} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
