"""Recording a program without changing its code."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from baton import startup
from baton.formats.own_files import make_folder
from baton.http.credentials import plain_address
from baton.model import InputError, Problem, Terminated
from baton.model.option_spelling import option
from baton.plugins.origin import install, requirement

FOLDER = Path(".baton/recordings")
"""The default folder for recordings."""


class Recorded(NamedTuple):
    """The result of a recorded program.

    ``code`` is its exit code, as a shell has it (128 and the signal that ended it). ``on`` are the
    instrumentors that recorded it, ``used`` the frameworks that it imported. ``lacking`` is what to
    install, by framework, for those that nothing recorded. ``problems`` say why something was not
    recorded. ``size`` is the number of bytes that were added to the recording. ``file`` is ``None``
    if spans go to a server; ``sent`` tells whether the server accepted any.
    """

    file: Path | None
    code: int
    size: int
    on: list[str]
    used: list[str]
    lacking: dict[str, str]
    problems: list[str]
    sent: bool = False


def record_program(
    command: Sequence[str],
    file: Path | None = None,
    *,
    server: str | None = None,
    project: str | None = None,
) -> Recorded:
    """Run a program, and record the spans of all its Python processes into a file.

    OpenTelemetry and the installed instrumentors are set up before its first line runs. Spans are
    only written to the file, each when it ends, or only sent to the server.

    Args:
        command: the program and its arguments, as in a shell.
        file: the file to append to; by default one with the time in its name.
        server: the address of a server to send to, in place of a file. There the service has the
            program's name, unless the program or the environment sets another one.
        project: the project there.

    Raises:
        InputError: there is no such program, the address is not valid, the file is a folder, or
            both a file and a server are given.
    """
    if not command:
        raise InputError("name the program: baton record -- python app.py")
    if server is not None:
        if file is not None:
            raise InputError(f"{option('server')} and {option('output')}: give one of them")
        server = plain_address(server, option("server"), "BATON_API_KEY")
        more = {startup.SERVER: server} | ({startup.PROJECT: project} if project else {})
        if not _names_service(os.environ):
            # Otherwise the SDK says `unknown_service`, and all programs of a server look alike.
            more["OTEL_SERVICE_NAME"] = _name_of(command)
        code, notes = _run_noting(command, more)
        return _recorded(None, code, 0, notes)
    if file is None:
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        file = FOLDER / f"{stamp}-{_name_of(command)}.otlp.jsonl"
    if file.is_dir():
        raise InputError(Problem(file=str(file), message="is a folder: name a file in it"))
    make_folder(file.parent)
    before = file.stat().st_size if file.exists() else 0
    code, notes = _run_noting(command, {startup.FILE: str(file.resolve())})
    size = (file.stat().st_size if file.exists() else 0) - before
    return _recorded(file, code, size, notes)


def _name_of(command: Sequence[str]) -> str:
    """Name a program: by its script, its module (`python -m desk.app`), or the command itself."""
    for place, word in enumerate(command[1:], 1):
        if word.endswith(".py"):
            return Path(word).stem
        if command[place - 1] == "-m":
            return word
    return Path(command[0]).stem


def _names_service(environment: Mapping[str, str]) -> bool:
    """Return whether the environment of a program names its service."""
    stated = environment.get("OTEL_RESOURCE_ATTRIBUTES", "").split(",")
    return bool(environment.get("OTEL_SERVICE_NAME")) or any(
        each.partition("=")[0].strip() == "service.name" for each in stated
    )


def _run_noting(command: Sequence[str], more: dict[str, str]) -> tuple[int, list[dict[str, Any]]]:
    """Run a program with extra environment variables; return its exit code, and the notes."""
    with tempfile.TemporaryDirectory() as place:
        notes = Path(place) / "notes.jsonl"
        paths = [str(startup.SITE), *filter(None, [os.environ.get("PYTHONPATH")])]
        python_path = {"PYTHONPATH": os.pathsep.join(paths), startup.NOTES: str(notes)}
        code = _run(command, os.environ | python_path | more)
        lines = notes.read_text().splitlines() if notes.exists() else []
        return code, [json.loads(line) for line in lines]


def _run(command: Sequence[str], environment: dict[str, str]) -> int:
    """Run a program to its end; return its exit code, as a shell has it."""
    try:
        process = subprocess.Popen(list(command), env=environment)  # noqa: S603 - it was asked for
    except OSError as error:
        raise InputError(_no_program(command, error)) from None
    try:
        with _interrupts_are_the_programs():
            code = process.wait()
    except Terminated:
        process.terminate()
        process.wait()
        raise
    return 128 - code if code < 0 else code


def _no_program(command: Sequence[str], error: OSError) -> str:
    name = command[0]
    if name.endswith(".py") and Path(name).is_file():
        return f"`{name}` is not a program: baton record -- python {' '.join(command)}"
    return f"`{name}` cannot be run: {error.strerror}"


@contextmanager
def _interrupts_are_the_programs() -> Iterator[None]:
    """Ignore Ctrl-C here: the program gets it as well, and may have to clean up."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _recorded(file: Path | None, code: int, size: int, notes: list[dict[str, Any]]) -> Recorded:
    def all_of(key: str) -> list[str]:
        return list(dict.fromkeys(str(each[key]) for each in notes if key in each))

    lacking = {each["unrecorded"]: each["package"] for each in notes if "unrecorded" in each}
    problems = all_of("problem")
    if any("lacks" in each for each in notes):
        problems.append(f"OpenTelemetry is not installed: {install(requirement('otel'))}")
    elif not notes:
        problems.append(
            "no Python with Baton installed was started: install it where the program runs: "
            f"{install(requirement('otel'))}"
        )
    sent = any("sent" in each for each in notes)
    return Recorded(file, code, size, all_of("on"), all_of("used"), lacking, problems, sent)
