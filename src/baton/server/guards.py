"""The state of guards: counts of trees, for all programs together.

Each project has its own file in the folder of the server, the same that guards have without a
server. Programs send the counts, and decide themselves.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from baton.guard.decide_event import Seen
from baton.guard.server_state import (
    Counted,
    Counting,
    Done,
    Known,
    OfDispatch,
    OfTree,
    Renamed,
    Used,
)
from baton.guard.state import Dispatched, Store
from baton.model import InputError

from .database import Unavailable

_MOST = 1 << 30
"""Bytes of a project's file: more than two million dispatches in a week."""


class GuardStores:
    """The files of projects, each opened when it is first needed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._stores: dict[int, Store] = {}

    def of(self, project: int) -> Store:
        """Return the state of a project."""
        with self._lock:
            if project not in self._stores:
                file = self._folder / "guards" / f"{project}.db"
                self._stores[project] = Store(file, most_bytes=_MOST)
            return self._stores[project]

    def close(self) -> None:
        """Close the files."""
        with self._lock:
            for store in self._stores.values():
                store.close()
            self._stores.clear()


class Question(NamedTuple):
    """A request of guards: its body, its answer, and its function."""

    summary: str
    body: type[msgspec.Struct]
    answer: type[msgspec.Struct]
    run: Callable[[Store, Any], msgspec.Struct | None]


def _seen(store: Store, sent: Dispatched) -> Seen:
    return store.seen(sent, time.time())


def _count(store: Store, sent: Counting) -> Counted:
    return Counted(reached=store.count(sent, time.time(), sent.below))


def _begin(store: Store, sent: OfTree) -> None:
    store.begin(sent.tree)


def _end(store: Store, sent: OfDispatch) -> Known:
    return Known(known=store.end(sent.tree, sent.id))


def _knows(store: Store, sent: OfDispatch) -> Known:
    return Known(known=store.knows(sent.tree, sent.id))


def _rename(store: Store, sent: Renamed) -> None:
    store.rename(sent.tree, sent.id, sent.name)


def _use(store: Store, sent: Used) -> None:
    store.use(sent.tree, tokens=sent.tokens, cost_usd=sent.cost_usd)


QUESTIONS = {
    "seen": Question("What a tree has had before a dispatch", Dispatched, Seen, _seen),
    "count": Question(
        "Count a dispatch, unless its tree has reached a limit by now", Counting, Counted, _count
    ),
    "begin": Question("Note that a tree begins, unless it has begun already", OfTree, Done, _begin),
    "end": Question("Note that a dispatch has its answer, or failed", OfDispatch, Known, _end),
    "knows": Question("Whether a dispatch was counted", OfDispatch, Known, _knows),
    "rename": Question("Give a dispatch another id", Renamed, Done, _rename),
    "use": Question("Add tokens and cost that a tree has used", Used, Done, _use),
}


def answer(stores: GuardStores, project: int, name: str, sent: Any) -> msgspec.Struct:
    """Answer a question of a guard in a project.

    Raises:
        Unavailable: the file cannot be read or written now, or is full.
    """
    try:
        return QUESTIONS[name].run(stores.of(project), sent) or Done()
    except (sqlite3.Error, InputError, OSError) as error:
        raise Unavailable(f"the state of guards: {error}") from error
