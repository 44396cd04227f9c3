"""Claims and turns in a task's ref: who may push, what a push that fails means, and what several pushes share."""

import json
import os
import threading
from functools import partial
from pathlib import Path

import pytest

from rooda.errors import RoodaError, UsageProblem
from rooda.fleet import chain, publish
from rooda.fleet.chain import TICKET, Record
from rooda.fleet.mirror import Mirror
from rooda.fleet.publish import Turn
from rooda.fleet.remote import Remote, Update
from tests.kit.fleet_git import Worker, git, give_up, new_remote, subjects, wait
from tests.kit.processes import until


def test_FL_01_a_task_is_a_chain_of_claims_and_turns(tmp_path: Path) -> None:
    """Subjects, first parents, the ticket's blob and the work commit are as promised."""
    url = new_remote(tmp_path)
    blue = Worker(tmp_path, "blue", url)
    assert blue.add() == 1
    assert blue.claim(1).kind == "done"
    blue.clone()
    blue.begin()
    Path(blue.root, "new.txt").write_text("new\n")
    assert blue.turn(1).kind == "done"
    assert subjects(url, 1) == ["ticket of 1 by blue", "claim 1 of 1 by blue", "turn 1 of 1 by blue"]
    tip = git(url, "rev-parse", "refs/rooda/task/1")
    record = json.loads(git(url, "show", f"{tip}:task.json"))
    assert record["kind"] == "turn" and record["branch"] == "rooda/1-fix-it"
    assert git(url, "rev-parse", f"{tip}^2") == record["work"]
    assert git(url, "rev-parse", f"{tip}^2^") == record["head"] == git(url, "rev-parse", "main")
    assert git(url, "ls-tree", "-r", "--name-only", f"{tip}^2").split() == ["a.txt", "new.txt"]
    blobs = {git(url, "rev-parse", f"{tip}{back}:ticket.json") for back in ("", "^", "^^")}
    assert len(blobs) == 1
    git(url, "fsck", "--strict")


def test_FL_01_who_was_there_before_can_push_nothing_more(tmp_path: Path) -> None:
    """After green's claim, blue's turn and blue's second claim over the old tip are refused; nothing of it is there."""
    url = new_remote(tmp_path)
    blue, green = Worker(tmp_path, "blue", url), Worker(tmp_path, "green", url)
    blue.add()
    blue.claim(1)
    blue.clone()
    blue.begin()
    blue.turn(1)
    assert green.claim(1).kind == "done"
    late = blue.turn(1)
    assert (late.kind, late.tip) == ("refused", green.tip)
    assert blue.claim_over(1, blue.tip).kind == "refused"
    assert git(url, "rev-parse", "refs/rooda/task/1") == green.tip
    assert [each.record.fence for each in green.remote.entries(green.tip)] == [0, 1, 1, 2]
    assert chain.next_seq(green.remote.entries(green.tip)) == 2


def hook(remote: str, name: str, shell: str) -> None:
    path = Path(remote, "hooks", name)
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{shell}\n")
    path.chmod(0o755)


def working(folder: Path, name: str, url: str, **more: str | bool) -> tuple[Worker, int]:
    """A worker with a claimed task of its own and a clone."""
    worker = Worker(folder, name, url, **more)
    number = worker.add()
    worker.claim(number)
    worker.clone()
    worker.begin()
    return worker, number


RULES = {
    "a rule": (
        "echo 'error: GH013: Repository rule violations found' >&2; exit 1",
        "GH013: Repository rule violations",
    ),
    "a silent rule": ("exit 1", "pre-receive hook declined"),
}


@pytest.mark.parametrize("rule", RULES)
def test_FL_01_a_push_against_a_rule_of_the_forge_is_not_repeated(rule: str, tmp_path: Path) -> None:
    """The result has the forge's words, and the forge was asked once."""
    url = new_remote(tmp_path)
    blue, number = working(tmp_path, "blue", url)
    shell, words = RULES[rule]
    hook(url, "pre-receive", f"echo once >>{tmp_path}/asked; {shell}")
    result = blue.turn(number)
    assert (result.kind, result.tip) == ("rejected", blue.tip) and words in result.words
    assert (tmp_path / "asked").read_text() == "once\n"


