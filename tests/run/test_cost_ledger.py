"""Every call is in the user's ledger once, whatever happens, and the budgets over all runs hold."""

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from rooda.run.budgets import Moment, Paid, Spending
from tests.kit import disks
from tests.kit.four import KINDS, Four
from tests.kit.spending import calls, paid
from tests.kit.swarm import loop_of
from tests.kit.workspace import PHASES, Workspace, masked, until

USER = ".config/rooda/rooda.toml"


def ledger(ws: Workspace) -> list[dict[str, Any]]:
    """The lines of all months."""
    months = sorted(Path(ws.home, ".state/rooda/ledger").glob("*.jsonl"))
    return [json.loads(line) for month in months for line in month.read_text().splitlines()]


def open_sessions(ws: Workspace) -> list[Path]:
    return [*Path(ws.home, ".state/rooda/ledger/open").iterdir()]


def user_settings(ws: Workspace, text: str) -> None:
    path = Path(ws.home, USER)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def write_line(ws: Workspace, month: str, **facts: Any) -> None:
    """Put a call into the ledger, as an earlier boot of the machine would have."""
    path = Path(ws.home, ".state/rooda/ledger", f"{month}.jsonl")
    path.parent.mkdir(parents=True, exist_ok=True)
    line = {"v": 1, "run": "x", "loop": "ooda", "name": "build", "agent": "mine", "account": "mine", "seconds": 1.0}
    with path.open("a") as file:
        file.write(json.dumps(line | {"project": "/elsewhere", "workspace": "/elsewhere"} | facts) + "\n")


def test_E_44_each_call_is_one_line_that_outlives_the_workspace(ws: Workspace) -> None:
    """The lines say who, where and how much, stay private, and survive the deletion of `.rooda`."""
    paid(ws)
    assert ws.rooda("build", "-n", "2").code == 0
    lines = ledger(ws)
    assert [(line["cost"], line["agent"], line["workspace"], line["name"]) for line in lines] == [
        (0.75, "mine", os.path.realpath(ws.path), "build")
    ] * 2
    assert len({line["transcript"] for line in lines}) == 2 and not open_sessions(ws)
    home = Path(ws.home, ".state/rooda")
    modes = {oct(path.stat().st_mode & 0o777) for path in (home, home / "ledger", home / "ledger/open")}
    assert modes == {"0o700"}
    assert {oct(path.stat().st_mode & 0o777) for path in (home / "ledger").glob("*.jsonl")} == {"0o600"}


def test_E_42_a_day_is_one_limit_for_all_workspaces(ws: Workspace) -> None:
    """Two loops of two workspaces share it; the pause is resumable, and deleting the runs gives nothing back."""
    paid(ws)
    user_settings(ws, "[budget]\nday = 2.0\n")
    ran = ws.rooda("build", "-n", "2")
    assert ran.code == 0, ran.both
    other = os.path.join(ws.root, "other")
    ws.git("init", "-q", other)
    for name in ("rooda.toml", "agent.sh", *(f"prompts/{phase}_build.md" for phase in PHASES)):
        Path(other, name).parent.mkdir(exist_ok=True)
        Path(other, name).write_text(ws.read(name))
    ran = ws.rooda("-C", other, "build", "-n", "5")
    assert ran.code == 4, ran.both
    assert "Daily budget reached: $2.25 of $2.00 (1 iteration completed" in ran.lines[-1]
    ran = ws.rooda("-C", other, "resume")
    assert ran.code == 4 and len(ledger(ws)) == 3
    assert "wait until tomorrow, or raise [budget] day, then: rooda " in ran.err
    user_settings(ws, "[budget]\nday = 3.0\n")
    assert ws.rooda("-C", other, "resume").code == 4 and len(ledger(ws)) == 4


def minutes_to(hour: int) -> int:
    """How far east of Greenwich it is half past this hour now."""
    now = time.gmtime()
    return (hour * 60 + 30 - (now.tm_hour * 60 + now.tm_min) + 720) % 1440 - 720


def zone(hour: int) -> str:
    """A time zone in which it is half past this hour now."""
    minutes = minutes_to(hour)
    return f"XXX{'-' if minutes >= 0 else '+'}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}"


