"""A PostgreSQL server of our own: in its own folder, on loopback, ended by whom it started."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import psycopg
from tests.ports import free_port

_HOME = Path("/usr/lib/postgresql")
_USER = "postgres"


def programs() -> Path | None:
    """Return the folder of `initdb` and `pg_ctl`, where PostgreSQL 15 or later is installed."""
    on_path = shutil.which("initdb")
    versions = sorted(_HOME.glob("*/bin/initdb"), key=lambda file: int(file.parent.parent.name))
    if versions:
        return versions[-1].parent
    return Path(on_path).resolve().parent if on_path else None


class Postgres:
    """A server with durable commits; tests may stop it and start it again."""

    def __init__(self, folder: Path, bin_: Path) -> None:
        self._folder = folder
        self._bin = bin_
        self._names = count(1)
        self.port = free_port()

    def make(self) -> None:
        """Make the folder of the server."""
        self._run("initdb", "--auth=trust", "--username=baton", "--encoding=UTF8", "--locale=C")

    def start(self) -> None:
        """Start, and wait until it takes connections."""
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -k {self._folder}"
        self._run("pg_ctl", "--wait", "--log", str(self._folder / "log"), "-o", options, "start")

    def stop(self) -> None:
        """Stop at once, and drop all connections."""
        self._run("pg_ctl", "--wait", "--mode=immediate", "stop")

    def database(self) -> str:
        """Make an empty database; returns its address."""
        name = f"baton_{next(self._names)}"
        with psycopg.connect(self._address("postgres"), autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}"'.encode())
        return self._address(name)

    def _address(self, database: str) -> str:
        return f"postgresql://baton@127.0.0.1:{self.port}/{database}"

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self._bin / program), "-D", str(self._folder / "data"), *arguments]
        if os.getuid() == 0:  # it refuses to run as root
            command = ["runuser", "-u", _USER, "--", *command]
        # Its children keep the output open, so that what waits for its end would wait for ever.
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=self._folder)


@contextmanager
def running() -> Iterator[Postgres]:
    """Run a server; it is gone afterwards, with its folder."""
    bin_ = programs()
    if bin_ is None:
        raise RuntimeError("PostgreSQL is not installed: make postgres")
    folder = Path(tempfile.mkdtemp(prefix="baton-postgres-"))
    if os.getuid() == 0:
        shutil.chown(folder, _USER)
    server = Postgres(folder, bin_)
    try:
        server.make()
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder)
