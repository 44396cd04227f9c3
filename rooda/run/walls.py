"""Moves the processes of a session into a sandbox, and decides what agents and commands see, change and reach there."""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from rooda.agents.command import report_path
from rooda.agents.reader import reader
from rooda.agents.records import Agent
from rooda.base import files
from rooda.base.secret_forms import looks_secret
from rooda.errors import ConfigProblem, RoodaError
from rooda.processes import proxy
from rooda.processes import sandbox as bubblewrap
from rooda.processes.proxy import Proxy, Rule, rule_of
from rooda.processes.sandbox import READ, WRITE, Gate, Mount
from rooda.processes.supervise import Most, Spec
from rooda.run import private_homes, project_walls
from rooda.run.event_records import Emit, FilesRestored, NetworkRefused, Problem
from rooda.run.guarded_files import MOST, GuardedFiles
from rooda.run.logins import Logins
from rooda.run.setup import Sandbox, Setup

OFF, AUTO, WORKSPACE, READ_ONLY = "off", "auto", "workspace", "read-only"
AGENT, HOSTS, ON = "agent", "hosts", "on"  # values of network and gate_network, besides off
ADDRESSES = ("_BASE_URL", "_API_BASE", "_ENDPOINT", "_HOST")  # endings of variables that name an agent's service
PASSED = """
    PATH HOME USER LOGNAME SHELL LANG LANGUAGE LC_* TERM COLORTERM NO_COLOR FORCE_COLOR TZ CI VIRTUAL_ENV
    GIT_AUTHOR_NAME GIT_AUTHOR_EMAIL GIT_COMMITTER_NAME GIT_COMMITTER_EMAIL GIT_CONFIG_NOSYSTEM
    TRACEPARENT TRACESTATE
    ROODA_CALL ROODA_RUN ROODA_ITERATION ROODA_LOOP ROODA_PROCEDURE ROODA_MODEL
"""
TOOLCHAIN = ("_HOME", "_ROOT")  # endings of variables that name a toolchain's folder
# Settings of git without which it would try to write .git/config and .git/info, and complain.
GIT_SETTINGS = {
    "GIT_CONFIG_COUNT": "2",
    **{"GIT_CONFIG_KEY_0": "branch.autoSetupMerge", "GIT_CONFIG_VALUE_0": "false"},
    **{"GIT_CONFIG_KEY_1": "repack.updateServerInfo", "GIT_CONFIG_VALUE_1": "false"},
}
MOST_REFUSED = 50  # number of refused hosts that a session reports
MOST_SHOWN = 20  # number of output files of gates that an agent can read


class Chosen(NamedTuple):
    """The mode that applies on this machine. `why`: why the mode is off although the setting is `auto`."""

    mode: str
    why: str = ""


def chosen(wanted: str, workspace: str) -> Chosen:
    """Return the mode for this machine and project. Raises ConfigProblem if a required sandbox is not possible."""
    if wanted == OFF:
        return Chosen(OFF)
    why = bubblewrap.problem() or project_walls.refusal(project_walls.project_of(workspace, os.environ))
    why = why or private_homes.problem()
    if not why:
        return Chosen(WORKSPACE if wanted == AUTO else wanted)
    if wanted == AUTO:
        return Chosen(OFF, why)
    raise ConfigProblem(f'sandbox = "{wanted}" is not possible here: {why}; nothing was started', _hint())


def _hint() -> str:
    return bubblewrap.INSTALL if not bubblewrap.program() else 'To run without a sandbox: sandbox = "off".'


def chosen_for(agent: Agent | None, sandbox: Sandbox, workspace: str) -> Chosen:
    """Return the mode of an agent or, for None, of commands. `auto` means off for an agent with unknown hosts."""
    found = chosen(agent.sandbox if agent else sandbox.mode, workspace)
    auto = agent is not None and agent.sandbox == AUTO and found.mode != OFF
    if auto and agent and _needs_hosts(agent, sandbox):
        who = f"the agent {agent.name}" if agent.name else "the command"
        return Chosen(OFF, f"set [sandbox] hosts ([] for none); rooda does not know which hosts {who} needs")
    return found


def _needs_hosts(agent: Agent, sandbox: Sandbox) -> bool:
    """True if the agent may reach only named hosts, but neither rooda nor the settings know which ones it needs."""
    return agent.hosts is None and sandbox.network == AGENT and not sandbox.names_hosts


