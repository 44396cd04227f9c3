"""Record golden transcripts from the real CLIs: `python -m tests.kit.clis.record codex gemini [--case success]…`.

Each case runs an installed CLI (see install.py) with rooda's own command line against the model server. What is stored
in golden/<cli>/: <case>.out, its stdout and stderr as rooda keeps them, and <case>.json, the facts around it. Paths of
this machine are replaced; all else stays as the CLI wrote it.
"""

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable
from typing import Any, NamedTuple
from urllib.parse import quote

from rooda.agentkit.server.server import ModelServer
from rooda.agents import command
from rooda.agents.reader import reader
from rooda.agents.records import Agent
from rooda.base import files

from ..processes import alive, marked
from . import homes as clis
from . import install
from .cases import DONE, SKIP_FLAG, Case, cases

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 3))
GOLDEN = os.path.join(ROOT, "tests", "agents", "golden")
MOST = 50_000  # bytes of a transcript that are kept
GRACE = 10.0  # seconds from a signal to KILL


class Place(NamedTuple):
    """The folders of one recording."""

    root: str

    @property
    def repo(self) -> str:
        return os.path.join(self.root, "project")

    @property
    def home(self) -> str:
        return os.path.join(self.root, "home")

    @property
    def out(self) -> str:
        return os.path.join(self.root, "transcript")

    @property
    def mark(self) -> str:
        return f"GOLDEN_MARK={self.root}"


class Ended(NamedTuple):
    """How a CLI came to its end."""

    returncode: int  # negative: the signal that ended it
    signalled: str  # what we sent, if anything
    limited: bool  # because it had not ended by itself in time
    killed: bool  # because the first signal did not end it
    left: int  # processes that it left running


def agent(cli: str, model: str) -> tuple[Agent, dict[str, Any]]:
    """The agent as config/rooda.toml describes it, and that table."""
    with open(os.path.join(ROOT, "config", "rooda.toml"), "rb") as file:
        table = tomllib.load(file)["agents"][cli]
    return Agent(cli, table["command"], model=model, env=table.get("env", {})), table


def argv(cli: str, case: Case, place: Place) -> list[str]:
    """Rooda's command line, with what the case adds or takes away."""
    made, table = agent(cli, case.model or clis.MODELS.get(cli, ""))
    is_argument = "{prompt}" in made.command and table.get("prompt") != "file"
    prompt = os.path.join(place.root, "prompt") if table.get("prompt") == "file" else None
    words = command.argv(made, case.prompt if is_argument else prompt, place.out)
    if not case.skip_permissions:
        words.remove(SKIP_FLAG[cli])
    end = len(words) - 1 if words[-1] == "-" else len(words)
    return [*words[:end], *case.more, *words[end:]]


def environment(cli: str, case: Case, url: str, place: Place) -> dict[str, str]:
    """A clean environment with what the CLI needs, and what rooda's settings add."""
    base = {"LANG": "C.UTF-8", "TZ": "UTC", "TMPDIR": os.path.join(place.root, "tmp"), "GOLDEN_MARK": place.root}
    own = clis.home(cli, case.url or url, place.home, clis.KEY if case.keys else "")
    env = {**base, **own, **command.env_of_call(agent(cli, "")[0], place.out), **case.env}
    for path, text in case.files.items():
        with open(os.path.join(place.home, path), "w", encoding="utf-8") as file:
            file.write(text.replace("{url}", url))
    if not case.skip_permissions and cli == "opencode":
        asking = {**json.loads(env["OPENCODE_CONFIG_CONTENT"]), "permission": {"edit": "ask", "bash": "ask"}}
        env["OPENCODE_CONFIG_CONTENT"] = json.dumps(asking)
    return {key: value for key, value in env.items() if value}


