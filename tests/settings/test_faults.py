"""Messages about invalid settings."""

import os

import pytest

from tests.kit.tiers import OWN, Tiers

FAULTS = [  # rooda.toml, what is said
    ("[loop]\nfailure_threshold = 0", "2: loop.failure_threshold: must be a whole number >= 1, got 0"),
    ("[loop]\ndefault_iterations = -1", "2: loop.default_iterations: must be a whole number >= 0, got -1"),
    ("[loop]\ndefault_iterations = true", "2: loop.default_iterations: must be a whole number >= 0, got true"),
    ("[loop]\ndefault_iterations = 2.0", "2: loop.default_iterations: must be a whole number >= 0, got 2.0"),
    ("[loop]\ntoken_budget = '9'", "2: loop.token_budget: must be a whole number >= 0, got '9'"),
    (
        "[loop]\ntoken_budget = 0x" + "f" * 5000,
        "2: loop.token_budget: must be a whole number <= 1000000000000, got a huge number",
    ),
    ("[loop]\nmax_output_buffer = 1023", "2: loop.max_output_buffer: must be a whole number >= 1024, got 1023"),
    ("[loop]\nidle_timeout = nan", "2: loop.idle_timeout: must be a number of seconds >= 0, got nan"),
    ("[loop]\niteration_timeout = inf", "2: loop.iteration_timeout: must be a number of seconds >= 0, got inf"),
    ("[loop]\nkill_grace = -0.1", "2: loop.kill_grace: must be a number of seconds >= 0, got -0.1"),
    ("[loop]\nkill_grace = 2026-01-01", "2: loop.kill_grace: must be a number of seconds >= 0, got a date"),
    ("[loop]\npreamble = 1", "2: loop.preamble: must be true or false, got 1"),
    (
        "[loop]\non_interrupted = 'resum'",
        "2: loop.on_interrupted: must be one of ask, resume, fresh, got 'resum'; did you mean 'resume'?",
    ),
    ("[loop]\nlog_level = []", "2: loop.log_level: must be one of debug, info, warn, error, got an array"),
    ("[loop]\nai_cmd = ''", "2: loop.ai_cmd: must be a command, got ''"),
    ("[loop]\nai_cmd = '  '", "2: loop.ai_cmd: must be a command, got '  '"),
    ("[loop]\nai_cmd = 'a \"b'", "2: loop.ai_cmd: can't be split into words (no closing quotation), got 'a \"b'"),
    ('[loop]\nai_cmd = "a\\u0000b"', "2: loop.ai_cmd: must be a command, got 'a\\x00b'"),
    ("loop = 3", "1: loop: must be a table, got 3"),
    ("[[loop]]", "1: loop: must be a table, got an array"),
    ("[loop.default_iterations]", "1: loop.default_iterations: must be a whole number >= 0, got a table"),
    ("[procedures]\nx = 1", "2: procedures.x: must be a table, got 1"),
    ("reflex = 1", "1: reflex: must be a table, got 1"),
    ("[models]\nopus = 1", "2: models.opus: must be a string that is not empty, got 1"),
    ("[ai_cmd_aliases]\nx = ''", "2: ai_cmd_aliases.x: must be a command, got ''"),
    ("[agents]\nx = 'y'", "2: agents.x: must be a table, got 'y'"),
    (
        "[agents.x]\ncommand = 'y'\nprompt = 'pipe'",
        "3: agents.x.prompt: must be one of stdin, argument, file, got 'pipe'",
    ),
    ("[agents.x]\nstop = 'KILL'", "2: agents.x.stop: must be one of TERM, INT, got 'KILL'"),
    ("[agents.x.env]\nA = 1", "2: agents.x.env.A: must be a string, got 1"),
    ("[agents.x]\nenv = { 'A=B' = 'c' }", "2: agents.x.env.'A=B': is not a valid environment variable"),
    (
        "[loop]\nquality_gates = 'make'",
        "2: loop.quality_gates: must be an array of commands or of tables with name and command, got 'make'",
    ),
    ("[loop]\nquality_gates = ['a', 1]", "2: loop.quality_gates[1]: must be a string that is not empty, got 1"),
    ("[[loop.quality_gates]]\nname = 'x'", "1: loop.quality_gates[0]: the key 'command' is missing"),
    (
        "[[loop.quality_gates]]\ncommand = 'x'\n[[loop.quality_gates]]\ncommand = 'x'\ntimeout = -1",
        "5: loop.quality_gates[1].timeout: must be a number of seconds >= 0, got -1",
    ),
    ("[procedures.x]\nact = []", "2: procedures.x.act: must have at least one fragment"),
    ("[procedures.x]\nact = ''", "2: procedures.x.act: must be a string that is not empty, got ''"),
    ("[procedures.x]\nact = [{}]", "2: procedures.x.act[0]: must have exactly one of content, path and command"),
    (
        "[procedures.x]\nact = [\n'a',\n{ content = 'a', path = 'b' }]",
        "4: procedures.x.act[1]: must have exactly one of content, path and command",
    ),
    (
        "[procedures.x]\nact = [{ content = 'a', parameters = { b = [] } }]",
        "2: procedures.x.act[0].parameters.b: must be a string, a number or true/false, got an array",
    ),
    ("[procedures.x]\ncontext = [1]", "2: procedures.x.context[0]: must be a string that is not empty, got 1"),
    (
        "[procedures.'a/b']",
        "1: procedures.'a/b': a procedure name has letters, digits, '.', '_' or '-', and begins with a letter or digit",
    ),
    (
        "[procedures.'']",
        "1: procedures.'': a procedure name has letters, digits, '.', '_' or '-', and begins with a letter or digit",
    ),
]