class SessionWalls:
    """The sandbox of one session: moves the session's processes into it, and cleans up after each group."""

    def __init__(self, workspace: str, setup: Setup, env: Mapping[str, str]) -> None:
        sandbox = setup.sandbox
        choices = [None, *(setup.agent.choices if setup.agent else ())]
        self._chosen = {each and each.name: chosen_for(each, sandbox, workspace) for each in choices}
        outside = next((each for each in self._chosen.values() if each.why), None)
        if outside and sandbox.mode == AUTO:  # True: gates run outside of the sandbox, too
            self._chosen[None] = outside
        self.mode = next((each.mode for each in self._chosen.values() if each.mode != OFF), OFF)
        self.why_off = next((each.why for each in self._chosen.values() if each.why), "")
        self.remarks = list(self._remarks(setup.agent.choices if setup.agent else (), sandbox))
        self._logins: dict[str, Logins] = {}
        self._usual: dict[tuple[str, str, str], list[Mount]] = {}  # by home, program and PATH
        self._sandbox = self.sandbox = sandbox._replace(mode=self._chosen[None].mode)
        self._project = project_walls.project_of(workspace, env)
        self._home = env.get("HOME", "")
        self._shown: Sequence[str] = ()
        self._proxy: Proxy | None = None
        self._refused: set[str] = set()
        self._problems: list[str] = []
        self._guarded, self._rounds = GuardedFiles(self._project, sandbox.allow), 0
        project_walls.prepare(self._project)

    def _remarks(self, agents: Sequence[Agent], sandbox: Sandbox) -> Iterator[str]:
        """Yield remarks for the user about agents in the sandbox, before the agents start."""
        for agent in agents:
            if self._chosen[agent.name].mode == OFF:
                continue
            who = f"the agent {agent.name}" if agent.name else "the command"
            if _needs_hosts(agent, sandbox):
                hint = 'name them: [sandbox] hosts = ["…"] ([] for none), or set network = "on"'
                yield f"rooda does not know which hosts {who} needs, so the agent can't reach any service; {hint}"
            if agent.keep_background:
                yield f"keep_background of {who} has no effect in the sandbox: its processes end with each call"

    @contextmanager
    def watched(self, folder: str, emit: Emit, who: Sequence[Agent | None] = (None,)) -> Iterator[None]:
        """Clean up after the processes that run in this context: restore guarded files, and report refused hosts.

        `folder`: the run's folder, which keeps what the processes wrote to guarded files. `who`: the agents that run;
        None stands for commands.
        """
        is_guarded = any(self._mode(each) != OFF for each in who)
        if is_guarded:
            for name in self._guarded.begin():
                emit(Problem(text=f"{name} is not guarded, because it has more than {MOST:,} files"))
        yield
        for problem in self._problems:
            emit(Problem(text=problem))
        self._problems = []
        for host in self._proxy.finish_round() if self._proxy else ():
            if host in self._refused or len(self._refused) > MOST_REFUSED:
                continue
            self._refused.add(host)
            if len(self._refused) <= MOST_REFUSED:
                emit(NetworkRefused(host=host))
            else:
                emit(Problem(text=f"More than {MOST_REFUSED} hosts were refused; the others are not reported"))
        for logins in self._logins.values():
            logins.bring_back()
        self._logins.clear()
        if is_guarded:
            self._rounds += 1
            kept = os.path.join(folder, f"put-back-{self._rounds}")
            try:
                restored = self._guarded.put_back(kept)
            except (OSError, RoodaError) as problem:
                emit(Problem(text=f"Guarded files can't be restored: {problem}"))
            else:
                for text in restored.problems:
                    emit(Problem(text=f"An agent or a gate changed a guarded file that can't be restored: {text}"))
                if restored.paths:
                    emit(FilesRestored(paths=restored.paths, kept=kept))

    def show(self, paths: Sequence[str]) -> None:
        self._shown = paths[-MOST_SHOWN:]

    def around(self, spec: Spec, agent: Agent | None = None, prompt: str = "") -> Spec:
        """Return the spec of a process, changed so that it runs in the sandbox unless the mode is off."""
        most = self._most()
        mode = self._mode(agent)
        if mode == OFF:
            return spec._replace(most=most)
        home = self._private_home(agent)
        if agent and self._project.home:
            self._logins[home] = Logins(self._project.home, home)
            self._logins[home].take_along(agent.login, agent.own_files)
        env = self._environment(spec.env, agent)
        program = _program(spec.argv[0], env, spec.cwd)
        mounts = [*self._mounts(env, home, program, mode != READ_ONLY or not agent)]
        mounts += self._outputs(agent, prompt, spec.output)
        network, rules = self._network(agent, env)
        gate = Gate(self._opened, rules) if network == HOSTS else None
        words = bubblewrap.words_of(mounts, self._project.workspace, network == ON)
        words += [*project_walls.links(self._project, self._home), *(gate.words if gate else ())]
        options = bubblewrap.arguments(words)
        return spec._replace(
            argv=(bubblewrap.program(), "--args", str(options), "--", *spec.argv),
            env={**env, **proxy.variables()} if gate else env,
            cwd=_here(spec.cwd),
            walled=True,
            program=program,
            passed=(options, *(gate.passed if gate else ())),
            admit=gate.admit if gate else None,
            home=home,
            most=most,
        )

    def _mode(self, agent: Agent | None) -> str:
        """Return the mode of an agent or, for None, of commands. An agent other than the loop's has its own setting."""
        found = self._chosen.get(agent and agent.name)
        if found is None or (agent and agent.sandbox == OFF):
            found = chosen_for(agent, self._sandbox, self._project.workspace)
        return found.mode

    def _network(self, agent: Agent | None, env: Mapping[str, str]) -> tuple[str, list[Rule]]:
        """Return the network (off, hosts or on), and rules for the hosts that a process may reach."""
        sandbox, named = self._sandbox, list(self._sandbox.hosts)
        if not agent:
            return (sandbox.gate_network, [rule_of(name) for name in named])
        named += agent.hosts or ()
        named += [value for key, value in env.items() if key.endswith(ADDRESSES) and value.startswith("http")]
        return (HOSTS if sandbox.network == AGENT else sandbox.network, [rule_of(name) for name in named])

    def _opened(self, pid: int, rules: Sequence[Rule]) -> str:
        self._proxy = self._proxy or Proxy()
        problem = self._proxy.open(pid, rules)
        self._problems += [f"The sandbox has no network: {problem}"] if problem else []
        return problem

    def close(self) -> None:
        self._guarded.close()
        if self._proxy:
            self._proxy.close()

    def _most(self) -> Most | None:
        most = Most(self._sandbox.max_memory, self._sandbox.max_processes, self._sandbox.max_output)
        return most if any(most) else None

    def _mounts(self, env: Mapping[str, str], home: str, program: str, writable: bool) -> Iterator[Mount]:
        key = (home, program, env.get("PATH", ""))
        if key not in self._usual:
            found = project_walls.of_home(self._project, home, env, program)
            self._usual[key] = [*project_walls.of_machine(self._project, self._sandbox), *found]
        yield from self._usual[key]
        yield from project_walls.of_project(self._project, writable)
        yield from project_walls.of_rooda(self._project)
        yield from project_walls.of_settings(self._project, self._sandbox)

    def _outputs(self, agent: Agent | None, prompt: str, transcript: str) -> Iterator[Mount]:
        """Yield mounts of the run's files: the outputs of the last gates, and the call's own prompt file and report."""
        needed = [prompt] if agent and agent.prompt == "file" else []
        for path in dict.fromkeys([*self._shown, *needed]):
            if os.path.isfile(path):
                yield Mount(READ, os.path.realpath(path))
        report = reader(agent.output).report if agent and "{report}" in agent.command else None
        if report:
            path = report_path(transcript)
            if report.file:
                files.make_folder(path)
            else:
                files.write(path, b"", 0o600)
            yield Mount(WRITE, os.path.realpath(path))

    def _private_home(self, agent: Agent | None) -> str:
        """Return the folder that is HOME in the sandbox: one for each project and CLI, one for a project's commands."""
        return private_homes.home_of(self._project.top, (agent.cli or "command") if agent else "gates")

    def _environment(self, env: Mapping[str, str], agent: Agent | None) -> dict[str, str]:
        """Return the variables that a process gets: those on the allow list, and those that its agent needs."""
        own = (*agent.variables, *agent.billing, *agent.env) if agent else ()
        named = matcher((*PASSED.split(), *self._sandbox.environment, *own))
        paths = env.get("PATH", "").split(os.pathsep)
        found = {key: value for key, value in env.items() if named(key) or _is_toolchain(key, value, paths)}
        own_git = {} if "GIT_CONFIG_COUNT" in found else GIT_SETTINGS
        return {**found, **own_git, "TMPDIR": "/tmp"}


