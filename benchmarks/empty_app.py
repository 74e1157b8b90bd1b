"""A command line with as many commands as Baton's, and nothing behind them."""

from __future__ import annotations

import sys

from cyclopts import App

COMMANDS = 18


def command(file: str, *, out: str = "") -> None:
    """Do nothing."""


app = App(name="empty", help="An empty application.", version="1.0")
for number in range(COMMANDS):
    app.command(command, name=f"command-{number}", help=f"What command {number} is for.")

if __name__ == "__main__":
    sys.exit(app())
