"""``baton record``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from baton.plugins.origin import install
from baton.session.record import record_program

from .usage_messages import note

_PLAIN = (
    "Plain functions make none: mark agents with `baton.agent` or `baton.record_agent`, or let "
    "`baton init --agent MODULE:FUNCTION` play one that returns what its agents did"
)


def record_command(
    *command: str,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    server: str | None = None,
    project: str | None = None,
) -> int:
    """Run a program and record what its agents do, without changing its code.

    `baton record -- python app.py`. What its Python processes do is written to a file that every
    command reads, or sent to a server, and nowhere else. The exit code is the program's.

    Parameters
    ----------
    command
        The program and its arguments, after `--`. Baton's exit code is the program's.
    output
        The file to add to; one with the time in its name, in .baton/recordings, by default.
    server
        The address of `baton serve` to send to, in place of a file: http://localhost:4318.
    project
        The project on the server.
    """
    done = record_program(command, output, server=server, project=project)
    for name in done.on:
        # Also reasons: `crewai (crew-tracing 1.0) does not start: TypeError: ...`.
        note(name if " does not start: " in name else f"recorded by {name}")
    for framework, package in done.lacking.items():
        note(f"{framework} was imported, but nothing records it: {install(package)}")
    for problem in done.problems:
        note(problem)
    if done.file is None:
        if done.sent:
            note(f"sent to {server}")
        elif not done.problems:
            note(f"nothing was sent to {server}: no span was created, or the server did not answer")
    elif done.size:
        note(f"recorded into {done.file}: baton show {done.file}")
    else:
        by = f" by {', '.join(done.used)}" if done.used else ""
        # A program that failed has said why.
        plain = "" if done.used or done.problems or done.code else f". {_PLAIN}"
        note(f"nothing was recorded: no span was created{by}{plain}")
    return done.code
