"""A day in the sandbox: ordinary projects, a database outside, a merge with new rules; what init writes works."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.kit.needed import needs
from tests.kit.walled import BWRAP
from tests.kit.workspace import FAKE_AI, Workspace, until

pytestmark = [BWRAP, needs("redis-server", "redis-cli", "node")]


class Database(NamedTuple):
    port: str
    socket: str


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """A Redis server on this machine's loopback device and on a Unix socket."""
    socket = tmp_path / "db.sock"
    for port in map(str, range(21_000 + hash(str(tmp_path)) % 10_000, 65_000)):
        words = ["redis-server", "--port", port, "--unixsocket", str(socket), "--save", "", "--dir", str(tmp_path)]
        with subprocess.Popen(words, stdout=subprocess.DEVNULL) as server:
            until(lambda server=server: socket.exists() or server.poll() is not None, 10, "Redis")
            if server.poll() is not None:
                continue  # another process has the port
            yield Database(port, str(socket))
            server.terminate()
            return


def opened_for_the_scripted_agent(ws: Workspace) -> None:
    """The user's own settings: what the scripted agent of these tests needs."""
    own = Path(ws.env["XDG_CONFIG_HOME"], "rooda")
    own.mkdir(parents=True)
    (own / "rooda.toml").write_text(f'[sandbox]\nenvironment = ["FAKE*", "HARNESS_MARK"]\nwrite = ["{ws.fake}"]\n')


MAKEFILE = """test:
\t.venv/bin/python -c 'import sys, own; sys.exit(sys.prefix == sys.base_prefix)'
\tnode -e 'require("thing")()'
\t.venv/bin/python serve.py
\ttest "$$(redis-cli -h localhost -p PORT incr runs)" -gt 0
"""
SERVE = "import socket\ns = socket.create_server(('127.0.0.1', 0))\nsocket.create_connection(s.getsockname())\n"
RULES = "# Rules\n\n## Quality Gates\n\n- tests: `false`\n"


def test_S_22_a_day_in_the_walls(bare: Workspace, database: Database) -> None:
    """venv, node_modules, loopback and a database: init finds the one line; a merge brings rules and a workflow."""
    for name, text in {
        "Makefile": MAKEFILE.replace("PORT", database.port), "serve.py": SERVE, ".gitignore": ".venv/\nnode_modules/\n",
        "node_modules/thing/index.js": "module.exports = () => 0\n",
    }.items():  # fmt: skip
        bare.write(name, text)
    subprocess.run(["python3", "-m", "venv", "--without-pip", bare.file(".venv")], check=True)
    (library,) = Path(bare.file(".venv/lib")).glob("python3*/site-packages")
    (library / "own.py").write_text("")
    bare.git("init", "-q", "-b", "main")
    bare.git("add", "-A")
    bare.git("commit", "-qm", "begin")
    bare.git("checkout", "-qb", "rules")
    bare.write("AGENTS.md", RULES)
    bare.write(".github/workflows/ci.yml", "on: push\n")
    bare.git("add", "-A")
    bare.git("commit", "-qm", "rules")
    bare.git("checkout", "-q", "main")

    ran = bare.rooda("init", "--try-gates", timeout=90)
    assert "The gate make test is red only in the sandbox." in ran.out, ran.both
    lines = f'[sandbox]\nhosts = ["localhost:{database.port}"]\ngate_network = "hosts"\n'
    assert f"\n{lines}" in bare.read("rooda.toml")

    opened_for_the_scripted_agent(bare)
    bare.side(1, "echo more >>work.txt; git add work.txt; git commit -qm work; git merge -q -m merge rules")
    bare.side(2, 'cat .github/workflows/ci.yml >"$FAKE/seen"; echo x >>.github/workflows/ci.yml')
    ran = bare.rooda("build", "-n", "2", "--ai-cmd", FAKE_AI)
    assert ran.code == 0, ran.both
    events = bare.events()
    assert [event["mode"] for event in events if event["event"] == "sandbox.chosen"] == ["workspace"]
    assert {event["verdict"] for event in events if event["event"] == "gate.ended"} == {"pass"}
    assert Path(bare.fake, "seen").read_text() == bare.read(".github/workflows/ci.yml") == "on: push\n"
    assert bare.read("AGENTS.md") == RULES and "work" in bare.git("log", "--format=%s")
    assert [event["paths"] for event in events if event["event"] == "files.restored"] == [[".github/workflows/ci.yml"]]
    assert bare.git("status", "--porcelain").split() == ["??", "rooda.toml"] and not bare.leftovers()


@pytest.mark.parametrize("how", ["socket", "variable"])
def test_S_22_a_database_on_a_socket_or_in_a_variable(bare: Workspace, database: Database, how: str) -> None:
    """init names the socket, or the port and the variable, and nothing else; both work at once."""
    client = f"redis-cli -s {database.socket}" if how == "socket" else 'redis-cli -u "$(STORE_URL)"'
    bare.write("Makefile", f'test:\n\ttest "$$({client} incr runs)" -gt 0\n')
    env = {"STORE_URL": f"redis://127.0.0.1:{database.port}", "OTHER": "1", "MORE": "2", "DEPLOY_TOKEN": "d3ploy"}
    ran = bare.rooda("init", "--try-gates", env=env, timeout=90)
    hosts = f'hosts = ["localhost:{database.port}"]\nenvironment = ["STORE_URL"]\ngate_network = "hosts"\n'
    wanted = f'read = ["{database.socket}"]\n' if how == "socket" else hosts
    assert f"\n[sandbox]\n{wanted}" in bare.read("rooda.toml"), ran.both + bare.read("rooda.toml")
    opened_for_the_scripted_agent(bare)
    ran = bare.rooda("build", "-n", "1", "--ai-cmd", FAKE_AI, "--sandbox", "workspace", env=env)
    assert ran.code == 0, ran.both