@pytest.mark.parametrize(("text", "said"), FAULTS)
def test_OU_032_a_fault_names_line_key_and_expectation(text: str, said: str, tiers: Tiers) -> None:
    """The message has file, line, key, the expected and the actual value."""
    assert tiers.faults(text) == [said]


def test_every_fault_at_once(tiers: Tiers) -> None:
    """Errors in environment, workspace and user file are reported together."""
    tiers.environ |= {"ROODA_LOOP_DEFAULT_ITERATIONS": "abc", "ROODA_LOOP_LOG_LEVEL": "loud"}
    tiers.write("[loop]\nfailure_threshold = 0\ntoken_budget = 'x'\n")
    tiers.user("[loop\n")
    said = tiers.fault().what.splitlines()
    assert said[0] == "ROODA_LOOP_DEFAULT_ITERATIONS must be a whole number >= 0, got 'abc'"
    assert said[1] == "ROODA_LOOP_LOG_LEVEL must be one of debug, info, warn, error, got 'loud'"
    assert [line.rsplit("/", 1)[1].split(" ")[0] for line in said[2:]] == [
        "rooda.toml:2:",
        "rooda.toml:3:",
        "rooda.toml:1:6:",
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[loop]\nagent = demo\n", "2:9: Invalid value; a string needs quotes"),
        ("a = 'x", '1: Expected "\'" (at the end of the file)'),
        (
            '[loop]\nagent = "demo\nmodel = "x"\n',
            "2:14: Illegal character '\\n'; the string before it has no closing quote",
        ),
        (
            "[loop]\n[procedures.my-own]\n[loop]\n",
            "3:6: Cannot declare [loop] twice; a table may appear only once: put its keys together",
        ),
        ("[loop]\n[loop\n", "2:6: Expected ']' at the end of a table declaration"),
        (
            "[a.b]\n[a.b]\n",
            "2:5: Cannot declare [a.b] twice; a table may appear only once: put its keys together",
        ),
        (
            'model = "C:\\model"\n',
            "1:14: Unescaped '\\' in a string; write \\\\ for a backslash, or put the string in single quotes",
        ),
        (
            "\n[loop]\ndefault_iterations 3\n",
            "3:20: Expected '=' after a key in a key/value pair; a line is KEY = VALUE, and a key has no spaces",
        ),
        ("[loop]\na = '''\nx\n", "3: Expected \"'''\" (at the end of the file)"),
        ("[loop]\na = 1\na = 2\n", "3:6: Cannot overwrite a value; that key or table already exists"),
        ("a = " + "[" * 4000, " nested more than 40 deep"),
    ],
)
def test_OU_032_syntax_errors_have_line_and_column(text: str, said: str, tiers: Tiers) -> None:
    """A TOML error has file, line, column, and a hint at the fix."""
    assert tiers.faults(text) == [said]


