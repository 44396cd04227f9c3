"""The part of `rooda doctor` that knows settings and agents: what a person chose must be able to start."""

from collections.abc import Callable, Iterator
from functools import partial

from rooda.agents import preflight
from rooda.agents.records import Agent
from rooda.base.json import Json
from rooda.cli.finding import BAD, GOOD, INFO, WARN, Finding, Patient
from rooda.errors import RoodaError
from rooda.loops import registry
from rooda.run.setup import Setup
from rooda.settings import agents, layers


def written_settings(patient: Patient) -> Iterator[Finding]:
    if patient.settings is None:
        yield Finding("settings", BAD, patient.problem.partition("\n")[0], patient.problem.partition("\n")[2])
        return
    files_read = [layer.path for layer in patient.settings.written if layer.path]
    status = WARN if patient.settings.warnings else GOOD
    yield Finding("settings", status, ", ".join(files_read) or "none of yours", "\n".join(patient.settings.warnings))
    for name in _written(patient.settings):
        try:
            prompt = registry.first_prompt(patient.settings, name)
            if agent := registry.tenant(registry.OODA).setup(patient.settings, name).agent:
                preflight.fits(agent, prompt)
        except RoodaError as problem:
            yield Finding(f"procedure {name}", BAD, problem.what, problem.hint)


def _written(found: layers.Settings) -> list[str]:
    """The procedures that a person wrote or changed."""
    return sorted({name for layer in found.written for name in layer.table("procedures")})


def chosen(patient: Patient) -> Iterator[Finding]:
    """The agents that the settings choose, and those to switch to: they must be able to start."""
    if patient.settings is None:
        return
    agents: dict[str, Agent] = {}
    refused = False
    for what, setup in _setups(patient.settings):
        try:
            agent = setup().agent
        except RoodaError as problem:
            refused = True
            if what:
                yield Finding(what, BAD, problem.what, problem.hint)
            continue
        for each in (agent, *(agent.fallback if agent.on_limit == "switch" else ())) if agent else ():
            agents.setdefault(each.command, each)
    for each in agents.values():
        yield _startable(each, patient.where.workspace)
    if not agents and not refused:
        yield _none_chosen(patient)


def _setups(found: layers.Settings) -> Iterator[tuple[str, Callable[[], Setup]]]:
    """Of each procedure and kind of loop that a person wrote, and of `build`; and how one is called that is refused.

    Procedures of a person's are looked at before, and need no second word.
    """
    written = _written(found)
    for name in [*written, *(["build"] if "build" not in written else [])]:
        what = "" if name in written else "agent"
        yield what, partial(registry.tenant(registry.OODA).setup, found, name)
    for kind in registry.KINDS:
        if kind != registry.OODA and any(layer.table(kind) for layer in found.written):
            yield f"agent of {kind}", partial(registry.tenant(kind).setup, found, "")


def _startable(agent: Agent, workspace: str) -> Finding:
    what = f"agent {agent.name}" if agent.name else "ai_cmd"
    try:
        program = preflight.require(agent, workspace)
        preflight.check(agent, "")
    except RoodaError as problem:
        return Finding(what, BAD, problem.what, problem.hint)
    warnings = preflight.warnings(agent)
    return Finding(what, WARN if warnings else GOOD, f"chosen; {program}", "\n".join(warnings))


def _none_chosen(patient: Patient) -> Finding:
    known = [row["name"] for row in patient.agents if row["name"] != "demo"]
    if known:
        do = f"Choose one: rooda build --agent {known[0]}, or write it into [loop] of rooda.toml (rooda init does)."
        return Finding("agent", WARN, "none is chosen", do)
    do = "Install one (rooda agents lists them), or look at a loop without an AI: rooda build --agent demo"
    return Finding("agent", BAD, "none is chosen, and none is on this machine", do)


def here(patient: Patient) -> Iterator[Finding]:
    """Each agent that is here: version, and whose money it would be."""
    for row in patient.agents:
        version = row["version"] or "installed"
        yield Finding(f"  {row['name']}", INFO, f"{version} ({row['program']}); billed: {row['billed'] or 'nobody'}")


def installed(found: layers.Settings, workspace: str) -> Iterator[Json]:
    for name in agents.agents(found):
        agent = agents.agent_named(found, name)
        try:
            program = preflight.require(agent, workspace) if agent else ""
        except RoodaError:
            continue
        if agent and program:
            billed = preflight.who_pays(agent, preflight.environ(agent))
            yield {"name": name, "program": program, "version": preflight.version_of(agent, program), "billed": billed}
