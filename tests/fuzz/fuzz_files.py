"""Parsers of settings and of the files that keep a loop's state, each as one function of bytes."""

import json
import os

from rooda.agents import limits
from rooda.base import json as base_json
from rooda.base.json import encode
from rooda.cli import usage
from rooda.cli.logs import show
from rooda.errors import USAGE, RoodaError
from rooda.loops import registry
from rooda.loops.configuration import load
from rooda.loops.goal import files as goal_files
from rooda.loops.goal import store, table
from rooda.loops.goal.commands import answer
from rooda.loops.procedure import loop, settings, view
from rooda.loops.procedure import store as procedure_store
from rooda.loops.procedure.state import COMPLETED, resumed_state, total_seconds
from rooda.loops.reflex import files, inspect, status
from rooda.loops.reflex.store import open_store
from rooda.processes import ledger as processes_ledger
from rooda.processes import lock
from rooda.run import tokens
from rooda.run.folder import is_id
from rooda.run.history import last_limits, parsed, used
from rooda.run.seal import Seal
from rooda.run.spending import usage_row
from rooda.settings import detect, procedures
from rooda.settings.lookup import decided, origins
from rooda.settings.toml import toml_value
from rooda.views.lines import LEVELS, lines
from rooda.views.why import reasons
from tests.fuzz.fuzz_room import put, room, text


def settings_file(data: bytes) -> None:
    """Understood, and then everything of it can be shown and resolved; or refused in sentences that name the file."""
    path = put("rooda.toml", data)
    try:
        found = load(room(), environ={"HOME": room()})
        for _, value, origin in origins(found):
            assert origin and "\n" not in toml_value(value)
        names = procedures.names(found)
        for name in [each for each in names if found.origin(("procedures", each)) != "built-in"][:5] or ["build"]:
            procedure = settings.procedure(found, name, {})
            assert len(procedure.phases) == 4
            for key, value, _ in decided(found, name, {}):
                assert key and "\n" not in toml_value(value)
    except RoodaError as problem:
        assert problem.code == USAGE and path in str(problem), str(problem)


def environment(data: bytes) -> None:
    """`KEY=VALUE` lines as variables of [loop]; a refusal begins with the variable's name."""
    pairs = (line.partition("=") for line in text(data).replace("\0", "").split("\n"))
    put("rooda.toml", b"")
    environ = {f"ROODA_LOOP_{key}": value for key, equals, value in pairs if equals}
    try:
        found = load(room(), environ={"HOME": room(), **environ})
        settings.procedure(found, "build", {})
    except RoodaError as problem:
        assert problem.code == USAGE and "ROODA_LOOP_" in str(problem), str(problem)


def project(data: bytes) -> None:
    """Files of other tools in which gates are looked for."""
    for name in ("pyproject.toml", "package.json", "Makefile", "justfile"):
        put(f"project/{name}", data)
    folder = os.path.join(room(), "project")
    for found in detect.gates(folder):
        assert all(detect.program(command) for command in found.commands)


def ooda_state(data: bytes) -> None:
    """A state, which can be carried on, shown, and saved as the same again; or a sentence."""
    place = procedure_store.Place(room(), "build")
    put(".rooda/state/build.json", data)
    state = procedure_store.load_state(place)
    assert state is not None
    begun = resumed_state(state, None, None)
    loop.why_stop(begun, 0)
    facts = {"procedure": "build", "iterations": state.iteration, "max_iterations": state.max_iterations}
    assert lines({"event": "run.resumed", **facts, "elapsed": total_seconds(state)}, view.LINES)
    store = procedure_store.ProcedureStore(place, lambda event: None)
    if state.status != COMPLETED:
        store.carry((), state)
        assert procedure_store.load_state(place) == state


