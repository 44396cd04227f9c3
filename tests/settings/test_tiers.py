"""Which tier wins, which file is read, and where a value came from."""

from operator import attrgetter
from typing import Any

import pytest

from rooda.errors import ConfigProblem
from rooda.loops import registry
from rooda.loops.procedure import settings
from rooda.settings import lookup, procedures
from tests.kit.tiers import OWN, Tiers

CASES = [  # key, place in the procedure; flag, environment, workspace, user; built-in
    ("default_iterations", "max_iterations", 1, "2", 3, 4, 0),
    ("failure_threshold", "failure_threshold", 11, "12", 13, 14, 3),
    ("token_budget", "setup.token_budget", 0, "20", 30, 40, 100_000),
    ("iteration_timeout", "setup.bounds.iteration_timeout", 1.5, "2.5", 3.5, 4, 0),
    ("on_interrupted", "on_interrupted", "fresh", "resume", "fresh", "resume", "ask"),
    ("preamble", "preamble", True, "true", True, True, False),
    ("log_level", "setup.log_level", "debug", "warn", "error", "debug", "info"),
    ("log_timestamp_format", "setup.log_timestamp_format", "iso", "none", "relative", "time-ms", "time"),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_O_047_five_tiers(case: tuple[str, str, Any, str, Any, Any, Any], tiers: Tiers) -> None:
    """Flag, environment, workspace, user, built-in: without the strongest, the next one counts."""
    key, place, flag, variable, near, own, built_in = case
    field = attrgetter(place)
    tiers.write(f"[loop]\n{key} = {_toml(near)}\n", OWN)
    tiers.user(f"[loop]\n{key} = {_toml(own)}\n" + OWN)
    tiers.environ[f"ROODA_LOOP_{key.upper()}"] = variable
    assert field(tiers.procedure("mine", **{key: flag})) == flag
    assert str(field(tiers.procedure("mine"))).lower() == variable
    del tiers.environ[f"ROODA_LOOP_{key.upper()}"]
    assert field(tiers.procedure("mine")) == near
    tiers.workspace_file.unlink()
    assert field(tiers.procedure("mine")) == own
    tiers.user(OWN)
    assert field(tiers.procedure("mine")) == built_in


def _toml(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else repr(value)


@pytest.mark.parametrize(
    ("procedure", "general", "expected"),
    [("default_iterations = 2", "default_iterations = 5", 2), ("", "default_iterations = 5", 5), ("", "", 0)],
)
def test_O_013_procedure_then_general_then_zero(procedure: str, general: str, expected: int, tiers: Tiers) -> None:
    """The limit is the procedure's, else the general one, else none."""
    tiers.write(f"[loop]\n{general}\n{OWN}{procedure}\n")
    assert tiers.procedure("mine").max_iterations == expected


def test_OA_29_the_environment_sets_the_general_setting(tiers: Tiers) -> None:
    """A procedure's own value beats the environment, a flag beats both; 0 is a value like others."""
    tiers.write(OWN + "default_iterations = 2\n")
    tiers.environ["ROODA_LOOP_DEFAULT_ITERATIONS"] = "9"
    assert tiers.procedure("mine").max_iterations == 2
    assert tiers.procedure("mine", default_iterations=0).max_iterations == 0


def test_user_settings_beat_shipped_ones(tiers: Tiers) -> None:
    """The shipped build has its own limit; any [loop] value of the user replaces it."""
    assert tiers.procedure("build").max_iterations == 5
    tiers.user("[loop]\ndefault_iterations = 0\n")
    assert tiers.procedure("build").max_iterations == 0
    tiers.environ["ROODA_LOOP_DEFAULT_ITERATIONS"] = "7"
    assert tiers.procedure("build").max_iterations == 7
    tiers.write("[procedures.build]\ndefault_iterations = 8\n")
    assert tiers.procedure("build").max_iterations == 8


def test_OU_29_procedures_merge_field_by_field(tiers: Tiers) -> None:
    """Fields of workspace and user meet in one procedure; a phase is replaced whole, built-ins stay."""
    tiers.user('[procedures.mine]\nobserve = "U"\norient = ["U1", "U2"]\ndecide = "U"\nact = "U"\nsummary = "user"\n')
    tiers.write('[procedures.mine]\norient = "W"\nfailure_threshold = 9\n')
    mine = tiers.procedure("mine")
    assert [fragment.text for phase in mine.phases for fragment in phase.fragments] == ["U", "W", "U", "U"]
    assert (mine.summary, mine.failure_threshold) == ("user", 9)
    assert {"build", "mine"} <= set(procedures.names(tiers.load()))


def test_OU_38_a_procedure_has_its_own_threshold(tiers: Tiers) -> None:
    """The threshold of the procedure beats the general one."""
    tiers.write("[loop]\nfailure_threshold = 4\n" + OWN + "failure_threshold = 2\n")
    assert tiers.procedure("mine").failure_threshold == 2
    assert tiers.procedure("build").failure_threshold == 4


def test_O_123_the_budget_is_a_setting(tiers: Tiers) -> None:
    """A budget in the file reaches the procedure."""
    tiers.write("[loop]\ntoken_budget = 60000\n")
    assert tiers.procedure("build").setup.token_budget == 60000


class TestFiles:
    """Which files are read."""

    def test_OU_28_user_folders(self, tiers: Tiers) -> None:
        """ROODA_CONFIG_HOME beats XDG_CONFIG_HOME beats ~/.config; a missing file is skipped."""
        for number, folder in enumerate(("rooda-home", "xdg/rooda"), 1):
            path = tiers.root / folder
            path.mkdir(parents=True)
            (path / "rooda.toml").write_text(f"[loop]\ndefault_iterations = {number}\n")
        tiers.user("[loop]\ndefault_iterations = 3\n")
        tiers.environ |= {
            "ROODA_CONFIG_HOME": str(tiers.root / "rooda-home"),
            "XDG_CONFIG_HOME": str(tiers.root / "xdg"),
        }
        assert tiers.procedure("build").max_iterations == 1
        del tiers.environ["ROODA_CONFIG_HOME"]
        assert tiers.procedure("build").max_iterations == 2
        del tiers.environ["XDG_CONFIG_HOME"]
        assert tiers.procedure("build").max_iterations == 3
        tiers.environ["ROODA_CONFIG_HOME"] = str(tiers.root / "nowhere")
        assert tiers.procedure("build").max_iterations == 5

    def test_upward_to_the_repository(self, tiers: Tiers) -> None:
        """Inside a repository the nearest rooda.toml up to its root counts, and none above it."""
        deep = tiers.workspace / "a" / "b"
        deep.mkdir(parents=True)
        (tiers.root / "rooda.toml").write_text("[loop]\ndefault_iterations = 90\n")
        tiers.write("[loop]\ndefault_iterations = 91\n")
        here = tiers.workspace
        tiers.workspace = deep
        assert tiers.procedure("build").max_iterations == 5, "outside git only the workspace counts"
        (here / ".git").write_text("gitdir: elsewhere\n")
        assert tiers.procedure("build").max_iterations == 91
        (here / "rooda.toml").unlink()
        assert tiers.procedure("build").max_iterations == 5
        (here / "a" / "rooda.toml").write_text("[loop]\ndefault_iterations = 92\n")
        assert tiers.procedure("build").max_iterations == 92

    def test_config_replaces_the_workspace_file(self, tiers: Tiers) -> None:
        """--config FILE is read instead of the workspace's file; the user's stays; a missing FILE is an error."""
        tiers.write("[loop]\ndefault_iterations = 1\nfailure_threshold = 8\n")
        tiers.user("[loop]\nfailure_threshold = 7\n")
        other = tiers.file("other.toml", "[loop]\ndefault_iterations = 2\n")
        build = settings.procedure(tiers.load(other), "build", {})
        assert (build.max_iterations, build.failure_threshold) == (2, 7)
        with pytest.raises(ConfigProblem, match=r"no\.toml: no such file"):
            tiers.load(str(tiers.workspace / "no.toml"))

    def test_a_workspace_that_is_the_users_folder_reads_its_file_once(self, tiers: Tiers) -> None:
        """Warnings about one file are said once."""
        tiers.user("[loop]\nwhat = 1\n")
        tiers.workspace = tiers.user_file.parent
        assert len(tiers.load().warnings) == 1


class TestOrigins:
    """Where each value came from."""

    def test_OU_26_origin_of_every_tier(self, tiers: Tiers) -> None:
        """Each value names its tier, file and line, variable or flag."""
        tiers.write("[loop]\n\ntoken_budget = 5\n", OWN)
        tiers.user("[loop]\nkill_grace = 1\n")
        tiers.environ["ROODA_LOOP_MODEL"] = "opus"
        rows = {key: (value, origin) for key, value, origin in lookup.origins(tiers.load())}
        assert rows["loop.token_budget"] == (5, f"workspace config ({tiers.workspace_file}:3)")
        assert rows["loop.kill_grace"] == (1, f"user config ({tiers.user_file}:2)")
        assert rows["loop.model"] == ("opus", "environment (ROODA_LOOP_MODEL)")
        assert rows["loop.failure_threshold"] == (3, "built-in")
        assert rows["procedures.mine.act"] == ("ACT", f"workspace config ({tiers.workspace_file}:9)")
        decided = lookup.decided(tiers.load(), "mine", {"default_iterations": 4})
        assert ("default_iterations", 4, "flag (--max-iterations)") in decided

    def test_tables_of_other_loops_are_kept(self, tiers: Tiers) -> None:
        """[reflex], [flow], [goal] and [hooks] are checked and keep their origins."""
        tiers.write('[reflex]\nmax_iterations = 3\n[flow]\nsensor = "native"\n[goal]\n[hooks]\ndone = "x"\n')
        tiers.user("[reflex]\nmax_iterations = 9\nkill_grace = 1\n")
        found = tiers.load()
        assert found.warnings == (f"{tiers.workspace_file}:4: flow.sensor: unknown key; did you mean 'sensors'?",)
        assert {"max_iterations": 3, "kill_grace": 1}.items() <= found.table("reflex").items()
        assert found.origin(("reflex", "max_iterations")) == f"workspace config ({tiers.workspace_file}:2)"
        assert found.origin(("reflex", "nothing")) == ""
        assert found.table("hooks") == {"done": "x"}


def test_the_shipped_files_are_without_fault() -> None:
    """Built-in settings are not checked at start, so they are checked here."""
    import tomllib

    from rooda.base import files
    from rooda.base.dirs import shipped
    from rooda.settings.check import faults_of

    for name in ("rooda.toml", "procedures.toml"):  # prices.toml: tests/agents/test_prices.py
        tree = tomllib.loads(files.text(shipped("config", name)))
        assert [
            fault
            for fault in faults_of(tree, registry.own_keys())
            if fault.path[0] != "procedures" or "is a command" not in fault.text
        ] == []
