"""Which setting wins: the nearer one, and for each setting the stronger tier."""

import os
import re
from typing import NamedTuple

import pytest

from rooda.loops.configuration import load
from rooda.loops.procedure import settings
from tests.kit.workspace import FAKE_AI, Workspace

PHASES = 'observe = "O"\norient = "R"\ndecide = "D"\nact = "A"\n'


class Said(NamedTuple):
    """One setting in every tier that can have it; None: not set there."""

    flag: int | None = None
    own: int | None = None  # [procedures.P] of the workspace
    own_user: int | None = None  # [procedures.P] of the person's file
    environment: int | None = None
    loop: int | None = None  # [loop] of the workspace
    loop_user: int | None = None  # [loop] of the person's file


EVERYWHERE = Said(2, 3, 4, 5, 6, 7)
WEAKER = [EVERYWHERE._replace(**dict.fromkeys(Said._fields[:count])) for count in range(len(Said._fields) + 1)]
OUTCOMES = [2, 3, 4, 5, 6, 7, None]
IDS = [*Said._fields, "built-in"]


def arrange(ws: Workspace, key: str, said: Said, flag: str, name: str = "chores") -> tuple[list[str], dict[str, str]]:
    """Write both files; gives the flags and the environment."""

    def line(value: int | None) -> str:
        return "" if value is None else f"{key} = {value}\n"

    ws.config(f'[loop]\nai_cmd = "{FAKE_AI}"\n{line(said.loop)}[procedures.{name}]\n{PHASES}{line(said.own)}')
    os.makedirs(f"{ws.home}/.config/rooda")
    with open(f"{ws.home}/.config/rooda/rooda.toml", "w", encoding="utf-8") as file:
        file.write(f"[loop]\n{line(said.loop_user)}[procedures.{name}]\n{line(said.own_user)}")
    environment = {} if said.environment is None else {f"ROODA_LOOP_{key.upper()}": str(said.environment)}
    return ([] if said.flag is None else [flag, str(said.flag)]), environment


def most(ws: Workspace, name: str, environment: dict[str, str]) -> int:
    """The limit that a start without options would have."""
    return settings.procedure(load(ws.path, None, ws.env | environment), name, {}).max_iterations


@pytest.mark.parametrize(("said", "limit"), list(zip(WEAKER, OUTCOMES, strict=True)), ids=IDS)
def test_O_013_O_029_O_047_OA_29_the_limit(bare: Workspace, said: Said, limit: int | None) -> None:
    """Flag, procedure, environment, workspace, person, built-in: with the strongest gone the next one decides."""
    flags, environment = arrange(bare, "default_iterations", said, "--max-iterations")
    bare.copy_state_at(1, name="chores")
    if limit is None:
        bare.signal_at(1)
    ran = bare.rooda("chores", *flags, env=environment)
    shown = "unlimited iterations" if limit is None else f"max {limit} iterations"
    assert ran.code == (130 if limit is None else 0)
    assert ran.lines[0].endswith(f"Starting procedure: chores ({shown})")
    assert bare.copies[1]["max_iterations"] == (limit or 0)
    assert len(bare.calls) == (limit or 1)


@pytest.mark.parametrize(("said", "threshold"), list(zip(WEAKER, OUTCOMES, strict=True)), ids=IDS)
def test_O_031_O_047_OA_29_the_threshold(bare: Workspace, said: Said, threshold: int | None) -> None:
    """The same order holds for the failure threshold, whose built-in value is 3."""
    flags, environment = arrange(bare, "failure_threshold", said, "--failure-threshold")
    ran = bare.rooda("chores", *flags, env=environment | {"FAKE_EXIT": "1"})
    assert ran.code == 1
    assert len(bare.calls) == (threshold or 3)
    assert bare.state("chores")["failure_threshold"] == (threshold or 3)


@pytest.mark.parametrize(("said", "budget"), list(zip(WEAKER, OUTCOMES, strict=True)), ids=IDS)
def test_O_047_OA_29_the_budget(bare: Workspace, said: Said, budget: int | None) -> None:
    """The same order holds for the token budget, whose built-in value is 100000."""
    flags, environment = arrange(bare, "token_budget", said, "--token-budget")
    ran = bare.rooda("chores", "--dry-run", *flags, env=environment)
    assert ran.code == 0
    assert re.search(r"Token count: \d+ / (\S+) budget", ran.out)[1] == f"{budget or 100_000:,}"


