"""The world of a goal, scripted: it answers from lists and records each question."""

from collections.abc import Mapping, Sequence

from rooda.loops.goal.criteria import Criterion, Mark
from rooda.loops.goal.plan import MustNot, Step
from rooda.loops.goal.scoring import Scores
from rooda.loops.goal.state import Brief, GoalState
from rooda.loops.goal.world import CallResult, Finding, Fingerprint, Question, Violations, World
from rooda.loops.kernel import Saved, Scope
from rooda.run.event_records import Event

CRITERIA = (Criterion("a", "execution output", "check a"), Criterion("b", "execution output", "check b"))
BRIEF = Brief(
    "run", "spec", CRITERIA, (Step("one", ("a",)), Step("two", ("b",))), Scores(), 9, "Tool", "A", "2A",
    mustNot=(MustNot("no c", "check c"),),
)  # fmt: skip
START = GoalState(BRIEF, (Mark(False, "execution output"),) * 2, ("one", "two"), limit=10, budget=25.0)


def says(exit_signal: bool) -> str:
    return f"---LOOP_STATUS---\nEXIT_SIGNAL: {str(exit_signal).lower()}\nCRITERIA: {{}}\n---END_STATUS---\n"


class Script(World):
    """A scripted world, and a store in memory. Records each effect."""

    def __init__(
        self, replies: Sequence[CallResult], met: Sequence[set[str]], answers: Sequence[str | None] = ()
    ) -> None:
        self.replies, self.met, self.answers = list(replies), list(met), list(answers)
        self.trace: list[str] = []
        self.states: list[GoalState] = []
        self.events: list[str] = []

    def now(self) -> str:
        return "now"

    def seconds(self) -> float:
        return 0.0

    def signalled(self) -> int:
        return 0

    def requested(self) -> str:
        return ""

    def emit(self, event: Event) -> None:
        self.events.append(event.NAME)

    def redact(self, text: str) -> str:
        return text

    def wait(self, seconds: float) -> None:
        """Return at once."""

    def attended(self) -> bool:
        return False

    def missing_programs(self, commands: Mapping[str, str]) -> Mapping[str, str]:
        return {}

    def template(self, name: str) -> str:
        return "{{step}}" if name == "step" else ""

    def read_tail(self, path: str) -> str:
        return ""

    def write_note(self, name: str, text: str) -> str:
        return name

    def has_repository(self) -> bool:
        return True

    def tree(self, everywhere: bool) -> str:
        return ""

    def diff(self, base: str) -> str:
        return ""

    def diffstat(self, base: str) -> tuple[str, ...]:
        return ()

    def fingerprints(self, commands: Sequence[str]) -> tuple[Fingerprint, ...]:
        return ()

    def shape_file(self) -> tuple[str, str]:
        return "", ""

    def written_since_call(self, paths: Sequence[str]) -> tuple[str, ...]:
        return ()

    def ask(self, kind: str, number: int, text: str) -> CallResult:
        self.trace.append(f"ask {kind} {number}: {text.splitlines()[-1]}")
        return self.replies.pop(0)

    def verify(self, criteria: Sequence[Criterion], iteration: int) -> list[Finding]:
        self.trace.append(f"verify {iteration} {' '.join(each.name for each in criteria)}")
        met = self.met.pop(0)
        return [Finding(each.name, each.name in met, "evidence") for each in criteria]

    def violations(self, entries: Sequence[MustNot], iteration: int) -> Violations:
        self.trace.append(f"mustNot {iteration}")
        return Violations()

    def ask_user(self, question: Question) -> str | None:
        self.trace.append(f"question {question.gate}")
        return self.answers.pop(0)

    def checkpoint(self, run: str, number: int) -> str:
        self.trace.append(f"checkpoint {number}")
        return ""

    def changed_files(self, before: Sequence[Fingerprint]) -> tuple[str, ...]:
        self.trace.append("tests")
        return ()

    # the store
    def load(self, scope: Scope) -> Saved:
        return Saved()

    def carry(self, scope: Scope, state: GoalState) -> GoalState:
        if not self.states or self.states[-1] != state:
            self.trace.append(f"write {state.iteration} {state.status} {str(state.exit_signal).lower()}")
            self.states.append(state)
        return state