def test_E_42_a_day_begins_at_local_midnight(ws: Workspace) -> None:
    """A call of an hour ago counts at half past noon, not at half past midnight; one ahead of the clock does."""
    paid(ws)
    user_settings(ws, "[budget]\nday = 2.0\n")
    ago = time.time() - 3600
    month = time.strftime("%Y-%m", time.gmtime(ago))
    write_line(ws, month, ts=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(ago)), cost=2.0)
    assert ws.rooda("build", "-n", "1", env={"TZ": zone(12)}).code == 4 and not calls(ws)
    assert ws.rooda("build", "-n", "1", "--fresh", env={"TZ": zone(0)}).code == 0 and calls(ws) == 1
    ahead = time.time() + 7200
    write_line(ws, month, ts=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(ahead)), cost=2.0)
    assert ws.rooda("build", "-n", "1", env={"TZ": zone(0)}).code == 4 and calls(ws) == 1


def test_E_42_a_set_clock_moves_no_call_of_this_boot() -> None:
    """Calls of this boot are dated by its uptime; those of another one, more than a day ahead, by nobody."""
    spending, now = Spending("/p"), Moment(1_000_000.0, 500.0, "b", 990_000.0)
    spending.add(Paid(9e9, 400.0, "b", "mine", "/p", "mine", 1.0), now)
    spending.add(Paid(9e9, 400.0, "earlier", "mine", "/p", "mine", 2.0), now)
    spending.add(Paid(995_000.0, 400.0, "earlier", "mine", "/q", "other", 4.0), now)
    assert spending.today(now) == 5.0 and spending.today(now, "mine") == 1.0
    assert spending.of_project == 3.0
    back = now._replace(at=5_000.0, day_start=0.0)
    assert spending.today(back) == 1.0


def test_E_42_a_typical_call_costs_the_90th_percentile_of_the_last_twenty() -> None:
    """Older calls, and those of unknown cost, don't count."""
    spending, now = Spending("/p"), Moment(1_000_000.0, 500.0, "b", 990_000.0)
    for cost in (100.0, *map(float, range(20)), None):
        spending.add(Paid(995_000.0, 0.0, "", "mine", "/p", "mine", cost), now)
    assert (spending.typical("mine"), spending.typical("other")) == (17.0, 0.0)


def test_E_42_a_project_has_a_limit_without_end(ws: Workspace) -> None:
    """It counts calls of other months, but not those of other projects."""
    paid(ws)
    real = os.path.realpath(ws.path)
    write_line(ws, "2020-01", ts="2020-01-01T00:00:00Z", cost=5.0)
    write_line(ws, "2020-02", ts="2020-02-01T00:00:00Z", cost=1.5, project=real)
    ws.sections["budget"] = "\n[budget]\nproject = 3\n"
    paid(ws)
    ran = ws.rooda("build", "-n", "9")
    assert ran.code == 4 and calls(ws) == 2
    assert "Project budget reached: $3.00 of $3.00" in ran.lines[-1]
    before = "raise [budget] project"
    assert f"next        {before}, then: rooda resume build" in ran.err and before in ws.rooda("status").out
    assert "[budget] project counts all runs of the repository, its worktrees and its tasks" in ws.rooda("why").out


def test_E_42_an_agent_has_a_limit_of_its_account(ws: Workspace) -> None:
    """`budget_day` counts the calls of the account alone, and `why` and the hook know the cause."""
    paid(ws)
    ws.sections["agent"] += "budget_day = 1.0\n"
    ws.sections["hooks"] = f'\n[hooks]\nbudget = "touch {ws.root}/hooked"\n'
    ws.procedure()
    write_line(ws, "2020-01", ts="2020-01-01T00:00:00Z", cost=5.0)
    ran = ws.rooda("build", "-n", "9")
    assert ran.code == 4 and calls(ws) == 2
    assert "Daily budget of mine reached: $1.50 of $1.00" in ran.lines[-1]
    cause = ws.events()[-1]["cause"]
    assert cause == {"kind": "cost", "used": 1.5, "limit": 1.0, "account": "mine", "budget": "agent"}
    until(lambda: os.path.exists(f"{ws.root}/hooked"), what="the hook")


def test_E_42_reserved_cost_counts_for_others(ws: Workspace) -> None:
    """While a call of $0.75 runs, a second loop may not start one that would pass the limit."""
    paid(ws, after=f"[ ! -e {ws.root}/hold ] || sleep 1000")
    assert ws.rooda("build", "-n", "1").code == 0
    user_settings(ws, "[budget]\nday = 1.5\n")
    Path(ws.root, "hold").touch()
    first = ws.start("build", "-n", "1")
    until(lambda: calls_started(ws) == 2, what="the second call")
    ws.procedure("other", loop={})
    ran = ws.rooda("other", "-n", "1")
    assert ran.code == 4, ran.both
    assert "Daily budget reached: $0.75 of $1.50, and $0.75 reserved for running calls" in ran.both
    first.stop()
    Path(ws.root, "hold").unlink()


