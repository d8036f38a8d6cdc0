"""The command line: one file for each command, wired in app.py."""

from penstock.cli.app import app, main

__all__ = ["app", "main"]
