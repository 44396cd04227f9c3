"""`rooda worker` and `rooda fleet` as typed: settings, addresses, start, status, drain, doctor, prune."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.kit import temporal
from tests.kit.hands import wish
from tests.kit.processes import until
from tests.kit.temporal import Server as Dev
from tests.kit.workspace import Workspace


def own_settings(ws: Workspace, text: str) -> None:
    folder = Path(ws.env["XDG_CONFIG_HOME"], "rooda")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "rooda.toml").write_text(text)


def start(ws: Workspace, *words: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "rooda", "worker", *words]
    return subprocess.Popen(
        command, cwd=ws.path, env=ws.env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )


def test_FL_05_a_worker_waits_for_temporal_and_drains_with_0(bare: Workspace, engine: Any, server: Dev) -> None:
    """It says once that it waits; then it is in the status; a drain ends it with 0."""
    port, name = temporal.free_port(), f"w{os.getpid()}"
    waiting = start(bare, "--fleet", f"temporal://127.0.0.1:{port}/default", "--name", name)
    worker = start(bare, "--fleet", server.address, "--name", name, "-j", "3", "--pool", name)
    status = ("fleet", "status", "--json", "--fleet", server.address)
    until(lambda: name in bare.rooda(*status).out, 30)
    found = json.loads(bare.rooda(*status).out)
    (row,) = [each for each in found["workers"] if each["name"] == name]
    assert (row["pool"], row["slots"], row["busy"]) == (name, 3, 0) and row["last_proof"].endswith("Z")
    assert f"{name}  pool {name}  0 of 3 busy" in bare.rooda("fleet", "--fleet", server.address, "status").out
    done = bare.rooda("worker", "drain", name, "--fleet", server.address)
    assert done.code == 0, done.err
    assert worker.wait(30) == 0
    lost = start(bare, "--fleet", server.address.replace("/default", "/nowhere"))
    assert lost.stdout and "Worker " in lost.stdout.readline() and "has no namespace nowhere" in lost.stdout.readline()
    for each in (waiting, lost):
        each.terminate()
        said, _ = each.communicate(timeout=30)
        assert each.returncode == 143
        assert said.count("The worker keeps trying.") == (each is waiting)
    gone = bare.rooda("worker", "drain", "nobody", "--fleet", server.address)
    assert gone.code == 2 and "The fleet has no worker named 'nobody'" in gone.err


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("temporal://10.1.2.3:7233/default", "is not encrypted"),
        ("temporal://temporal.example:7233", "is not encrypted"),
        ("http://localhost:7233", "must be temporal://HOST:PORT/NAMESPACE"),
        ("temporal://user@host:1/x", "must be temporal://"),
        ("temporal://localhost:0/x", "must be temporal://"),
        ("", "No fleet is set"),
    ],
)
def test_FL_13_addresses_that_are_refused(bare: Workspace, address: str, said: str) -> None:
    """Plaintext to another machine, and what is no address; each with 2 and a sentence."""
    temporal.binary()
    own_settings(bare, f'[fleet]\naddress = "{address}"\n' if address else "")
    for words in (("worker",), ("fleet", "status")):
        done = bare.rooda(*words)
        assert done.code == 2 and said in done.err, done.err
        assert "Traceback" not in done.err


def test_FL_13_keys_of_temporal_never_appear(bare: Workspace) -> None:
    """TEMPORAL_API_KEY switches TLS on; neither it nor a broken certificate's text is in the output."""
    temporal.binary()
    bare.env |= {"TEMPORAL_API_KEY": "key-planted-1", "TEMPORAL_TLS_CLIENT_KEY_DATA": "key-planted-2"}
    bare.env["TEMPORAL_TLS_CLIENT_CERT_DATA"] = "key-planted-3"
    for words in (("fleet", "status"), ("fleet", "doctor")):
        done = bare.rooda(*words, "--fleet", f"temporal://127.0.0.1:{temporal.free_port()}/default")
        assert done.code == 1 and "does not answer" in done.err + done.out
        assert "planted" not in done.out + done.err and "Traceback" not in done.err


def test_FL_13_a_workspace_does_not_decide_about_the_fleet(bare: Workspace) -> None:
    """[fleet] of a workspace is ignored with a warning, whatever it holds."""
    temporal.binary()
    bare.config('[fleet]\naddress = "temporal://localhost:1/evil"\nheartbeat = "never"\n')
    done = bare.rooda("fleet", "status")
    assert done.code == 2 and "No fleet is set" in done.err
    assert "only your own settings can have this table" in bare.rooda("doctor").out
    own_settings(bare, "[fleet]\nheartbeat = 4\n")
    assert "must be a number of seconds >= 5" in bare.rooda("fleet", "status").err
    own_settings(bare, '[fleet]\nkeep = "two weeks"\n')
    assert bare.rooda("fleet", "status").code == 2
    own_settings(bare, '[fleet]\nkeep = "14d"\n')
    assert "No fleet is set" in bare.rooda("fleet", "status").err


