"""``baton push``."""

from __future__ import annotations

from pathlib import Path

from baton.model import InputError, counted
from baton.session.server_client import connect, server_address

from .messages import note


def push_command(*files: Path, server: str | None = None, project: str | None = None) -> int:
    """Send recordings to a server, which stores and scores them like other conversations.

    A transcript of Claude Code is sent with its sub-agents. Sending it twice stores it once.

    Parameters
    ----------
    files
        What `baton show` reads: files, folders, evaluation folders.
    server
        The address of the server; `BATON_SERVER`, or http://localhost:4318, by default. The key is
        taken from `BATON_API_KEY`.
    project
        The project to send to.
    """
    if not files:
        raise InputError("name the recordings to send: baton push FILE...")
    client = connect(server_address(server), project=project)
    for file in files:
        sent = client.push(file)
        message = f"sent {counted(sent.files, 'file')}" if sent.new else "is stored already"
        note(f"{file}: {message}")
    return 0
