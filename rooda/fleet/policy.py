"""Decides whether the settings of this worker allow it to run a task. Pure."""

from collections.abc import Mapping, MutableMapping
from fnmatch import fnmatchcase
from typing import NamedTuple

from rooda.fleet import ticket as tickets
from rooda.fleet.ticket import Ticket
from rooda.tasks.model import Limits

# Credentials of git, forges and Temporal, which agents and gates never see; `[agents.X] env` can pass one on.
CREDENTIALS = ("GH_TOKEN", "GITHUB_TOKEN", "GITLAB_TOKEN", "GIT_ASKPASS", "SSH_ASKPASS", "SSH_AUTH_SOCK")
ENGINE = "TEMPORAL_"


class Policy(NamedTuple):
    """`[fleet.worker]` of the user's own settings: what tickets may use on this machine."""

    repositories: tuple[str, ...] = ()  # URLs or patterns such as github.com/acme/*
    agents: tuple[str, ...] = ()  # names
    max_cost: float = 0.0  # dollars for one task; 0 = no limit
    prepare: str = ""  # command that sets up each clone
    ticket_commands: bool = False  # run commands that a ticket brings, such as gates
    insecure: bool = False  # use repositories over http:// and git://
    state: str = ""  # [fleet] state of this machine


def refusal(policy: Policy, ticket: Ticket) -> str:
    """Return why this worker refuses the task; "" if it accepts the task. The agent is checked later."""
    if not policy.repositories:
        return "its settings allow no repository; [fleet.worker] repositories lists those that it may run"
    if not allows(policy, ticket.repository):
        return f"its [fleet.worker] repositories do not allow {tickets.without_password(ticket.repository)}"
    places = {tickets.normalised(each) for each in (ticket.repository, policy.state) if each}
    if tickets.normalised(ticket.state) not in places and not allows(policy, ticket.state):
        return f"neither its [fleet] state nor its repositories allow {tickets.without_password(ticket.state)}"
    if policy.max_cost and ticket.task.limits.cost > policy.max_cost:
        limits = f"${ticket.task.limits.cost:g}, and its [fleet.worker] max_cost is ${policy.max_cost:g}"
        return f"the task may cost {limits}"
    if (ticket.task.gates or ticket.task.options) and not policy.ticket_commands:
        return "the task brings commands of its own, and its [fleet.worker] ticket_commands is not true"
    return ""


def capped(policy: Policy, limits: Limits) -> Limits:
    """Return a task's limits; a task without a cost limit gets this worker's `max_cost`."""
    return limits._replace(cost=limits.cost or policy.max_cost)


def allows(policy: Policy, url: str) -> bool:
    """True if a repository is allowed. Different forms of one URL are treated as equal."""
    own = tickets.normalised(url)
    return any(fnmatchcase(own, tickets.normalised(pattern)) for pattern in policy.repositories)


def refused_agent(policy: Policy, agent: str) -> str:
    """Return why this worker may not call an agent; "" if it may."""
    if agent in policy.agents:
        return ""
    return f"its settings do not allow the agent {agent}; [fleet.worker] agents lists those that it may call"


def taken(environ: MutableMapping[str, str]) -> dict[str, str]:
    """Return a copy of the worker's environment, and remove git's credentials from the environment itself.

    Only mirrors and landings get the copy, so that no other git command of the worker has a credential.
    """
    whole = dict(environ)
    for name in CREDENTIALS:
        environ.pop(name, None)
    return whole


def without_credentials(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without the credentials of git, forges and Temporal, for a loop with agents and gates."""
    return {key: value for key, value in environ.items() if key not in CREDENTIALS and not key.startswith(ENGINE)}
