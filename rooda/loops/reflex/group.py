"""The words behind `rooda reflex`."""

from rooda.loops.options import DASH_H, InOrder
from rooda.loops.reflex.cli import new
from rooda.loops.reflex.inspect import diff
from rooda.loops.reflex.inspect_history import history
from rooda.loops.reflex.list import list_
from rooda.loops.reflex.manage import clean
from rooda.loops.reflex.resume import resume
from rooda.loops.reflex.show import show
from rooda.loops.reflex.status import status
from rooda.loops.reflex.stop import stop

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
