"""What every run and dry-run begins with: the settings in force, and the procedure that they make."""

from rooda.loops.options import Asked
from rooda.loops.procedure import resolve
from rooda.loops.procedure.model import Procedure
from rooda.settings import layers
from rooda.settings.where import Where, warned


def prepared(
    name: str, where: Where, asked: Asked, found: "layers.Settings | None" = None
) -> tuple["layers.Settings", Procedure]:
    """`found`: the settings of `where`, if they are loaded already."""
    found = warned(found or layers.load(where.workspace, where.config))
    return found, resolve.procedure(found, name, asked.flags)
