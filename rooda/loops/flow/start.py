"""Everything that can be found wrong with a flow before anything is asked, written or paid for."""

import os
from functools import partial
from typing import NamedTuple

import click

from rooda.agents.records import Agent
from rooda.base import files
from rooda.base.text import visible
from rooda.errors import ConfigProblem, Undecided, UsageProblem
from rooda.git.repository import Repo, listing
from rooda.loops import launch
from rooda.loops.flow import agents as flow_agents
from rooda.loops.flow import flow_lock, flow_native
from rooda.loops.flow import repository as flow_repository
from rooda.loops.flow import topology as flow_topology
from rooda.loops.flow.effects import Ways
from rooda.loops.flow.flow_labels import FLOW_FILE, agent_files, chain
from rooda.loops.flow.flow_screen import FlowScreen
from rooda.loops.flow.model import listed
from rooda.loops.flow.topology import Topology
from rooda.loops.options import Asked
from rooda.processes import lock
from rooda.run.setup import Setup
from rooda.settings import agents, layers
from rooda.settings.lookup import Lookup
from rooda.settings.setup import setup
from rooda.settings.where import Where, warned


class Ready(NamedTuple):
    """What a flow is run with."""

    setup: Setup
    look: Lookup
    agent: Agent
    topology: Topology
    repo: Repo
    screen: FlowScreen
    as_json: bool = False
    kept: tuple[str, ...] = ()

    @property
    def native(self) -> bool:
        return bool(self.look.value("sensors") == "native")

    def ways(self) -> Ways:
        from rooda.loops.flow.child_loops import loop_of

        return Ways(
            self.setup,
            partial(flow_agents.agent_for, self.look, self.agent),
            self.native,
            float(self.look.value("sensor_timeout")),
            loop_of(self.agent),
        )


class Ground(NamedTuple):
    """What stands before the flow itself is looked at."""

    where: Where
    asked: Asked
    found: layers.Settings
    setup: Setup
    look: Lookup
    repo: Repo
    screen: FlowScreen


def ground(where: Where, asked: Asked) -> Ground:
    """Settings and repository."""
    found = warned(layers.load(where.workspace, where.config))
    made, look = setup(found, "flow", asked.flags)
    return Ground(where, asked, found, made, look, repository(where.workspace), FlowScreen(launch.look(made, asked)))


def repository(workspace: str) -> Repo:
    """Where there is no flow either, that is the first thing to say."""
    try:
        return flow_repository.found(workspace)
    except UsageProblem:
        flow_topology.load(workspace)
        raise


def ready(under: Ground) -> Ready:
    """The flow, its agent and its repository, each checked as a whole."""
    topology = flow_topology.load(under.where.workspace)
    agent, screen = under.setup.agent, under.screen
    for warning in topology.warnings:
        launch.warn(screen, warning)
    if agent is None:
        raise ConfigProblem(agents.no_agent_text(under.found, "[flow]"))
    program = launch.checked(agent, under.where.workspace, "")
    launch.announced(agent, program, screen, under.asked.kept)
    flow_repository.require_ready(under.repo)
    how = (under.asked.json, under.asked.kept)
    here = Ready(under.setup, under.look, agent, topology, under.repo, screen, *how)
    if here.native:
        require_commands(here)
    return here


def require_commands(here: Ready) -> None:
    """rooda can measure only what names a command."""
    mute = [
        f"{node.path}: {sensor.path} names no command for rooda to run"
        for node in chain(here.topology.root)
        for sensor in node.sensors
        if not flow_native.command_of(files.text(os.path.join(here.repo.workspace, sensor.path)))
    ]
    if mute:
        hint = 'Add `command: …` to their front matter, or set [flow] sensors = "agent".'
        raise ConfigProblem("\n".join(mute), hint)


def locked(repo: Repo, screen: FlowScreen) -> lock.Lock | None:
    """The work tree's lock. What git was doing when an earlier run was killed is undone."""
    path = lock_path(repo)
    held = launch.locked(path, "a flow", flow_lock.running_name(path) or "NAME", screen)
    if held and held.before.get("run"):
        for name in flow_repository.unlock(repo):
            launch.warn(screen, f"The earlier run was killed while git worked; its {name} is removed.")
    return held


def lock_path(repo: Repo) -> str:
    return flow_lock.path_in(repo.folder)


def require_clean(here: Ready, allowed: bool) -> None:
    """What is not committed would become part of the first commit. The flow's own files may."""
    own = {here.repo.inside(path) for path in agent_files(here.topology.root)}
    inner = here.repo.inside(".ai-loop/")
    found = [
        (word, path)
        for word, path in flow_repository.dirty(here.repo)
        if path not in own and not path.startswith(inner)
    ]
    rows = [f"  {word} {visible(path)}" for word, path in found[:20]]
    rows += [f"  and {len(found) - 20} more"] if len(found) > 20 else []
    if not found:
        return
    listed = "\n".join(rows)
    if allowed:
        launch.warn(here.screen, f"Not committed yet, and part of the first commit from now on:\n{listed}")
    elif not _confirmed(listed):
        raise Undecided(
            f"The work tree has changes that are not committed; nothing was started.\n{listed}",
            "Commit or stash them, or take them into the first commit: rooda flow run --allow-dirty …",
        )


def warn_of_ignored(here: Ready) -> None:
    """Committed on the run's branch, such a file would leave the work tree with it; so it stays out, and is named."""
    own = [here.repo.inside(path) for path in (FLOW_FILE, *agent_files(here.topology.root))]
    words = ("--no-literal-pathspecs", "check-ignore", "-z", "--stdin")
    ignored = files.to_text(here.repo.ask(*words, stdin=listing(own)).out).split("\0")[:-1]
    if ignored:
        launch.warn(here.screen, f"git ignores {listed(ignored)}: a clone of the run's branch can't go on without.")


def _confirmed(listed: str) -> bool:
    """At a terminal a person may say so at once."""
    from rooda.run import questions

    if not questions.at_terminal():
        return False
    click.echo(f"The work tree has changes that are not committed:\n{listed}")
    answer = questions.typed_answer("Take them into the first commit? [y/N] ")
    return (answer or "").strip().lower() in ("y", "yes")
