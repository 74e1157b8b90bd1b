"""What tests of the server need."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from baton.server.store import Store, open_store

from .postgres import Postgres, running


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """An empty store of SQLite."""
    opened = open_store(tmp_path / "server")
    yield opened
    opened.close()


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