def _reflex(run: bytes, events: bytes) -> None:
    place = files.Place(room(), "loop")
    put(".ai-factory/evolution/loop/run.json", run)
    put(".ai-factory/evolution/loop/history.jsonl", events)
    put(".ai-factory/evolution/loop/artifact.md", b"# A\n")
    json.dumps(status.facts_of(place), ensure_ascii=False)
    assert status.lines(status.facts_of(place)) and status.row_line(status.row(place), 9)
    found = files.load(place)
    assert all(map(inspect.event_line, found.history))
    if found.state is not None:
        open_store(place, found)
        again = files.read_state(place)
        assert again is not None
        files.write_json(place.run, encode(again))
        assert repr(files.read_state(place)) == repr(again)


def reflex_run(data: bytes) -> None:
    """run.json alone: told of, and what is understood is the same after it was written again."""
    _reflex(data, b"")


def reflex_history(data: bytes) -> None:
    """The history alone: what it tells is told again."""
    _reflex(b"{", data)


def reflex_pointer(data: bytes) -> None:
    put(".ai-factory/evolution/current.json", data)
    files.active(room())
    os.unlink(files.pointer(room()))


def _goal(name: str, data: bytes) -> None:
    place = goal_files.Place(room())
    for other in ("state.json", "run.json", "iterations.jsonl"):
        put(f".loop/{other}", data if other == name else b"")
    state = store.load(place)
    if state is None:
        return
    json.dumps(table.facts(state, False, None), ensure_ascii=False)
    for facts in (table.facts(state, True, 7), table.facts(state, False, None)):
        assert table.table(facts["criteria"]) is not None
    said = store.encode(store.private(state), 2)
    assert repr(store.decode(base_json.parse_object(said))) == repr(state._replace(tests=state.tests))


def goal_run(data: bytes) -> None:
    """run.json of a goal: shown, and the same after it was written again; or a sentence."""
    _goal("run.json", data)


def goal_journal(data: bytes) -> None:
    """iterations.jsonl, the backup of run.json."""
    _goal("iterations.jsonl", data)


def goal_public(data: bytes) -> None:
    """state.json, as a stop hook reads it: always an answer."""
    said = answer(put("state.json", data))
    assert said["ok"] in (True, False) and json.dumps(said)


def seal(data: bytes) -> None:
    put(".rooda/goal.seal", data)
    found = Seal(room(), "goal")
    assert found.doubt()
    assert found.covers(b"{}") in (True, False)


def events(data: bytes) -> None:
    """events.jsonl: for the screen, for `why`, for the books, and for the limits of a resume."""
    run = "20260301T120000Z-build-77"
    path = put(f".rooda/runs/{run}/events.jsonl", data)
    records = [record for line in data.split(b"\n") if (record := parsed(line))]
    for record in records:
        show(record, LEVELS["error"] + 1)
    for reason in reasons(records, registry.view):
        json.dumps(reason._asdict())
    calls = list(used(room()))
    rows = [usage_row("x", calls)] if calls else []
    if rows:
        json.dumps(rows)
        usage._table(rows, "loop")
    assert last_limits(room(), "build", "ooda").seconds is not None
    os.unlink(path)


def ledger(data: bytes) -> None:
    """A lock file with its ledger. Nothing is ended here: it is only parsed."""
    found = lock.owner(put("build.lock", data))
    calls = found.get("calls")
    noted = processes_ledger._recorded(calls if isinstance(calls, list) else [])
    assert all(type(pid) is int and pid > 1 for pid in noted)
    assert is_id(str(found.get("run"))) in (True, False)


def quota_file(data: bytes) -> None:
    """When an account may be asked again: a time, or nothing is known."""
    os.environ["ROODA_STATE_HOME"] = os.path.join(room(), "quota")
    path = limits._path("claude (subscription)")
    put(os.path.relpath(path, room()), data)
    assert isinstance(limits.limited_until("claude (subscription)"), float)


def token_cache(data: bytes) -> None:
    """An entry of the cache of counts: this text's, or none."""
    number = tokens._read(put("slot", data), "0" * 64, 1000)
    assert number is None or 8 <= number <= 1000
