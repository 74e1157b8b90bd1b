"""`baton serve`: a server that receives, stores and scores what agents send."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from cyclopts import App, Parameter

from baton.model import BatonError, InputError, counted
from baton.model.visible import visible_line
from baton.plugins.origin import install, requirement
from baton.reports.text import Text, console_for

from .options import FEW, Flag, Whole
from .output import readers_may_leave
from .usage_messages import note
from .verbs import BELOW, TABLE, examples_text

if TYPE_CHECKING:
    from baton.server.settings import Settings

serve_command = App(
    name="serve",
    default_parameter=Parameter(negative=""),
    group_commands="Commands",
    group_parameters=FEW,
    help_epilogue=examples_text(TABLE["serve"].examples),
)
Folder = Annotated[Path | None, Parameter(name="--folder", show_default=False)]
Database = Annotated[str | None, Parameter(name="--db", show_default=False)]


@serve_command.default
def serve(
    *files: Path,
    host: str | None = None,
    port: Whole | None = None,
    grpc_port: Whole | None = None,
    no_grpc: Flag = False,
    db: Database = None,
    folder: Folder = None,
    rubrics: Annotated[Path | None, Parameter(show_default=False)] = None,
    datasets: Annotated[tuple[Path, ...], Parameter(show_default=False)] = (),
    allow_run: Flag = False,
    role: Literal["all", "receive", "work", "web"] = "all",
) -> int:
    """Receive OpenTelemetry spans and logs, store them, and score the conversations, until Ctrl-C.

    Listens on port 4318 of this machine, where exporters send to:
    OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318. Other machines need API keys.

    Parameters
    ----------
    files
        A file with settings (`server.yaml`), most of which apply without a restart; and what pages
        may talk to and evaluate: folders of ADK agents, and configs with `providers:`.
    host
        The address to listen on. Any address but loopback needs API keys.
    port
        The port for HTTP; 0 takes a free one.
    grpc_port
        The port for gRPC, 4317 by default; 0 takes a free one.
    no_grpc
        Do not listen for gRPC. It needs the extra `grpc` anyway.
    db
        A database for a team: postgresql://USER@HOST/NAME. Without it, files in a folder.
    folder
        The folder of the store, `.baton/server` by default.
    rubrics
        A folder with rubrics of your own, which pages of the server show, try and write.
    datasets
        A folder with cases, which pages show, run and change. May be given several times.
    allow_run
        Let pages run agents and change files although other machines reach the server. That
        takes a key with the right `run`.
    role
        What this process does: receive, work (read and score what arrived), web (API and pages), or
        all. Several processes share a PostgreSQL database.
    """
    with needs_server():
        from baton.server.process import serve as run
        from baton.server.settings import named_settings
        from baton.web.app import pages

        settings = named_settings(
            files,
            note,
            host=host,
            port=port,
            grpc=False if no_grpc else None,
            grpc_port=grpc_port,
            db=db,
            folder=folder,
            rubrics=rubrics,
            datasets=datasets,
            allow_run=allow_run or None,
        )
        run(settings, role, note, pages)
    return 0


@serve_command.command(help_epilogue=examples_text(BELOW["serve reread"]))
def reread(
    settings: Path | None = None,
    *,
    db: Database = None,
    folder: Folder = None,
    project: str | None = None,
    id: Annotated[tuple[Whole, ...], Parameter(show_default=False)] = (),
) -> int:
    """Read again what could not be read, such as after an update of Baton.

    The server may keep running. What fails again is listed again, with the reason.

    Parameters
    ----------
    settings
        The file with the settings of the server.
    db
        Its database.
    folder
        The folder of its store.
    project
        Only what belongs to this project.
    id
        Only this body of the inbox. May be given several times.
    """
    with needs_server():
        from baton.server import administration

        done = administration.reread(_settings(settings, db, folder), project, id)
    counts = [(done.bodies, "body"), (done.traces, "trace")]
    summary = " and ".join(counted(count, what) for count, what in counts if count)
    print(f"{summary} will be read again" if summary else "nothing to read again")
    return 0


@serve_command.command
def rescore(
    settings: Path | None = None,
    *,
    rule: str,
    since: str | None = None,
    until: str | None = None,
    filter: str | None = None,
    project: str | None = None,
    backend: Annotated[Literal["local", "ray"] | None, Parameter(show_default=False)] = None,
    jobs: Whole | None = None,
    db: Database = None,
    folder: Folder = None,
) -> int:
    """Apply a new or changed rule to conversations that are already stored.

    Changed scores replace earlier ones, which are kept as versions; no alert is sent. The server
    asks judges, within the budget of the rule. The server may keep running. Run the same command
    again to resume an interrupted one.

    Parameters
    ----------
    settings
        The file with the settings of the server, and the rule.
    rule
        The name of the rule.
    since
        Only conversations that started then or later: a date, or a time as 2026-11-01T09:00:00Z.
    until
        Only conversations that started before.
    filter
        Only conversations that meet it, such as `to:refund-* service:support`.
    project
        Only this project; by default every project of the rule.
    backend
        Where scores are computed: local (processes), or ray. By default `backend:` of the settings,
        else local.
    jobs
        The number of processes or Ray workers; one by default.
    db
        The database of the server.
    folder
        The folder of its store.
    """
    with needs_server():
        from baton.server import administration
        from baton.server.rescores import stand_back
        from baton.server.rescoring import Counts, RescoreRequest

        stand_back()
        noted = time.monotonic()

        def tell(counts: Counts) -> None:
            nonlocal noted
            if time.monotonic() - noted > _TELL_EVERY:
                noted = time.monotonic()
                note(f"{_rescored(counts)} so far")

        for name, done in administration.rescore(
            _settings(settings, db, folder),
            RescoreRequest(rule=rule, since=since, until=until, filter=filter),
            project=project,
            backend=backend,
            workers=jobs,
            tell=tell,
        ):
            print(f"project {name}: {_rescored(done)}")
            if done.waiting:
                note(f"{counted(done.waiting, 'conversation')} wait for a judge")
            if done.error is not None:
                note(f"the last error: {done.error}")
    return 0


_TELL_EVERY = 5.0
"""Seconds between two lines of progress."""


def _rescored(counts: Any) -> str:
    parts = [
        f"{counted(counts.conversations, 'conversation')}",
        f"{counted(counts.added, 'score')} added, {counts.replaced} replaced",
    ]
    for name, why in _LEFT_OUT.items():
        if count := getattr(counts, name):
            parts.append(f"{count} {why}")
    return "; ".join(parts)


_LEFT_OUT = {
    "deleted": "deleted by retention",
    "moved": "changed meanwhile, and scored as they arrive",
    "untold": "left out: their rules were not kept when they arrived",
    "failed": "could not be scored",
}


keys_command = App(
    name="keys",
    default_parameter=Parameter(negative=""),
    group_commands="Commands",
    group_parameters=FEW,
    help="Make, list and revoke API keys, and the projects that they open.",
    help_epilogue=examples_text(BELOW["serve keys"]),
)
serve_command.command(keys_command)
Right = Literal["ingest", "read", "review", "run", "admin"]
Rights = Annotated[tuple[Right, ...], Parameter(name="--right", show_default=False)]


@keys_command.command(name="create", help_epilogue=examples_text(BELOW["serve keys create"]))
def create_key(
    name: str,
    settings: Path | None = None,
    *,
    right: Rights = ("ingest",),
    project: str = "default",
    db: Database = None,
    folder: Folder = None,
) -> int:
    """Make a key, and print it: it is shown once, and stored as a hash.

    The project is created if it does not exist. As soon as a key exists, every request needs one.

    Parameters
    ----------
    name
        The name of the key, such as the service that uses it.
    settings
        The file with the settings of the server.
    right
        What it may do: ingest (send spans, the default), read, review (label), run (start
        evaluations), admin (all). May be given several times.
    project
        The project that it opens.
    db
        The database of the server.
    folder
        The folder of its store.
    """
    with needs_server():
        from baton.server import administration

        print(administration.create_key(_settings(settings, db, folder), name, right, project))
    note("keep it now: it cannot be shown again. Send it as `Authorization: Bearer KEY`")
    return 0


@keys_command.command(name="list", help_epilogue=examples_text(BELOW["serve keys list"]))
def list_keys(
    settings: Path | None = None,
    *,
    project: str | None = None,
    json: Flag = False,
    db: Database = None,
    folder: Folder = None,
) -> int:
    """List the keys, with their projects and rights; not the keys themselves.

    Parameters
    ----------
    settings
        The file with the settings of the server.
    project
        Only those of this project.
    json
        Print them as JSON, times as seconds since the epoch.
    db
        The database of the server.
    folder
        The folder of its store.
    """
    with needs_server():
        from baton.server import administration

        keys = administration.list_keys(_settings(settings, db, folder), project)
    with readers_may_leave():
        if json:
            print(msgspec.json.encode(keys).decode())
        elif not keys:
            print("no keys: the server answers only this machine")
        for key in [] if json else keys:
            used = "never used" if key.used is None else f"last used {_day(key.used)}"
            state = used if key.revoked is None else f"revoked {_day(key.revoked)}"
            rights = ", ".join(key.rights)
            shown = f"{key.project}  {key.name}  {rights}  made {_day(key.created)}, {state}"
            console_for(sys.stdout).print(Text(shown))
    return 0


@keys_command.command(name="revoke", help_epilogue=examples_text(BELOW["serve keys revoke"]))
def revoke_key(
    name: str,
    settings: Path | None = None,
    *,
    project: str = "default",
    db: Database = None,
    folder: Folder = None,
) -> int:
    """Make a key invalid for good. A running server refuses it within a few seconds.

    Parameters
    ----------
    name
        The name of the key.
    settings
        The file with the settings of the server.
    project
        The project that it opens.
    db
        The database of the server.
    folder
        The folder of its store.
    """
    with needs_server():
        from baton.server import administration

        administration.revoke_key(_settings(settings, db, folder), name, project)
    note(f"the key `{visible_line(name)}` of project `{visible_line(project)}` is revoked")
    return 0


def _settings(file: Path | None, db: str | None, folder: Path | None) -> Settings:
    from baton.server.settings import load_settings

    return load_settings(file, {"db": db, "folder": None if folder is None else str(folder)})


def _day(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d")


@contextmanager
def needs_server() -> Iterator[None]:
    """Explain what to install if a library is missing, and do not wait for a database."""
    try:
        from baton.server.database import Unavailable, sqlite_name
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] == "baton":
            raise
        needs = install(requirement("server"))
        raise InputError(f"this command needs more libraries: {needs}") from None
    try:
        yield
    except Unavailable as error:
        match sqlite_name(error):
            case "SQLITE_FULL" | "SQLITE_IOERR_WRITE":
                raise BatonError(f"{error}; free some space, or name another --folder") from None
            case "SQLITE_NOTADB" | "SQLITE_CORRUPT":
                what = "put back a copy of the folder, or name another --folder"
                raise InputError(f"{error}; its files are damaged: {what}") from None
        raise InputError(str(error)) from None
