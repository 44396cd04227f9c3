"""The given/expect harness: a temporary workspace, a scripted agent, and the real `rooda` command."""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from . import event_schema, hermetic
from .processes import Output, Running, Terminal, alive, marked, until

__all__ = [
    "FAKE_AI",
    "SAMPLE",
    "Call",
    "Ran",
    "Running",
    "Terminal",
    "Workspace",
    "alive",
    "masked",
    "until",
    "waiting",
]

FAKE_AI = str(Path(__file__).with_name("agent"))
REPOSITORY = str(Path(__file__).parents[2])
SUMMARY = re.compile(
    r"\] (?:(?:\S+ )?\S+: (?:completed|failed|paused|interrupted|stopped)\b|  (?:iterations|gates|changes|cost|next)  )"
)
PHASES = {"observe": "OBS", "orient": "ORI", "decide": "DEC", "act": "ACT"}
SAMPLE: dict[str, Any] = {  # the state file printed in the specification
    "iteration": 3,
    "max_iterations": 10,
    "consecutive_failures": 0,
    "failure_threshold": 3,
    "started_at": "2026-02-06T10:00:00Z",
    "last_iteration_at": "2026-02-06T10:05:32Z",
    "status": "interrupted",
    "procedure_name": "build",
    "elapsed_per_iteration": ["45.2s", "38.7s", "52.1s"],
}


def waiting(path: str) -> str:
    """Shell text that waits until this file exists."""
    return f"until [ -e {shlex.quote(path)} ]; do sleep 0.01; done\n"


def masked(lines: list[str]) -> list[str]:
    """The lines with `[HH:MM:SS]` as `[T]` and every duration as `D`."""
    stamped = (re.sub(r"^\[\d\d:\d\d:\d\d\]", "[T]", line) for line in lines)
    return [re.sub(r"\b(?:\d+h)?(?:\d+m)?\d+(?:\.\d+)?s\b", "D", line) for line in stamped]


@dataclass(frozen=True)
class Ran(Output):
    """A `rooda` command that has ended."""

    code: int
    out: str
    err: str

    @property
    def notes(self) -> str:
        """stderr without the summary at the end of a run."""
        return "".join(line for line in self.err.splitlines(keepends=True) if not SUMMARY.search(line))


class Call(NamedTuple):
    """What the scripted agent recorded about one call of itself."""

    n: int
    pid: int
    ppid: int
    cwd: str
    argv: list[str]
    prompt: bytes
    env: dict[str, str]
    names: list[str]  # the phase, or what a flow's prompt asks for: `sensor-unit`

    @property
    def text(self) -> str:
        """The prompt, with invalid UTF-8 as surrogates."""
        return self.prompt.decode("utf-8", "surrogateescape")

    @property
    def kind(self) -> str:
        """What ROODA_CALL said: iteration, plan, produce, …"""
        return self.env.get("ROODA_CALL", "")


