"""The command line: thin commands over plans, audits and reports."""

from equipoise.cli.main import main

__all__ = ["main"]
