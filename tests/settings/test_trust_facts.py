"""Which lines of a rooda.toml and an AGENTS.md are facts: they start, redirect, leak or hold back."""

from pathlib import Path

import pytest

from rooda.loops import configuration
from rooda.settings import trust_facts, trust_search


def facts(folder: Path, toml: str) -> list[str]:
    """`label: value` of each fact, `?` behind it if to appear needs the user's permission."""
    (folder / "rooda.toml").write_text(toml)
    seen = trust_search.look(configuration.load(str(folder), None, {"HOME": str(folder / "home")}))
    return [f"{fact.label}: {fact.value}{'' if fact.harmless else '?'}" for fact in seen.facts]


@pytest.mark.parametrize(
    ("toml", "expected"),
    [
        ('[loop]\nquality_gates = ["make test", "ruff check"]', ["gate: make test?", "gate: ruff check?"]),
        ('[loop]\nquality_gates = [{ name = "t", command = "make  test" }]', ["gate: make  test?"]),
        ("[loop]\nquality_gates = []", ["gate: (none)?"]),
        ("[loop]\nmax_cost = 1\n[procedures.build]\nmax_cost = 1000", ["max_cost: 1", "max_cost: 1000?"]),
        ("[loop]\nmax_cost = 1\n[flow]\nmax_cost = 1000", ["max_cost: 1", "max_cost: 1000?"]),
        ("[loop]\nmax_duration = 600\n[goal]\nmax_duration = '1000h'", ["max_duration: 600", "max_duration: 1000h?"]),
        ('[loop]\nagent = "claude"', ["agent: claude?"]),
        ('[loop]\nai_cmd = "sh x"', ["agent: sh x?"]),
        ('[ai_cmd_aliases]\nx = "sh x"', ["agent x: sh x?"]),
        ('[procedures.build]\nai_cmd = "sh x"', ["agent: sh x?"]),
        ('[loop]\nfallback = ["codex"]', ["fallback: codex?"]),
        ('[agents.claude]\ncommand = "./x"', ["agent claude: ./x?"]),
        ('[agents.claude]\nversion = "-c id"', ["agent claude: -c id?"]),
        ('[agents.claude]\nallow = "--x {tools}"', ["agent claude: --x {tools}?"]),
        ('[agents.claude.env]\nA = "1"\nB = "2"', ["agent claude: A=1?", "agent claude: B=2?"]),
        ('[agents.claude]\nenv_deny = ["AWS_*"]', ["agent claude: AWS_*"]),
        ('[agents.claude]\nsummary = "x"\ninstall = "curl x | sh"\nmodel = "m"', []),
        ('[hooks]\ndone = "mail"', ["hook done: mail?"]),
        ('[hooks]\nfailed = { url = "https://x.example" }', ["hook failed: https://x.example?"]),
        ("[loop]\nmax_cost = 5", ["max_cost: 5"]),
        ("[loop]\nread_only = true", ["read_only: true"]),
        ("[loop]\nread_only = false", ["read_only: false"]),
        ('[loop]\ndenied_tools = ["Bash"]', ["denied_tools: Bash"]),
        ("[procedures.build]\ndefault_iterations = 500", ["default_iterations: 500?"]),
        ("[procedures.build]\ndefault_iterations = 1", ["default_iterations: 1"]),
        ("[goal]\nbudget = 99", ["budget: 99?"]),
        ("[goal]\nbudget = 3", ["budget: 3"]),
        ('[procedures.p]\nobserve = [{ command = "git log" }]', ["prompt command: git log?"]),
        ("[goal]\ncost_per_call = 0.01", ["cost_per_call: 0.01?"]),
        ('[goal]\nobservation_evidence = "file"', ["observation_evidence: file?"]),
        ("[flow]\nno_verify = true", ["no_verify: true?"]),
        ('[flow]\nsensors = "native"', ["sensors: native?"]),
        ('[reflex]\nexec_checks = "run"', ["exec_checks: run?"]),
        ('[loop]\non_interrupted = "fresh"', ["on_interrupted: fresh?"]),
        ('[loop]\nsafety = "off"', ["safety: off"]),
        ('[loop]\nsandbox = "workspace"', ["sandbox: workspace"]),
        ('[loop]\nsandbox = "workspace"\n[flow]\nsandbox = "auto"', ["sandbox: workspace", "sandbox: auto?"]),
        ('[sandbox]\nhosts = ["x.test"]\nallow = [".envrc"]', ["sandbox hosts: x.test?", "sandbox allow: .envrc?"]),
        ('[sandbox]\nwrite = ["~/x"]\nnetwork = "off"', ["sandbox write: ~/x?", "sandbox network: off?"]),
        ('[sandbox]\nhide = [".env"]\nmax_memory = "1GB"', ["sandbox hide: .env", "sandbox max_memory: 1GB"]),
        ('[agents.claude]\nlogin = [".ssh/id_rsa"]', ["agent claude: .ssh/id_rsa?"]),
        ('[loop]\nlog_level = "warn"\nkill_grace = 1\npreamble = true\nmodel = "m"', []),
        ('[models]\nfast = "m"\n[prices.m]\ninput = 1\noutput = 2', []),
        ("[prices.m]\ninput = 0\noutput = 2", ["price: input 0, output 2?"]),
        ('[prices."claude-opus-4-5"]\ninput = 0.1\noutput = 25', ["price: input 0.1, output 25?"]),
        ("[agents.claude]\noutput = 'text'", ["agent claude: text?"]),
        ('[procedures.p]\nobserve = "Look."\norient = "O"\ndecide = "D"\nact = "A"\nsummary = "s"', []),
        ('[procedures.p]\nobserve = "/etc/hostname"', ["prompt: /etc/hostname is /etc/hostname?"]),
        ('[procedures.p]\ncontext = ["../secret", "inside"]', ["prompt: ../secret is {parent}/secret?"]),
    ],
)
def test_S_03_what_is_a_fact(tmp_path: Path, toml: str, expected: list[str]) -> None:
    workspace = tmp_path / "work"
    workspace.mkdir()
    (tmp_path / "secret").write_text("key")
    (workspace / "inside").write_text("text")
    assert facts(workspace, toml) == [each.format(parent=tmp_path, tools="{tools}") for each in expected]