def test_FL_17_a_missing_extra_is_one_sentence(bare: Workspace) -> None:
    """Without temporalio: exit 2 and what to install."""
    bare.write("site/sitecustomize.py", "import sys\nsys.modules['temporalio'] = None\n")
    bare.env["PYTHONPATH"] = bare.file("site")
    for words in (("worker", "--fleet", "temporal://localhost"), ("fleet", "status"), ("worker", "drain", "x")):
        done = bare.rooda(*words)
        assert done.code == 2 and "pip install 'rooda[fleet]'" in done.err, done.err


def test_FL_17_doctor_checks_everything(bare: Workspace, server: Dev) -> None:
    """Each check has a line; what is broken is exit 1, and what to do is said; the probe ref is gone."""
    bare.git("init", "-q")
    bare.git("commit", "-q", "--allow-empty", "-m", "first")
    bare.git("init", "-q", "--bare", "origin.git")
    bare.git("remote", "add", "origin", bare.file("origin.git"))
    bare.git("push", "-q", "origin", "main")
    own_settings(bare, '[fleet.worker]\nrepositories = ["*"]\nagents = ["demo"]\n')
    good = bare.rooda("fleet", "doctor", "--fleet", server.address)
    assert good.code == 0, good.out
    checks = {line[6:].partition(":")[0]: line[:4].strip() for line in good.out.splitlines() if line[:1] != " "}
    assert checks["state remote"] == checks["address"] == checks["clock"] == checks["agent demo"] == "ok"
    assert {"TLS", "versions", "namespace", "workers", "disk", "repositories"} <= {*checks}
    assert bare.git("-C", "origin.git", "for-each-ref", "refs/rooda") == ""
    nowhere = bare.rooda("fleet", "doctor", "--json", "--fleet", server.address.replace("/default", "/nowhere"))
    assert nowhere.code == 1
    (missing,) = [each for each in json.loads(nowhere.out) if each["status"] == "fail"]
    assert missing["what"] == "namespace" and "namespace create" in missing["do"]
    bare.write("origin.git/hooks/update", "#!/bin/sh\necho protected >&2; exit 1\n", 0o755)
    closed = bare.rooda("fleet", "doctor", "--fleet", server.address)
    assert closed.code == 1 and "does not take a ref" in closed.out and "[fleet] state" in closed.out


def test_FL_17_doctor_warns_of_a_public_state_remote(bare: Workspace) -> None:
    """A repository that anybody can read over HTTP is named."""
    from rooda.fleet.checkup import is_public
    from rooda.fleet.mirror import Mirror

    bare.git("init", "-q", "--bare", "public.git")
    bare.git("-C", "public.git", "update-server-info")
    port = temporal.free_port()
    words = [sys.executable, "-m", "http.server", str(port), "--bind", "127.0.0.1"]
    web = subprocess.Popen(words, cwd=bare.path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        url = f"http://127.0.0.1:{port}/public.git"
        until(lambda: is_public(Mirror(bare.home, "a", url, insecure=True)), 20)
        assert not is_public(Mirror(bare.home, "b", f"{url}x", insecure=True))
        assert not is_public(Mirror(bare.home, "c", bare.file("public.git")))
    finally:
        web.kill()
        web.wait()


def test_FL_17_prune_removes_the_state_of_ended_tasks(bare: Workspace, engine: Any, server: Dev) -> None:
    """What is open or recent stays; what the fleet forgot goes only with --unknown."""
    from rooda.fleet.ticket import key_of
    from tests.kit.hands import DONE, Hand

    bare.git("init", "-q")
    bare.git("commit", "-q", "--allow-empty", "-m", "first")
    origin = bare.file("origin.git")
    bare.git("init", "-q", "--bare", "origin.git")
    bare.git("remote", "add", "origin", origin)
    bare.git("push", "-q", "origin", "main", *(f"main:refs/rooda/task/{number}" for number in (1, 2, 3)))
    own_settings(bare, f'[fleet]\naddress = "{server.address}"\nkeep = "0s"\n')
    key = key_of(origin)
    with Hand(server.address, key, lambda order, desk: DONE):
        for number in (1, 2):
            engine.submit(wish(key, number))
        engine.order(wish(key, 1).workflow, {"order": "cancel"})
        until(lambda: not engine.show(wish(key, 1).workflow)["open"], 30)
        done = bare.rooda("fleet", "prune")
    assert "Kept 1 old ref of tasks that the fleet does not know: 3" in done.out
    assert done.out.endswith("Removed 1 of 3 refs.\n")
    assert bare.rooda("fleet", "prune", "--unknown").out == "Removed 1 of 2 refs.\n"
    assert bare.git("-C", origin, "for-each-ref", "--format=%(refname)", "refs/rooda").split() == ["refs/rooda/task/2"]
