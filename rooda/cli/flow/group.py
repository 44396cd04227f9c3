"""The words behind `rooda flow`."""

import click

from rooda.cli.flow.check import check
from rooda.cli.flow.log import log
from rooda.cli.flow.resume import resume
from rooda.cli.flow.run import run
from rooda.cli.flow.setup import setup
from rooda.cli.flow.status import status

HELP = """A hierarchy of control loops on git.

Sensors measure, a controller compares that with the target and decides, an actuator or a loop inside it acts; then the
sensors measure again. Each step is one commit on the run's own branch. The topology is in .ai-loop/flow.yaml.
"""


class _Modes(click.Group):
    """In the order of their use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


flow = _Modes(
    "flow",
    commands=[setup, check, run, resume, status, log],
    help=HELP,
    short_help="A hierarchy of control loops on git.",
    context_settings={"help_option_names": ["-h", "--help"]},
)