def test_a_file_that_is_not_utf8(tiers: Tiers) -> None:
    """The line and the byte are named."""
    tiers.workspace_file.write_bytes(b"[loop]\nmodel = '\xff'\n")
    assert tiers.fault().what == f"{tiers.workspace_file}:2: this line is not UTF-8 text (byte 0xff)"


def test_a_byte_order_mark_is_accepted(tiers: Tiers) -> None:
    """A byte order mark is accepted, since some editors write one."""
    tiers.workspace_file.write_bytes(b"\xef\xbb\xbf[loop]\ntoken_budget = 4\n")
    assert tiers.procedure("build").setup.token_budget == 4


def test_a_folder_in_place_of_the_file(tiers: Tiers) -> None:
    """A folder named rooda.toml and an unreadable file have different messages."""
    tiers.workspace_file.mkdir()
    assert tiers.fault().what == f"{tiers.workspace_file}: is a folder, not a settings file"


def test_a_dangling_link_is_an_error(tiers: Tiers) -> None:
    """A dangling link is an error, not a missing file."""
    os.symlink("nowhere.toml", tiers.workspace_file)
    assert tiers.fault().what == f"{tiers.workspace_file}: can't be read: No such file or directory"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[loop]\nfailure_treshold = 2", "2: loop.failure_treshold: unknown key; did you mean 'failure_threshold'?"),
        ("[loop]\nxyzzy = 2", "2: loop.xyzzy: unknown key"),
        ("[loop]\nfailure-threshold = 2", "2: loop.failure-threshold: unknown key; did you mean 'failure_threshold'?"),
        ("[procedure.x]\nact = 'a'", "1: procedure: unknown table; did you mean 'procedures'?"),
        ("default_iterations = 2", "1: default_iterations: unknown key; did you mean 'default_iterations' in [loop]?"),
        ("[procedures.x]\nobserv = 'a'", "2: procedures.x.observ: unknown key; did you mean 'observe'?"),
        ("[agents.x]\ncomand = 'a'", "2: agents.x.comand: unknown key; did you mean 'command'?"),
        (
            "[loop]\nquality_gates = [{ command = 'a', tiemout = 3 }]",
            "2: loop.quality_gates[0].tiemout: unknown key; did you mean 'timeout'?",
        ),
        ("[loop]\nmax_iterations = 2", "2: loop.max_iterations: unknown key; did you mean 'default_iterations'?"),
        ("[procedures.x]\ngates = ['a']", "2: procedures.x.gates: unknown key; did you mean 'quality_gates'?"),
        (
            "[hooks]\nfinish = 'a'",
            "2: hooks.finish: unknown key; available: "
            "done, failed, paused, stopped, stuck, limit, budget, needs_person",
        ),
        ("'odd\\nkey'.x = 1", "1: 'odd\\\\nkey': unknown table"),
    ],
)
def test_OU_030_unknown_keys_warn(text: str, said: str, tiers: Tiers) -> None:
    """An unknown key is a warning with its place and the nearest known one."""
    assert tiers.warnings(text) == [said]


def test_OA_30_older_names_work_with_a_notice(tiers: Tiers) -> None:
    """default_max_iterations is read with a notice about its new name; the new name wins."""
    assert tiers.warnings("[loop]\n\ndefault_max_iterations = 4\n" + OWN) == [
        "3: loop.default_max_iterations: is now called 'default_iterations'"
    ]
    assert tiers.procedure("mine").max_iterations == 4
    assert tiers.load().origin(("loop", "default_iterations")).endswith("rooda.toml:3)")
    tiers.write("[loop]\ndefault_max_iterations = 4\ndefault_iterations = 6\n", OWN)
    assert tiers.procedure("mine").max_iterations == 6


