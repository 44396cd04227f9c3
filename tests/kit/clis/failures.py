"""Print what rooda makes of each failure of each CLI, as recorded: `python -m tests.kit.clis.failures`.

A star marks a CLI that had not given up when the recording was stopped: rooda's idle timeout would have ended it.
"""

import json
import sys
from pathlib import Path
from typing import NamedTuple

from rooda.agents import transcript
from rooda.agents.outcome import OK, judge
from rooda.agents.reader import reader

from .cases import FAILURES
from .record import GOLDEN, agent


class Found(NamedTuple):
    """The outcome of a recorded call, and whether the CLI ended by itself."""

    outcome: str
    gave_up: bool
    message: str


def found(cli: str, case: str) -> Found | None:
    """Read a recording as rooda does; None if the case is not recorded."""
    place = Path(GOLDEN, cli, f"{case}.out")
    if not place.exists():
        return None
    facts, output = json.loads(place.with_suffix(".json").read_bytes()), agent(cli, "")[1]["output"]
    code = facts["returncode"] if facts["returncode"] >= 0 else 128 - facts["returncode"]
    gathered = transcript.read(output, str(place))
    transcript.take_report(output, str(place), gathered)
    ended = "idle" if facts["limited"] else "exit"
    judged = judge(gathered.facts(), ended, code, reader(output).status_of_exit.get(code))
    return Found(judged.kind, not facts["limited"], judged.message)


def table() -> dict[str, dict[str, Found]]:
    """Return the recorded failures of each CLI."""
    names = sorted(place.name for place in Path(GOLDEN).iterdir() if place.is_dir())
    rows = {cli: {case: each for case in FAILURES if (each := found(cli, case))} for cli in names}
    return {cli: row for cli, row in rows.items() if row}


def main() -> int:
    """Print the table; 1 if a failure is taken for a success."""
    rows = table()
    print(f"{'':<10}" + "".join(f"{case:<18}" for case in FAILURES))
    for cli, row in rows.items():
        cells = (
            f"{each.outcome}{'' if each.gave_up else ' *'}" if (each := row.get(case)) else "–" for case in FAILURES
        )
        print(f"{cli:<10}" + "".join(f"{cell:<18}" for cell in cells).rstrip())
    return int(any(each.outcome == OK for row in rows.values() for each in row.values()))


if __name__ == "__main__":
    sys.exit(main())
