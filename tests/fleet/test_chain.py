"""Records in the chain of a task's ref: what they hold, and what they say about claims and turns."""

import json

import pytest

from rooda.fleet import chain
from rooda.fleet.chain import CLAIM, TICKET, TURN, ChainProblem, Entry, Record

KEYS = ["v", "kind"]
KEYS += ["task", "seq", "fence", "worker", "rooda", "at", "loop", "name", "iteration", "outcome", "failures"]
KEYS += ["over", "ending", "branch", "head", "work", "cost", "tokens", "unknown", "gates", "seconds", "message"]


def entries(*kinds: str) -> list[Entry]:
    """A chain of these kinds, with numbers as workers give them; `again`: a claim after the user continued it."""
    found = [Entry("0", Record(TICKET, 14))]
    for kind in kinds:
        if kind == TURN:
            last = found[-1].record
            made = Record(TURN, 14, chain.next_seq(found), last.fence, last.worker)
        else:
            made = chain.claim_after(found, f"w{len(found)}", "1.0", "now", anew=kind == "again")
        found.append(Entry(str(len(found)), made))
    return found


def test_FL_01_a_record_has_all_keys_and_comes_back() -> None:
    """task.json has the keys that are promised, in this order, and a record survives the way through it."""
    record = Record(TURN, 14, 3, 2, "blue", gates=({"gate": "tests", "exit": 1},), cost=0.5, refs={"refs/heads/x": "1"})
    assert [*json.loads(chain.encode(Record(CLAIM, 14)))] == KEYS
    assert chain.decode(chain.encode(record)) == record


def test_FL_11_unknown_keys_stay_and_a_newer_format_is_refused() -> None:
    """A key of a later rooda is kept; a newer format is refused with a sentence that says what to do."""
    said = json.loads(chain.encode(Record(TURN, 14)))
    record = chain.decode(json.dumps({**said, "colour": "red"}).encode())
    assert json.loads(chain.encode(record))["colour"] == "red"
    with pytest.raises(ChainProblem) as refused:
        chain.decode(json.dumps({**said, "v": 2, "kind": "dance"}).encode())
    assert "newer rooda" in refused.value.what and "Update rooda" in refused.value.hint


@pytest.mark.parametrize(
    "damage",
    [{"v": 0}, {"v": "1"}, {"kind": "dance"}, {"task": "14"}, {"task": -1}, {"seq": 1.5}, {"over": 1}, {"refs": [1]}],
    ids=str,
)
def test_a_damaged_record_is_refused(damage: dict[str, object]) -> None:
    """A wrong type or value is an error with a sentence, whatever wrote it."""
    said = json.loads(chain.encode(Record(TURN, 14)))
    for data in (json.dumps({**said, **damage}).encode(), b"", b"[]", b"{", b"\xff"):
        with pytest.raises(ChainProblem, match="damaged"):
            chain.decode(data)


def test_FL_01_subjects() -> None:
    """Subjects name kind, number, task and worker; under refs/heads/ the forge's CI is told to stay away."""
    ref = "refs/rooda/task/14"
    assert chain.subject(Record(TICKET, 14, worker="desk"), ref) == "ticket of 14 by desk"
    assert chain.subject(Record(CLAIM, 14, 5, 2, "blue"), ref) == "claim 2 of 14 by blue"
    assert chain.subject(Record(TURN, 14, 5, 2, "blue"), ref) == "turn 5 of 14 by blue"
    assert chain.subject(Record(TURN, 14, 5, 2, "a\nb\x1b"), ref) == "turn 5 of 14 by a?b?"
    assert chain.subject(Record(TURN, 14, 5, 2, "blue"), "refs/heads/rooda-state/14").endswith(" by blue [skip ci]")


def test_FL_01_fences_and_turns_count_over_the_whole_chain() -> None:
    """A claim takes the greatest fence plus one, and says where the last turn stood; turns are numbered through."""
    found = entries(CLAIM, TURN, TURN, CLAIM, CLAIM)
    assert [each.record.fence for each in found] == [0, 1, 1, 1, 2, 3]
    assert [each.record.seq for each in found] == [0, 0, 1, 2, 2, 2]
    assert (chain.next_fence(found), chain.next_seq(found)) == (4, 3)
    turn = found[3].record._replace(head="h", work="w", iteration=7, failures=2, cost=1.0, over=True)
    found[3] = Entry("3", turn)
    claim = chain.claim_after(found, "red", "1.0", "now")
    assert (claim.head, claim.work, claim.iteration, claim.failures, claim.cost) == ("h", "w", 7, 2, None)
    assert chain.last_turn(found) == found[3]


@pytest.mark.parametrize(
    ("kinds", "lost"),
    [
        ((), 0),
        ((CLAIM,), 1),
        ((CLAIM, TURN), 0),
        ((CLAIM, TURN, CLAIM, CLAIM), 2),
        ((CLAIM, TURN, CLAIM, CLAIM, CLAIM), 3),
        ((CLAIM, CLAIM, CLAIM, "again"), 1),
        ((CLAIM, CLAIM, CLAIM, "again", CLAIM, CLAIM), 3),
    ],
)
def test_FL_01_three_claims_in_a_row_are_poison(kinds: tuple[str, ...], lost: int) -> None:
    """Only claims without a turn after them count, and the user's `continue` starts the count again."""
    found = entries(*kinds)
    assert chain.lost_claims(found) == lost
    assert chain.is_poisoned(found) == (lost >= 3)
