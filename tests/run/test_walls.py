"""The sandbox of a session: what an agent or a gate sees and changes, and how its processes end."""

import os
import signal
import socket
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from rooda.processes import table
from tests.kit.users import ALICE, AlicesWorkspace
from tests.kit.walled import BWRAP, wall, walled  # noqa: F401 - a fixture
from tests.kit.workspace import Workspace, alive, until

pytestmark = BWRAP

# Daemons: in a session of its own, forked twice, and with an empty environment and the mark's limit reset.
DAEMONS = """
setsid sleep 600 &
( ( setsid sleep 600 & ) & )
python3 -c 'import os, resource
if not os.fork():
    os.setsid()
    if not os.fork():
        resource.setrlimit(resource.RLIMIT_RTTIME, (resource.RLIM_INFINITY,) * 2)
        os.execve("/bin/sleep", ["sleep", "600"], {})
    os._exit(0)
os.wait()'
touch "$FAKE/started"
sleep 600
"""


def below(pid: int) -> list[int]:
    """The process and all below it: in a sandbox an orphan stays below the sandbox's first process."""
    return [pid, *table.descendants(pid)]


def test_S_21_the_project_is_writable_and_the_rest_is_not(walled: Workspace) -> None:  # noqa: F811
    """The agent edits, commits and has an empty HOME; git's config, hooks, .rooda and foreign files are walls."""
    Path(walled.home, "secret").write_text("s3cret")
    walled.side(
        1,
        """
        out=$FAKE/seen; : >"$out"
        try() { if eval "$2" >/dev/null 2>&1; then echo "$1" >>"$out"; fi; }
        echo more >work.txt; git add work.txt; git commit -qm work && echo commit >>"$out"
        try config 'echo x >>.git/config'
        try hook 'echo x >.git/hooks/pre-commit'
        try refs 'git update-ref refs/rooda/x HEAD'
        try state 'touch .rooda/x'
        try runs 'ls .rooda/runs'
        try git 'mv .git .git2'
        try home 'cat "$HOME/secret"'
        try bashrc 'echo x >"$HOME/.bashrc"'
        try loop 'kill -0 '$(cat /proc/sys/kernel/pid_max)
        [ "$(ls /proc | grep -c "^[0-9]")" -lt 12 ] && echo few-processes >>"$out"
        """,
    )
    run = walled.rooda("build", "-n", "1")
    assert run.code == 0, run.err
    assert Path(walled.fake, "seen").read_text().split() == ["commit", "bashrc", "few-processes"]
    assert not Path(walled.home, ".bashrc").exists()
    assert "work" in walled.git("log", "-1", "--format=%s")


def test_S_21_gates_are_inside_and_their_output_is_readable(ws: Workspace) -> None:
    """A gate can't write .git/config; the next call reads the gate's output at its real path."""
    ws.git("init", "-q")
    wall(ws, gates={"probe": "echo evil >.envrc; echo proof; echo x >>.git/config"}, loop={"failure_threshold": 9})
    ws.side(2, 'cat .rooda/runs/*/0001-gate-1.out >"$FAKE/read"; ls .rooda/runs/* >"$FAKE/listed"')
    run = ws.rooda("build", "-n", "2")
    assert "Quality gates failed: probe" in run.out
    assert not ws.exists(".envrc") and "Restored files that agents and gates may not change: .envrc" in run.err
    assert Path(ws.fake, "read").read_text().startswith("proof")
    assert Path(ws.fake, "listed").read_text().split() == ["0001-gate-1.out"]


@pytest.fixture
def elsewhere() -> Iterator[Path]:
    """A folder that the sandbox does not hide as a whole."""
    if not os.access("/var/lib", os.W_OK):
        pytest.skip("only root can write to /var/lib")
    with tempfile.TemporaryDirectory(prefix="rooda-test-", dir="/var/lib") as folder:
        yield Path(folder)


SERVICE = 'python3 -c \'import socket; socket.socket(socket.AF_UNIX).connect("{}")\' && echo {} >>"$FAKE/got"\n'


def test_S_21_rooda_and_services_are_out_of_reach_wherever_they_are(
    walled: Workspace,  # noqa: F811
    elsewhere: Path,
) -> None:
    """rooda's key and state outside of HOME or in the project; sockets, but for the project's own and opened ones."""
    (elsewhere / "key").write_bytes(b"k" * 32)
    (elsewhere / "key").chmod(0o600)
    state = walled.file("state")
    walled.env |= {"ROODA_KEY_FILE": str(elsewhere / "key"), "ROODA_STATE_HOME": state}
    (elsewhere / "opened").mkdir()
    places = [elsewhere / "hidden.sock", elsewhere / "opened/x.sock", Path(walled.file("x.sock"))]
    with ExitStack() as stack:
        for place in places:
            service = stack.enter_context(socket.socket(socket.AF_UNIX))
            service.bind(str(place))
            service.listen()
        look = f'cat {elsewhere}/key >"$FAKE/key"; ls state >"$FAKE/state"; touch state/x; rm -r state\n'
        walled.side(1, look + "".join(SERVICE.format(place, place.name) for place in places))
        wall(walled, keys=f'read = ["{elsewhere}/opened"]')
        run = walled.rooda("build", "-n", "1")
    assert run.code == 0, run.err
    assert Path(walled.fake, "key").read_text() == Path(walled.fake, "state").read_text() == ""
    assert Path(state, "homes").exists() and not Path(state, "x").exists()
    assert Path(walled.fake, "got").read_text().split() == ["x.sock", "x.sock"]