class TestEnvironment:
    """ROODA_LOOP_<KEY>."""

    @pytest.mark.parametrize(
        ("variable", "value", "said"),
        [
            ("DEFAULT_ITERATIONS", "abc", "must be a whole number >= 0, got 'abc'"),
            ("DEFAULT_ITERATIONS", "-2", "must be a whole number >= 0, got -2"),
            ("DEFAULT_ITERATIONS", "9" * 5000, "must be a whole number >= 0, got '" + "9" * 57 + "...'"),
            ("FAILURE_THRESHOLD", "0", "must be a whole number >= 1, got 0"),
            ("ITERATION_TIMEOUT", "soon", "must be a number of seconds >= 0, got 'soon'"),
            ("ITERATION_TIMEOUT", "nan", "must be a number of seconds >= 0, got nan"),
            ("SHOW_AI_OUTPUT", "maybe", "must be true or false, got 'maybe'"),
            ("AI_CMD", "'", "can't be split into words (no closing quotation), got \"'\""),
        ],
    )
    def test_OU_031_wrong_values(self, variable: str, value: str, said: str, tiers: Tiers) -> None:
        """The variable, what it must be, what it is."""
        tiers.environ[f"ROODA_LOOP_{variable}"] = value
        assert tiers.fault().what == f"ROODA_LOOP_{variable} {said}"

    def test_OU_031_values_of_every_kind(self, tiers: Tiers) -> None:
        """Numbers, seconds, yes and no, words, commands and lines of gates are read from texts."""
        tiers.environ |= {
            "ROODA_LOOP_DEFAULT_MAX_ITERATIONS": " 3 ",
            "ROODA_LOOP_IDLE_TIMEOUT": "1.5",
            "ROODA_LOOP_SHOW_AI_OUTPUT": "Yes",
            "ROODA_LOOP_AI_CMD": "cat -n",
            "ROODA_LOOP_QUALITY_GATES": "make test\n\nmake lint\n",
            "ROODA_LOOP_PREAMBLE": "",
        }
        build = tiers.procedure("build")
        assert (build.max_iterations, build.setup.bounds.idle_timeout, build.setup.show_ai_output) == (3, 1.5, True)
        assert build.setup.agent and build.setup.agent.command == "cat -n"
        assert build.gates and [gate.command for gate in build.gates] == ["make test", "make lint"]
        assert tiers.load().warnings == (
            "ROODA_LOOP_DEFAULT_MAX_ITERATIONS: is now called ROODA_LOOP_DEFAULT_ITERATIONS",
        )

    def test_unknown_variables_warn(self, tiers: Tiers) -> None:
        """An unknown variable is a warning with the nearest known one; ROODA_LOOP itself is not a setting."""
        tiers.environ |= {"ROODA_LOOP_TOKEN_BUDGE": "1", "ROODA_LOOP": "x", "ROODA_LOOP_model": "x"}
        tiers.environ["ROODA_LOOP_MAX_ITERATIONS"] = "3"
        assert tiers.load().warnings == (
            "ROODA_LOOP_MAX_ITERATIONS: unknown variable; did you mean 'ROODA_LOOP_DEFAULT_ITERATIONS'?",
            "ROODA_LOOP_TOKEN_BUDGE: unknown variable; did you mean 'ROODA_LOOP_TOKEN_BUDGET'?",
            "ROODA_LOOP_model: unknown variable; did you mean 'ROODA_LOOP_MODEL'?",
        )


def test_OA_41_reserved_names(tiers: Tiers) -> None:
    """A procedure with the name of a command is an error in every command that reads settings."""
    from rooda.settings.schema import RESERVED

    said = tiers.faults("".join(f"[procedures.{name}]\n" for name in sorted(RESERVED)))
    assert len(said) == len(RESERVED)
    assert "procedures.config: 'config' is a rooda command; give the procedure another name" in "\n".join(said)
    assert {"set", "say", "tasks", "fleet", "page", "memory"} <= RESERVED  # E-47


@pytest.mark.parametrize("flag", [{"default_iterations": -1}, {"failure_threshold": 0}, {"log_level": "loud"}])
def test_OA_31_wrong_flags(flag: dict[str, object], tiers: Tiers) -> None:
    """Options are validated by the same rules."""
    what = tiers.fault("build", **flag).what
    assert what.startswith(("--max-iterations must be", "--failure-threshold must be", "--log-level must be"))
