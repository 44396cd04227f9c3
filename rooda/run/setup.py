"""Defines the settings that every kind of loop has: agent, limits, hooks."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

from rooda.agents.records import Agent, Bounds, T


class Budget(NamedTuple):
    """Limits of a run over all its sessions; 0 = no limit."""

    cost: float = 0.0  # dollars
    tokens: int = 0
    seconds: float = 0.0


class Budgets(NamedTuple):
    """Limits over all runs of the user, in dollars; 0 = no limit. An agent's own limit is `Agent.budget_day`."""

    day: float = 0.0  # per local calendar day
    project: float = 0.0  # for the workspace and its worktrees, over all time
    run: float = 0.0  # for all loops that one `rooda tasks run` starts
    group: str = ""  # the id of that `rooda tasks run`


class Hook(NamedTuple):
    """A shell command or a URL that receives an event."""

    command: str
    url: str = ""
    timeout: float = 10.0
    format: str = "json"  # format of the body that is posted to the URL


class NewWorktree(NamedTuple):
    """The settings of [worktree]: how to prepare a new worktree."""

    setup: str = ""  # shell command
    copy: tuple[str, ...] = ()  # paths relative to the workspace
    link: tuple[str, ...] = ()
    may_leave: tuple[str, ...] = ()  # of "copy" and "link" those whose paths may be outside of the workspace


class Sandbox(NamedTuple):
    """Access rights of agents and commands in the sandbox. `mode` is for commands; agents have their own modes."""

    mode: str = "off"  # off | auto | workspace | read-only
    network: str = "agent"  # off | agent | on
    gates: bool = True
    gate_network: str = "off"  # off | hosts | on
    hosts: tuple[str, ...] = ()
    names_hosts: bool = False  # `hosts` is set, perhaps to none, so that the agent's hosts are known
    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    hide: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()
    max_memory: int = 0  # bytes; 0 = no limit
    max_processes: int = 0
    max_output: int = 0  # bytes


class Watch(Protocol):
    """Detects changes to a workspace's trusted files while a loop runs there."""

    def begin(self, run: str, workspace: str) -> None: ...

    def end(self, run: str, workspace: str) -> None: ...


OTLP_ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"  # the address of a collector; the variable of OpenTelemetry


class Setup(NamedTuple):
    """The settings that every kind of loop has, resolved from all settings files, variables and options."""

    agent: Agent | None = None  # None: not configured; only a run needs one
    budget: Budget = Budget()
    bounds: Bounds = Bounds()
    hooks: Mapping[str, Hook] = {}  # keyed by moment, such as "done"
    token_budget: int = 0  # tokens of a prompt above which to warn, 0 = never
    token_encoding: str = "o200k_base"
    retry_wait: float = 5.0
    safety: str = "off"  # off | snapshot
    snapshot_private: bool = False
    keep_awake: bool = False
    show_ai_output: bool = False
    log_level: str = "info"
    log_timestamp_format: str = "time"
    further: Mapping[str, Any] = {}  # settings without a field of their own
    watch: Watch | None = None
    budgets: Budgets = Budgets()
    worktree: NewWorktree = NewWorktree()
    sandbox: Sandbox = Sandbox()
    unknown_call: float = 0.0  # dollars to assume for a call of unknown cost; 0 = none
    telemetry: str = ""  # address of a collector of OpenTelemetry's; "": only if a variable names one

    def value(self, key: str, kind: Callable[[Any], T]) -> T:
        """Return a setting from `further`, converted to a type: `setup.value("key", float)`."""
        return kind(self.further[key])


def collector(setup: Setup, environ: Mapping[str, str]) -> str:
    """Return the address to which telemetry is sent; "" = none. $OTEL_EXPORTER_OTLP_ENDPOINT overrides the setting."""
    if environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return ""
    return environ.get(OTLP_ENDPOINT, "").strip() or setup.telemetry


def is_walled(setup: Setup) -> bool:
    """True if commands or an agent of the session may need a sandbox, or if resources are limited."""
    agents = (setup.agent, *setup.agent.fallback) if setup.agent else ()
    limits = (setup.sandbox.max_memory, setup.sandbox.max_processes, setup.sandbox.max_output)
    return setup.sandbox.mode != "off" or any(each.sandbox != "off" for each in agents) or any(limits)
