"""`rooda goal`: work on a specification until its criteria hold."""

from rooda.cli.goal.group import goal

__all__ = ["goal"]