class Workspace:
    """A folder `work` to run in, `fake` with the agent's script, `home` as everything personal."""

    def __init__(self, root: str) -> None:
        self.root, self.path = root, os.path.join(root, "work")
        self.fake, self.home = os.path.join(root, "fake"), os.path.join(root, "home")
        self.loop: dict[str, str] = {"ai_cmd": json.dumps(FAKE_AI)}
        self.sections: dict[str, str] = {}
        self.running: list[Running] = []
        self.damages_events = False  # a test that writes or tears events.jsonl itself says so
        for folder in (self.path, os.path.join(self.fake, "calls"), os.path.join(self.home, "tmp")):
            os.makedirs(folder)
        hermetic.share_token_counts(os.path.join(self.home, ".rooda-cache"))
        Path(self.home, ".gitconfig").write_text(
            "[user]\n\tname = test\n\temail = test@example.invalid\n[init]\n\tdefaultBranch = main\n\ttemplateDir =\n"
        )
        self.mark = f"HARNESS_MARK={root}"
        self.env = self._environment()

    def _environment(self) -> dict[str, str]:
        xdg = {f"XDG_{name}_HOME": f"{self.home}/.{name.lower()}" for name in ("CONFIG", "CACHE", "DATA", "STATE")}
        return xdg | {
            "PATH": os.path.dirname(sys.executable) + os.pathsep + os.environ.get("PATH", os.defpath),
            "HOME": self.home,
            "TMPDIR": f"{self.home}/tmp",
            "LANG": "C.UTF-8",
            "GIT_CONFIG_NOSYSTEM": "1",
            "ROODA_CACHE_HOME": f"{self.home}/.rooda-cache",
            "FAKE": self.fake,
            "HARNESS_MARK": self.root,
        }

    # given: files

    def file(self, name: str) -> str:
        """Absolute path of a file in the workspace."""
        return os.path.join(self.path, name)

    def write(self, name: str, content: str | bytes, mode: int | None = None) -> str:
        """Write a file of the workspace, folders included; gives its path back."""
        path = Path(self.path, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        if mode is not None:
            path.chmod(mode)
        return str(path)

    def read(self, name: str) -> str:
        """The text of a file in the workspace."""
        return Path(self.path, name).read_bytes().decode()

    def json(self, name: str) -> Any:
        """The parsed JSON of a file in the workspace."""
        return json.loads(self.read(name))

    def exists(self, name: str) -> bool:
        """Is there something at this place in the workspace, even a dangling link?"""
        return os.path.lexists(self.file(name))

    def git(self, *arguments: str) -> str:
        """Run git in the workspace; gives its stdout back."""
        command = ["git", *arguments]
        return subprocess.run(command, cwd=self.path, env=self.env, check=True, capture_output=True, text=True).stdout

    # given: settings

    def config(self, toml: str) -> None:
        """Make this text the workspace's rooda.toml."""
        self.write("rooda.toml", toml)

    def procedure(
        self,
        name: str = "build",
        keys: str = "",
        loop: dict[str, Any] | None = None,
        gates: dict[str, str] | None = None,
    ) -> None:
        """Add a procedure with four marker files to rooda.toml; `loop` sets keys of [loop] (None removes one)."""
        for phase, marker in PHASES.items():
            if not self.exists(f"prompts/{phase}_{name}.md"):
                self.write(f"prompts/{phase}_{name}.md", f"{marker}\n")
        section = f"\n[procedures.{name}]\n" + "".join(f'{p} = "prompts/{p}_{name}.md"\n' for p in PHASES) + keys + "\n"
        for gate, command in (gates or {}).items():
            head = f"[[procedures.{name}.quality_gates]]\n"
            section += f"\n{head}name = {json.dumps(gate)}\ncommand = {json.dumps(command)}\n"
        self.sections[name] = section
        for key, value in (loop or {}).items():
            self.loop[key] = json.dumps(value)
        lines = (f"{key} = {value}\n" for key, value in self.loop.items() if value != "null")
        self.config("[loop]\n" + "".join(lines) + "".join(self.sections.values()))

    # given: the agent's script

    def _script(self, key: int | str, suffix: str, text: str, add: bool = False) -> None:
        with open(os.path.join(self.fake, f"{key}.{suffix}"), "a" if add else "w", encoding="utf-8") as file:
            file.write(text)

    def exits(self, *codes: int) -> None:
        """Exit codes of call 1, 2, …"""
        for n, code in enumerate(codes, 1):
            self._script(n, "exit", f"{code}\n")

    def side(self, key: int | str, shell: str) -> None:
        """Shell text that call `key` runs (a number, `plan`, `plan-2`, …); texts for one call add up."""
        self._script(key, "sh", shell.rstrip("\n") + "\n", add=True)

    def out(self, key: int | str, text: str) -> None:
        """What call `key` prints on stdout."""
        self._script(key, "out", text)

    def err(self, key: int | str, text: str) -> None:
        """What call `key` prints on stderr."""
        self._script(key, "err", text)

    def answers(self, key: str, text: str, shell: str = "", code: int = 0) -> None:
        """A whole answer: the text, what is done before it, and the exit code."""
        for suffix, content in {"out": text, "sh": shell, "exit": f"{code}\n" if code else ""}.items():
            path = Path(self.fake, f"{key}.{suffix}")
            if content or suffix == "out":
                path.write_text(content, encoding="utf-8", newline="")
            else:
                path.unlink(missing_ok=True)

    def forget_answer(self, key: str) -> None:
        for suffix in ("out", "sh", "exit"):
            Path(self.fake, f"{key}.{suffix}").unlink(missing_ok=True)

    def signal_at(self, n: int, name: str = "INT") -> None:
        """Call `n` sends the loop a signal and then stays for 30 s."""
        self.side(n, f"kill -{name} $PPID\nsleep 30 & wait")

    def copy_state_at(self, *numbers: int, name: str = "build") -> None:
        """Each of these calls copies the state file; see `copies`."""
        for n in numbers:
            self.side(n, f'cp {shlex.quote(self.state_file(name))} "$FAKE/state-{n}.json"')

    # when

    def command(self, *arguments: str) -> list[str]:
        """The argv of a rooda command."""
        return [sys.executable, "-m", "rooda", *arguments]

    def start(
        self, *arguments: str, stdin: bytes | int | None = None, env: dict[str, str] | None = None, cwd: str = ""
    ) -> Running:
        """Start rooda in a session of its own, without a terminal.

        `stdin`: bytes are piped and the pipe is closed; an int is an open descriptor; None is /dev/null.
        """
        outputs = os.path.join(self.root, f"output-{len(self.running)}")
        running = Running(self.command(*arguments), self.env | (env or {}), cwd or self.path, outputs, stdin)
        self.running.append(running)
        return running

    def rooda(
        self,
        *arguments: str,
        stdin: bytes | int | None = None,
        env: dict[str, str] | None = None,
        timeout: float = 30.0,
        cwd: str = "",
    ) -> Ran:
        """Run rooda to its end."""
        running = self.start(*arguments, stdin=stdin, env=env, cwd=cwd)
        return Ran(running.finish(timeout), running.out, running.err)

    def each(self, *commands: str | list[str]) -> list[Ran]:
        """Run commands that only look, one after another; rooda is loaded once for all of them (see `several`)."""
        given = os.path.join(self.root, f"commands-{len(self.running)}.json")
        words = [shlex.split(command) if isinstance(command, str) else command for command in commands]
        Path(given).write_text(json.dumps(words))
        argv = [sys.executable, "-m", "tests.kit.several", given]
        env = self.env | {"PYTHONPATH": os.pathsep.join((REPOSITORY, *filter(None, [self.env.get("PYTHONPATH")])))}
        running = Running(argv, env, self.path, os.path.join(self.root, f"output-{len(self.running)}"), None)
        self.running.append(running)
        assert running.finish(30.0 + len(words)) == 0, running.both
        found = [Ran(*json.loads(line)) for line in running.lines]
        assert len(found) == len(words), running.both
        return found

    def terminal(
        self, *arguments: str, rows: int = 24, columns: int = 100, env: dict[str, str] | None = None, cwd: str = ""
    ) -> Terminal:
        """Start rooda on a terminal of its own, whose keys the test types and whose screen it reads."""
        environment = self.env | {"TERM": "xterm-256color"} | (env or {})
        terminal = Terminal(self.command(*arguments), environment, cwd or self.path, rows, columns)
        self.running.append(terminal)
        return terminal

    # then

    @property
    def calls(self) -> list[Call]:
        """The agent's calls so far, in order; a call counts once it has read its prompt."""
        found = []
        for meta in Path(self.fake, "calls").glob("*.meta"):
            lines = meta.read_text().splitlines()
            if lines and lines[-1] == "end":
                found.append(self._call(meta, [line.partition("=") for line in lines]))
        return sorted(found)

    def _call(self, meta: Path, fields: list[tuple[str, str, str]]) -> Call:
        facts = {key: value for key, _, value in fields}
        words = shlex.split(meta.with_suffix(".env").read_bytes().decode("utf-8", "replace"))
        env = dict(word.split("=", 1) for word in words if "=" in word)
        argv = [value for key, _, value in fields if key == "arg"]
        prompt = meta.with_suffix(".in").read_bytes()
        names = [value for key, _, value in fields if key == "name"]
        return Call(int(meta.stem), int(facts["pid"]), int(facts["ppid"]), facts["cwd"], argv, prompt, env, names)

    def recorded(self, n: int, kind: str) -> Path:
        """The file of this kind (`in`, `env`, `meta`, `end`, `runs`) that call `n` left."""
        return Path(self.fake, "calls", f"{n}.{kind}")

    def forget_calls(self) -> None:
        """The agent counts its calls from 1 again."""
        shutil.rmtree(os.path.join(self.fake, "calls"))
        os.mkdir(os.path.join(self.fake, "calls"))

    def wait_calls(self, count: int) -> list[Call]:
        """The calls, as soon as there are `count` of them."""
        until(lambda: len(self.calls) >= count, what=f"{count} agent calls")
        return self.calls

    def state_file(self, name: str = "build") -> str:
        """Path of a procedure's state file."""
        return self.file(f".rooda/state/{name}.json")

    def state(self, name: str = "build") -> dict[str, Any] | None:
        """A procedure's state, None without a file."""
        path = Path(self.state_file(name))
        return json.loads(path.read_bytes()) if path.exists() else None

    def put_state(self, name: str = "build", **fields: Any) -> None:
        """Write a state file: the specification's sample with these fields changed."""
        self.write(f".rooda/state/{name}.json", json.dumps(SAMPLE | {"procedure_name": name} | fields, indent=2))

    @property
    def copies(self) -> dict[int, dict[str, Any]]:
        """The state copies made by `copy_state_at`, by call number."""
        return {int(p.stem[6:]): json.loads(p.read_bytes()) for p in sorted(Path(self.fake).glob("state-*.json"))}

    def events(self) -> list[dict[str, Any]]:
        """The events of the newest run."""
        logs = sorted(Path(self.path, ".rooda", "runs").glob("*/events.jsonl"), key=lambda log: log.stat().st_mtime_ns)
        return [json.loads(line) for line in logs[-1].read_bytes().splitlines()] if logs else []

    def every_event(self) -> list[dict[str, Any]]:
        """The events of all runs, in the order of the runs' names."""
        logs = sorted(Path(self.path, ".rooda", "runs").glob("*/events.jsonl"))
        return [json.loads(line) for log in logs for line in log.read_bytes().splitlines()]

    def leftovers(self) -> list[int]:
        """Live processes that carry this workspace's mark in their environment."""
        return marked(self.mark)

    def close(self, seconds: float = 5) -> None:
        """End what the test left running; fail if anything outlived its command, or if an event is not as promised."""
        for running in self.running:
            running.stop()
        try:
            until(lambda: not self.leftovers(), seconds, "every process of this workspace to be gone")
        except AssertionError:
            remaining = self.leftovers()
            numbers = ",".join(str(pid) for pid in remaining)
            shown = subprocess.run(["ps", "-o", "pid,ppid,args", "-p", numbers], capture_output=True, text=True).stdout
            for pid in remaining:
                os.kill(pid, signal.SIGKILL)
            raise AssertionError(f"left running:\n{shown}") from None
        if not self.damages_events:
            event_schema.check_all(self.root)
