"""Every kind of loop in the sandbox: agents, gates, checks, sensors and verifications, with the usual result."""

from pathlib import Path

import pytest

from tests.kit.four import KINDS, Four
from tests.kit.walled import BWRAP

pytestmark = BWRAP
PROBE = 'touch "$HOME/here"; ls "$HOME" >>"$HELD/homes"; ls /proc | grep -c "^[0-9]" >>"$HELD/processes"\n'


@pytest.mark.parametrize("kind", KINDS)
def test_S_20_a_whole_loop_in_the_sandbox(kind: str, tmp_path: Path) -> None:
    """Each call has a HOME of its own and sees its own processes; the loop's public result is as without."""
    four = Four(KINDS[kind], str(tmp_path))
    try:
        own = Path(four.ws.env["XDG_CONFIG_HOME"], "rooda")
        own.mkdir(parents=True)
        opened = f'environment = ["FAKE*", "HARNESS_MARK", "HELD"]\nwrite = ["{four.ws.fake}", "{four.held}"]\n'
        (own / "rooda.toml").write_text(f'[loop]\nsandbox = "workspace"\n[sandbox]\n{opened}')
        four.first(PROBE)
        ran = four.run()
        assert four.done(), ran.both
        assert len(four.calls()) == four.kind.calls
        homes, processes = (Path(four.held, name).read_text().split() for name in ("homes", "processes"))
        assert set(homes) == {"here"} and max(map(int, processes)) < 15
        assert four.said("sandbox.chosen")[0]["mode"] == "workspace" and not four.said("files.restored")
    finally:
        four.ws.close()


ATTACK = (
    'echo evil >>.envrc; mkdir -p .vscode; echo x >.vscode/tasks.json; echo x >"$HOME/.bashrc"; touch .rooda/evil\n'
)


@pytest.mark.parametrize("kind", KINDS)
def test_S_21_agents_of_every_kind_change_no_guarded_file(kind: str, tmp_path: Path) -> None:
    """What they wrote is put back after each call, reported, and is in no commit of a flow; the loop ends as usual."""
    four = Four(KINDS[kind], str(tmp_path))
    try:
        four.ws.write(".envrc", "mine\n")
        if kind == "flow":
            four.ws.git("add", "-A")
            four.ws.git("commit", "-qm", "envrc")
        own = Path(four.ws.env["XDG_CONFIG_HOME"], "rooda")
        own.mkdir(parents=True)
        opened = f'environment = ["FAKE*", "HARNESS_MARK", "HELD"]\nwrite = ["{four.ws.fake}", "{four.held}"]\n'
        (own / "rooda.toml").write_text(f'[loop]\nsandbox = "workspace"\n[sandbox]\n{opened}')
        four.first(ATTACK)
        ran = four.run()
        assert four.done(), ran.both
        assert four.ws.read(".envrc") == "mine\n"
        assert not four.ws.exists(".vscode/tasks.json") and not four.ws.exists(".rooda/evil")
        restored = [event["paths"] for event in four.said("files.restored")]
        assert len(restored) >= four.kind.calls - 1, restored  # a reflex loop makes two calls at once
        assert all(paths == [".envrc", ".vscode/tasks.json"] for paths in restored), restored
        assert not Path(four.ws.home, ".bashrc").exists()
        if kind == "flow":
            assert four.ws.git("log", "--format=%h", "main..HEAD", "--", ".envrc", ".vscode") == ""
    finally:
        four.ws.close()
