"""Parsers of what agents answer and of what people write for them, each as one function of bytes."""

import json

from rooda.agents import outcome, prices
from rooda.base import files, yaml
from rooda.errors import ConfigProblem, UsageProblem
from rooda.loops.flow import boundaries, effects, topology
from rooda.loops.flow import contract as flow_contract
from rooda.loops.flow.artifacts import header, read_state
from rooda.loops.flow.contract import Broken
from rooda.loops.goal import answers, criteria, scoring, shape, task_plan, watched_files
from rooda.loops.goal import plan as goal_plan
from rooda.loops.goal import rules as goal_rules
from rooda.loops.procedure import feedback
from rooda.loops.reflex import contract, drafting, rules
from rooda.loops.reflex.contract import Breach
from rooda.loops.reflex.state import decoded, encoded
from rooda.processes.regex import search
from rooda.run import gate_programs, gates_md, task_lists
from tests.fuzz.fuzz_room import put, room, seen, text


def flow_file(data: bytes) -> None:
    """flow.yaml: a tree of nodes, or every fault with the file's name."""
    for name in ("c.md", "a.md", "loop-sensor-tests.md"):
        put(f".ai-loop/agents/{name}", b"---\nname: x\n---\n")
    put(".ai-loop/flow.yaml", data)
    try:
        found = topology.load(room())
        assert found.root.max_iterations >= 1 and found.root.id
    except ConfigProblem as problem:
        assert ".ai-loop/flow.yaml" in str(problem) and len(str(problem)) < 100_000 + 200 * len(data)


def yaml_text(data: bytes) -> None:
    """A document: what it holds can be told, and a text written as a scalar is read back."""
    said = text(data)
    found = yaml.read(said)
    repr(found.value), sorted(found.faults)
    plain = seen(data)[:200]
    assert yaml.read(f"- {yaml.quoted(plain)}").value == [plain]
    if plain.isprintable():
        assert yaml.read(f"- {yaml.scalar(plain)}").value == [plain]


def front_matter(data: bytes) -> None:
    """An artifact of a flow, as each of its readers takes it."""
    said = text(data)
    for judge in (
        lambda: flow_contract.reading(said, "tests"),
        lambda: flow_contract.decision(said, True),
        lambda: flow_contract.action(said),
        lambda: flow_contract.require_report(said),
    ):
        try:
            judge()
        except Broken as problem:
            assert len(str(problem)) < 10_000, len(str(problem))
    flow_contract.unfenced(said)
    yaml.lenient(said)
    effects.command_of(said)
    keys, body = yaml.front_matter(said)
    assert said.endswith(body)
    again = {str(key): value for key, value in read_state(said).items() if isinstance(value, str | bool)}
    again = {key: value for key, value in again.items() if key.isalpha() and key.isascii() and key not in _WORDS}
    assert keys is None or read_state(header(again)) == again, again


_WORDS = ("y", "n", "yes", "no", "on", "off", "true", "false", "null")  # no names of keys


def commit_message(data: bytes) -> None:
    """A boundary's message; what is understood, written again, is understood as the same."""
    found = boundaries.read(seen(data))
    if found is not None:
        again = boundaries.read(boundaries.message(found))
        assert again is None or again.state.iteration == found.state.iteration


def agents_file(data: bytes) -> None:
    for gate in (*gates_md.gates(text(data)), *gates_md.commands(text(data))):
        assert gate.command and "\n" not in gate.command


def gate_output(data: bytes) -> None:
    """A gate's output as STATUS shows it, and as a command: no control characters, no more than allowed, and closed."""
    shown = feedback.excerpt(data.decode("utf-8", "replace"), 500, str)
    assert len(shown) <= 500 and all(sign.isprintable() or sign in "\t\n" or sign > "\x9f" for sign in shown)
    fence = feedback.fenced(shown).split("\n")[0]
    assert fence not in shown and feedback.code(seen(data)).count("\x1b") == seen(data).count("\x1b")
    assert "\n" not in gate_programs.program(text(data))


def status_block(data: bytes) -> None:
    """What an agent claims at its end; and its text without that."""
    found = answers.read_block(seen(data))
    assert not (found.exit and found.fault)
    assert answers.read_block(answers.without_blocks(seen(data))).exit is False
    goal_rules.first_error(seen(data)), goal_rules.normalized(goal_rules.last_error(seen(data)))


def plan_reply(data: bytes) -> None:
    """A plan as an agent answers it, and as SHAPE.md; the names of its criteria come back."""
    said = answers.unwrap(seen(data)).text
    plan = goal_plan.read_plan(answers.find_json(said))
    goal_plan.unique(plan.must_not, plan.must_not)
    scores = scoring.checked_quotes(plan.scores, said) if plan.scores else scoring.Scores()
    written = shape.shape_text(plan, scores.total)
    again = shape.read_shape(written)
    names = [each.name for each in plan.criteria]
    if all(name.isascii() and name.replace(" ", "").isalnum() for name in names):
        assert [each.name for each in again.criteria] == list(dict.fromkeys(names))