def test_FL_01_a_protected_namespace_and_a_size_limit_are_rejections(tmp_path: Path) -> None:
    """A hidden ref and a pack that is too large are the forge's rules as well."""
    url = new_remote(tmp_path)
    blue, number = working(tmp_path, "blue", url)
    git(url, "config", "receive.maxInputSize", "20000")
    Path(blue.root, "large").write_bytes(os.urandom(200_000))
    assert blue.turn(number).kind == "rejected"
    Path(blue.root, "large").unlink()
    assert blue.turn(number).kind == "done"
    git(url, "config", "receive.hideRefs", "refs/rooda")
    result = blue.turn(number)
    assert result.kind == "rejected" and "does not show this ref" in result.words


def test_FL_01_publishing_waits_for_a_remote_that_is_away(tmp_path: Path) -> None:
    """While the remote is away the push is tried again; told to give up, it says so, and nothing has changed."""
    url = new_remote(tmp_path)
    blue, number = working(tmp_path, "blue", url)
    turn = blue.make_turn(number)
    os.rename(url, f"{url}.away")
    gone = blue.push_turn(number, turn, give_up)
    assert gone.kind == "unreachable" and "remote.git" in gone.words
    waits = []

    def back_at_third(seconds: float) -> bool:
        waits.append(seconds)
        if len(waits) == 3:
            os.rename(f"{url}.away", url)
        return False

    assert blue.push_turn(number, turn, back_at_third).kind == "done"
    assert waits == sorted(waits) and waits[2] > waits[0]


def test_FL_01_a_push_that_arrived_counts_once(tmp_path: Path) -> None:
    """A push whose answer got lost is found at the remote; pushing it again changes nothing."""
    url = new_remote(tmp_path)
    blue, number = working(tmp_path, "blue", url)
    turn = blue.make_turn(number)
    borrowed = {"GIT_ALTERNATE_OBJECT_DIRECTORIES": f"{blue.root}/.git/objects"}
    git(blue.mirror.folder, "push", "-q", url, f"{turn.commit}:refs/rooda/task/1", env=borrowed)
    assert blue.push_turn(number, turn).kind == "done"
    assert blue.turn(number).kind == "done"
    assert subjects(url, number)[2:] == ["turn 1 of 1 by blue", "turn 2 of 1 by blue"]


def test_FL_16_turns_that_wait_share_one_push(tmp_path: Path) -> None:
    """Four turns arrive while a push is under way: one push takes them all, and a stale one alone is refused."""
    url = new_remote(tmp_path)
    workers = [working(tmp_path, "blue", url)]
    blue = workers[0][0]
    for _ in range(4):
        other = Worker(tmp_path, "blue", url)
        other.mirror, other.remote = blue.mirror, blue.remote
        number = other.add()
        other.claim(number)
        other.clone()
        other.begin()
        workers.append((other, number))
    stale = workers[-1]
    assert Worker(tmp_path, "green", url).claim(stale[1]).kind == "done"
    wait_here = f"until [ -e {tmp_path}/go ]; do sleep 0.01; done"
    hook(url, "pre-receive", f'rows=$(cat); echo "$rows" | wc -l >>{tmp_path}/pushes; {wait_here}')
    turns = [(worker, number, worker.make_turn(number)) for worker, number in workers]
    kinds: dict[int, str] = {}

    def push(worker: Worker, number: int, turn: Turn) -> None:
        kinds[number] = worker.push_turn(number, turn).kind

    threads = [threading.Thread(target=push, args=each) for each in turns]
    threads[0].start()
    until((tmp_path / "pushes").exists)
    for thread in threads[1:]:
        thread.start()
    until(lambda: len(blue.remote._queue) == 4)
    (tmp_path / "go").touch()
    for thread in threads:
        thread.join()
    assert kinds == {1: "done", 2: "done", 3: "done", 4: "done", 5: "refused"}
    assert (tmp_path / "pushes").read_text().split() == ["1", "3"]


