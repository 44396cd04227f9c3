"""Gates, promise signals, the agent, the model, unknown procedures."""

import pytest

from rooda.errors import ConfigProblem, UsageProblem
from rooda.loops.procedure.model import PHASES, Procedure
from rooda.run.records import Gate
from rooda.settings import agents, procedures
from tests.kit.tiers import OWN, Tiers


def gates(made: Procedure) -> tuple[Gate, ...]:
    """The gates without the places that define them."""
    return tuple(gate._replace(origin="") for gate in made.gates or ())


class TestGates:
    """quality_gates."""

    def test_OA_15_gates_of_both_forms(self, tiers: Tiers) -> None:
        """A text is name and command at once; a table may have a name and a timeout; equal names are fine."""
        tiers.write(
            '[loop]\nquality_gates = ["make", { command = "x", timeout = 3 }, { name = "make", command = "y" }]\n'
        )
        assert gates(tiers.procedure("build")) == (Gate("make", "make"), Gate("x", "x", 3.0), Gate("make", "y"))

    def test_absent_empty_and_switched_off(self, tiers: Tiers) -> None:
        """Without the key AGENTS.md decides; [] and --no-gates mean none."""
        assert tiers.procedure("build").gates is None
        tiers.write("[loop]\nquality_gates = []\n")
        assert tiers.procedure("build").gates == ()
        tiers.write('[loop]\nquality_gates = ["x"]\n')
        assert tiers.procedure("build", gates=False).gates == ()

    def test_replaced_whole(self, tiers: Tiers) -> None:
        """A stronger tier's gates replace the weaker one's, and a procedure's replace the general ones."""
        tiers.user('[loop]\nquality_gates = ["a", "b"]\n')
        tiers.write('[procedures.build]\nquality_gates = ["c"]\n')
        assert gates(tiers.procedure("build")) == (Gate("c", "c"),)
        tiers.write(OWN)
        assert [gate.name for gate in tiers.procedure("mine").gates or ()] == ["a", "b"]

    def test_E_13_only_build_has_gates(self, tiers: Tiers) -> None:
        """The other built-in procedures have none unless [procedures.NAME] says so; --gates means the project's."""
        names = [name for name in procedures.names(tiers.load()) if name != "build"]
        assert len(names) == 16 and all(tiers.procedure(name).gates == () for name in names)
        assert tiers.procedure("bootstrap", gates=True).gates is None  # those of AGENTS.md
        tiers.user('[loop]\nquality_gates = ["make"]\n')
        assert gates(tiers.procedure("build")) == (Gate("make", "make"),)
        assert tiers.procedure("bootstrap").gates == ()
        assert gates(tiers.procedure("bootstrap", gates=True)) == (Gate("make", "make"),)
        tiers.write('[procedures.bootstrap]\nquality_gates = ["own"]\n')
        assert gates(tiers.procedure("bootstrap")) == (Gate("own", "own"),)
        assert tiers.procedure("bootstrap", gates=False).gates == ()

    def test_E_13_a_file_can_not_switch_gates_off_by_an_unknown_key(self, tiers: Tiers) -> None:
        """`gates` and `no_gates` are options; the same word in a file is an unknown key without effect."""
        tiers.write('[loop]\nquality_gates = ["x"]\nno_gates = true\ngates = false\n')
        assert gates(tiers.procedure("build")) == (Gate("x", "x"),)