def expectation(data: bytes) -> None:
    """A bound or a pattern in the first line, and what it is held against."""
    expect, _, output = seen(data).partition("\n")
    if not criteria.fault(expect):
        assert criteria.holds(expect, output, lambda *given: search(*given, 1.0) == "found") in (True, False)


def shape_file(data: bytes) -> None:
    for criterion in shape.read_shape(text(data)).criteria:
        assert criterion.name and criterion.kind


def task_list(data: bytes) -> None:
    """A list of tasks: each task is a step once, or named as lost, and has a line of the file."""
    said = text(data)
    try:
        listed = task_lists.read(said)
    except task_lists.UnknownForm:
        return
    plan = task_plan.read_tasks(listed, said)
    assert listed.items and (plan.unclear or len(plan.steps) + len(plan.finished) == len(listed.items))
    assert all(0 <= item.line <= said.count("\n") + 1 for item in listed.items)


def specification(data: bytes) -> None:
    """A specification's own words: score, workflow, class. The words that earn a point are in it."""
    said = text(data)
    scores = scoring.score_words(said)
    assert all(score.quote in said and 0 <= score.score <= 2 for score in scores)
    assert scoring.workflow(said) in "ABC"
    scoring.least_class(said), scoring.skips_gates(said), scoring.read_option(said), scoring.gate_fault("A", said, said)


def precheck(data: bytes) -> None:
    assert len(answers.read_precheck(seen(data))) <= answers.MOST
    answers.must_nots(seen(data))


def ruling(data: bytes) -> None:
    """What it names is one line each; or it is no answer."""
    named = answers.read_ruling(seen(data), ("Never touch prod", "no"))
    assert named is None or all(each and each.isprintable() for each in named)


def file_name(data: bytes) -> None:
    name = criteria.evidence_name(3, seen(data))
    assert "/" not in name and len(name.encode("utf-8", "replace")) < 200
    watched_files.verifies(seen(data))
    assert all(watched_files.recipes(f"make {seen(data)}"))


def reflex_reply(data: bytes) -> None:
    """What a phase answers, by each contract; only a Breach is refused."""
    rules, answer = ["a.x.one", "b.x.two"], seen(data)
    for extraction in (contract.STRICT, contract.LENIENT):
        try:
            found = contract.one_object(answer, extraction)
        except Breach as problem:
            assert len(str(problem)) < 10_000
            continue
        for judge in (
            contract.plan,
            lambda found: contract.checks(found, rules, "a.md"),
            lambda found: contract.verdicts(found, rules),
            lambda found: contract.issues(found, rules),
        ):
            try:
                json.dumps(judge(found), ensure_ascii=False).encode("utf-8", "surrogateescape")
            except Breach as problem:
                assert len(str(problem)) < 10_000 + 2 * len(data)
    try:
        clean = contract.markdown(answer)
        assert clean.endswith("\n") and clean.strip()
    except Breach:
        pass


def reflex_draft(data: bytes) -> None:
    """Rules of a file, in JSON and in TOML: complete criteria that can be stored and read again, or a sentence."""
    for toml in (False, True):
        try:
            found = drafting.parsed(text(data), "rules", toml)
        except UsageProblem as problem:
            assert str(problem).startswith("rules: ")
            continue
        kept = json.loads(json.dumps(rules.stored(found.criteria), ensure_ascii=False))
        state = {"run_id": "r", "task_alias": "loop", "status": "running", "iteration": 1, "max_iterations": 4}
        state |= {"phase": "A", "current_step": "PLAN", "task": {"prompt": "p"}, "criteria": kept}
        assert encoded(decoded(state))["criteria"] == kept


def sections(data: bytes) -> None:
    """The parts of an artifact: none of its lines is lost."""
    said = text(data)
    found = rules.sections(said)
    assert all(line in "".join(found.values()) for line in said.split("\n")[:50] if line.strip())
    before = rules.hashes(said, files.sha256)
    assert rules.changed(before, before) == []


def promises(data: bytes) -> None:
    """A signal, or none; a prompt's own words are an echo."""
    lines = data.split(b"\n")
    assert outcome.verdict(outcome.claims(lines), data) == ""
    assert outcome.verdict(outcome.claims(lines), b"") in ("", "SUCCESS", "FAILURE")


def failure_words(data: bytes) -> None:
    """The words of a CLI that failed: which kind of failure."""
    from rooda.agents.records import Facts

    said = seen(data)
    for facts in (Facts(message=said, error="error"), Facts(unparsed=said)):
        assert outcome.judge(facts, "exit", 1).kind


def price_name(data: bytes) -> None:
    """A name of [prices] in the first line, a model's name in the second."""
    name, _, model = seen(data).partition("\n")
    prices.price_of(model, {name: (1.0, 2.0, 3.0, 4.0), "*": (1.0, 2.0, 3.0, 4.0)})
