"""Empty stores of SQLite, which are made once and copied: making one takes five times as long."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path

from baton.server.store import Store, open_store


@cache
def _made() -> Path:
    parent = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, parent, ignore_errors=True)
    folder = Path(parent) / "server"
    open_store(folder).close()
    return folder


def new_store(folder: Path) -> Store:
    """Open an empty store in a folder that does not exist yet."""
    shutil.copytree(_made(), folder)
    return open_store(folder)
