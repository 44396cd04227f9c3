"""The words behind `rooda flow`."""

from rooda.loops.flow.check import check
from rooda.loops.flow.cli import run
from rooda.loops.flow.inspect import status
from rooda.loops.flow.log import log
from rooda.loops.flow.resume import resume
from rooda.loops.flow.setup import setup
from rooda.loops.options import DASH_H, InOrder

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
