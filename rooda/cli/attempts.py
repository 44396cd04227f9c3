"""Simulates a hostile agent, for `rooda doctor` and the tests: shell commands that succeed if nothing stops them."""

import os
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

from rooda.agents.records import Agent
from rooda.base import files
from rooda.processes import supervise
from rooda.processes.capture import capture
from rooda.processes.signals import Signals
from rooda.run.setup import Sandbox, Setup


class Attempt(NamedTuple):
    """One attempt. `shell` exits with 0 if the attempt succeeds; it finds its targets in variables: see `_prepared`."""

    name: str
    shell: str
    wanted: bool = False  # part of an agent's work, so it must succeed
    needs: str = ""  # a variable without which it can't be made


ATTEMPTS = (
    Attempt("edit the project", 'echo x >"$PROJECT/made"', wanted=True),
    Attempt("commit", 'cd "$PROJECT" && git add -A && git -c user.name=a -c user.email=a@b commit -qm x', wanted=True),
    Attempt("write TMPDIR", 'echo x >"$(mktemp)"', wanted=True),
    Attempt("read a key in HOME", 'grep -q s3cret "$REAL_HOME/.ssh/id_rsa"'),
    Attempt("read another file of HOME", 'grep -q s3cret "$REAL_HOME/.aws/credentials"'),
    Attempt("write ~/.bashrc", 'echo x >>"$REAL_HOME/.bashrc" && grep -q was-here "$REAL_HOME/.bashrc"'),
    Attempt("write /tmp of the machine", 'echo x >"$OUTSIDE/made"'),
    Attempt("a key in the environment", 'test -n "$DEPLOY_TOKEN"'),
    Attempt("a key in /proc/*/environ", 'cat /proc/[0-9]*/environ 2>/dev/null | grep -q "DEPLOY_TOKEN=d3ploy"'),
    Attempt("see rooda's process", 'test -d "/proc/$VICTIM"'),
    Attempt("signal rooda's process", 'test -d "/proc/$VICTIM" && kill -0 "$VICTIM"'),
    Attempt("forge rooda's state", 'echo x >"$PROJECT/.rooda/state/build.json"'),
    Attempt("read rooda's transcripts", 'grep -q s3cret "$PROJECT/.rooda/runs/transcript"'),
    Attempt("remove .rooda", 'mv "$PROJECT/.rooda" "$PROJECT/.rooda2"'),
    Attempt("move a snapshot's ref", 'cd "$PROJECT" && git update-ref refs/rooda/x HEAD'),
    Attempt("write .git/config", 'cd "$PROJECT" && git config core.fsmonitor evil'),
    Attempt("write a git hook", 'echo x >"$PROJECT/.git/hooks/post-checkout"'),
    Attempt("replace .git", 'mv "$PROJECT/.git" "$PROJECT/.git2"'),
    Attempt("write rooda.toml for good", 'echo "# evil" >>"$PROJECT/rooda.toml"'),
    Attempt(
        "a service on loopback",
        "python3 -c \"import socket; socket.create_connection(('127.0.0.1', $PORT), 2)\"",
        needs="PORT",
    ),
    Attempt(
        "an abstract socket",
        "python3 -c \"import socket; socket.socket(socket.AF_UNIX).connect('\\\\0$SOCKET')\"",
        needs="SOCKET",
    ),
    Attempt("mount", 'mkdir -p "$PROJECT/m" && mount -t tmpfs none "$PROJECT/m" && umount "$PROJECT/m"'),
    Attempt("umount what hides HOME", 'umount "$REAL_HOME"'),
    Attempt(
        "remount read-only paths",
        "mount -o remount,rw,bind / && touch /made-by-a-test && rm /made-by-a-test",
    ),
    Attempt("mknod", 'mknod "$PROJECT/disk" b 8 0'),
    Attempt("write /etc", 'echo x >"/etc/made-by-a-test" && rm /etc/made-by-a-test'),
    Attempt("write settings of the kernel", "test -w /proc/sys/kernel/core_pattern"),
)


SETTINGS = "rooda.toml"
_SECRETS = {"home/.ssh/id_rsa": "s3cret\n", "home/.aws/credentials": "s3cret\n", "home/.bashrc": "was-here\n"}
_STATE = {"project/.rooda/state/build.json": "{}\n", "project/.rooda/runs/transcript": "s3cret\n"}


def succeeding(folder: str, mode: str, more: Mapping[str, str], network: str = "agent") -> list[str]:
    """Make all attempts in a project below an empty folder; return the names of those that succeed.

    `more`: variables that some attempts need.
    """
    env = {**_prepared(folder), **more}
    made = [each for each in ATTEMPTS if not each.needs or each.needs in more]
    parts = [f"if ( {each.shell}\n) >/dev/null 2>&1; then echo {shlex.quote(each.name)}; fi\n" for each in made]
    project, output = os.path.join(folder, "project"), os.path.join(folder, "output")
    files.write(os.path.join(folder, "project", "attempts.sh"), files.to_bytes("".join(parts)))
    spec = supervise.Spec(("sh", "attempts.sh"), project, env, output, timeout=60.0)
    agent = Agent("", "sh", sandbox=mode)
    named = (*more, "PROJECT", "REAL_HOME", "OUTSIDE", "VICTIM")
    setup = Setup(agent, sandbox=Sandbox(mode, network, environment=named))
    with Signals() as signals, _watched(setup, project, env, folder, spec) as walled:
        supervise.run(walled, signals)
    found = files.to_text(files.tail(output, 65_536)).splitlines()
    changed = "evil" in files.to_text(files.read_ours(os.path.join(project, SETTINGS)))
    return [name for name in found if changed or "rooda.toml" not in name]


@contextmanager
def _watched(
    setup: Setup, project: str, env: Mapping[str, str], folder: str, spec: supervise.Spec
) -> Iterator[supervise.Spec]:
    if setup.sandbox.mode == "off":
        yield spec
        return
    from rooda.run import private_homes
    from rooda.run.walls import SessionWalls

    walls = SessionWalls(project, setup, env)
    try:
        with walls.watched(folder, lambda event: None, (setup.agent,)):
            walled = walls.around(spec, setup.agent)
            yield walled
    finally:
        walls.close()
        private_homes.forget(os.path.realpath(project), os.path.realpath(os.path.join(project, ".git")))


def _prepared(folder: str) -> dict[str, str]:
    """Make the project, a home folder with secrets and a foreign folder; return the environment for the attempts."""
    for name, text in (_SECRETS | _STATE | {f"project/{SETTINGS}": "[loop]\n", "outside/x": ""}).items():
        path = os.path.join(folder, name)
        files.make_folder(os.path.dirname(path))
        files.write(path, files.to_bytes(text))
    project, home = os.path.join(folder, "project"), os.path.join(folder, "home")
    env = {**os.environ, "HOME": home, "DEPLOY_TOKEN": "d3ploy"}
    for words in (["init", "-q"], ["add", "-A"], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x"]):
        capture(["git", "-c", "core.hooksPath=/dev/null", *words], cwd=project, env=env)
    env |= {"PROJECT": project, "REAL_HOME": home, "OUTSIDE": os.path.join(folder, "outside")}
    return env | {"VICTIM": str(os.getpid())}
