"""What tests of the server need."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from baton.server.store import Store, open_store

from .postgres import Postgres, running

Opening = Callable[[Path | str], Store]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """An empty store of SQLite."""
    opened = open_store(tmp_path / "server")
    yield opened
    opened.close()


@pytest.fixture
def opening() -> Iterator[Opening]:
    """Opens stores that are closed when the test ends, also where it fails."""
    with ExitStack() as stack:
        yield lambda where: stack.enter_context(closing(open_store(where)))


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
