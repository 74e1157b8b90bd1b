"""Evaluations that are requested through the API, and run here.

A request contains files and names: cases, recordings, names of evaluators and of an agent. It names
no module, command, path or address: agents that may be played are listed in `server.yaml`
(`agents:`), judges in its `judges:`. An evaluation is a folder, as everywhere; the index has its
path.
"""

from __future__ import annotations

import io
import re
import shutil
import tarfile
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec
from sqlalchemy import Connection, insert, select, text, update

from baton.config.dialects.adk import FILE_NAME as CRITERIA
from baton.config.dialects.adk import sent_criteria
from baton.datasets import load_dataset
from baton.evaluators.registry import evaluator_entry
from baton.formats.evaluation_folder import INDEX
from baton.formats.evaluation_header import HEADER, UNFINISHED, read_header
from baton.formats.own_files import make_folder
from baton.gate.read_thresholds import read_gate
from baton.model import (
    STATUSES,
    CaseResult,
    InputError,
    Problem,
    suggestion,
)
from baton.model.filter import filter_of
from baton.readers import load_traces
from baton.session.agent_under_test import is_configured, make_agent
from baton.session.dataset_folders import DatasetFolders, DatasetRow
from baton.session.evaluate import EvaluateOptions, evaluate_into
from baton.session.prepare import DatasetLike, ScoreOptions
from baton.session.score import score_into
from baton.session.server_rows import EvaluationJob
from baton.store import StoredEvaluation, mark_interrupted, read_evaluation, rows_of

from . import queries
from .bodies import BodyGone, Place, day_of, get_one
from .conversations import record_of
from .database import EVERY_PROJECT
from .queues import change_taken
from .schema import job
from .separate_process import RequestedWork, SeparateProcess
from .settings import Settings
from .store import Store, open_store
from .uploads import file_name, write_upload

_MOST_CONVERSATIONS = 10_000
"""Maximum stored conversations that one evaluation scores. More are refused, not left out silently:
their records are written to a file first, and a filter that was forgotten would copy the store."""
_ENDED = ("done", "failed")
_ATTEMPTS = 3
"""Maximum starts of an evaluation: a server that ends in the middle restarts it."""
_LEASE = 300.0
"""Seconds after which a running evaluation whose worker is gone starts again. A worker renews it
between its other tasks, some of which take a minute."""
_NAME = re.compile(r"[A-Za-z_]\w{0,99}")
_EXIT_CODES = {"passed": 0, "failed": 1}