@pytest.mark.parametrize(
    ("said", "limit"),
    [
        (Said(own=2, loop=5), 2),
        (Said(own=5, loop=2), 5),
        (Said(own=0, loop=5), 0),
        (Said(loop=5), 5),
        (Said(own_user=4, environment=2, loop=3), 4),
        (Said(loop=0, loop_user=6), 0),
        (Said(environment=0, loop=6), 0),
    ],
)
def test_O_013_OA_29_zero_and_pairs(bare: Workspace, said: Said, limit: int) -> None:
    """A larger weaker value never wins, and 0 (unlimited) counts as said."""
    _, environment = arrange(bare, "default_iterations", said, "--max-iterations")
    assert most(bare, "chores", environment) == limit


def test_O_013_OA_29_zero_is_typed(bare: Workspace) -> None:
    """`--max-iterations 0` beats a procedure's own limit."""
    flags, environment = arrange(bare, "default_iterations", Said(flag=0, own=3), "--max-iterations")
    bare.signal_at(1)
    ran = bare.rooda("chores", *flags, env=environment)
    assert ran.lines[0].endswith("(unlimited iterations)") and bare.state("chores")["max_iterations"] == 0


@pytest.mark.parametrize("place", ["environment", "loop", "loop_user", "own"])
def test_O_047_a_built_in_procedure_follows_too(bare: Workspace, place: str) -> None:
    """Any setting of the user beats the built-in limit of a procedure."""
    _, environment = arrange(bare, "default_iterations", Said(**{place: 1}), "--max-iterations", "publish-plan")
    assert most(bare, "publish-plan", environment) == 1


def test_O_047_the_shipped_limit_is_last(bare: Workspace) -> None:
    """Without settings a built-in procedure has its own limit."""
    bare.config(f'[loop]\nai_cmd = "{FAKE_AI}"\n')
    ran = bare.rooda("publish-plan")
    assert ran.lines[0].endswith("Starting procedure: publish-plan (max 2 iterations)")
    assert len(bare.calls) == 2


def test_O_047_the_agent_of_each_tier(bare: Workspace) -> None:
    """Flag, procedure, environment, workspace and person can each name the command; the strongest is started."""
    for name in ("flag", "own", "env", "ws", "user"):
        bare.write(f"bin/{name}", f"#!/bin/sh\ncat >/dev/null\necho {name} >>who\n", mode=0o755)
    place = bare.file("bin")
    own = f'ai_cmd = "{place}/own"\n'
    config = f'[loop]\nai_cmd = "{place}/ws"\n[procedures.chores]\n{PHASES}'
    os.makedirs(f"{bare.home}/.config/rooda")
    with open(f"{bare.home}/.config/rooda/rooda.toml", "w", encoding="utf-8") as file:
        file.write(f'[loop]\nai_cmd = "{place}/user"\n')
    variable = {"ROODA_LOOP_AI_CMD": f"{place}/env"}
    bare.config(config + own)
    assert bare.rooda("chores", "-n", "1", "--ai-cmd", f"{place}/flag", env=variable).code == 0
    assert bare.rooda("chores", "-n", "1", env=variable).code == 0
    bare.config(config)
    assert bare.rooda("chores", "-n", "1", env=variable).code == 0
    assert bare.rooda("chores", "-n", "1").code == 0
    bare.config(config.replace(f'ai_cmd = "{place}/ws"', ""))
    assert bare.rooda("chores", "-n", "1").code == 0
    assert bare.read("who").split() == ["flag", "own", "env", "ws", "user"]


def test_OA_30_the_older_key_is_understood(ws: Workspace) -> None:
    """default_max_iterations still sets the limit, in a file and in the environment, with a word about its new name."""
    ws.procedure(keys="default_max_iterations = 2\n")
    ran = ws.rooda("build")
    assert (ran.code, len(ws.calls)) == (0, 2)
    assert "default_iterations" in ran.err
    ws.procedure()
    ran = ws.rooda("build", env={"ROODA_LOOP_DEFAULT_MAX_ITERATIONS": "1"})
    assert (ran.code, len(ws.calls)) == (0, 3)
    assert "ROODA_LOOP_DEFAULT_ITERATIONS" in ran.err


def test_OA_31_nonsense_in_the_environment(ws: Workspace) -> None:
    """A limit in the environment that is no whole number from 0 on is an error that names the variable."""
    for value in ("abc", "-1", "1.5"):
        ran = ws.rooda("build", env={"ROODA_LOOP_DEFAULT_ITERATIONS": value})
        assert ran.code == 2
        assert "ROODA_LOOP_DEFAULT_ITERATIONS must be" in ran.err
        assert value in ran.err
    assert ws.calls == []