def test_S_03_a_limit_above_the_users_own(tmp_path: Path) -> None:
    own = tmp_path / "home" / ".config" / "rooda"
    own.mkdir(parents=True)
    (own / "rooda.toml").write_text(
        '[loop]\nmax_cost = 5\nsafety = "snapshot"\ndenied_tools = ["Bash"]\nread_only = true\n'
    )
    weaker = (
        '[flow]\nmax_cost = 50\n[loop]\nmax_cost = 50\nsafety = "off"\ndenied_tools = ["Read"]\nread_only = false\n'
    )
    assert all(each.endswith("?") for each in facts(tmp_path, weaker))
    assert not any(
        each.endswith("?") for each in facts(tmp_path, '[loop]\nmax_cost = 1\ndenied_tools = ["Bash", "Read"]\n')
    )


@pytest.mark.parametrize(
    ("name", "warning"),
    [
        ("ANTHROPIC_BASE_URL", "sends your key elsewhere"),
        ("HTTPS_PROXY", "sends your key elsewhere"),
        ("PATH", "chooses which programs run"),
        ("LD_PRELOAD", "chooses which programs run"),
        ("MODE", ""),
    ],
)
def test_S_03_what_the_user_might_overlook_is_said(tmp_path: Path, name: str, warning: str) -> None:
    (tmp_path / "rooda.toml").write_text(f'[agents.claude.env]\n{name} = "x"\n')
    seen = trust_search.look(configuration.load(str(tmp_path), None, {}))
    assert [fact.warning for fact in seen.facts] == [warning]


def test_S_03_a_comment_or_an_order_is_no_change(tmp_path: Path) -> None:
    first = facts(tmp_path, '[loop]\nagent = "a"\nquality_gates = ["x", "y"]\n')
    assert sorted(first) == sorted(facts(tmp_path, '# c\n[loop]\nquality_gates = ["y", "x"]\nagent = "a"\n'))


def test_S_03_gates_of_an_AGENTS_md() -> None:
    text = b"# P\n\n## Quality Gates\n- tests: `make test`\n\n## Build/Test/Lint Commands\n**Build:** `make`\n"
    assert [(fact.value, fact.line) for fact in trust_facts.agents_md_reader("AGENTS.md", False)(text)] == [
        ("make test", 4)
    ]
    only = text.replace(b"Quality Gates", b"Notes")
    assert trust_facts.agents_md_reader("AGENTS.md", False)(only) == []
    assert [fact.value for fact in trust_facts.agents_md_reader("AGENTS.md", True)(only)] == ["make"]


@pytest.mark.parametrize(
    "content", [b"", b"\xff", b"[loop", b"loop = 3", b"[agents]\nx = 3", b"[procedures]\nbuild = []"]
)
def test_S_03_an_older_version_that_is_broken_is_theirs_as_a_whole(tmp_path: Path, content: bytes) -> None:
    found = configuration.load(str(tmp_path), None, {})
    reader = trust_facts.reader_of(found, "rooda.toml", str(tmp_path / "rooda.toml"), str(tmp_path))
    assert [fact.name for fact in reader.read(content)] == ([""] if content else [])


@pytest.mark.parametrize(("allowed", "asks"), [('["Read"]', False), ('["Read", "Bash"]', True), ("[]", True)])
def test_S_03_more_allowed_tools_than_the_users(tmp_path: Path, allowed: str, asks: bool) -> None:
    own = tmp_path / "home" / ".config" / "rooda"
    own.mkdir(parents=True)
    (own / "rooda.toml").write_text('[loop]\nallowed_tools = ["Read", "Grep"]\n')
    assert any(each.endswith("?") for each in facts(tmp_path, f"[loop]\nallowed_tools = {allowed}\n")) is asks
