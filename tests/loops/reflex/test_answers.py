"""R-125, R-051, R-052, R-144, R-157: what an agent answers is used as it is, whatever looks like a key in it."""

import hashlib
import json
from pathlib import Path

import pytest

from tests.kit.reflex import (
    ALIAS,
    ENDPOINTS,
    NAMING,
    RS1,
    Kit,
    checks,
    checks_of,
    command,
    content,
    issue,
    issues,
    words,
)

PATH = f".ai-factory/evolution/{ALIAS}/artifact.md"
KEY = "Postgres-dev-1"


@pytest.fixture
def keyed(kit: Kit) -> Kit:
    """A workspace whose environment holds a key that is also a word of the work."""
    kit.ws.env |= {"DB_PASSWORD": KEY}
    return kit


def test_R_144_the_command_that_runs_is_the_agents(keyed: Kit) -> None:
    """Stars in its place would be a pattern for every file; only what is reported the command has them."""
    for name in (KEY, "mine", "yours"):
        keyed.ws.write(f"tmp/{name}", "")
    check = command(ENDPOINTS, f"rm -f tmp/{KEY}; test -s {PATH}")
    keyed.answer("PREPARE.A.1", checks(check, content(NAMING, "NAMING")))
    ran = keyed.new(1)
    assert ran.code == 0
    assert [keyed.ws.exists(f"tmp/{name}") for name in (KEY, "mine", "yours")] == [False, True, True]
    assert "$ rm -f tmp/***; test -s" in ran.err and KEY not in ran.both


def test_R_051_R_125_R_145_the_artifact_is_the_agents(keyed: Kit) -> None:
    """Artifact, plan and searches hold the word; so does what is shown of them, but with stars."""
    keyed.answer("PLAN.1", json.dumps({"plan": [f"Name {KEY}", "b", "c"]}))
    keyed.answer("PRODUCE.1", words("ENAD", f"\nuses {KEY}\n"))
    keyed.answer("PREPARE.A.1", checks(content(ENDPOINTS, f"uses {KEY}"), content(NAMING, "uses [A-Z][a-z]+-dev")))
    ran = keyed.new(1)
    assert ran.code == 0 and keyed.artifact == words("ENAD", f"\nuses {KEY}\n")
    assert keyed.run["plan"][0] == f"Name {KEY}" and f"Name {KEY}" in keyed.prompt("PRODUCE")
    assert "uses ***" in ran.out and "Plan: Name ***" in ran.out and KEY not in ran.both


def test_R_125_R_157_an_artifact_of_invalid_utf_8(kit: Kit) -> None:
    """An answer that is not UTF-8 is the artifact byte by byte, on disk, in the next prompt and in its hash."""
    first, refined, last = (text.encode() + b"caf\xe9 \xff\xed\xa0\x80\n" for text in map(words, ("N", "E", "ENAD")))
    for name, data in (("PRODUCE.1", first), ("REFINE.1", refined), ("PRODUCE.2", last)):
        Path(kit.ws.fake, f"{name}.out").write_bytes(data)
    ran = kit.new(2)
    assert ran.code == 0 and kit.path("artifact.md").read_bytes() == last, ran.both
    assert refined in kit.prompt("PRODUCE", 2).encode("utf-8", "surrogateescape")
    told = [event["payload"]["artifact_hash"] for event in kit.history if "artifact_hash" in event["payload"]]
    assert list(dict.fromkeys(told)) == [hashlib.sha256(data).hexdigest() for data in (first, refined, last)]


def test_R_052_R_157_so_are_critique_and_refinement(keyed: Kit) -> None:
    """What CRITIQUE asks for reaches REFINE, and its answer the file, also over a rebuild of run.json."""
    keyed.answer("PRODUCE.1", words("N"))
    keyed.answer("CRITIQUE.1", issues(issue(ENDPOINTS, f"Use {KEY}")))
    keyed.kill_in("REFINE.1", words("ENAD", f"\nuses {KEY}\n"))
    keyed.path("run.json").write_text("{")
    keyed.answer("PLAN.i2.1", "no plan")
    ran = keyed.reflex("resume")
    assert f"Use {KEY}" in keyed.prompt("REFINE", 2) and keyed.artifact == words("ENAD", f"\nuses {KEY}\n")
    assert KEY not in ran.both


def test_secrets_in_reports_are_masked(keyed: Kit) -> None:
    """The excerpt and the error of a broken contract, and the last words of a check."""
    keyed.answer("PLAN.bad.1", f"I can't: {KEY}")
    keyed.answer("PREPARE.bad.1", checks(content(f"a.{KEY}", "x")))
    check = command(ENDPOINTS, f'echo "found $DB_PASSWORD"; test ! -s {PATH}')
    keyed.answer("PREPARE.A.1", checks(check, *json.loads(checks_of(RS1, "A"))["checks"][1:]))
    keyed.new(1)
    assert KEY not in keyed.path("history.jsonl").read_text() + keyed.path("run.json").read_text()
    broken = [event["payload"] for event in keyed.history if event["event"] == "phase_error"]
    assert broken[0]["excerpt"] == "I can't: ***" and "'a.***'" in broken[1]["error"]
    assert "found ***" in keyed.run["evaluation"]["failed"][0]["message"]