class _Named(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    name: str


class NamedText(_Named, kw_only=True):
    """A file of cases: its name, which determines the dialect, and its text."""

    content: str


class NamedBytes(_Named, kw_only=True):
    """A recording, or an archive of recordings; in JSON ``content`` is base64."""

    content: bytes


class EvaluationRequest(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A request: an ``agent`` that plays a ``dataset``, or recordings to score.

    ``conversations`` is a filter over those on the server (`service:support started:>=2026-11-01`,
    or `*` for all). ``datasets`` are names of those in the folders that the server was started
    with, instead of cases that are sent, and ``cases`` are ids: only these are played.
    ``criteria`` are those of ADK beside an eval set (`test_config.json`); the judges that they
    choose are left out.
    ``evaluators`` are names; without them the cases decide, or what is proven by the record.
    ``thresholds`` are for some of them, ``judge`` is the name of one of `judges:`.
    """

    name: Annotated[str, msgspec.Meta(max_length=100)] | None = None
    dataset: list[NamedText] = []
    criteria: NamedText | None = None
    datasets: list[str] = []
    cases: list[str] | None = None
    recordings: list[NamedBytes] = []
    conversations: str | None = None
    agent: str | None = None
    evaluators: list[str] | None = None
    thresholds: dict[str, Annotated[float, msgspec.Meta(ge=0, le=1)]] = {}
    judge: str | None = None
    gate: list[str] = []
    repeat: Annotated[int, msgspec.Meta(ge=1, le=100)] = 1
    concurrency: Annotated[int, msgspec.Meta(ge=1, le=100)] | None = None
    retry_errors: Annotated[int, msgspec.Meta(ge=0, le=10)] | None = None

    def check(self, settings: Settings) -> None:
        """Raise InputError for a request that cannot be evaluated."""
        ways = [self.agent is not None, bool(self.recordings), self.conversations is not None]
        if sum(ways) != 1:
            raise InputError("give one of `agent`, `recordings` and `conversations`")
        if self.agent is not None:
            if self.agent not in settings.agents:
                known = ", ".join(sorted(settings.agents)) or "none"
                message = f"server.yaml has no agent `{self.agent}`; it has: {known}"
                raise InputError(Problem(path="agent", message=message))
            if not self.dataset and not self.datasets:
                raise InputError(Problem(path="dataset", message="an agent needs cases to play"))
        if self.datasets and (self.dataset or self.agent is None):
            message = "can only be used with `agent`, not with cases that are sent"
            raise InputError(Problem(path="datasets", message=message))
        for name in self.datasets:
            _dataset(settings, name)
        if self.criteria is not None:
            if not self.dataset:
                message = "can only be used with cases that are sent in `dataset`"
                raise InputError(Problem(path="criteria", message=message))
            sent_criteria(self.criteria.name, self.criteria.content.encode())
        if self.judge is not None and self.judge not in settings.judges:
            message = f"there is no judge `{self.judge}`; {suggestion(self.judge, settings.judges)}"
            raise InputError(Problem(path="judge", message=message))
        if unchosen := [name for name in self.thresholds if name not in (self.evaluators or ())]:
            message = f"`{unchosen[0]}` is not among the `evaluators`"
            raise InputError(Problem(path="thresholds", message=message))
        if self.conversations is not None:
            filter_of(_chosen(self.conversations), queries.CONVERSATION_FIELDS)
        for place, name in enumerate(self.evaluators or ()):
            # `module:function` and `rubric.yaml` would name code and files of this machine.
            if not _NAME.fullmatch(name):
                message = f"`{name}` is not the name of an evaluator of Baton"
                raise InputError(Problem(path=f"evaluators[{place}]", message=message))
            evaluator_entry(name)
        read_gate(self.gate)
        files: list[_Named] = [*self.dataset, *self.recordings]
        files += [self.criteria] if self.criteria is not None else []
        for file in files:
            file_name(file.name)
        # They are in one folder: the cases of one would take the place of the other's.
        for name, count in Counter(file.name for file in self.dataset).items():
            if count > 1:
                message = f"{count} files are called `{name}`: give each a name of its own"
                raise InputError(Problem(path="dataset", message=message))


def _dataset(settings: Settings, name: str) -> DatasetRow:
    """Find a dataset in the folders that the server was started with."""
    try:
        # Only its location: the process that plays it reads it anyway.
        return DatasetFolders([Path(each) for each in settings.datasets]).dataset(name, 0)
    except KeyError:
        message = f"there is no dataset `{name}`"
        raise InputError(Problem(path="datasets", message=message)) from None


def _chosen(conversations: str) -> str | None:
    return None if conversations.strip() == "*" else conversations


def submit(
    store: Store,
    project: int,
    by: str,
    body: bytes,
    settings: Settings,
    *,
    once: bool = False,
) -> EvaluationJob:
    """Store a request for a worker.

    With ``once``, for a button that may be pressed twice, nothing is added if an identical request
    is waiting or running: that one is returned.

    Raises:
        InputError: the request cannot be evaluated.
    """
    request = _read(body)
    request.check(settings)
    (place,) = store.bodies.put(day_of(time.time()), [body])
    row = {
        "project": project,
        "created": time.time(),
        "by": by,
        "request": msgspec.json.encode(place).decode(),
        "state": "waiting",
        "attempts": 0,
    }
    with store.write() as connection:
        number = _same(store, connection, project, body) if once else None
        if number is None:
            number = connection.execute(insert(job).values(row).returning(job.c.id)).scalar_one()
    return job_of(store, project, number)


def _same(store: Store, connection: Connection, project: int, body: bytes) -> int | None:
    """Return the number of an identical request that has not ended."""
    query = select(job.c.id, job.c.request).where(
        job.c.project == project, job.c.state.in_(("waiting", "running"))
    )
    if store.is_postgresql:  # with SQLite one transaction writes at a time
        connection.execute(text("SELECT pg_advisory_xact_lock(hashtext('baton jobs'))"))
    for number, request in connection.execute(query).all():
        try:
            if get_one(store.bodies, msgspec.json.decode(request, type=Place)) == body:
                return int(number)
        except BodyGone:
            continue
    return None


def again(store: Store, project: int, number: int, by: str, settings: Settings) -> EvaluationJob:
    """Request an evaluation again, with its own cases; one that has not ended is returned.

    Raises:
        KeyError: there is no such evaluation.
        InputError: it was not requested here, or its request is deleted or no longer valid.
    """
    query = select(job.c.request).where(job.c.project == project, job.c.id == number)
    with store.read() as connection:
        request = connection.execute(query).scalar()
    if request is None:
        raise KeyError(number)
    if not request:
        raise InputError(f"evaluation {number} was not made by this server: run its command again")
    try:
        body = get_one(store.bodies, msgspec.json.decode(request, type=Place))
    except BodyGone as error:
        raise InputError(f"the cases of evaluation {number} no longer exist: {error}") from None
    return submit(store, project, by, body, settings, once=True)


def stop(store: Store, project: int, number: int, by: str) -> EvaluationJob:
    """End an evaluation that waits or runs, if it has not ended; its results so far are kept.

    Raises:
        KeyError: there is no such evaluation.
    """
    mine = (job.c.project == project, job.c.id == number, job.c.state.in_(("waiting", "running")))
    ended = {"state": "failed", "error": f"stopped by {by}", "exit_code": 3, "ended": time.time()}
    waits = select(job.c.id).where(*mine, job.c.state == "waiting")
    with store.write() as connection:
        is_waiting = connection.execute(waits).scalar() is not None
        connection.execute(update(job).where(*mine).values(ended))
    if is_waiting:  # what runs is ended by the worker that runs it
        _note_interrupted(store, project, number)
    return job_of(store, project, number)


def _note_interrupted(store: Store, project: int, number: int) -> None:
    """Record in the folder of an ended evaluation that it ended before it was complete.

    A process that was killed by a user, for lack of memory or with the machine could not do that.
    """
    with suppress(KeyError, InputError):  # it had not begun, or the folder was removed by hand
        mark_interrupted(folder_of(store, project, number))


def add_folder(store: Store, project: int, folder: Path, by: str) -> int:
    """List a folder that was made elsewhere among the evaluations of a project; return its number.

    Raises:
        InputError: it is not an evaluation folder.
    """
    progress = progress_of(folder)
    row = {
        "project": project,
        "created": progress.started or time.time(),
        "by": by,
        "request": "",
        "state": "done",
        "attempts": 0,
        "folder": str(folder.resolve()),
        "status": progress.status,
        "exit_code": _EXIT_CODES.get(progress.status, 3),
        "ended": progress.ended,
    }
    with store.write() as connection:
        return int(connection.execute(insert(job).values(row).returning(job.c.id)).scalar_one())


def _read(body: bytes) -> EvaluationRequest:
    try:
        return msgspec.json.decode(body, type=EvaluationRequest)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise InputError(f"not a request for an evaluation: {error}") from None


def job_of(store: Store, project: int, number: int) -> EvaluationJob:
    """Return a requested evaluation; raises KeyError if there is none."""
    query = select(job).where(job.c.project == project, job.c.id == number)
    with store.read() as connection:
        row = connection.execute(query).mappings().one_or_none()
    if row is None:
        raise KeyError(number)
    return _job(row)


def jobs_of(
    store: Store, project: int, limit: int = 200, before: int | None = None
) -> list[EvaluationJob]:
    """Return requested evaluations, the latest first; those ``before`` a number."""
    query = select(job).where(job.c.project == project).order_by(job.c.id.desc()).limit(limit)
    if before is not None:
        query = query.where(job.c.id < before)
    with store.read() as connection:
        return [_job(row) for row in connection.execute(query).mappings()]


def _job(row: Mapping[Any, Any]) -> EvaluationJob:
    ended = None if row["ended"] is None else datetime.fromtimestamp(row["ended"], UTC)
    progress = _progress(row)
    return EvaluationJob(
        id=row["id"],
        created=datetime.fromtimestamp(row["created"], UTC),
        by=row["by"],
        state=row["state"],
        status=row["status"],
        exit_code=row["exit_code"],
        error=row["error"],
        ended=ended,
        name=progress.name if progress else None,
        results=progress.results if progress else None,
        planned=progress.planned if progress else None,
        cases=progress.cases if progress else {},
        made_here=bool(row["request"]),
    )


def _progress(row: Mapping[Any, Any]) -> Progress | None:
    """Return the progress of an evaluation; ``None`` if it has no folder yet, or it is deleted."""
    if row["folder"] is None:
        return None
    try:
        return progress_of(Path(row["folder"]))
    except InputError:  # removed by hand, or about to be made again
        return None


def packed_folder(store: Store, project: int, number: int) -> bytes:
    """Return the folder of an evaluation as an archive (tar, gzip).

    Raises:
        KeyError: there is no such evaluation, or it has no folder, or has not ended.
    """
    folder = folder_of(store, project, number, ended=True)
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for file in sorted(folder.iterdir()):
            archive.add(file, f"{folder.name}/{file.name}", recursive=False)
    return packed.getvalue()


def one_case(store: Store, project: int, number: int, position: int) -> list[CaseResult]:
    """Return the results of a case of an evaluation, one for each time it was played.

    Raises:
        KeyError: there is no such evaluation or case, or it has no folder (yet).
    """
    stored = read_evaluation(folder_of(store, project, number), partial=True)
    results = [stored.result(row) for row in stored.rows() if row.position == position]
    if not results:
        raise KeyError(position)
    return results


def folders_of(store: Store, project: int, limit: int = 200) -> dict[int, Path]:
    """Return the folders of evaluations by their number, the latest first; some may be gone."""
    query = select(job.c.id, job.c.folder).where(
        job.c.project == project, job.c.folder.is_not(None)
    )
    with store.read() as connection:
        rows = connection.execute(query.order_by(job.c.id.desc()).limit(limit))
        return {row.id: Path(row.folder) for row in rows}


def folder_of(store: Store, project: int, number: int, *, ended: bool = False) -> Path:
    """Return the folder of an evaluation, which may still grow unless it has ``ended``.

    Raises:
        KeyError: there is no such evaluation, or it has no folder (yet).
    """
    query = select(job.c.folder).where(job.c.project == project, job.c.id == number)
    if ended:
        query = query.where(job.c.state.in_(_ENDED))
    with store.read() as connection:
        folder = connection.execute(query).scalar()
    if folder is None or not Path(folder).is_dir():
        raise KeyError(number)
    return Path(folder)


class _Running(NamedTuple):
    project: int
    id: int
    due: float
    process: SeparateProcess


class Jobs(RequestedWork[_Running]):
    """Runs requested evaluations."""

    def __init__(self, store: Store, settings: Settings) -> None:
        super().__init__(store, settings)
        # One worker at a time works on SQLite, so what seems to run was left by a killed one.
        self._is_alone = not store.is_postgresql

    def _begin(self, now: float) -> _Running | None:
        is_lost = (job.c.state == "running") & ((job.c.due <= now) | self._is_alone)
        waiting = select(job).where((job.c.state == "waiting") | is_lost)
        with self._store.write() as connection:
            row = connection.execute(
                waiting.order_by(job.c.id).limit(1).with_for_update(skip_locked=True),
                execution_options=EVERY_PROJECT,
            ).one_or_none()
            if row is None:
                return None
            mine = (job.c.project == row.project, job.c.id == row.id)
            message = f"the server ended {_ATTEMPTS} times while this was evaluated"
            failed = {"state": "failed", "error": message, "exit_code": 3, "ended": now}
            due = now + _LEASE
            begun = {"state": "running", "attempts": row.attempts + 1, "due": due}
            is_given_up = row.attempts >= _ATTEMPTS
            change = update(job).where(*mine).values(failed if is_given_up else begun)
            connection.execute(change)
        if is_given_up:
            _note_interrupted(self._store, row.project, row.id)
            return None
        place = msgspec.json.decode(row.request, type=Place)

        def task(folder: Path) -> _Task:
            return _Task(self._settings, row.project, row.id, place, folder, row.created)

        process = SeparateProcess(_evaluated, task, "the evaluation")
        return _Running(row.project, row.id, due, process)

    def _look(self, one: _Running, now: float) -> _Running:
        """End an evaluation that a user stopped, or that another worker took; keep the others."""
        if one.process.is_stopped:
            one.process.stop(now)
            return one
        if self._state(one) != "running":
            one.process.stop(now)
        elif one.due - now < _LEASE / 2 and change_taken(self._store, job, one, due=now + _LEASE):
            return one._replace(due=now + _LEASE)
        return one

    def _end(self, one: _Running, answer: dict[str, Any], now: float) -> None:
        if self._state(one) is not None:
            _note_interrupted(self._store, one.project, one.id)
        if not one.process.is_stopped:
            state = "failed" if "error" in answer else "done"
            change_taken(self._store, job, one, state=state, ended=now, **answer)

    def _state(self, one: _Running) -> str | None:
        """Return its state; ``None`` if another worker took it."""
        mine = (job.c.project == one.project, job.c.id == one.id, job.c.due == one.due)
        with self._store.read() as connection:
            return connection.execute(select(job.c.state).where(*mine)).scalar()

    def _put_back(self, one: _Running) -> None:
        change_taken(self._store, job, one, state="waiting")


class _Task(msgspec.Struct):
    """The task of an evaluation's process."""

    settings: Settings
    project: int
    number: int
    place: Place
    folder: Path
    created: float


def _evaluated(task: _Task) -> dict[str, Any]:
    """Evaluate into a folder that pages show while it grows."""
    settings = task.settings
    store = open_store(settings.store)
    try:
        request = _read(get_one(store.bodies, task.place))
        request.check(settings)
        name = request.name or request.agent or "submitted"
        folder = _new_folder(task, name)
        cases = [_written(task.folder / "dataset", each) for each in request.dataset]
        if request.criteria is not None:
            criteria = request.criteria
            sent = sent_criteria(criteria.name, criteria.content.encode())
            (task.folder / "dataset" / CRITERIA).write_bytes(sent)
        common: ScoreOptions = {
            "name": name,
            "judge": judge_named(settings, request.judge),
            "gate": request.gate,
        }
        if settings.prices is not None:
            common["prices"] = msgspec.to_builtins(settings.prices)

        def begun(made: Path) -> None:
            mine = (job.c.project == task.project, job.c.id == task.number)
            with store.write() as connection:
                known = update(job).where(*mine).values(folder=str(made.resolve()))
                connection.execute(known)

        if request.agent is not None:
            return _answer(_played(request, settings, folder, cases, begun))
        recordings = task.folder / "recordings"
        recordings.mkdir()
        for number, each in enumerate(request.recordings):
            below = recordings / str(number)
            below.mkdir()
            write_upload(each.content, each.name, below, settings.limits)
        if request.conversations is not None:
            _write_records(store, task.project, request.conversations, recordings / "records.jsonl")
        traces = load_traces(recordings)
        return _answer(
            score_into(folder, traces, cases or None, request.evaluators, on_start=begun, **common)
        )
    finally:
        store.close()


def _new_folder(task: _Task, name: str) -> Path:
    """Return the path for the folder of an evaluation; remains of a killed attempt are removed."""
    below = Path(task.settings.folder) / "evaluations"
    stamp = datetime.fromtimestamp(task.created, UTC).strftime("%Y%m%dT%H%M%SZ")
    slug = re.sub(r"[^\w.-]+", "-", name)[:60].strip("-.") or "evaluation"
    folder = below / f"{stamp}-{task.number}-{slug}"
    make_folder(below)
    if folder.exists():
        shutil.rmtree(folder)
    return folder


def _answer(made: StoredEvaluation) -> dict[str, Any]:
    status = made.header.status
    return {"status": status, "exit_code": _EXIT_CODES.get(status, 3)}


def _played(
    request: EvaluationRequest,
    settings: Settings,
    folder: Path,
    cases: list[Path],
    begun: Callable[[Path], None],
) -> StoredEvaluation:
    """Have an agent play cases, like `baton eval` with a config or with an agent alone."""
    agent = settings.agents[str(request.agent)]
    options: EvaluateOptions = {"repeat": request.repeat}
    # A config has its own judge, or none, as for `baton eval`.
    is_own = request.judge is None and is_configured(agent)
    judge = None if is_own else judge_named(settings, request.judge)
    own_options = {
        # Without a name, one of a dataset in the folders is called as `baton eval` calls it.
        "name": request.name or (None if request.datasets else request.agent),
        "judge": judge,
        "gate": request.gate or None,
        "prices": None if is_configured(agent) else msgspec.to_builtins(settings.prices),
        "concurrency": request.concurrency,
        "retry_errors": request.retry_errors,
        "config": agent["config"] if is_configured(agent) else None,
    }
    options.update({name: value for name, value in own_options.items() if value is not None})  # type: ignore[typeddict-item]
    limits = request.thresholds
    chosen = [f"{n}:{limits[n]}" if n in limits else n for n in request.evaluators or ()]
    files = [*cases, *(_dataset(settings, name).path for name in request.datasets)]
    dataset: DatasetLike = files if request.cases is None else _some(files, request.cases)
    evaluators = None if request.evaluators is None else chosen
    return evaluate_into(folder, dataset, make_agent(agent), evaluators, on_start=begun, **options)


def _some(files: list[Path], wanted: list[str]) -> DatasetLike:
    """Choose cases of some files, as `FILE:case1,case2` where their names allow that."""
    cases = load_dataset(files)
    places = [place for place, case_id in enumerate(cases.ids) if case_id in set(wanted)]
    if not places:
        raise InputError(Problem(path="cases", message="none of the chosen cases exists"))
    if len(files) == 1 and not any("," in case_id for case_id in wanted):
        return [f"{files[0]}:{','.join(cases.ids[place] for place in places)}"]
    return cases.subset(places)


def judge_named(settings: Settings, name: str | None = None) -> Any:
    """Return the judge with a name, or the default one."""
    chosen = name or usual_judge(settings)
    return None if chosen is None else settings.judges[chosen]


def usual_judge(settings: Settings) -> str | None:
    """Return the name of the default judge: `default`, or the only one."""
    names = list(settings.judges)
    return "default" if "default" in names else names[0] if len(names) == 1 else None


def _written(folder: Path, file: NamedText) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / file.name
    path.write_text(file.content, encoding="utf-8")
    return path


def _write_records(store: Store, project: int, chosen: str, file: Path) -> None:
    """Write the records of the chosen conversations; raises InputError if there are none."""
    filter_ = filter_of(_chosen(chosen), queries.CONVERSATION_FIELDS)
    cursor: str | None = None
    count = 0
    with file.open("wb") as lines:
        while True:
            page = queries.conversations(store, project, filter_, limit=200, cursor=cursor)
            for row in page.items:
                lines.write(msgspec.json.encode(record_of(store, project, row.id)) + b"\n")
            count += len(page.items)
            cursor = page.next
            if cursor is None:
                break
            if count >= _MOST_CONVERSATIONS:
                message = f"more than {_MOST_CONVERSATIONS:,} conversations: choose fewer"
                raise InputError(Problem(path="conversations", message=message))
    if not count:
        raise InputError(Problem(path="conversations", message=f"no conversation meets `{chosen}`"))


class Progress(NamedTuple):
    """The progress of an evaluation. ``status`` is from the folder, ``running`` until it has ended.

    ``cost_usd`` is the cost of agents, as far as known, and is only set before the end; times are
    seconds since the epoch.
    """

    name: str
    status: str
    cases: dict[str, int]
    results: int
    planned: int | None
    started: float | None
    ended: float | None
    cost_usd: float | None = None


def progress_of(folder: Path) -> Progress:
    """Return the progress of the evaluation in a folder; raises InputError if there is none."""
    try:
        marks = [(folder / name).stat() for name in (HEADER, INDEX)]
    except OSError:
        raise InputError(f"there is no evaluation in {folder}") from None
    return _progress_read(folder, *((mark.st_mtime_ns, mark.st_size) for mark in marks))


@lru_cache(maxsize=512)
def _progress_read(folder: Path, *_: tuple[int, int]) -> Progress:
    """Read it again only when one of its files changed."""
    header = read_header(folder)
    started, ended = (_time_of(header.timings.get(name)) for name in ("started", "ended"))
    cases: dict[str, int] = {status: header.cases.get(status, 0) for status in STATUSES}
    if header.status not in UNFINISHED:
        total = sum(cases.values())
        return Progress(header.name, header.status, cases, total, header.planned, started, ended)
    cases = dict.fromkeys(STATUSES, 0)
    cost: float | None = None
    for row in rows_of(folder):
        cases[row.status] += 1
        spent = row.efficiency.cost_usd if row.efficiency is not None else None
        if spent is not None:
            cost = (cost or 0.0) + spent
    total = sum(cases.values())
    return Progress(header.name, header.status, cases, total, header.planned, started, ended, cost)


def _time_of(stated: object) -> float | None:
    """Read a time from a header; ``None`` if it is not a time."""
    try:
        return datetime.fromisoformat(str(stated)).timestamp()
    except ValueError:
        return None
