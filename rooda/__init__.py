"""rooda runs AI coding CLIs in loops that end."""

__version__ = "0.2.0"
