"""``baton push``."""

from __future__ import annotations

from pathlib import Path

from baton.formats.storage_addresses import is_address
from baton.model import InputError, counted
from baton.session.push import check_readable
from baton.session.server_client import connect, server_address
from baton.store import read_evaluation, upload

from .usage_messages import note


def push_command(
    *files: str, server: str | None = None, project: str | None = None, out: str | None = None
) -> int:
    """Send recordings to a server, which stores and scores them like other conversations.

    A transcript of Claude Code is sent with its sub-agents. Sending it twice stores it once. With
    --out, evaluation folders are copied to an address of fsspec instead.

    Parameters
    ----------
    files
        Whatever `baton show` reads: files, folders, evaluation folders. With --out, only evaluation
        folders.
    server
        The address of the server; `BATON_SERVER`, or http://localhost:4318, by default. The key is
        taken from `BATON_API_KEY`.
    project
        The project to send to.
    out
        Copy evaluation folders below this address (s3://bucket/evaluations), as `baton eval --out`
        does at the end.
    """
    if not files:
        raise InputError("name the recordings to send: baton push FILE...")
    if out is not None:
        if server is not None or project is not None:
            raise InputError("--out copies to an address: it takes no --server and no --project")
        # All folders are checked first: one that holds no evaluation stops the command.
        if not is_address(out):
            raise InputError(f"--out has to be an address like s3://bucket/evaluations, got {out}")
        for folder in files:
            read_evaluation(Path(folder))
        for folder in files:
            note(f"{folder}: uploaded to {upload(Path(folder), out)}")
        return 0
    check_readable(files)
    client = connect(server_address(server), project=project)
    for file in files:
        sent = client.push(file)
        message = f"sent {counted(sent.files, 'file')}" if sent.new else "is stored already"
        note(f"{file}: {message}")
    return 0
