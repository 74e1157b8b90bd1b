"""Sets up the recording of a program that `baton record` starts, before its first line runs."""

from __future__ import annotations

import atexit
import json
import os
import sys
from pathlib import Path
from typing import Any

from baton.model import InputError
from baton.plugins import is_installed

FILE = "BATON_RECORD_FILE"
"""The environment variable that names the file to record into."""
SERVER = "BATON_RECORD_SERVER"
"""The variable that names the server to send to, instead of a file."""
PROJECT = "BATON_RECORD_PROJECT"
"""The variable that names the project there."""
NOTES = "BATON_RECORD_NOTES"
"""The variable of the file in which each process of the program writes what records it."""
SITE = Path(__file__).parent / "site"
"""The folder with the `sitecustomize` that Python imports first if it is in PYTHONPATH."""


def start() -> None:
    """Record this process according to the environment; does nothing without its variables."""
    file, server = os.environ.get(FILE), os.environ.get(SERVER)
    if not file and not server:
        return
    if not is_installed("opentelemetry.sdk"):
        _note(lacks="opentelemetry.sdk")
        return
    from baton.otel import Recording, Sending
    from baton.providers.instrument.instrumentors import (
        activate,
        set_environment,
        switch_on_built_in,
    )

    set_environment()
    try:
        listening: Sending | Recording
        if server:
            project = os.environ.get(PROJECT)
            listening = Sending(server, project=project, answered=_answered)
        else:
            listening = Recording(str(file))
        listening.hearing.install_before()
        listening.record_claude(lambda name: _note(on=name), lambda why: _note(problem=why))
        listening.record_marked(lambda name: _note(on=name), lambda why: _note(problem=why))
        activate("auto", lambda name: _note(on=name))
    except InputError as error:
        _note(problem=str(error))
    switch_on_built_in(lambda name: _note(on=f"{name} (built in)"))
    _note(python=sys.executable)
    atexit.register(_note_unrecorded)


def _answered(status: int, reason: str) -> None:
    """Record whether the server accepted data, and if not, why."""
    if status < 300:
        _note(sent=True)
    elif status not in _AGAIN:
        _note(problem=f"the server refused what was sent ({status}): {reason}")


_AGAIN = (429, 502, 503, 504)
"""Messages that exporters repeat."""


def _note_unrecorded() -> None:
    """Record the frameworks that the program has imported, and those without a recorder."""
    from baton.providers.instrument.frameworks import CLAUDE, frameworks_in, unrecorded

    used = frameworks_in(list(sys.modules))
    for each in used:
        _note(used=each.name)
    # Messages between a program and Claude are recorded without an instrumentor.
    for name, package in unrecorded(each for each in used if each.module != CLAUDE).items():
        _note(unrecorded=name, package=package)


def _note(**values: Any) -> None:
    place = os.environ.get(NOTES)
    if place:
        with open(place, "a", encoding="utf-8") as notes:
            notes.write(json.dumps(values) + "\n")