def test_FL_16_turns_wait_for_each_other_near_the_limit_of_a_forge(tmp_path: Path) -> None:
    """After six pushes in a minute, claims included, a turn waits for others, and they share the next push."""
    url = new_remote(tmp_path)
    blue, number = working(tmp_path, "blue", url)
    other = Worker(tmp_path, "blue", url)
    other.mirror, other.remote = blue.mirror, blue.remote
    second = other.add()
    other.claim(second)
    other.clone()
    other.begin()
    for _ in range(3):
        assert blue.turn(number).kind == "done"
    blue.remote._is_limited = True  # as if the host were one of FORGES
    hook(url, "pre-receive", f"cat | wc -l >>{tmp_path}/pushes")
    turns = [(blue, number, blue.make_turn(number)), (other, second, other.make_turn(second))]
    kinds: list[str] = []
    threads = [threading.Thread(target=lambda w, n, t: kinds.append(w.push_turn(n, t).kind), args=t) for t in turns]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert kinds == ["done", "done"] and (tmp_path / "pushes").read_text().split() == ["2"]


@pytest.mark.parametrize("host", ["https://github.com/a/b", "git@github.com:a/b.git", "ssh://git@gitlab.com:22/a"])
def test_FL_16_forges_are_known_by_their_host(host: str, tmp_path: Path) -> None:
    assert Remote(Mirror(str(tmp_path), "k", host))._is_limited
    for other in ("https://git.example/github.com/b", "/github.com", "https://notgithub.com/a"):
        assert not Remote(Mirror(str(tmp_path), "k", other))._is_limited


def test_FL_01_the_end_takes_the_branch_along(tmp_path: Path) -> None:
    """Branch and end arrive together or not at all; a branch that someone else moved is not overwritten."""
    url = new_remote(tmp_path)
    blue, number = working(tmp_path, "blue", url)
    git(blue.root, "commit", "-q", "--allow-empty", "-m", "work")
    assert blue.publisher
    end = blue.make_turn(number, over=True)
    update = Update(number, blue.tip, end.commit, blue.publisher.objects, "rooda/1-fix-it", end.record.head)
    git(url, "update-ref", "refs/heads/rooda/1-fix-it", "main")
    result = blue.remote.push(update, wait)
    assert result.kind == "rejected" and "rooda/1-fix-it was changed by someone else" in result.words
    assert git(url, "rev-parse", "refs/rooda/task/1") == blue.tip
    git(url, "update-ref", "-d", "refs/heads/rooda/1-fix-it")
    for _ in range(2):  # the answer may get lost
        assert blue.remote.push(update, wait).kind == "done"
        assert git(url, "rev-parse", "rooda/1-fix-it", "refs/rooda/task/1").split() == [end.record.head, end.commit]
    blue.publisher.done(end)
    blue.tip = end.commit
    git(blue.root, "commit", "-q", "--amend", "--allow-empty", "-m", "other work")  # a retry
    again = blue.make_turn(number, over=True)
    update = update._replace(old=blue.tip, new=again.commit, branch_commit=again.record.head)
    assert blue.remote.push(update, wait).kind == "done"
    assert git(url, "rev-parse", "rooda/1-fix-it") == again.record.head != end.record.head


def test_FL_01_state_in_a_repository_of_its_own(tmp_path: Path) -> None:
    """Claims and turns go to the state remote, the branch to the repository, before the end."""
    url = new_remote(tmp_path)
    git(tmp_path, "init", "-q", "--bare", "state.git")
    state = str(tmp_path / "state.git")
    blue, number = working(tmp_path, "blue", url, state=state)
    git(blue.root, "commit", "-q", "--allow-empty", "-m", "work")
    assert blue.publisher
    end = blue.make_turn(number, over=True)
    update = Update(number, blue.tip, end.commit, blue.publisher.objects, "done", end.record.head)
    hook(url, "pre-receive", "exit 1")
    assert blue.remote.push(update, wait).kind == "rejected"
    assert git(state, "rev-parse", "refs/rooda/task/1") == blue.tip
    Path(url, "hooks", "pre-receive").unlink()
    assert blue.remote.push(update, wait).kind == "done"
    assert git(url, "rev-parse", "done") == end.record.head
    assert git(state, "for-each-ref", "--format=%(refname)") == "refs/rooda/task/1"
    assert "refs/rooda" not in git(url, "for-each-ref")
    green = Worker(tmp_path, "green", url, state=state)
    assert green.claim(number).kind == "done"
    assert green.clone().turn


