"""What every run and dry-run begins with: the settings in force, and the procedure that they make."""


from rooda import settings
from rooda.cli.options import Asked
from rooda.cli.where import Where, warned
from rooda.terms import Procedure


def prepared(
    name: str, where: Where, asked: Asked, found: "settings.Settings | None" = None
) -> tuple["settings.Settings", Procedure]:
    """`found`: the settings of `where`, if they are loaded already."""
    found = warned(found or settings.load(where.workspace, where.config))
    return found, settings.resolve.procedure(found, name, asked.flags)
