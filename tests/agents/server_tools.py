"""rooda/modelserver/tools.py, by the name the tests know."""

from rooda.modelserver.tools import BODY, COMMAND, PATH, SHELLS, WRITERS, Tool, choose, from_schema, least

__all__ = ["BODY", "COMMAND", "PATH", "SHELLS", "WRITERS", "Tool", "choose", "from_schema", "least"]