def test_S_22_hidden_files_are_empty_and_named_paths_are_there(walled: Workspace) -> None:  # noqa: F811
    """`hide` with a file and a folder, `read` and `write` in HOME; the host's files stay as they are."""
    walled.write(".env", "KEY=s3cret\n")
    walled.write("secrets/key", "s3cret\n")
    for name in ("lib", "cache"):
        Path(walled.home, name).mkdir()
        Path(walled.home, name, "x").write_text(f"{name}\n")
    wall(walled, keys='hide = [".env", "secrets"]\nread = ["~/lib"]')
    walled.config(walled.read("rooda.toml").replace("write = [", 'write = ["~/cache", '))
    look = "cat .env; ls -A secrets; cat ~/lib/x ~/cache/x; touch .env secrets/x ~/lib/y && echo no; touch ~/cache/y"
    walled.side(1, f'( {look} ) >"$FAKE/got" 2>/dev/null; echo x >.env; rm -rf secrets .env; true')
    run = walled.rooda("build", "-n", "1")
    assert run.code == 0, run.err
    assert Path(walled.fake, "got").read_text().split() == ["lib", "cache"]
    assert walled.read(".env") == "KEY=s3cret\n" and walled.read("secrets/key") == "s3cret\n"
    assert Path(walled.home, "cache/y").exists() and not Path(walled.home, "lib/y").exists()


def test_S_22_only_listed_variables_pass(walled: Workspace) -> None:  # noqa: F811
    """A key and an unknown variable reach neither the agent nor its parent's /proc; JAVA_HOME on PATH does."""
    walled.side(1, 'env >"$FAKE/env"; cat /proc/[0-9]*/environ 2>/dev/null | tr "\\0" "\\n" >"$FAKE/environs"')
    java = os.path.join(walled.root, "java")
    os.makedirs(f"{java}/bin")
    more = {"DEPLOY_TOKEN": "d3ploy", "SOME_SETTING": "x", "JAVA_HOME": java}
    run = walled.rooda("build", "-n", "1", env=more | {"PATH": f"{java}/bin:{walled.env['PATH']}"})
    assert run.code == 0, run.err
    seen, environs = (Path(walled.fake, name).read_text() for name in ("env", "environs"))
    assert "d3ploy" not in seen + environs and "SOME_SETTING" not in seen
    assert f"JAVA_HOME={java}" in seen and "TMPDIR=/tmp" in seen


def test_S_20_what_can_not_be_had_is_exit_2_and_auto_says_it(ws: Workspace) -> None:
    """A project that contains the home folder: `workspace` starts nothing, `auto` goes on and says why."""
    env = {"HOME": ws.root}
    top = ws.root
    Path(top, ".git").mkdir()
    wall(ws)
    run = ws.rooda("build", "-n", "1", env=env)
    assert run.code == 2 and "contains the home folder" in run.err and not ws.calls
    run = ws.rooda("build", "-n", "1", "--sandbox", "auto", env=env)
    assert run.code == 0, run.err
    assert "No sandbox: the project" in run.err


@pytest.mark.parametrize(
    ("env", "why"),
    [
        ({"ROODA_STATE_HOME": "/proc/nowhere"}, "set ROODA_STATE_HOME to a folder that you can write"),
        ({"HOME": "/"}, "HOME is /, which can't be hidden"),
    ],
)
def test_S_20_a_home_that_can_not_be_made_starts_nothing(ws: Workspace, env: dict[str, str], why: str) -> None:
    """Exit 2 with what to set, before the first call; `auto` goes on without a sandbox."""
    wall(ws)
    run = ws.rooda("build", "-n", "1", env=env)
    assert run.code == 2 and why in run.err and not ws.calls, run.both
    run = ws.rooda("build", "-n", "1", "--sandbox", "auto", env=env)
    assert run.code == 0 and why in run.err, run.both


