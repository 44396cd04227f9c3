"""What every run and dry-run begins with: the settings in force, and the procedure that they make."""

from rooda.cli.options import Asked
from rooda.cli.where import Where, warned
from rooda.loops.procedure.model import Procedure
from rooda.settings import resolve, tiers


def prepared(
    name: str, where: Where, asked: Asked, found: "tiers.Settings | None" = None
) -> tuple["tiers.Settings", Procedure]:
    """`found`: the settings of `where`, if they are loaded already."""
    found = warned(found or tiers.load(where.workspace, where.config))
    return found, resolve.procedure(found, name, asked.flags)
