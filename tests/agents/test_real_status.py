"""The installed CLIs get the STATUS section, and the model acts on the output of a failed gate."""

import json
import re
import uuid
from collections.abc import Callable

import pytest

from rooda.agentkit.server.scenario import Json, Script, Taken
from rooda.agentkit.server.server import ModelServer
from tests.kit.clis import builds
from tests.kit.clis.build_cases import SUCCESS
from tests.kit.workspace import Workspace


class Learning(Script):
    """A model that claims SUCCESS too early, and then writes what the gate's output says is expected."""

    def __init__(self, path: str, requests: list[Json]) -> None:
        self._path, self._requests = path, requests
        first = {"say": "I guess.", "write": {"path": path, "content": "a guess\n"}}
        super().__init__({"turns": [first, SUCCESS, {"shell": "true"}, {"say": "I read STATUS."}, SUCCESS]})

    def take(self) -> Taken:
        taken = super().take()
        if taken.turn.get("say") != "I read STATUS.":
            return taken
        told = re.findall(r"expected: (\w{32})", json.dumps([request.get("body") for request in self._requests]))
        content = f"{told[-1] if told else 'nothing was said'}\n"
        return taken._replace(turn={**taken.turn, "write": {"path": self._path, "content": content}})


@pytest.mark.parametrize("name", ["codex", "gemini"])
def test_E_02_a_real_cli_acts_on_a_failed_gates_output(
    bare: Workspace, cli: Callable[[str], str], server: ModelServer, name: str
) -> None:
    """Only the gate knows the word; the second iteration writes it, and its SUCCESS is accepted."""
    cli(name)
    word = uuid.uuid4().hex
    bare.write("check.sh", f'grep -qx {word} made.txt || {{ echo "expected: {word}"; exit 1; }}\n')
    env = builds.prepare(bare, name, server.url, builds.Case([], "ok", settings={"failure_threshold": 3}))
    bare.config(bare.read("rooda.toml").replace("grep -q model made.txt", "sh check.sh"))
    server.script = Learning(bare.file("made.txt"), server.requests)
    ran = bare.rooda("build", "-n", "3", env=env, timeout=builds.PATIENCE)
    assert ran.code == 0 and "AI signaled SUCCESS: completed after 2 iterations" in ran.out, ran.both
    assert bare.read("made.txt") == f"{word}\n"
    first, *others = (json.dumps(request.get("body")) for request in server.requests if request.get("tools"))
    assert "This is iteration 1 of 3." in first and "- made: `sh check.sh`" in first
    assert "It claimed SUCCESS; that was refused, because a quality gate failed." in others[-1]
