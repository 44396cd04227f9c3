"""`rooda init` and the sandbox: what it writes works at once."""

import http.server
import json
import threading
from pathlib import Path

import pytest

from tests.kit.needed import needs
from tests.kit.walled import BWRAP
from tests.kit.workspace import FAKE_AI, Workspace

pytestmark = BWRAP


def runs_green(ws: Workspace) -> str:
    """One iteration with the file that init wrote, an agent that does nothing, and `count_failures = "red"`."""
    ran = ws.rooda(
        "build", "-n", "1", "--ai-cmd", "true", "--sandbox", "workspace", env={"ROODA_LOOP_BASELINE": "false"}
    )
    assert ran.code == 0, ran.both
    return ran.both


def test_S_20_init_writes_auto_and_runs_nothing_unasked(bare: Workspace) -> None:
    """Without a terminal and without --try-gates no gate runs; with an agent of unknown hosts `auto` means off."""
    bare.write("Makefile", "test:\n\ttouch ran\n")
    assert bare.rooda("init").code == 0
    assert 'sandbox = "auto"' in bare.read("rooda.toml") and not bare.exists("ran")
    ran = bare.rooda("build", "-n", "1", "--ai-cmd", FAKE_AI)
    assert ran.code == 0 and "rooda does not know which hosts the command needs" in ran.err
    for head in ("No sandbox: ", "  sandbox     off: "):  # the summary is cut after the remedy
        assert f"{head}set [sandbox] hosts ([] for none); " in ran.err
    found = json.loads(bare.rooda("doctor", "--json", env={"ROODA_LOOP_AI_CMD": FAKE_AI}).out)["checks"]
    (use,) = (row for row in found if row["what"] == "sandbox in use")
    assert use["status"] == "warn" and use["do"].startswith("Set [sandbox] hosts"), use


@pytest.mark.parametrize("place", ["[sandbox]", "[procedures.build]"])
def test_S_22_an_agent_that_needs_no_host(bare: Workspace, place: str) -> None:
    """`hosts = []` says so: `auto` means a sandbox, in which it reaches none, and nothing is asked for."""
    bare.write("rooda.toml", f'[loop]\nsandbox = "auto"\n{place}\nhosts = []\n')
    ran = bare.rooda("build", "-n", "1", "--ai-cmd", "wc -c")
    assert ran.code == 0 and "hosts" not in ran.err and bare.events()[0]["mode"] == "workspace", ran.both


def test_S_22_a_gate_that_needs_a_service_of_this_machine(bare: Workspace) -> None:
    """Red only inside: init says so, and writes the port and nothing else."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        port = server.server_address[1]
        ask = f"import socket; socket.create_connection(('127.0.0.1', {port}), 2)"
        bare.write("Makefile", f'test:\n\tpython3 -c "{ask}"\n')
        ran = bare.rooda("init", "--try-gates", timeout=90)
        assert "The gate make test is red only in the sandbox." in ran.out
        text = bare.read("rooda.toml")
        assert f'[sandbox]\nhosts = ["localhost:{port}"]\ngate_network = "hosts"\n' in text
        runs_green(bare)
        server.shutdown()


def test_S_22_a_gate_that_needs_a_variable(bare: Workspace) -> None:
    """The one variable is found among all that the sandbox leaves out."""
    bare.write("Makefile", 'test:\n\ttest "$(APP_MODE)" = test\n')
    env = {"APP_MODE": "test", "OTHER": "1", "MORE": "2", "DEPLOY_TOKEN": "d3ploy"}
    bare.rooda("init", "--try-gates", env=env, timeout=90)
    assert '\n[sandbox]\nenvironment = ["APP_MODE"]\n' in bare.read("rooda.toml")


@pytest.mark.parametrize("kind", ["venv", pytest.param("node", marks=needs("node")), "loopback", "red"])
def test_S_22_ordinary_projects_need_no_line(bare: Workspace, kind: str) -> None:
    """A virtual environment, node_modules and a server of the test's own work inside; a red gate stays red."""
    is_own = ".venv/bin/python -c 'import sys; sys.exit(sys.prefix == sys.base_prefix)'"
    test = {
        "venv": f"python3 -m venv --without-pip .venv && {is_own}",
        "node": "node -e 'process.exit(require(\"thing\"))'",
        "loopback": "python3 serve.py",
        "red": "false",
    }[kind]
    bare.write("node_modules/thing/index.js", "module.exports = 0\n")
    serve = "import socket\ns = socket.create_server(('127.0.0.1', 0))\nsocket.create_connection(s.getsockname())\n"
    bare.write("serve.py", serve)
    bare.write("Makefile", f"test:\n\t{test}\n")
    ran = bare.rooda("init", "--try-gates", timeout=90)
    assert ("fails outside the sandbox too" in ran.out) is (kind == "red") and "only in the sandbox" not in ran.out
    assert "\n# [sandbox]\n" in bare.read("rooda.toml")
    if kind != "red":
        runs_green(bare)


def test_S_22_the_baseline_says_what_helps(bare: Workspace) -> None:
    """A gate that is red only inside: one warning with the line; not once an agent has worked here."""
    bare.write("Makefile", 'test:\n\ttest "$(APP_MODE)" = test\n')
    loop = f'[loop]\nai_cmd = "{FAKE_AI}"\nsandbox = "workspace"\nbaseline = true\nquality_gates = ["make test"]\n'
    bare.config(loop)
    first = bare.rooda("build", "-n", "1", env={"APP_MODE": "test"}, timeout=60)
    said = 'The gate make test is red only in the sandbox. What helps, in [sandbox]: environment = ["APP_MODE"]'
    assert said in first.err, first.both
    assert said not in bare.rooda("build", "-n", "1", "--fresh", env={"APP_MODE": "test"}).err
    assert not Path(bare.home, "Makefile").exists()
