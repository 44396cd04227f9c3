"""The words behind `rooda reflex`."""

import click

from rooda.cli.reflex.clean import clean
from rooda.cli.reflex.diff import diff
from rooda.cli.reflex.history import history
from rooda.cli.reflex.list import list_
from rooda.cli.reflex.new import new
from rooda.cli.reflex.resume import resume
from rooda.cli.reflex.show import show
from rooda.cli.reflex.status import status
from rooda.cli.reflex.stop import stop

HELP = """Write one artifact and refine it until its rules hold.

Each iteration: PLAN, PRODUCE beside PREPARE, EVALUATE, and if a rule failed CRITIQUE and REFINE. You confirm the
rules and the number of iterations before the first. All state is in .ai-factory/evolution/.
"""


class _Modes(click.Group):
    """In the order in which they were added, which is the order of their use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


reflex = _Modes(
    "reflex",
    commands=[new, resume, status, stop, list_, history, clean, show, diff],
    help=HELP,
    short_help="An artifact refined until its rules hold.",
    context_settings={"help_option_names": ["-h", "--help"]},
)
