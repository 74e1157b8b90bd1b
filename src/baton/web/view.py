"""`baton view`: pages for recordings and evaluation folders, from a temporary store.

The named files are treated like uploads: packed, put into the inbox, read and scored by the worker
of a server. Evaluations stay where they are, and are listed.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from baton.formats.evaluation_folder import is_evaluation
from baton.formats.evaluation_header import HEADER
from baton.formats.storage_addresses import place_of
from baton.model import InputError, Problem
from baton.model.filter import Filter
from baton.server.inbox import Inbox, entry_of
from baton.server.jobs import add_folder
from baton.server.process import show
from baton.server.queries import conversation_sums
from baton.server.settings import LimitSettings, LiveSettings
from baton.server.store import Store, open_store
from baton.server.worker import Worker, bounds_of
from baton.server.worker_jobs import Live
from baton.session.push import pack
from baton.session.record import FOLDER as RECORDINGS
from baton.session.recordings import with_copies

from .app import pages

Note = Callable[[str], None]
EVALUATIONS = Path(".baton/evaluations")
_LIMITS = LimitSettings(upload=4 << 30, upload_unpacked=16 << 30, upload_files=1_000_000)
"""Files that are already on this disk need no limit."""
_LATER = 7 * 86400.0
"""Seconds of silence that complete a conversation: no more spans arrive."""


class Loaded(NamedTuple):
    """The number of cases to show, and the unreadable files with the reasons."""

    conversations: int
    evaluations: int
    problems: list[str]


def view(
    paths: Sequence[str], *, port: int, note: Note, opened: Callable[[str, Loaded], None]
) -> None:
    """Show recordings and evaluations until a signal says to stop.

    ``opened`` gets the address when it answers. Nothing that is shown is written to.

    Raises:
        InputError: a named file does not exist, or there is nothing to show.
    """
    with _temporary_folder() as folder:
        given = {"host": "127.0.0.1", "port": port, "folder": str(folder), "grpc": False}
        settings = LiveSettings(None, {**given, "limits": _LIMITS}, note)
        store = open_store(settings.now.store)
        try:
            loaded = load(store, settings, paths or _usual(), note)
            show(store, settings, pages, lambda address: opened(address, loaded))
        finally:
            store.close()


def load(store: Store, settings: LiveSettings, paths: Sequence[str], note: Note) -> Loaded:
    """Read recordings and evaluation folders into a store.

    Raises:
        InputError: one does not exist, or nothing of them can be shown.
    """
    project = store.project("default")
    inbox = Inbox(store)
    evaluations = 0
    recordings: list[str] = []
    for each in with_copies(paths):
        folders = _evaluations_in(Path(each))
        for folder in folders:
            add_folder(store, project, folder, "baton view")
            evaluations += 1
        recordings += [str(folder) for folder in folders] or [each]
        if folders and _others(Path(each), folders):
            note(f"{each} has evaluations: only these are shown; name its recordings separately")
    for number, path in enumerate(recordings):
        try:
            packages = list(pack([path], note))
        except InputError as error:
            if not (evaluations and is_evaluation(Path(path))):
                raise
            # The traces of an evaluation may be deleted, or not accessible; it is shown without
            # them.
            note(f"{place_of(Path(path))}: {error}")
            continue
        for package in packages:
            name = f"{package.name}.tar.gz" if len(recordings) == 1 else f"{number}-{package.name}"
            inbox.put([entry_of(project, "recording", "application/gzip", package.data, name=name)])
    _read_all(store, settings)
    conversations = conversation_sums(store, project, Filter(), most=10_000_000).conversations
    problems = [f"{each.name}: {each.error}" for each in inbox.problems(project)]
    if not conversations and not evaluations:
        said = "; ".join(problems) or "there is nothing that Baton can read"
        raise InputError(Problem(file=", ".join(paths), message=said))
    return Loaded(conversations, evaluations, problems)


def _usual() -> list[str]:
    """Return the files that commands create in the current folder.

    Raises:
        InputError: nothing is there.
    """
    there = [str(folder) for folder in (EVALUATIONS, RECORDINGS) if folder.is_dir()]
    if not there:
        raise InputError(
            "there are no evaluations and no recordings below .baton: name files or folders, "
            "such as baton view runs/"
        )
    return there


def _evaluations_in(path: Path) -> list[Path]:
    if is_evaluation(path):
        return [path]
    headers = path.rglob(HEADER) if path.is_dir() else ()
    return sorted(each.parent for each in headers if is_evaluation(each.parent))


def _others(path: Path, folders: Sequence[Path]) -> bool:
    """Return whether a folder has files other than its evaluations."""
    return any(
        file.is_file() and not any(file.is_relative_to(folder) for folder in folders)
        for file in path.rglob("*")
    )


def _read_all(store: Store, settings: LiveSettings) -> None:
    now = settings.now
    live = Live(store, now)
    worker = Worker(store, bounds_of(now), live.score, now.limits, now.projects_by_tag)
    while worker.take_in(time.time()):
        pass
    while worker.read_due(time.time() + _LATER):
        pass


@contextmanager
def _temporary_folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="baton-view-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