def matcher(names: Sequence[str]) -> Callable[[str], bool]:
    """Return a function that tests whether a name matches one of `names`, in which `*` matches any text."""
    pattern = re.compile("|".join(".*".join(map(re.escape, name.split("*"))) for name in names))
    return lambda name: pattern.fullmatch(name) is not None


def _is_toolchain(name: str, value: str, paths: Sequence[str]) -> bool:
    """True for a variable such as JAVA_HOME whose value is a folder with programs on PATH."""
    if not name.endswith(TOOLCHAIN) or looks_secret(name) or not os.path.isabs(value):
        return False
    return any(bubblewrap.is_below(path, (value,)) for path in paths)


def _program(name: str, env: Mapping[str, str], cwd: str) -> str:
    """Return the path of the program to start; the name itself if PATH doesn't have it."""
    if os.sep in name:
        return os.path.join(cwd, name)
    places = env.get("PATH", os.defpath).split(os.pathsep)
    found = (os.path.join(place, name) for place in places if place)
    return next((path for path in found if os.access(path, os.X_OK) and os.path.isfile(path)), name)


def _here(cwd: str) -> str:
    """Return the current folder. A process starts faster there, and bubblewrap changes to the right folder anyway."""
    try:
        return os.getcwd()
    except OSError:
        return cwd