@pytest.mark.parametrize("count", [10, pytest.param(200, marks=[pytest.mark.long, pytest.mark.timeout(900)])])
def test_S_21_nothing_outlives_a_kill_of_rooda(walled: Workspace, count: int) -> None:  # noqa: F811
    """SIGKILL of guardian and loop at once: the agent and all its daemons die, within 100 ms on a machine at rest."""
    walled.side("iteration", DAEMONS)
    took = []
    for round_ in range(count):
        Path(walled.fake, "started").unlink(missing_ok=True)
        running = walled.start("build", "-n", "1", "--fresh")
        until(lambda: Path(walled.fake, "started").exists(), 20, "the daemons")
        found = below(running.pid)
        assert len(found) >= 8, round_  # guardian, loop, bubblewrap, its child, the agent, three daemons
        for pid in found[:2]:
            os.kill(pid, signal.SIGKILL)
        began = time.monotonic()
        until(lambda found=found: not any(map(alive, found)), 5, "the end of all processes")
        took.append(time.monotonic() - began)
        running.finish()
    print(f"seconds until all were dead: median {sorted(took)[count // 2]:.3f}, most {max(took):.3f}")
    assert count == 10 or sorted(took)[count * 9 // 10] < 0.1


@pytest.mark.parametrize(("name", "stop"), [("INT", "INT"), ("TERM", "TERM")])
def test_S_24_stop_signals_reach_the_agent(ws: Workspace, name: str, stop: str) -> None:
    """The agent hears its own stop signal once, saves, and its exit code is recorded."""
    command = 'sh -c \'trap "echo saved >>saved.txt; exit 3" ' + name + "; touch ready; while :; do sleep 0.01; done'"
    ws.write("agent.toml", "")
    wall(ws, loop={"agent": "own", "ai_cmd": None, "kill_grace": 5})
    ws.config(ws.read("rooda.toml") + f'[agents.own]\ncommand = """{command}"""\nstop = "{stop}"\n')
    running = ws.start("build", "-n", "1")
    until(lambda: ws.exists("ready"))
    running.process.send_signal(signal.SIGTERM)
    assert running.finish() == 143
    assert ws.read("saved.txt") == "saved\n"
    ended = next(event for event in ws.events() if event["event"] == "agent.ended")
    assert (ended["ended"], ended["exit_code"]) == ("interrupted", 3)


def test_S_24_exit_codes_timeouts_and_leftovers_are_as_outside(ws: Workspace) -> None:
    """Exit 7, a signal, a timeout with a deaf agent, a left process: recorded as without a sandbox."""
    ws.exits(7)
    ws.side(2, "kill -SEGV $$")
    ws.side(3, "trap '' TERM INT; sleep 60 & sleep 60")
    ws.side(4, "setsid sleep 60 &")
    wall(ws, loop={"iteration_timeout": 0.6, "kill_grace": 0.4, "failure_threshold": 9})
    run = ws.rooda("build", "-n", "4")
    ended = [event for event in ws.events() if event["event"] == "agent.ended"]
    found = [(event["ended"], event["exit_code"]) for event in ended]
    assert found == [("exit", 7), ("exit", 139), ("timeout", 137), ("exit", 0)], run.err
    assert not ws.leftovers()


def test_S_20_an_ordinary_user_has_the_same_sandbox(alices: AlicesWorkspace) -> None:
    """Not root: the walls, private HOME and the network of named hosts hold, and nothing is left."""
    alices.git("init", "-q")
    Path(alices.home, "secret").write_text("s3cret")
    reach = "python3 -c 'import urllib.request as r; r.urlopen(\"http://evil.test\")' 2>&1 | grep -o 403 | head -1"
    probe = f'cat "$HOME/secret"; echo x >>.git/config; touch .rooda/x; {reach}; id -u; echo fine'
    probe = f'({probe}) >"$FAKE/seen" 2>/dev/null'
    alices.side(1, probe)
    wall(alices, loop={"ai_cmd": alices.users.agent})
    alices.give(ALICE)
    run = alices.rooda_as(ALICE, "build", "-n", "1")
    assert run.code == 0, run.err
    assert Path(alices.fake, "seen").read_text().split() == ["403", str(ALICE), "fine"]
    assert "refused: evil.test:80" in run.err


def test_S_20_a_workspace_only_tightens(ws: Workspace) -> None:
    """The user's `workspace` beats `off` of the workspace's file; the option beats both; `read-only` is stricter."""
    ws.side("iteration", 'echo x >made 2>/dev/null; ls /proc | grep -c "^[0-9]" >>"$FAKE/processes"')
    own = Path(ws.env["XDG_CONFIG_HOME"], "rooda")
    own.mkdir(parents=True)
    opened = f'[sandbox]\nenvironment = ["FAKE*", "HARNESS_MARK"]\nwrite = ["{ws.fake}"]\n'
    (own / "rooda.toml").write_text(f'[loop]\nsandbox = "workspace"\n{opened}')
    for words, made in (((), True), (("--sandbox", "off"), True), (("--sandbox", "read-only"), False)):
        ws.procedure("build", loop={"sandbox": "off"})
        assert ws.rooda("build", "-n", "1", "--fresh", *words).code == 0
        assert ws.exists("made") is made, words
        Path(ws.file("made")).unlink(missing_ok=True)
    inside, outside, read_only = map(int, Path(ws.fake, "processes").read_text().split())
    assert max(inside, read_only) < 12 < outside