def calls_started(ws: Workspace) -> int:
    logs = Path(ws.file(".rooda/runs")).glob("*/events.jsonl")
    return sum(log.read_text().count('"event": "agent.started"') for log in logs)


@pytest.mark.parametrize("rounds", [1, pytest.param(20, marks=pytest.mark.long)])
def test_E_42_parallel_loops_overshoot_by_the_calls_in_flight(ws: Workspace, rounds: int) -> None:
    """Four loops against one day: what was spent passes the limit by at most one call of each."""
    names = ["a", "b", "c", "d"]
    for round_ in range(1, rounds + 1):
        limit = 3.0 * round_ + 4 * 0.75 * (round_ - 1)
        user_settings(ws, f"[budget]\nday = {limit}\n")
        paid(ws, after="sleep 0.02")
        for name in names:
            ws.procedure(name)
        running = [ws.start(name, "-n", "9", "--fresh") for name in names]
        assert {each.finish(60) for each in running} <= {4, 0}
        spent = sum(line["cost"] for line in ledger(ws))
        assert limit <= spent <= limit + 4 * 0.75
        assert not open_sessions(ws)
    assert len(ledger(ws)) == calls(ws)


@pytest.mark.parametrize("rounds", [3, pytest.param(60, marks=pytest.mark.long)])
def test_E_44_a_kill_at_any_moment_loses_and_doubles_no_call(ws: Workspace, rounds: int) -> None:
    """Killed again and again, the loop leaves no reservation, and each call that began is in the ledger once."""
    import random

    chance = random.Random(rounds)
    user_settings(ws, "[budget]\nday = 100000\n")
    paid(ws, after="sleep 0.03")
    for round_ in range(rounds):
        running = ws.start("build", "-n", "1000", "--fresh") if not round_ else ws.start("resume", "build")
        made = calls_started(ws)
        until(lambda made=made: calls_started(ws) > made + 1, what="calls")
        time.sleep(chance.random() * 0.1)  # the moment of the kill is what varies
        os.kill(loop_of(running.pid), signal.SIGKILL)
        running.finish(30)
    assert len(open_sessions(ws)) == 1
    assert ws.rooda("resume", "build", "-n", "1").code in (0, 4)
    assert not open_sessions(ws)
    started = [
        (log.parent.name, os.path.basename(json.loads(line)["transcript"]))
        for log in Path(ws.file(".rooda/runs")).glob("*/events.jsonl")
        for line in log.read_text().splitlines()
        if '"event": "agent.started"' in line
    ]
    assert sorted((line["run"], line["transcript"]) for line in ledger(ws)) == sorted(started)


def test_E_44_a_killed_call_costs_what_was_reserved_for_it(ws: Workspace) -> None:
    """The log of the killed run is deleted too: the next loop, of another name, counts its reservation."""
    paid(ws)
    assert ws.rooda("build", "-n", "1").code == 0
    user_settings(ws, "[budget]\nday = 50\n")
    paid(ws, after="sleep 1000")
    running = ws.start("build", "-n", "1")
    until(lambda: calls_started(ws) == 2, what="the call")
    os.kill(loop_of(running.pid), signal.SIGKILL)
    running.finish(30)
    ws.damages_events = True
    for log in sorted(Path(ws.file(".rooda/runs")).glob("*/events.jsonl"))[1:]:
        log.unlink()
    paid(ws)
    ws.procedure("other")
    assert ws.rooda("other", "-n", "1").code == 0
    settled = [line for line in ledger(ws) if line.get("settled")]
    assert [(line["cost"], line["cost_source"], line["lost"]) for line in settled] == [(0.75, "assumed", True)]


def test_E_44_without_a_limit_an_unwritable_ledger_is_said_once(ws: Workspace) -> None:
    """The loop goes on; with a budget no call starts, since what was spent is unknown."""
    paid(ws)
    place = Path(ws.home, ".state/rooda/ledger")
    place.parent.mkdir(parents=True)
    place.write_text("in the way")
    ran = ws.rooda("build", "-n", "3")
    assert ran.code == 0 and calls(ws) == 3
    assert ran.both.count("the cost ledger can't be written") == 1
    user_settings(ws, "[budget]\nday = 20\n")
    ran = ws.rooda("build", "-n", "3")
    assert ran.code == 4 and calls(ws) == 3
    assert "Daily budget of $20.00 can't be checked: " in ran.lines[-1] and str(place) in ran.lines[-1]
    place.unlink()
    assert ws.rooda("resume").code == 0 and calls(ws) == 6