def test_FL_17_a_prefix_under_heads(tmp_path: Path) -> None:
    """Subjects ask the forge's CI to stay away, and the refs of tasks are no branches of a clone."""
    url = new_remote(tmp_path)
    prefix = "refs/heads/rooda-state/"
    blue, number = working(tmp_path, "blue", url, prefix=prefix)
    assert blue.turn(number).kind == "done"
    assert all(subject.endswith(" [skip ci]") for subject in subjects(url, number, prefix))
    green = Worker(tmp_path, "green", url, prefix=prefix)
    green.claim(number)
    assert git(green.clone().root, "branch", "-r") == "  origin/main"
    assert green.remote.delete({number: blue.tip}).keys() == {number}  # it has moved
    assert green.remote.delete({number: green.tip}) == {}
    assert green.remote.tips() == {}


def test_FL_02_two_desks_take_different_numbers(tmp_path: Path) -> None:
    """Both try the same number; one takes the next."""
    url = new_remote(tmp_path)
    desks = [Worker(tmp_path, name, url) for name in ("one", "two")]
    for desk in desks:
        desk.mirror.fetch()
    ticket = lambda desk, number: publish.ticket(desk.mirror, Record(TICKET, number, worker=desk.name), b"{}")  # noqa: E731
    taken = [desk.remote.create(partial(ticket, desk), wait, first=7)[0] for desk in desks]
    assert taken == [7, 8]
    assert desks[0].remote.tips().keys() == {7, 8}
    hook(url, "pre-receive", "echo no >&2; exit 1")
    with pytest.raises(RoodaError, match=r"can't be created .* no"):
        desks[0].remote.create(partial(ticket, desks[0]), wait)


URLS = {
    "http://git.example/x.git": "not encrypted",
    "git://10.0.0.1/x.git": "not encrypted",
    "HTTP://me@git.example:80/x.git": "not encrypted",
    "ext::sh -c 'touch evil'": "can't be used",
    "https://me:secret@localhost/x.git": "password",
    "--upload-pack=evil": "not the URL",
    "": "not the URL",
    "fd::17": "can't be used",
    "https://ghp_0123456789abcdefghijABCDEFGHIJ012345@github.com/a/b": "password",
}


@pytest.mark.parametrize("url", URLS)
def test_FL_13_a_remote_that_is_not_safe_is_refused(url: str, tmp_path: Path) -> None:
    """Plaintext, programs and passwords in a URL are refused with a sentence that does not repeat the password."""
    with pytest.raises(UsageProblem, match=URLS[url]) as refused:
        Mirror(str(tmp_path), "k", url)
    assert "secret" not in str(refused.value) and "ghp_" not in str(refused.value)


@pytest.mark.parametrize(
    "url", ["https://host/a.git", "ssh://me@host:22/a", "me@host:a/b.git", "host:a", "/a/b", "./a", "file:///a"]
)
def test_FL_13_usual_remotes(url: str, tmp_path: Path) -> None:
    """https, ssh and paths need no setting, http and git need one unless they stay on this machine."""
    Mirror(str(tmp_path), "k", url)
    Mirror(str(tmp_path), "k", "http://host/a", insecure=True)
    Mirror(str(tmp_path), "k", "git://127.0.0.1:9418/a")


@pytest.mark.parametrize("prefix", ["refs/heads/", "heads/x/", "refs/../x/", "refs/a b/", "refs/", "refs/x.lock/"])
def test_FL_17_an_odd_prefix_is_refused(prefix: str, tmp_path: Path) -> None:
    with pytest.raises(UsageProblem, match="ref_prefix"):
        Mirror(str(tmp_path), "k", "/a", prefix=prefix)
