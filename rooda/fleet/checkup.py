"""`rooda fleet doctor`: checks whether this machine can add tasks to the fleet and run them."""

import os
import re
from collections.abc import Iterator
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, NamedTuple

from rooda import __version__
from rooda.agents import preflight
from rooda.base import clock, dirs, files
from rooda.base.text import counted
from rooda.errors import RoodaError
from rooda.fleet import ticket as tickets
from rooda.fleet.mirror import Mirror, clone_environment
from rooda.fleet.names import DAY
from rooda.fleet.options import fleet_settings
from rooda.fleet.policy import Policy
from rooda.git import command
from rooda.settings import agents
from rooda.settings.layers import Settings
from rooda.settings.where import Where
from rooda.tasks.store import place_of

if TYPE_CHECKING:
    from rooda.fleet.worker import Fleet

GOOD, WARN, BAD = "ok", "warn", "fail"
SKEW = 30.0  # seconds by which clocks may differ without a warning: only times on screen depend on them
LITTLE_ROOM = 1 << 30  # bytes
PROBE_TIMEOUT = 60.0  # seconds


class Finding(NamedTuple):
    """The result of a check. `status` is `ok`, `warn` (a possible problem), or `fail` (the fleet can't be used)."""

    what: str
    status: str
    detail: str
    do: str = ""


def findings(fleet: "Fleet", found: Settings, here: Where) -> Iterator[Finding]:
    yield from _engine(fleet)
    yield from _state(found, here)
    yield from _worker(found, here)
    yield _disk()


def _engine(fleet: "Fleet") -> Iterator[Finding]:
    """Check Temporal: address, TLS, versions, namespace, clock, queue and workers."""
    from rooda.fleet.engine import Engine, connection

    try:
        encrypted = bool(connection(fleet.address, fleet.insecure).get("tls"))
        engine = Engine(fleet.address, fleet.heartbeat, fleet.insecure)
        about = engine.about()
    except RoodaError as problem:
        yield Finding("address", BAD, problem.what, problem.hint)
        return
    yield Finding("address", GOOD, str(fleet.address))
    how = "on" if encrypted else "off; this machine only" if fleet.address.is_local else "off"
    do = "" if encrypted or fleet.address.is_local else "Set up TLS: anyone on the network path can change tasks."
    yield Finding("TLS", WARN if do else GOOD, how, do)
    yield Finding(
        "versions", GOOD, f"rooda {__version__}, temporalio {version('temporalio')}, server {about['version']}"
    )
    if not about["namespace"]:
        do = f"Create it: temporal operator namespace create --namespace {fleet.address.namespace}"
        yield Finding("namespace", BAD, f"{fleet.address.namespace} does not exist", do)
        return
    yield _namespace(fleet, about)
    ahead = engine.clock_ahead()
    late = f"{abs(ahead):.0f} s {'ahead of' if ahead > 0 else 'behind'} the server"
    yield Finding("clock", WARN if abs(ahead) > SKEW else GOOD, late if abs(ahead) >= 1 else "like the server's")
    yield from _workers(engine)


def _namespace(fleet: "Fleet", about: dict[str, Any]) -> Finding:
    days = about["retention"] / DAY
    detail = f"{fleet.address.namespace}, keeps ended tasks for {days:g} days"
    do = "Ended tasks leave the board after that; a longer retention keeps them." if days < 3 else ""
    return Finding("namespace", WARN if do else GOOD, detail, do)


def _workers(engine: Any) -> Iterator[Finding]:
    found = engine.workers()
    names = ", ".join(sorted({str(each["name"]) for each in found}))
    yield Finding("workers", GOOD, names) if names else Finding("workers", WARN, "none", "Start one: rooda worker")
    for pool in sorted({str(each["pool"]) for each in found} or {"default"}):
        count = engine.partitions(pool)
        do = "Use one: matching.numTaskqueueReadPartitions and …WritePartitions = 1 in the server's dynamic config."
        detail = f"{counted(count, 'partition')}"
        if count > 1:
            yield Finding(f"queue of {pool}", WARN, f"{detail}: priorities apply only within each partition", do)
        else:
            yield Finding(f"queue of {pool}", GOOD, detail)