def test_E_42_a_call_whose_log_vanished_ends_the_run(ws: Workspace) -> None:
    """With a budget it never counts as 0 (S-14)."""
    ws.damages_events = True
    paid(ws, after="rm .rooda/runs/*/events.jsonl")
    user_settings(ws, "[budget]\nday = 20\n")
    ran = ws.rooda("build", "-n", "3")
    assert ran.code == 4 and len(ledger(ws)) == 1
    assert "Daily budget of $20.00 can't be checked: the usage of a call is unknown" in ran.lines[-1]


def test_S_14_a_deleted_log_of_a_middle_session_counts_from_the_ledger(ws: Workspace) -> None:
    """The limit of the run holds although one of its sessions is gone, and a warning says so."""
    paid(ws)
    for limit in ("0.5", "1.25", "2"):
        words = ("resume", "build") if limit != "0.5" else ("build", "-n", "9")
        assert ws.rooda(*words, "--max-cost", limit).code == 4
    assert len(ledger(ws)) == 3
    folders = sorted(Path(ws.file(".rooda/runs")).iterdir())
    ws.damages_events = True
    for file in folders[1].iterdir():
        file.unlink()
    assert json.loads(ws.rooda("runs", "--json").out)[0]["cost"] == 2.25
    ran = ws.rooda("resume", "build", "--max-cost", "2.25")
    assert ran.code == 4 and len(ledger(ws)) == 3, ran.both
    assert f"the log of {folders[1].name} is missing; the cost is taken from the ledger: $0.75 for 1 call" in ran.both
    assert masked(ran.lines)[-1].startswith("[T] WARNING: Cost limit reached: $2.25 of $2.25")


@pytest.mark.parametrize("trouble", ["full", "read_only"])
def test_E_44_a_state_home_in_trouble(ws: Workspace, tmp_path: Path, trouble: str) -> None:
    """Said once; what could not be written is written once the disk has room again, and a budget fails closed."""
    if not disks.may_mount(str(tmp_path / "try")):
        pytest.skip("needs to mount")
    home = Path(ws.home, ".state/rooda")
    paid(ws, after=f"rm -f {home}/fill")
    assert ws.rooda("build", "-n", "1").code == 0
    disk = disks.Disk(str(home))
    try:
        getattr(disk, trouble)()
        ran = ws.rooda("build", "-n", "3")
        assert ran.code == 0 and calls(ws) == 4
        assert ran.both.count("the cost ledger can't be written") == 1, ran.both
        assert len(ledger(ws)) == (4 if trouble == "full" else 1)
        getattr(disk, trouble)()
        user_settings(ws, "[budget]\nday = 20\n")
        ran = ws.rooda("build", "-n", "3")
        assert ran.code == 4 and calls(ws) == 4
        assert "Daily budget of $20.00 can't be checked: " in ran.both
        disk.well()
        assert ws.rooda("resume").code == 0 and calls(ws) == 7
    finally:
        disk.close()


def test_E_44_without_a_home_there_is_no_ledger(ws: Workspace) -> None:
    """One warning, and nothing is written elsewhere."""
    paid(ws)
    for name in ("HOME", "XDG_STATE_HOME"):
        del ws.env[name]
    ran = ws.rooda("build", "-n", "2")
    assert ran.code == 0
    assert ran.both.count("the cost ledger can't be written: HOME is not set") == 1
    assert not ws.exists("lock")


def test_E_42_usage_by_day_has_local_days(ws: Workspace) -> None:
    """The same day as the budget's."""
    paid(ws)
    assert ws.rooda("build", "-n", "1").code == 0
    for hour in (0, 23):
        local = time.time() + minutes_to(hour) * 60
        ran = ws.rooda("usage", "--by", "day", env={"TZ": zone(hour)})
        assert ran.lines[1].split()[0] == time.strftime("%Y-%m-%d", time.gmtime(local))


@pytest.mark.parametrize("kind", KINDS)
def test_E_42_every_kind_of_loop_pauses_at_a_budget(kind: str, tmp_path: Path) -> None:
    """No call starts once the day's money is spent; with a higher limit a resume completes the loop."""
    four = Four(KINDS[kind], str(tmp_path))
    ws, first = four.ws, KINDS[kind].first
    budget = "[budget]\nunknown_call = 0.01\nday = {}\n"
    user_settings(ws, budget.format(1.0))
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    write_line(ws, stamp[:7], ts=stamp, cost=1.0 - first * 0.01)
    ran = four.run()
    assert (ran.code, len(four.calls())) == (4, first), ran.both
    assert "aily budget reached: $1.00 of $1.00" in ran.both
    user_settings(ws, budget.format(100))
    ran = four.resume()
    assert ran.code == 0 and four.done(), ran.both
    assert len(ledger(ws)) == 1 + len(four.calls())
    ws.close()
