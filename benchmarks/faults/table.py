"""What the faults have cost, as a table for the README."""

import json
import os

RESULTS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "results", "kills.json")
WORDS = {
    "random": "SIGKILL at a random moment: loop, guardian, both, their group, everybody",
    "steps": "SIGKILL at each call that changes a file",
    "EIO": "each call on a file fails with EIO",
    "ENOSPC": "each call that needs room fails with ENOSPC",
    "signals": "signals and SIGKILL beside agents that cling to life",
}
COLUMNS = ("faults", "lost", "corrupted", "doubled", "orphaned", "failed")


def table(path: str = RESULTS) -> str:
    """A line for each sort of faults and kind of loop; nothing when nothing was tried."""
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file).get("faults", {})
    except FileNotFoundError:
        return ""
    rows = ["| fault | loop | tried | lost | corrupted | doubled | orphaned | failed |", "|---|---" + "|---:" * 6 + "|"]
    for sort, loops in found.items():
        for loop, counts in loops.items():
            told = " | ".join(f"{counts[name]:,}" for name in COLUMNS)
            rows.append(f"| {WORDS[sort]} | {loop} | {told} |")
    return "\n".join(rows) + "\n" if len(rows) > 2 else ""
