"""The one table of what is fuzzed: a name, which is the folder of its corpus too, and what takes the bytes."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from rooda.errors import StateDamaged
from tests.fuzz import fuzz_answers as answers
from tests.fuzz import fuzz_files as stored
from tests.fuzz import fuzz_words as words

CORPUS = Path(__file__).parent / "corpus"
JSON_PIECES = ('{"', '":', "[", "]", "{", "}", ",", "null", "true", "1e999", "-1", "NaN", "9" * 5000, '"\\ud800"', '""')
YAML_PIECES = (
    "---\n",
    "\n  - ",
    ": ",
    "&a ",
    "*a",
    "? ",
    "!!int ",
    "0x" + "f" * 5000,
    "{",
    "[",
    "|\n ",
    "\t",
    "<<: *a",
)
TOML_PIECES = (
    "=",
    "[",
    "]",
    '"""',
    "'''",
    "[[",
    "]]",
    "{",
    "}",
    ".",
    "0x" + "f" * 5000,
    "inf",
    "nan",
    "2026-01-01",
    "'\\0'",
)
TEXT_PIECES = (
    "```",
    "~~~",
    "## ",
    "- ",
    "`",
    "**",
    "<!--",
    "-->",
    "|",
    " " * 30,
    "\t",
    "\r",
    "\u2028",
    "\x00",
    ":",
    "\ud83d",
)
TIME_PIECES = (
    "9" * 400,
    "resets ",
    "try again in ",
    "at ",
    "am",
    "pm",
    "(",
    ")",
    "UTC",
    "Feb 29",
    "|",
    "h",
    "m",
    "s",
    "d",
    "٣",
    ".",
    "-",
    "+",
    "T",
    "Z",
)


class Target(NamedTuple):
    """A parser. `allowed` are the errors it promises; anything else is a fault of ours."""

    name: str
    run: Callable[[bytes], None]
    pieces: tuple[str, ...]
    allowed: tuple[type[Exception], ...] = ()

    @property
    def folder(self) -> Path:
        return CORPUS / self.name

    def corpus(self) -> list[Path]:
        """The kept inputs, seeds and former crashes."""
        return sorted(path for path in self.folder.iterdir() if path.is_file()) if self.folder.is_dir() else []

    def take(self, data: bytes) -> None:
        try:
            self.run(data)
        except self.allowed:
            pass


def _rows() -> list[Target]:
    return [
        Target("settings", stored.settings_file, TOML_PIECES),
        Target(
            "environment", stored.environment, ("\n", "=", "DEFAULT_ITERATIONS", "KILL_GRACE", "9" * 5000, "'", "nan")
        ),
        Target("project", stored.project, (*TOML_PIECES, *JSON_PIECES, "\n\t", ":=")),
        Target("ooda-state", stored.ooda_state, JSON_PIECES, (StateDamaged,)),
        Target("reflex-run", stored.reflex_run, JSON_PIECES),
        Target("reflex-history", stored.reflex_history, (*JSON_PIECES, "\n")),
        Target("reflex-pointer", stored.reflex_pointer, JSON_PIECES),
        Target("goal-run", stored.goal_run, JSON_PIECES, (StateDamaged,)),
        Target("goal-journal", stored.goal_journal, (*JSON_PIECES, "\n"), (StateDamaged,)),
        Target("goal-public", stored.goal_public, JSON_PIECES),
        Target("goal-seal", stored.seal, JSON_PIECES),
        Target("events", words.quiet(stored.events), (*JSON_PIECES, "\n", '"run.ended"', '"resting"', '"agent.ended"')),
        Target("ledger", stored.ledger, JSON_PIECES),
        Target("quota", stored.quota_file, (*JSON_PIECES, *TIME_PIECES)),
        Target("token-cache", stored.token_cache, (" ", "\n", "0", "-", "9" * 5000)),
        Target("flow-file", answers.flow_file, YAML_PIECES),
        Target("yaml", answers.yaml_text, YAML_PIECES),
        Target("front-matter", answers.front_matter, (*YAML_PIECES, *TEXT_PIECES)),
        Target(
            "commit-message", answers.commit_message, ("[", "]", "\n", " — ", ": ", ", ", "9" * 5000, "٣", "none", "/")
        ),
        Target("agents-md", answers.agents_file, TEXT_PIECES),
        Target("gate-output", answers.gate_output, TEXT_PIECES),
        Target(
            "status-block",
            answers.status_block,
            (*TEXT_PIECES, "---LOOP_STATUS---\n", "---END_STATUS---\n", "ROOT_CAUSE:"),
        ),
        Target("plan-reply", answers.plan_reply, (*JSON_PIECES, "```json\n", "\n```\n")),
        Target(
            "expectation",
            answers.expectation,
            ("<", ">=", "$", "%", "\n", "(", ")*", "+", "{9999999999}", "[", "1e999", "\\1", "(?P<a>"),
        ),
        Target("shape-file", answers.shape_file, (*TEXT_PIECES, "criteria:", "mustNot:", "(violated_if: `", "[a, b]")),
        Target("task-list", answers.task_list, (*TEXT_PIECES, "### T-001: ", "blockedBy: [T-002]", "- [ ] ")),
        Target(
            "specification",
            answers.specification,
            (*TEXT_PIECES, "1,1.", "a-a/", "pr ", "the ", "done when ", "improve "),
        ),
        Target("ruling", answers.ruling, (*TEXT_PIECES, *JSON_PIECES, '"violated"', "no", "true")),
        Target("precheck", answers.precheck, (*TEXT_PIECES, *JSON_PIECES, "amended text:", "must not")),
        Target("file-name", answers.file_name, ("/", "test", "_", ".", "\x00", "é" * 50)),
        Target("reflex-reply", answers.reflex_reply, (*JSON_PIECES, "```json\n", "\n```", "<alias>", "a.md")),
        Target("reflex-draft", words.quiet(answers.reflex_draft), (*JSON_PIECES, *TOML_PIECES)),
        Target("sections", answers.sections, TEXT_PIECES),
        Target(
            "promises", answers.promises, ("<promise>SUCCESS</promise>", "<promise>FAILURE</promise>", "\n", "`", "\r")
        ),
        Target(
            "failure-words",
            answers.failure_words,
            ("must set ", "api_key", "status", "error:", "(429)", "\n", " ", "limit"),
        ),
        Target("price-name", answers.price_name, ("*", "\n", "-latest", "-2026-01-01", "-001", "/", "models/")),
        Target("duration", words.duration, TIME_PIECES),
        Target("since", words.since, TIME_PIECES),
        Target("reset-time", words.reset_time, TIME_PIECES),
        Target("placeholders", words.placeholders, ("{{", "}}", "\\{{", "name", " ", "{{name}}")),
        Target("command-line", words.command_line, ("'", '"', "\\", " ", "{model}", "{prompt}", "--x", "-", "\n")),
        Target("names", words.names, ("é", "-", "run_20260301_", "9" * 5000, "1.", "\n")),
        Target("typed-scores", words.typed_scores, (",", " ", "2", "=", "٢")),
        Target("snapshot-message", words.snapshot_message, ("Rooda-", ": ", "\n", " ", "9" * 5000)),
        Target("git-output", words.git_output, ("\x00", "\n", " ", "refs/", "Rooda-", "\udcff")),
        *(
            Target(f"transcript-{output}", words.transcript(output), (*JSON_PIECES, "\n", "\r"))
            for output in words.OUTPUTS
        ),
        *(Target(f"session-{output}", words.session_file(output), (*JSON_PIECES, "\n")) for output in words.SESSIONS),
    ]


TARGETS = {target.name: target for target in _rows()}