def _state(found: Settings, here: Where) -> Iterator[Finding]:
    """Check the state remote: whether rooda can create and delete a ref in it, and whether anyone can read it."""
    from rooda.fleet.desk import remote_url

    try:
        own = fleet_settings(found)
        place = place_of(here.workspace)
        url = remote_url(place)
        key = tickets.key_of(url)
        mirror = Mirror(
            dirs.data("fleet"), f"desk-{key}", url, own.state or url, prefix=own.ref_prefix, insecure=own.insecure
        )
        mirror.make()
        mirror.fetch()
        problem = _probe(mirror)
    except RoodaError as error:
        yield Finding("state remote", BAD, error.what, error.hint)
        return
    shown = tickets.without_password(mirror.state)
    if problem:
        do = f"Let git push {mirror.prefix}*, or choose another place: [fleet] state, ref_prefix."
        yield Finding("state remote", BAD, f"{shown} does not take a ref: {problem}", do)
    else:
        yield Finding("state remote", GOOD, f"{shown} takes refs below {mirror.prefix}")
    if is_public(mirror):
        what = f"{mirror.state} can be read by everybody, and so can prompts, events and unfinished work"
        yield Finding("state remote", WARN, what, "Use a private repository: [fleet] state")


def _probe(mirror: Mirror) -> str:
    """Create a ref in the state remote and delete it; return the error, or "" if both succeed."""
    newest = mirror.run("for-each-ref", "--count=1", "--format=%(objectname)", "refs/remotes/origin")
    commit = files.to_text(newest.out).strip()
    if not commit:
        return "the repository has no branch yet"
    ref = f"{mirror.prefix}probe-{os.urandom(4).hex()}"
    for change in (f"{commit}:{ref}", f":{ref}"):
        done = mirror.ask(mirror.state, "push", "--quiet", mirror.state, change, quiet=PROBE_TIMEOUT)
        if done.code:
            return command.push_error(done)
    return ""


def is_public(mirror: Mirror) -> bool:
    """True if anyone can read the state remote without a login."""
    if not re.match(r"https?://", mirror.state):
        return False
    clean = {**clone_environment(os.environ), "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    stranger = Mirror(dirs.data("fleet"), "stranger", mirror.state, insecure=True, environ=clean)
    stranger.make()
    done = stranger.ask(
        mirror.state, "-c", "credential.helper=", "ls-remote", "--quiet", mirror.state, quiet=PROBE_TIMEOUT
    )
    return done.code == 0


def _worker(found: Settings, here: Where) -> Iterator[Finding]:
    """Check what a `rooda worker` on this machine could run."""
    policy: Policy = fleet_settings(found).policy
    if policy.repositories:
        yield Finding("repositories", GOOD, ", ".join(policy.repositories))
    else:
        do = "For a worker: [fleet.worker] repositories = [URL, …] in your own settings."
        yield Finding("repositories", WARN, "a worker on this machine would refuse every task", do)
    for name in policy.agents:
        try:
            agent = agents.agent_named(found, name)
            program = preflight.find_program(agent, here.workspace) if agent else ""
            yield Finding(f"agent {name}", GOOD, program) if program else Finding(f"agent {name}", BAD, "is unknown")
        except RoodaError as problem:
            yield Finding(f"agent {name}", BAD, problem.what, problem.hint)
    if not policy.agents:
        yield Finding("agents", WARN, "none is allowed", "Name them: [fleet.worker] agents, or agent of [loop].")


def _disk() -> Finding:
    place = dirs.data()
    while place and not os.path.isdir(place):
        place = os.path.dirname(place)
    free = files.free_space(place or "/")
    do = "A worker keeps mirrors and clones there." if free < LITTLE_ROOM else ""
    return Finding("disk", WARN if do else GOOD, f"{free / 1e9:.1f} GB free at {place}", do)


def old_refs(tasks: Any, tips: dict[int, str], keep: float) -> dict[int, str]:
    """Return the refs of tasks that landed or were cancelled more than `keep` seconds ago."""
    oldest = clock.rfc3339(clock.now() - keep)
    return {
        number: tip
        for number, tip in tips.items()
        if number in tasks and tasks[number].is_over and "" < tasks[number].updated_at <= oldest
    }


def unknown_refs(tasks: Any, tips: dict[int, str], keep: float, mirror: Mirror) -> dict[int, str]:
    """Return the refs that have not changed for `keep` seconds and whose tasks the engine does not know."""
    found = {}
    for number, tip in tips.items():
        if number not in tasks and mirror.fetch(number) == tip:
            made = files.to_text(mirror.run("show", "-s", "--format=%ct", tip).out).strip()
            if made.isdecimal() and int(made) <= clock.now() - keep:
                found[number] = tip
    return found
