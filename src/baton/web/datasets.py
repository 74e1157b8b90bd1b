"""Datasets: their cases by agent and tag, changed as a form or as YAML, and run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from starlette.responses import Response
from starlette.routing import BaseRoute

from baton.evaluators.registry import all_evaluators
from baton.formats.document import Document
from baton.formats.evaluation_folder import INDEX
from baton.formats.evaluation_header import HEADER, read_header
from baton.model import InputError, Problem, Trace
from baton.model.mask_known_secrets import masked
from baton.server import jobs
from baton.server.access import Denied
from baton.server.api import check_may_run
from baton.server.settings import Settings
from baton.session.agent_under_test import AgentLike, is_configured
from baton.session.case_form import CaseForm, case_of_yaml, case_yaml, form_of, with_form
from baton.session.dataset_folders import (
    CaseRow,
    ChangedMeanwhile,
    DatasetFolders,
    DatasetRow,
)
from baton.store import rows_of

from . import lists
from .frame import NavItem, View, Visit, Web

NAV = NavItem("Datasets", "/datasets", "d")
_ROWS = 200
"""Cases that a page gets at once."""
_PREVIEW = 160
"""Characters of a message in the list of cases, so that a page of long documents stays small."""
WAIT = 0.5
"""Seconds that a page waits for files to be read; after that it reports that and reloads itself."""
_HISTORY = 30
"""Runs that a page lists, the newest ones."""


def routes(web: Web) -> list[BaseRoute]:
    """Return the routes of these pages."""
    return [
        web.page(NAV.path, _list),
        web.page("/datasets/{name:path}", _one),
        web.data("/data/datasets/cases", _cases),
        web.data("/data/datasets/case", _case),
        web.data("/data/datasets/run", _run_status),
        web.action("/do/datasets/create", _create, "run"),
        web.action("/do/datasets/rename", _rename, "run"),
        web.action("/do/datasets/delete", _delete, "run"),
        web.action("/do/datasets/save", _save, "run"),
        web.action("/do/datasets/remove", _remove, "run"),
        web.action("/do/datasets/run", _run, "run"),
    ]


def need_run(visit: Visit) -> None:
    """Refuse to run agents or change files if that was not allowed at the start.

    Raises:
        Denied: other machines can reach this server, and it was not allowed.
    """
    check_may_run(visit.state.live_settings())


def folders(visit: Visit) -> DatasetFolders:
    """Return the folders that the server was started with."""
    return DatasetFolders([Path(each) for each in visit.state.live_settings().datasets])


def context(visit: Visit) -> dict[str, Any]:
    """Return the choices for a run: agents, judges, evaluators; and the allowed actions."""
    settings = visit.state.live_settings()
    may_change = visit.may("run") and settings.may_run
    return {
        # Paths of agents and files are only shown to users who may run them.
        "agents": {
            name: [str(masked(word)) for word in _word(agent)] if may_change else []
            for name, agent in sorted(settings.agents.items())
        },
        "judges": sorted(settings.judges),
        "judge_words": _judge_words(settings) if may_change else {},
        "evaluators": _evaluators(),
        "may_change": may_change,
        "places": [each.name for each in folders(visit).places()],
    }


def _judge_words(settings: Settings) -> dict[str, dict[str, Any]]:
    """Return how `baton eval` names each judge, and whether it has further settings.

    The one without a name is the default.
    """
    words = {}
    for name, stated in settings.judges.items():
        given = {"model": stated} if isinstance(stated, str) else stated
        words[name] = {"model": given.get("model"), "more": len(given) > 1}
    usual = jobs.usual_judge(settings)
    return words if usual is None else {**words, "": words[usual]}


class _Evaluator(msgspec.Struct):
    name: str
    summary: str
    judged: bool
    threshold: bool


@lru_cache(maxsize=1)
def _evaluators() -> list[_Evaluator]:
    """Return the evaluators that a run may be asked for by their name."""
    known = []
    for entry in all_evaluators():
        fields = {each.name for each in msgspec.structs.fields(entry.target.options_type)}
        judged = "rubrics" in entry.target.__module__ or "judged" in entry.target.__module__
        if not entry.runs_code:
            known.append(_Evaluator(entry.type, entry.summary, judged, "threshold" in fields))
    return sorted(known, key=lambda each: (each.judged, each.name))


def _word(agent: AgentLike) -> list[str]:
    """Return how `baton eval` names an agent; empty if only a config can."""
    if isinstance(agent, str):
        return [agent]
    if is_configured(agent):
        variant = ["--variant", agent["provider"]] if agent.get("provider") else []
        return [agent["config"], *variant]
    if agent.get("type") == "adk_local":
        return [str(agent["path"])]
    if agent.get("type") == "adk_http":
        app = ["--app", agent["app_name"]] if agent.get("app_name") else []
        return [str(agent["endpoint_url"]), *app]
    return [agent["target"]] if agent.get("type") == "python" else []


class _Last(NamedTuple):
    """The outcome of a case the last time that it was played."""

    status: str
    evaluation: int


def last_results(visit: Visit, path: Path) -> tuple[dict[str, _Last], list[int]]:
    """Return the last result of each case of a dataset, and the evaluations that played it."""
    last: dict[str, _Last] = {}
    numbers = []
    for number, folder in jobs.folders_of(visit.state.store, visit.caller.project).items():
        played = _played(folder, path)
        if played is None:
            continue
        numbers.append(number)
        for case_id, status in played.items():
            last.setdefault(case_id, _Last(status, number))
    return last, numbers


def _played(folder: Path, path: Path) -> dict[str, str] | None:
    """Return the results of an evaluation by case; ``None`` if it did not play the dataset."""
    try:
        marks = [(folder / name).stat() for name in (HEADER, INDEX)]
        of, results = _results(folder, *((one.st_mtime_ns, one.st_size) for one in marks))
    except (OSError, InputError):  # removed by hand
        return None
    return results if str(path) in of else None


_ORDER = ("error", "failed", "passed", "skipped")


@lru_cache(maxsize=256)
def _results(folder: Path, *_: tuple[int, int]) -> tuple[set[str], dict[str, str]]:
    named = read_header(folder).dataset or []
    of = {each for name in named for each in (name, name.rpartition(":")[0])}
    statuses: dict[str, str] = {}
    for row in rows_of(folder):
        before = statuses.get(row.case_id, row.status)
        statuses[row.case_id] = min(before, row.status, key=_ORDER.index)
    return of, statuses


class _Stratum(NamedTuple):
    name: str
    cases: int
    passed: int
    failed: int


def _strata(cases: Sequence[CaseRow], last: dict[str, _Last], by: str) -> list[_Stratum]:
    total: Counter[str] = Counter()
    passed: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    for case in cases:
        names = getattr(case, by)
        total.update(names)
        if case.id in last:
            (passed if last[case.id].status == "passed" else failed).update(names)
    return [_Stratum(name, n, passed[name], failed[name]) for name, n in total.most_common(60)]


def _list(visit: Visit) -> View:
    asked = lists.read_whole(visit, NAV.path)
    rows = []
    every = folders(visit).datasets(WAIT)
    for dataset in every:
        expected = {name for case in dataset.cases for name in case.agents} if asked.words else ()
        if not asked.has_words(dataset.title, dataset.name, dataset.format, *expected):
            continue
        last, numbers = last_results(visit, dataset.path)
        known = [last[case.id].status for case in dataset.cases if case.id in last]
        rows.append(
            {
                "dataset": dataset,
                "passed": known.count("passed"),
                "failed": len(known) - known.count("passed"),
                "last": numbers[0] if numbers else None,
                "strata": _strata(dataset.cases, last, "agents")[:6],
            }
        )
    given = {"rows": rows, "asked": asked, "any": bool(every), **context(visit)}
    return View("datasets.html", given, "Datasets")


def _one(visit: Visit) -> View:
    dataset = _dataset(visit, visit.path["name"], WAIT)
    last, numbers = last_results(visit, dataset.path)
    known = [last[case.id].status for case in dataset.cases if case.id in last]
    history = [
        jobs.job_of(visit.state.store, visit.caller.project, each) for each in numbers[:_HISTORY]
    ]
    given = {
        "dataset": dataset,
        "agents_of": _strata(dataset.cases, last, "agents"),
        "tags_of": _strata(dataset.cases, last, "tags"),
        "passed": known.count("passed"),
        "failed": len(known) - known.count("passed"),
        "history": history,
        **context(visit),
    }
    return View("dataset.html", given, dataset.title)


def _dataset(visit: Visit, name: str, within: float | None = None) -> DatasetRow:
    """Return a dataset; with 0 for ``within``, only that it exists if it was not read yet."""
    try:
        return folders(visit).dataset(name, within)
    except KeyError:
        message = f"there is no dataset `{name[:200]}`"
        raise Denied(404, message, "the list of datasets has all of them") from None


def _cases(visit: Visit) -> Response:
    """Answer with the cases that match a text, an agent, a tag and a result."""
    dataset = _dataset(visit, visit.query("name") or "", WAIT)
    if dataset.reading:
        return visit.json({"reading": True})
    last, numbers = last_results(visit, dataset.path)
    chosen = _chosen(dataset, last, visit.query)
    shown = [
        {
            **case._asdict(),
            "message": case.message[:_PREVIEW],
            "status": last[case.id].status if case.id in last else None,
            "evaluation": last[case.id].evaluation if case.id in last else None,
        }
        for case in chosen[:_ROWS]
    ]
    store, project = visit.state.store, visit.caller.project
    running = [each for each in numbers[:3] if jobs.job_of(store, project, each).state == "running"]
    return visit.json(
        {
            "cases": shown,
            "matches": len(chosen),
            "total": len(dataset.cases),
            "path": str(dataset.path) if visit.may("run") else dataset.name,
            "hash": dataset.hash,
            "problem": dataset.problem,
            "adds": dataset.target is not None,
            "running": running,
        }
    )


def _chosen(
    dataset: DatasetRow, last: Mapping[str, _Last], given: Callable[[str], str | None]
) -> list[CaseRow]:
    """Return the cases that match a text, an agent, a tag and a result."""
    text = (given("text") or "").casefold()
    agent, tag, status = given("agent") or None, given("tag") or None, given("status") or None

    def is_chosen(case: CaseRow) -> bool:
        result = last[case.id].status if case.id in last else "never"
        return (
            (not text or text in case.id.casefold() or text in case.message.casefold())
            and (agent is None or agent in case.agents)
            and (tag is None or tag in case.tags)
            and (status is None or status == result)
        )

    return [case for case in dataset.cases if is_chosen(case)]


def _case(visit: Visit) -> Response:
    return visit.json(_shown(visit, visit.query("name") or "", visit.query("id") or ""))


def _shown(visit: Visit, name: str, case_id: str) -> dict[str, Any]:
    try:
        value, hash_ = folders(visit).case_value(name, case_id)
    except KeyError:
        message = f"there is no longer a case `{case_id[:200]}`"
        raise Denied(404, message, "load the list of cases again") from None
    return {"yaml": case_yaml(value), "form": form_of(value), "hash": hash_}


def _create(visit: Visit) -> Response:
    need_run(visit)
    kind = visit.value("kind")
    if kind not in ("adk", "baton"):
        raise InputError(Problem(path="kind", message="is `adk` or `baton`"))
    made = folders(visit).create(visit.value("place"), visit.value("title"), kind)  # type: ignore[arg-type]
    return visit.json({"name": made.name, "title": made.title})


def _rename(visit: Visit) -> Response:
    need_run(visit)
    name = visit.value("name")
    _dataset(visit, name)
    try:
        renamed = folders(visit).rename(name, visit.value("title"), visit.value("hash"))
    except ChangedMeanwhile as error:
        return _conflict(visit, error)
    return visit.json({"name": renamed.name})


def _delete(visit: Visit) -> Response:
    need_run(visit)
    name = visit.value("name")
    _dataset(visit, name)
    try:
        folders(visit).delete(name, visit.value("hash"))
    except ChangedMeanwhile as error:
        return _conflict(visit, error)
    return visit.json({})


def _conflict(visit: Visit, error: ChangedMeanwhile, **more: Any) -> Response:
    body = {"error": str(error), "do": "", **more}
    return visit.json(body, 409)


def _save(visit: Visit) -> Response:
    """Save a case that was edited as a form or as YAML; a new one has no ``id`` yet."""
    need_run(visit)
    name, case_id = visit.value("name"), visit.value("id")
    _dataset(visit, name, 0)
    datasets = folders(visit)
    if not case_id:
        return _saved(visit, datasets.add_case(name, case_of_yaml(visit.value("yaml"))))
    try:
        value, _ = datasets.case_value(name, case_id)
        if visit.form.get("yaml"):
            changed = case_of_yaml(visit.value("yaml"))
        else:
            form = Document("form", visit.value("form").encode(), "json").decode(CaseForm)
            changed = with_form(value, form)
        return _saved(visit, datasets.change_case(name, case_id, changed, visit.value("hash")))
    except ChangedMeanwhile as error:
        return _conflict(visit, error, current=_shown(visit, name, case_id))
    except KeyError:
        message = f"there is no longer a case `{case_id[:200]}`"
        raise Denied(404, message, "load the list of cases again") from None


def _saved(visit: Visit, notes: list[str]) -> Response:
    return visit.json({"notes": notes})


def _remove(visit: Visit) -> Response:
    need_run(visit)
    name = visit.value("name")
    _dataset(visit, name, 0)
    hashes = dict(zip(visit.form.get("id", []), visit.form.get("hash", []), strict=False))
    try:
        return _saved(visit, folders(visit).delete_cases(name, hashes))
    except ChangedMeanwhile as error:
        return _conflict(visit, error)
    except KeyError as error:
        message = f"there is no longer a case {error}"
        raise Denied(404, message, "load the list of cases again") from None


def captured(visit: Visit, trace: Trace) -> Response:
    """Save a record as a case of the dataset and under the name that a form has."""
    name = visit.value("name")
    _dataset(visit, name)
    return _saved(visit, folders(visit).add_session(name, visit.value("case").strip(), trace))


def _run(visit: Visit) -> Response:
    """Start the evaluation that `baton eval` would start; pressed twice, it starts once."""
    need_run(visit)
    name = visit.value("name")
    form = visit.form
    # The cases of a filter are known once the file is read; otherwise a worker reads it anyway.
    dataset = _dataset(visit, name, None if "filtered" in form else 0)

    def number(field: str) -> int | None:
        text = (form.get(field) or [""])[-1].strip()
        if not text:
            return None
        if not text.isdecimal():
            raise InputError(Problem(path=field, message=f"`{text[:40]}` is not a whole number"))
        return int(text)

    thresholds = {}
    for each in form.get("threshold", []):
        evaluator, _, text = each.partition("=")
        if text.strip():
            try:
                thresholds[evaluator] = float(text)
            except ValueError:
                message = f"`{text[:40]}` is not a number"
                raise InputError(Problem(path=f"thresholds.{evaluator}", message=message)) from None
    evaluators = form.get("evaluator") or None
    cases = form.get("case") or None
    if "filtered" in form:
        # All matches of the filter, which may be more than a page has.
        last, _ = last_results(visit, dataset.path)
        left = _chosen(dataset, last, lambda field: (form.get(f"only_{field}") or [""])[-1])
        cases = [case.id for case in left]
    request: dict[str, Any] = {
        "agent": visit.value("agent"),
        "datasets": [name],
        "cases": cases,
        "evaluators": evaluators,
        "thresholds": {key: each for key, each in thresholds.items() if key in (evaluators or ())},
        "judge": (form.get("judge") or [""])[-1] or None,
        "concurrency": number("concurrency"),
        "retry_errors": number("retries"),
        "repeat": number("repeat") or 1,
    }
    given = {key: each for key, each in request.items() if each is not None}
    job = jobs.submit(
        visit.state.store,
        visit.caller.project,
        visit.caller.name,
        msgspec.json.encode(given),
        visit.state.live_settings(),
        once=True,
    )
    return visit.json({"id": job.id})


def _run_status(visit: Visit) -> Response:
    """Return the progress of an evaluation, and its results for the shown cases."""
    number = visit.query("id") or ""
    store, project = visit.state.store, visit.caller.project
    try:
        job = jobs.job_of(store, project, int(number))
    except (KeyError, ValueError):
        raise Denied(404, f"there is no evaluation {number[:40]}", "load the page again") from None
    try:
        rows = list(rows_of(jobs.folder_of(store, project, job.id)))
    except (KeyError, InputError):
        rows = []  # it has no folder yet
    dataset = _dataset(visit, visit.query("name") or "", 0)
    last, _ = last_results(visit, dataset.path)
    shown = {case.id for case in _chosen(dataset, last, visit.query)[:_ROWS]}
    results: dict[str, str] = {}
    for row in rows:
        if row.case_id in shown:
            before = results.get(row.case_id, row.status)
            results[row.case_id] = min(before, row.status, key=_ORDER.index)
    return visit.json({"job": job, "results": results})
