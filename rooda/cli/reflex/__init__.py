"""`rooda reflex …`: an artifact refined until its rules hold. One file per mode."""

from rooda.cli.reflex.group import reflex

__all__ = ["reflex"]
