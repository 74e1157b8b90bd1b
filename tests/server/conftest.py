"""What tests of the server need."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from baton.server.store import Store, open_store

from .postgres import Postgres, running
from .stores import new_store

Opening = Callable[[Path | str], Store]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """An empty store of SQLite."""
    opened = new_store(tmp_path / "server")
    yield opened
    opened.close()


@pytest.fixture
def opening() -> Iterator[Opening]:
    """Opens stores that are closed when the test ends, also where it fails."""

    def open_one(where: Path | str) -> Store:
        if isinstance(where, Path) and not where.exists():
            opened = new_store(where)
        else:
            opened = open_store(where)
        return stack.enter_context(closing(opened))

    with ExitStack() as stack:
        yield open_one


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A real PostgreSQL server; tests that use it are heavy."""
    with running() as server:
        yield server


@pytest.fixture
def postgres_store(postgres: Postgres) -> Iterator[Store]:
    """An empty store of PostgreSQL."""
    opened = open_store(postgres.database())
    yield opened
    opened.close()