class TestPromise:
    """promise_signals and whose a procedure is."""

    def test_OU_001_on_for_built_ins_off_for_own(self, tiers: Tiers) -> None:
        """Promise signals are on for built-in prompts, off for the user's; either can be set."""
        tiers.write(OWN)
        assert tiers.procedure("build").promise_signals and tiers.procedure("build").builtin
        assert not tiers.procedure("mine").promise_signals and not tiers.procedure("mine").builtin
        tiers.write("[loop]\npromise_signals = true\n", OWN)
        assert tiers.procedure("mine").promise_signals
        tiers.write("[loop]\npromise_signals = false\n")
        assert not tiers.procedure("build").promise_signals
        assert tiers.procedure("build", promise_signals=True).promise_signals

    def test_four_replaced_phases_make_it_the_persons(self, tiers: Tiers) -> None:
        """From files and flags together; with three it stays built-in; the built-in limit stays."""
        tiers.write('[procedures.build]\nobserve = "a"\norient = "b"\ndecide = "c"\n')
        assert tiers.procedure("build").builtin and tiers.procedure("build").promise_signals
        own = tiers.procedure("build", act=["d"])
        assert (own.builtin, own.promise_signals, own.max_iterations) == (False, False, 5)


class TestAgent:
    """The choice of agent and model."""

    def test_OA_34_nothing_configured(self, tiers: Tiers) -> None:
        """There is no default agent; the error lists the ways to set one."""
        assert tiers.procedure("build").setup.agent is None
        lines = agents.no_agent_text(tiers.load()).splitlines()
        assert lines[:2] == ["no AI command configured", "Set one via:"]
        ways = [line for line in lines[2:] if line.startswith("  ")]
        assert 5 <= len(ways) <= 6
        assert lines[2 + len(ways)].startswith("Available agents: aider, amp, claude, cline, cn, codex, ")

    def test_OU_007_levels(self, tiers: Tiers) -> None:
        """Flag command, flag name, procedure command, procedure name, loop command, loop name: in this order."""
        flags = {"ai_cmd": "one", "agent": "codex"}
        procedure, loop = ['ai_cmd = "three"\n', 'agent = "gemini"\n'], ['ai_cmd = "five"\n', 'agent = "opencode"\n']
        seen = []
        for step in range(7):
            tiers.write("[loop]\n" + "".join(loop), OWN + "".join(procedure))
            agent = tiers.procedure("mine", **flags).setup.agent
            seen.append(agent and (agent.name or agent.command))
            if flags:
                flags.pop(next(iter(flags)))
            elif procedure:
                procedure.pop(0)
            elif step < 6:
                loop.pop(0)
        assert seen == ["one", "codex", "three", "gemini", "five", "opencode", None]

    def test_the_stronger_tier_speaks_first(self, tiers: Tiers) -> None:
        """A name in the environment beats a command in a file; a name in the workspace a command of the user."""
        tiers.user('[loop]\nai_cmd = "cat"\n')
        tiers.write('[loop]\nagent = "codex"\n')
        assert _name(tiers) == "codex"
        tiers.environ["ROODA_LOOP_AI_CMD_ALIAS"] = "gemini"
        assert _name(tiers) == "gemini"

    def test_OU_008_aliases_and_agents_merge(self, tiers: Tiers) -> None:
        """A field of a built-in agent can be replaced alone; an alias is a raw command."""
        tiers.write('[agents.claude]\nmodel = "opus"\nenv = { A = "b" }\n[ai_cmd_aliases]\nmine = "my-agent -x"\n')
        claude = tiers.procedure("build", agent="claude").setup.agent
        assert claude and claude.command.startswith("claude -p ") and claude.model == "opus" and claude.stop == "INT"
        assert claude.env == {"CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1", "CLAUDE_CODE_RETRY_WATCHDOG": "", "A": "b"}
        mine = tiers.procedure("build", ai_cmd_alias="mine").setup.agent
        assert mine and (mine.name, mine.command, mine.output, mine.prompt) == ("", "my-agent -x", "text", "stdin")

    def test_unknown_agents(self, tiers: Tiers) -> None:
        """The known ones are named, and the nearest; with file and line when a file says it."""
        typed = tiers.fault("build", agent="claud")
        assert isinstance(typed, UsageProblem)
        assert typed.what.startswith("--agent: unknown agent 'claud'; available: aider, amp, claude, ")
        assert typed.hint == "Did you mean 'claude'?"
        tiers.write('[loop]\n\nagent = "nobody-knows"\n')
        written = tiers.fault("build")
        assert isinstance(written, ConfigProblem)
        assert written.what.startswith(
            f"{tiers.workspace_file}:3: loop.agent: unknown agent 'nobody-knows'; available: "
        )
        tiers.environ["ROODA_LOOP_AGENT"] = "nope"
        assert tiers.fault("build").what.startswith("ROODA_LOOP_AGENT: unknown agent 'nope'")

    def test_an_agent_without_a_command(self, tiers: Tiers) -> None:
        """An agent's table without a command is an error that says so."""
        tiers.write('[agents.mine]\nmodel = "x"\n')
        assert (
            tiers.fault("build", agent="mine").what
            == f"{tiers.workspace_file}:1: agents.mine: the key 'command' is missing"
        )

    @pytest.mark.parametrize("command", ["", " ", "'", "#"])
    def test_empty_and_broken_commands(self, command: str, tiers: Tiers) -> None:
        """A typed command that can't be one is refused; `#` is an ordinary word."""
        if command == "#":
            assert tiers.procedure("build", ai_cmd=command).setup.agent
        else:
            assert tiers.fault("build", ai_cmd=command).what.startswith("--ai-cmd ")

    def test_a_raw_command_with_prompt_takes_it_as_argument(self, tiers: Tiers) -> None:
        """{prompt} says by itself how the prompt goes in."""
        agent = tiers.procedure("build", ai_cmd="tool {prompt}").setup.agent
        assert agent and agent.prompt == "argument"

    def test_the_model(self, tiers: Tiers) -> None:
        """Flag, procedure, agent, loop; each translated by [models]."""
        tiers.write('[loop]\nai_cmd = "x"\nmodel = "haiku"\n[models]\nopus = "opus-9"\n', OWN + 'model = "opus"\n')
        assert _model(tiers, "mine") == "opus-9"
        assert _model(tiers, "mine", model="sonnet") == "sonnet"
        assert _model(tiers, "build") == "haiku"
        tiers.write('[loop]\nagent = "codex"\nmodel = "haiku"\n[agents.codex]\nmodel = "gpt"\n')
        assert _model(tiers, "build") == "gpt"
        assert _model(tiers, "build", agent="claude") == "haiku"


