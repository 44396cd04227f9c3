"""Random rules, thresholds, answers and failures."""

from decimal import Decimal

from hypothesis import strategies as st

from .reflex_reference import Rule, Script

NAMES = ("endpoints", "names", "types", "examples")
WEIGHTS = {
    "fail": st.sampled_from(["2", "1", "0.3", "3", "2.5"]),
    "warn": st.sampled_from(["1", "0.1", "0.6", "2", "0.25", "0"]),
    "info": st.just("0"),
}


@st.composite
def rules(draw: st.DrawFn) -> tuple[Rule, ...]:
    found = []
    for phase in "AB":
        for name in draw(st.lists(st.sampled_from(NAMES), unique=True, min_size=phase == "A", max_size=4)):
            severity = draw(st.sampled_from(["fail", "warn", "warn", "info"]))
            found.append(Rule(f"{phase.lower()}.quality.{name}", severity, Decimal(draw(WEIGHTS[severity])), phase))
    return tuple(found)


@st.composite
def scripts(draw: st.DrawFn, failures: bool = True) -> Script:
    found = draw(rules())
    ids = [rule.id for rule in found]
    thresholds = st.sampled_from(["0", "0.5", "0.6", "0.75", "0.8", "0.85", "0.9", "1"])
    maximum = draw(st.integers(1, 6))
    holding = st.frozensets(st.sampled_from(ids)) | st.just(frozenset(ids))
    artifacts = draw(st.lists(holding, min_size=1, max_size=maximum))
    phases = st.sampled_from(["PLAN", "PRODUCE", "PREPARE", "CRITIQUE", "REFINE"])
    bad = draw(st.frozensets(st.tuples(phases, st.integers(1, 7)), max_size=4)) if failures else frozenset()
    limits = {level: Decimal(draw(thresholds)) for level in "AB"}
    return Script(found, limits, maximum, tuple(artifacts), bad)
