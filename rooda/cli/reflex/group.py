"""The words behind `rooda reflex`."""

from rooda.cli.reflex.clean import clean
from rooda.cli.reflex.diff import diff
from rooda.cli.reflex.history import history
from rooda.cli.reflex.list import list_
from rooda.cli.reflex.new import new
from rooda.cli.reflex.resume import resume
from rooda.cli.reflex.show import show
from rooda.cli.reflex.status import status
from rooda.cli.reflex.stop import stop
from rooda.loops.group import DASH_H, InOrder

HELP = """Write one artifact and refine it until its rules hold.

Each iteration: PLAN, PRODUCE beside PREPARE, EVALUATE, and if a rule failed CRITIQUE and REFINE. You confirm the
rules and the number of iterations before the first. All state is in .ai-factory/evolution/.
"""


reflex = InOrder(
    "reflex",
    commands=[new, resume, status, stop, list_, history, clean, show, diff],
    help=HELP,
    short_help="An artifact refined until its rules hold.",
    context_settings=DASH_H,
)