def _name(tiers: Tiers) -> str:
    agent = tiers.procedure("build").setup.agent
    return agent.name if agent else ""


def _model(tiers: Tiers, name: str, **flags: object) -> str:
    agent = tiers.procedure(name, **flags).setup.agent
    assert agent
    return agent.model


def test_OU_033_unknown_procedure(tiers: Tiers) -> None:
    """The error names the procedure, `rooda list`, and the nearest name."""
    problem = tiers.fault("biuld")
    assert problem.what == "Unknown procedure 'biuld'. Run 'rooda list' to see available procedures."
    assert problem.hint == "Did you mean 'build'?"
    assert tiers.fault("xyzzy").hint == ""


def test_names_and_summaries(tiers: Tiers) -> None:
    """All procedures, sorted; a summary is one line, else the description's first."""
    tiers.write(OWN + 'description = """\nFirst line.\nSecond."""\n')
    found = tiers.load()
    names = procedures.names(found)
    assert names == sorted(names) and {"build", "bootstrap", "mine"} <= set(names)
    assert procedures.summary(found, "mine") == "First line."
    assert procedures.summary(found, "build")
    assert tiers.procedure("mine").display == "mine"


def test_every_shipped_procedure_resolves(tiers: Tiers) -> None:
    """Each has four phases of existing files."""
    for name in procedures.names(tiers.load()):
        procedure = tiers.procedure(name)
        assert [phase.name for phase in procedure.phases] == list(PHASES)
        assert procedure.builtin and procedure.max_iterations > 0 and procedure.summary