def prepare(place: Place, prompt: str) -> None:
    """A git repository to work in, a name for its commits, and the prompt."""
    for folder in (place.repo, place.home, os.path.join(place.root, "tmp")):
        os.makedirs(folder)
    subprocess.run(["git", "init", "-q", "-b", "main", place.repo], check=True)
    with open(os.path.join(place.home, ".gitconfig"), "w", encoding="utf-8") as file:
        file.write("[user]\n\tname = user\n\temail = user@example.invalid\n")
    with open(os.path.join(place.root, "prompt"), "w", encoding="utf-8") as file:
        file.write(prompt)


def run(words: list[str], env: dict[str, str], place: Place, case: Case, asked: Callable[[], bool], stop: str) -> Ended:
    """Run the CLI as rooda does: files for stdin and output, a session of its own; signal it when the case says so."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    with open(os.path.join(place.root, "prompt"), "rb") as prompt, open(os.open(place.out, flags), "wb") as out:
        words = [shutil.which(words[0], path=env["PATH"]) or words[0], *words[1:]]
        child = subprocess.Popen(
            words, stdin=prompt, stdout=out, stderr=out, cwd=place.repo, env=env, start_new_session=True
        )
    conditions: dict[str, Callable[[], bool]] = {
        "request": asked,
        "tool": lambda: os.path.exists(os.path.join(place.repo, "started")),
    }
    holds = conditions.get(case.when)
    deadline, sent = time.monotonic() + case.limit, ""
    while child.poll() is None and not sent:
        if holds and holds():
            time.sleep(0.5)  # for the CLI to have read what it was sent
            sent = case.signal
        elif time.monotonic() > deadline:
            sent = stop
        time.sleep(0.02)
    killed = bool(sent) and not _end(child, sent)
    left = _settle(place)
    return Ended(child.wait(), sent, bool(sent) and sent != case.signal, killed, left)


def _end(child: "subprocess.Popen[bytes]", name: str) -> bool:
    """Signal the group; False when it took KILL to end its leader."""
    for number in (signal.Signals[f"SIG{name}"], signal.SIGKILL):
        try:
            os.killpg(child.pid, number)
            child.wait(GRACE)
            return number != signal.SIGKILL
        except ProcessLookupError:
            return True
        except subprocess.TimeoutExpired:
            continue
    return False


def _until(done: Callable[[], bool]) -> None:
    """For a while."""
    deadline = time.monotonic() + 4
    while not done() and time.monotonic() < deadline:
        time.sleep(0.05)


def _settle(place: Place) -> int:
    """Let what is left behind end by itself for a while, then end it; gives the number that did not."""
    _until(lambda: not marked(place.mark))
    for pid in (left := marked(place.mark)):
        if alive(pid):
            os.kill(pid, signal.SIGKILL)
    return len(left)


def clean(raw: bytes, place: Place, cli: str, url: str) -> bytes:
    """Without what belongs to this machine: folders and the port."""
    user = {place.repo: "/home/user/project", place.home: "/home/user", place.root: "/home/user/root"}
    raw = re.sub(rb"/[\w./-]*(?=/lib/python3[.\d]*/(?!site-packages))", b"/usr", raw)  # the Python that runs the CLI
    names = {install.folder(cli): f"/opt/{cli}", url.partition("//")[2]: "127.0.0.1:8080", install.cache(): "/opt"}
    for old, new in {**user, **names}.items():
        raw = raw.replace(old.encode(), new.encode()).replace(quote(old, "").encode(), quote(new, "").encode())
        raw = raw.replace(re.sub(r"[^A-Za-z0-9]", "-", old).encode(), re.sub(r"[^A-Za-z0-9]", "-", new).encode())
    return raw


def cut(raw: bytes) -> bytes:
    """At most MOST bytes, whole lines."""
    return raw if len(raw) <= MOST else raw[: raw.rindex(b"\n", 0, MOST) + 1]


def record(cli: str, name: str, into: str = GOLDEN, patience: float = 0.0) -> dict[str, Any]:
    """Record one case under the folder `into`, with at least `patience` seconds to end; gives its facts."""
    with tempfile.TemporaryDirectory(prefix="golden-", ignore_cleanup_errors=True) as root:
        place, now = Place(os.path.realpath(root)), int(time.time())
        case = cases(cli, place.repo, now)[name]
        case = case._replace(limit=max(case.limit, patience))
        prepare(place, case.prompt)
        finish = clis.BY_NAME[cli].get("finish")
        turns = [{"shell": finish} if turn == DONE and finish else turn for turn in case.turns]
        scenario = {"turns": turns, "consume": "all" if cli == "aider" else "tools"}
        with ModelServer(scenario) as server:
            env = environment(cli, case, server.url, place)

            def asked() -> bool:
                return any(request.get("turn") for request in server.requests)

            words = argv(cli, case, place)
            ended = run(words, env, place, case, asked, agent(cli, "")[1].get("stop", "TERM"))
            if ended.returncode == 0:  # the server may note an answer a moment after it was heard
                _until(lambda: all("seconds" in request for request in server.requests))
            with open(place.out, "rb") as file:
                raw = clean(file.read(), place, cli, server.url)
            facts = {
                "cli": cli,
                "version": install.version(cli),
                "case": name,
                "command": [clean(word.encode(), place, cli, server.url).decode() for word in words],
                **ended._asdict(),
                "requests": sum(request["method"] == "POST" for request in server.requests),
                "answered": sum(bool(r.get("turn")) and r["status"] == 200 for r in server.requests if "seconds" in r),
                "files": sorted(file for file in os.listdir(place.repo) if file != ".git"),
                "recorded_at": now,
                "reset_at": now + case.reset_in if case.reset_in else None,
                "whole": len(raw) <= MOST,
            }
            reported = report(cli, place, server.url)
    store(os.path.join(into, cli, name), cut(raw), facts)
    if reported:
        path = os.path.join(into, cli, f"{name}.report", report_file(cli)).rstrip(os.sep)
        files.make_folder(os.path.dirname(path))
        files.write(path, reported)
    return facts


def report_file(cli: str) -> str:
    """Where a CLI's own report of a call is below {report}; "" if it is the file itself, or there is none."""
    found = reader(agent(cli, "")[1]["output"]).report
    return found.file if found else ""


