"""The scenarios T1 to T8 of the rows, as a script for the agent and what they must come to."""

from typing import NamedTuple

from .reflex import AUTH, DESCR, ENDPOINTS, NAMING, Kit, issue, issues, words
from .workspace import Ran


class Scenario(NamedTuple):
    """What PRODUCE and REFINE answer, and the end."""

    produce: tuple[str, ...]
    refine: tuple[str, ...] = ()
    maximum: int = 4
    trace: str = ""
    reason: str = ""
    status: str = "completed"
    iteration: int = 1
    phase: str = "B"
    score: float = 1.0
    code: int = 0
    count: int = 0  # stagnation
    issue_of: str = ENDPOINTS


ROUND = "PacECFI"
T = {
    "T1": Scenario(("ENAD",), trace="RPacEScEX", reason="threshold_reached"),
    "T2": Scenario(("N", "ENAD"), ("EN",), trace=f"R{ROUND}PacEScEX", reason="threshold_reached", iteration=2),
    "T3": Scenario(("N",), ("N",), 2, f"R{ROUND}PacEX", "iteration_limit", "stopped", 2, "A", 1 / 3, 4),
    "T4": Scenario(("ENA",), trace="RPacEScEX", reason="no_major_issues", score=5 / 6),
    "T5": Scenario(("E",), ("E",), 6, f"R{ROUND}{ROUND}PacEX", "stagnation", "stopped", 3, "A", 2 / 3, 4, 2, NAMING),
    "T6": Scenario(
        ("END", "ENAD"), ("END",), trace="RPacEScECFIPacEX", reason="threshold_reached", iteration=2, issue_of=AUTH
    ),
}
SEARCHED = (ENDPOINTS, NAMING, AUTH, DESCR)


def script(kit: Kit, name: str) -> Scenario:
    """Make the agent say what the scenario wants."""
    wanted = T[name]
    for phase, texts in (("PRODUCE", wanted.produce), ("REFINE", wanted.refine)):
        for number, text in enumerate(texts, 1):
            kit.answer(f"{phase}.{number}", words(text))
    kit.answer("CRITIQUE.1", issues(issue(wanted.issue_of, f"Add what {wanted.issue_of} asks for")))
    return wanted


def by_iteration(kit: Kit, name: str) -> Scenario:
    """The same by iteration instead of by number of calls, as a killed and resumed loop needs it."""
    wanted = script(kit, name)
    for phase, texts in (("PRODUCE", wanted.produce), ("REFINE", wanted.refine)):
        for number in range(1, 7):
            kit.answer(f"{phase}.i{number}.1", words(texts[min(number, len(texts)) - 1] if texts else "ENAD"))
    return wanted


def play(kit: Kit, name: str, *more: str, maximum: int | None = None) -> Ran:
    wanted = script(kit, name)
    return kit.new(wanted.maximum if maximum is None else maximum, *more)
