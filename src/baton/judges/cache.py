"""A cache of verdicts, as JSON in one SQLite file.

Only valid verdicts are stored. Each is written to disk at once, so that a killed run loses nothing;
several processes may share a file.
"""

from __future__ import annotations

import sqlite3
import time
from contextlib import suppress
from hashlib import sha256
from os import PathLike
from pathlib import Path
from typing import Any

import msgspec

from baton.formats.own_files import make_folder, open_own
from baton.judges import fenced_prompts, parse_answer
from baton.model import InputError, JudgeRequest, Problem
from baton.model.mask_known_secrets import mask_json

# Workers of one evaluation write to the same file; each write takes milliseconds, so a lock that
# lasts this long belongs to a hanging program.
_PATIENCE = 30.0  # seconds to wait for another process
_TABLE = """
CREATE TABLE IF NOT EXISTS verdicts (
  key TEXT PRIMARY KEY, rubric TEXT NOT NULL, verdict TEXT NOT NULL, saved REAL NOT NULL
) WITHOUT ROWID
"""


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """A stored verdict, with its original usage."""

    value: dict[str, Any]
    model: str
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None
    seconds: float = 0.0


_DECODER = msgspec.json.Decoder(Verdict)


def cache_key(
    request: JudgeRequest, model: str, sample: int, temperature: float | None = None
) -> str:
    """Return the SHA-256 of everything that decides a verdict, in hexadecimal.

    That is the request (rubric, its version, instructions, content, schema), how content is
    fenced, how answers are read, the model with its address, the temperature, and the number of
    the sample.
    """
    parts = {
        "request": msgspec.to_builtins(request),
        "fence": fenced_prompts.VERSION,
        "read": parse_answer.VERSION,
        "model": model,
        "temperature": temperature,
        "sample": sample,
    }
    return sha256(msgspec.json.encode(parts, order="deterministic")).hexdigest()


class VerdictCache:
    """A file of verdicts; opened when first used."""

    def __init__(self, path: str | PathLike[str], *, read_only: bool = False) -> None:
        """Take the path; a file that is only read need not exist."""
        self.path = Path(path)
        self.read_only = read_only
        self._database: sqlite3.Connection | None = None

    def get(self, key: str) -> Verdict | None:
        """Return the verdict with this key, if there is one that can be read."""
        if self.read_only and not self.path.exists():
            return None
        row = self._run("SELECT verdict FROM verdicts WHERE key = ?", key).fetchone()
        try:
            return None if row is None else _DECODER.decode(row[0])
        except msgspec.DecodeError:
            return None

    def put(self, key: str, rubric: str, verdict: Verdict) -> None:
        """Store a verdict; it replaces an older one with the same key."""
        text = mask_json(msgspec.json.encode(verdict)).decode()
        sql = "INSERT OR REPLACE INTO verdicts VALUES (?, ?, ?, ?)"
        self._run(sql, key, rubric, text, time.time())

    def close(self) -> None:
        """Close the file; it opens again when it is used."""
        if self._database is not None:
            self._database.close()
            self._database = None

    def _run(self, sql: str, *values: str | float) -> sqlite3.Cursor:
        try:
            if self._database is None:
                self._database = self._open_to_read() if self.read_only else self._open()
            return self._database.execute(sql, values)
        except sqlite3.Error as error:
            self.close()
            message = f"cannot be used as a cache of verdicts: {error}"
            raise InputError(Problem(file=str(self.path), message=message)) from None

    def _open(self) -> sqlite3.Connection:
        try:
            make_folder(self.path.parent)
            # SQLite creates files that everybody may read, and its other files with the same mode.
            with suppress(FileExistsError):
                open_own(self.path, "xb").close()
        except OSError as error:
            raise sqlite3.OperationalError(error.strerror or str(error)) from None
        # Every statement is a separate transaction; one thread at a time uses a judge.
        database = sqlite3.connect(
            self.path, timeout=_PATIENCE, isolation_level=None, check_same_thread=False
        )
        try:
            _write_ahead(database)
            database.execute("PRAGMA synchronous = NORMAL")
            database.execute(_TABLE)
        except BaseException:
            database.close()
            raise
        return database

    def _open_to_read(self) -> sqlite3.Connection:
        """Open without writing; ``immutable`` if the folder is read-only."""
        address = self.path.resolve().as_uri()
        for mode in ("mode=ro", "mode=ro&immutable=1"):
            database = sqlite3.connect(
                f"{address}?{mode}", uri=True, timeout=_PATIENCE, check_same_thread=False
            )
            try:
                database.execute("SELECT 1 FROM verdicts LIMIT 1")
            except sqlite3.OperationalError:
                database.close()
                if mode != "mode=ro":
                    raise
            else:
                return database
        raise AssertionError("unreachable")


def _write_ahead(database: sqlite3.Connection) -> None:
    """Let readers and one writer work at the same time; sqlite does not wait for its turn here."""
    end = time.monotonic() + _PATIENCE
    while True:
        try:
            database.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > end:
                raise
            time.sleep(0.01)
        else:
            return
