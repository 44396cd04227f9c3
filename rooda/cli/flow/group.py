"""The words behind `rooda flow`."""

from rooda.cli.flow.check import check
from rooda.cli.flow.log import log
from rooda.cli.flow.resume import resume
from rooda.cli.flow.run import run
from rooda.cli.flow.setup import setup
from rooda.cli.flow.status import status
from rooda.loops.group import DASH_H, InOrder

HELP = """A hierarchy of control loops on git.

Sensors measure, a controller compares that with the target and decides, an actuator or a loop inside it acts; then the
sensors measure again. Each step is one commit on the run's own branch. The topology is in .ai-loop/flow.yaml.
"""


flow = InOrder(
    "flow",
    commands=[setup, check, run, resume, status, log],
    help=HELP,
    short_help="A hierarchy of control loops on git.",
    context_settings=DASH_H,
)
