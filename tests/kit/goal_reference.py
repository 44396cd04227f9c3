"""A reference model of the goal loop, written from the checklist alone, and random cases for it."""

from typing import Any, NamedTuple

from hypothesis import strategies as st

NAMES = ("alpha", "beta", "gamma")
CONFIRM = "Confirm completion"


class Turn(NamedTuple):
    """What the agent does in one iteration."""

    makes: frozenset[str] = frozenset()
    breaks: frozenset[str] = frozenset()
    code: int = 0
    word: str = "x"  # its error line, if it fails
    claim: bool = False
    bad: bool = False  # makes what must not be
    cost: float = 0.0
    next: str = ""


class Case(NamedTuple):
    """A goal and its agent."""

    criteria: tuple[str, ...]
    noisy: frozenset[str]  # criteria whose check prints an error line
    steps: tuple[tuple[str, tuple[str, ...]], ...]
    turns: tuple[Turn, ...]
    limit: int
    budget: float
    plan_cost: float = 0.0

    def turn(self, iteration: int) -> Turn:
        return self.turns[iteration] if iteration < len(self.turns) else Turn()


class Outcome(NamedTuple):
    """What can be seen from outside."""

    calls: int  # of kind step
    blocks: list[tuple[bool, dict[str, bool], int, str]]
    state: dict[str, Any]
    reason: str
    code: int


def model(case: Case) -> Outcome:
    """Plain code: no state machine, no records of ours."""
    files: set[str] = set()
    met = dict.fromkeys(case.criteria, False)
    steps = [name for name, _ in case.steps]
    ties = dict(case.steps)
    untied = [name for name in case.criteria if not any(name in tied for _, tied in case.steps)]
    done = iteration = stuck = repeats = 0
    cost, last_sign, reason = case.plan_cost, "", ""
    exit_signal = False
    blocks: list[tuple[bool, dict[str, bool], int, str]] = []
    while not reason and not exit_signal:
        if cost >= case.budget - 1e-9:
            reason = f"budget exceeded: ${cost:.2f}/{dollars(case.budget)}"
            break
        if iteration >= case.limit:
            reason = f"iteration limit: {case.limit}"
            break
        if done == len(steps) and not all(met.values()):
            steps.append(new_step(next(name for name in case.criteria if not met[name]), steps, ties))
        step = steps[done] if done < len(steps) else CONFIRM
        own = ties.get(step, ())
        turn = case.turn(iteration)
        unmet_before, done_before = unmet(met), done
        files = (files | turn.makes) - turn.breaks
        cost += turn.cost
        good = False
        if not turn.bad:
            due = [name for name in case.criteria if name in own or met[name] or name in untied]
            for name in due:
                met[name] = name in files
            if turn.code == 0 and done < len(steps) and all(met[name] for name in own):
                done, good = done + 1, True
            if turn.code == 0 and all(met[name] for name in due) and (turn.claim or done == len(steps)):
                met = {name: name in files for name in case.criteria}
                exit_signal = turn.claim and all(met.values())
        stuck = stuck + 1 if iteration and unmet(met) and unmet(met) == unmet_before else 0
        iteration += 1
        sign = signature(case, turn, own, met)
        progress = done > done_before or set(unmet_before) - set(unmet(met))
        repeats = 0 if not sign else repeats + 1 if sign == last_sign and not progress else 1
        last_sign = sign
        blocks.append((exit_signal, dict(met), stuck, following(exit_signal, turn, steps, done, met)))
        if exit_signal:
            break
        if turn.bad:
            reason = "mustNot: no bad"
        elif stuck >= 5:
            reason = f"same criteria unmet 5x: {', '.join(unmet(met))}"
        elif repeats >= 3:
            reason = f"same error 3x: {sign}"
        assert good or done == done_before
    state = {
        "criteriaStatus": met, "exit_signal": exit_signal, "steps": steps, "completedSteps": steps[:done],
        "remainingSteps": steps[done:], "iteration": iteration, "status": "completed" if exit_signal else "paused",
        "circuitBreaker": {"stuckCount": stuck, "lastUnmet": (unmet(met) or [""])[0] if iteration else ""},
    }  # fmt: skip
    return Outcome(len(blocks), blocks, state, reason, 0 if exit_signal else 4)


def unmet(met: dict[str, bool]) -> list[str]:
    return [name for name, holds in met.items() if not holds]


def new_step(name: str, steps: list[str], ties: dict[str, tuple[str, ...]]) -> str:
    fresh, count = f"Satisfy: {name}", 1
    while fresh in steps:
        count += 1
        fresh = f"Satisfy: {name} ({count})"
    ties[fresh] = (name,)
    return fresh


def signature(case: Case, turn: Turn, own: tuple[str, ...], met: dict[str, bool]) -> str:
    if turn.code:
        return f"exit {turn.code}: Error: {turn.word}"
    if turn.bad:
        return ""
    return "; ".join(
        f"Error: no {name}" for name in case.criteria if name in own and name in case.noisy and not met[name]
    )


def following(exit_signal: bool, turn: Turn, steps: list[str], done: int, met: dict[str, bool]) -> str:
    if exit_signal:
        return "none"
    if turn.next:
        return turn.next
    if done < len(steps):
        return steps[done]
    return f"Satisfy: {unmet(met)[0]}" if unmet(met) else CONFIRM


def dollars(amount: float) -> str:
    return f"${amount:.0f}" if amount == int(amount) else f"${amount:.2f}"


def subsets(names: tuple[str, ...]) -> st.SearchStrategy[frozenset[str]]:
    return st.frozensets(st.sampled_from(names), max_size=2)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    criteria = draw(st.sampled_from([NAMES[:1], NAMES[:2], NAMES]))
    tied = st.lists(st.sampled_from(criteria), max_size=2, unique=True).map(tuple)
    steps = tuple((f"step {place}", draw(tied)) for place in range(1, draw(st.integers(1, 4)) + 1))
    turn = st.builds(
        Turn,
        makes=subsets(criteria),
        breaks=st.one_of(st.just(frozenset()), st.just(frozenset()), subsets(criteria)),
        code=st.sampled_from([0, 0, 0, 1, 7]),
        word=st.sampled_from(["boom", "crash"]),
        claim=st.booleans(),
        bad=st.sampled_from([False] * 15 + [True]),
        cost=st.sampled_from([0.0, 1.0, 2.5]),
        next=st.sampled_from(["", "", "look again"]),
    )
    turns = tuple(draw(st.lists(turn, max_size=9)))
    return Case(
        criteria,
        draw(subsets(criteria)),
        steps,
        turns,
        draw(st.integers(1, 9)),
        draw(st.sampled_from([25.0, 6.5, 3.0])),
    )