def report(cli: str, place: Place, url: str) -> bytes:
    """The CLI's own report, without its settings and tracebacks; empty if it has made none."""
    path = command.report_path(place.out)
    path = os.path.join(path, report_file(cli)) if report_file(cli) else path
    if not os.path.isfile(path):
        return b""
    with open(path, "rb") as file:
        found = json.loads(clean(file.read(), place, cli, url))
    return json.dumps(without(found, ("config", "traceback")), indent=1).encode() + b"\n"


def without(found: Any, keys: tuple[str, ...]) -> Any:
    """A JSON value without these keys on any level."""
    if isinstance(found, list):
        return [without(each, keys) for each in found]
    if isinstance(found, dict):
        return {key: without(each, keys) for key, each in found.items() if key not in keys}
    return found


def store(path: str, raw: bytes, facts: dict[str, Any]) -> None:
    """Write both files."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(f"{path}.out", "wb") as out:
        out.write(raw)
    with open(f"{path}.json", "w", encoding="utf-8") as file:
        json.dump(facts, file, indent=2, ensure_ascii=False)
        file.write("\n")


def main() -> int:
    """Record the cases asked for, one after the other."""
    parser = argparse.ArgumentParser(description="Record golden transcripts from the real agent CLIs.")
    parser.add_argument("cli", nargs="+", choices=list(clis.NAMES))
    parser.add_argument("--case", action="append", help="only this one (may be given several times)")
    parser.add_argument("--into", default=GOLDEN, help="the folder to write to")
    given = parser.parse_args()
    for cli in given.cli:
        if not install.commands(cli):
            print(f"{cli} is not installed: python -m tests.kit.clis.install {cli}", file=sys.stderr)
            return 1
        for name in given.case or cases(cli, "/", 0):
            began = time.monotonic()
            facts = record(cli, name, given.into)
            shown = {key: facts[key] for key in ("returncode", "signalled", "limited", "left", "requests", "files")}
            print(f"{cli} {name}: {shown} {time.monotonic() - began:.1f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
