"""Secrets of the environment appear in no event, on no screen, in no `rooda logs` and in no evidence of a failure."""

import base64
import json
import os
from pathlib import Path

import pytest

from tests.kit.workspace import Workspace, until

KEY = "sk-ant-0123456789abcdef"
QUOTED = 'pass"word\\with-quotes'
ENV = {"ANTHROPIC_API_KEY": KEY, "DB_PASSWORD": QUOTED}


def spills(ws: Workspace, call: int = 1) -> None:
    """The agent prints its secrets to both streams, and fails."""
    ws.side(call, 'echo "key: $ANTHROPIC_API_KEY end"; echo "$DB_PASSWORD" >&2; printf "%s" "$ANTHROPIC_API_KEY"')
    ws.exits(*[0] * (call - 1), 1)


def clean(text: str) -> bool:
    return not any(secret in text for secret in (KEY, KEY[4:], QUOTED, json.dumps(QUOTED)[1:-1]))


def test_no_event_has_a_key(ws: Workspace) -> None:
    """Stars replace secrets in the command, head and tail of a failed call, and in the --json stream."""
    ws.procedure("build", loop={"ai_cmd": f"{json.loads(ws.loop['ai_cmd'])} --key {KEY}"})
    spills(ws)
    run = ws.rooda("build", "-n", "1", "--json", env=ENV)
    (log,) = Path(ws.path, ".rooda/runs").glob("*/events.jsonl")
    for text in (run.out, log.read_text()):
        assert clean(text) and "***" in text
    (ended,) = (json.loads(line) for line in run.lines if '"agent.ended"' in line)
    assert "key: *** end" in ended["head"] and ended["command"].endswith("--key ***")


@pytest.mark.parametrize("end", range(490, 520, 7))
def test_a_key_where_the_evidence_is_cut(ws: Workspace, end: int) -> None:
    """No half of a secret remains where head and tail are cut."""
    ws.side(1, f'printf "%{end - 12}s%s%6000s%s%{end - 12}s" "" "$ANTHROPIC_API_KEY" "" "$ANTHROPIC_API_KEY" ""')
    ws.exits(1)
    run = ws.rooda("build", "-n", "1", "--json", env=ENV)
    (ended,) = (json.loads(line) for line in run.lines if '"agent.ended"' in line)
    for half in (KEY[:9], KEY[-9:]):
        assert half not in ended["head"] + ended["tail"]


def test_the_screen_has_no_key(ws: Workspace) -> None:
    """--verbose hides secrets in the agent's output, also when one arrives in two pieces."""
    wait = "touch $FAKE/half; while ! test -e $FAKE/go; do sleep 0.01; done"
    ws.side(1, f'printf "%s" "a {KEY[:11]}"; {wait}; echo "{KEY[11:]} b"')
    run = ws.start("build", "-n", "1", "-v", env=ENV)
    until(lambda: "a " in run.out and os.path.exists(f"{ws.fake}/half"))
    assert KEY[:11] not in run.out
    Path(ws.fake, "go").touch()
    assert run.finish() == 0
    assert "a *** b" in run.out and clean(run.both)


def test_logs_have_no_key(ws: Workspace) -> None:
    """`rooda logs` hides secrets in its own lines and in the agent's words."""
    spills(ws)
    ws.rooda("build", "-n", "1", env=ENV)
    for words in (["logs"], ["logs", "-v"], ["logs", "--agent"], ["logs", "--json"]):
        said = ws.rooda(*words, env=ENV).both
        assert clean(said), words
    assert "key: *** end" in ws.rooda("logs", "--agent", env=ENV).out


def test_keys_that_the_settings_give_to_an_agent(ws: Workspace) -> None:
    """A secret in [agents.NAME] env is hidden too."""
    command = json.loads(ws.loop["ai_cmd"])
    ws.procedure("build", loop={"ai_cmd": None, "agent": "mine"})
    ws.config(f'{ws.read("rooda.toml")}\n[agents.mine]\ncommand = "{command}"\nenv = {{ MY_TOKEN = "{KEY}" }}\n')
    ws.side(1, 'echo "token $MY_TOKEN"')
    ws.exits(1)
    run = ws.rooda("build", "-n", "1", "-v")
    assert "token ***" in run.out and clean(run.both)
    (log,) = Path(ws.path, ".rooda/runs").glob("*/events.jsonl")
    assert clean(log.read_text()) and "token ***" in log.read_text()


def test_the_agent_itself_gets_the_key(ws: Workspace) -> None:
    """The agent itself receives the secret."""
    assert ws.rooda("build", "-n", "1", env=ENV).code == 0
    assert ws.calls[0].env["ANTHROPIC_API_KEY"] == KEY


def test_a_key_in_lines_of_base64(ws: Workspace) -> None:
    """A long secret that the agent's `base64` wraps into lines is in no event and in no `rooda logs`."""
    ws.env["SIGNING_KEY"] = key = "k" + "".join(chr(97 + place * 7 % 26) for place in range(107))
    ws.side(1, 'printf "%s" "$SIGNING_KEY" | base64; exit 1')
    ws.rooda("build", "-n", "1")
    code = base64.b64encode(key.encode()).decode()
    log = next(Path(ws.path, ".rooda/runs").glob("*/events.jsonl")).read_text()
    for text in (log, ws.rooda("logs", "--json").both, ws.rooda("logs", "--agent").both):
        assert "***" in text and code[:40] not in text and code[80:120] not in text, text
