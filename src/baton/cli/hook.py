"""``baton hook``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from baton.model import InputError
from baton.session.hooks import add_hook, read_event, remove_hook, settings_file

from .messages import note, say
from .options import Flag
from .push import push_command


def hook_command(
    tool: Literal["claude"],  # noqa: ARG001 - there is one of each by now
    action: Literal["push"],  # noqa: ARG001
    /,
    *,
    server: str | None = None,
    project: str | None = None,
    user: Flag = False,
    settings: Path | None = None,
    uninstall: Flag = False,
    yes: Annotated[Flag, Parameter(name=["--yes", "-y"])] = False,
    run: Annotated[bool, Parameter(show=False, negative="")] = False,
) -> int:
    """Have Claude Code send each session to a server when it stops.

    Shows what would change in the settings of Claude Code, asks, and keeps a copy of them.

    Parameters
    ----------
    tool
        `claude`: Claude Code.
    action
        `push`: send the session to `baton serve`.
    server
        The address of the server; `BATON_SERVER`, or http://localhost:4318, by default.
    project
        The project to send to.
    user
        Change the settings of the user, instead of those in this folder.
    settings
        The file of settings to change.
    uninstall
        Take the hook out again.
    yes
        Do not ask.
    run
        What the hook itself runs: reads the event from standard input.
    """
    if run:
        event = read_event(sys.stdin.buffer.read())
        return push_command(Path(event.transcript_path), server=server, project=project)
    file = settings or settings_file(user=user)
    change = remove_hook(file) if uninstall else add_hook(file, server, project)
    if not change.changes:
        note(f"{file}: nothing to change")
        return 0
    print(change.diff())
    if not yes and not _agreed(file):
        say("nothing was changed")
        return 0
    copy = change.apply()
    note(f"wrote {file}" + (f"; what was there is in {copy}" if copy else ""))
    return 0


def _agreed(file: Path) -> bool:
    if not sys.stdin.isatty():
        raise InputError("not a terminal: give --yes")
    sys.stderr.write(f"Change {file}? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")
