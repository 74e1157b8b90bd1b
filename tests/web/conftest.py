"""What tests of the pages need: a store, a server over it, and for heavy ones a browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.server.stores import new_store

from baton.server.store import Store

from .serving import web

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """An empty store of SQLite; `tests/server/seeding.py` puts rows into it."""
    opened = new_store(tmp_path / "server")
    yield opened
    opened.close()


@pytest.fixture
def address(store: Store) -> Iterator[str]:
    """A server with the pages of the store."""
    with web(store) as serving:
        yield serving


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One Chromium for the tests of a module; `tab` of tests/web/browsing.py opens a page in it.

    Not for longer: while Playwright is there, nothing else in the process can run an event loop.
    """
    from .browsing import chromium  # only heavy tests need the library

    with chromium() as started:
        yield started
