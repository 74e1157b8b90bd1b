"""Evaluations: the list, one of them also while it runs, and two compared."""

from __future__ import annotations

import io
import time
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from shlex import join as shell_line
from statistics import fmean
from typing import Any, NamedTuple

from starlette.responses import Response
from starlette.routing import BaseRoute

from baton.gate.compare_axes import PASSED, Axis, AxisChange
from baton.gate.compare_evaluations import Compared, axis_line, figures
from baton.model import InputError, Location
from baton.model.score import WORST_FIRST
from baton.model.visible import visible_line
from baton.reports.html.page import (
    case_view,
    first_input,
    reason_of,
    write_html,
)
from baton.server import jobs
from baton.server.access import Denied
from baton.server.store import DEFAULT
from baton.session.compare import compare
from baton.session.server_rows import EvaluationJob

from .evaluation_data import (
    Opened,
    PageData,
    marks_of,
    open_evaluation,
    page_data,
)
from .frame import NavItem, View, Visit, Web

NAV = NavItem("Evaluations", "/evaluations", "e")
_ROWS = 50
"""Evaluations of a page of the list."""
_LISTED = 2000
"""Evaluations that a filter looks through."""
_MOST_CHANGED = 200
"""Maximum cases that a comparison lists; it counts the others."""
_OPEN = ("waiting", "running")


def routes(web: Web) -> list[BaseRoute]:
    """Return the routes of these pages."""
    one = f"{NAV.path}/{{id:int}}"
    data = f"/data{NAV.path}/{{id:int}}"
    return [
        web.page(NAV.path, _list),
        web.page(f"{NAV.path}/rows", _rows_part),
        web.page(f"{NAV.path}/compare", _compare),
        web.page(f"{NAV.path}/compare/case", _compare_case),
        web.page(one, _one),
        web.page(f"{one}/cases/{{position:int}}", _one),
        web.page(f"{one}/report.html", _report),
        web.data(data, _state),
        web.data(f"{data}/list", _list_data),
        web.data(f"{data}/texts", _texts),
        web.data(f"{data}/cases/{{position:int}}", _case),
        web.action(f"{one}/stop", _stop, "run"),
        web.action(f"{one}/again", _again, "run"),
    ]


class _Chosen(NamedTuple):
    """The filter of the list."""

    name: str
    state: str

    def meets(self, one: EvaluationJob) -> bool:
        """Return whether an evaluation is listed."""
        words = self.name.casefold().split()
        text = f"{one.id} {one.name or ''} {one.by}".casefold()
        return all(word in text for word in words) and self.state in ("", _outcome(one))


def _outcome(one: EvaluationJob) -> str:
    """Return an evaluation's status as a word, or its state while it has no status."""
    if one.state == "failed":
        return "stopped" if (one.error or "").startswith("stopped by ") else "error"
    return one.status or one.state


_OUTCOMES = ("running", "waiting", "passed", "failed", "error", "stopped")


def _list(visit: Visit) -> View:
    context = _listed(visit)
    host = f"{visit.request.url.scheme}://{visit.request.url.netloc}"
    project = "" if visit.project == DEFAULT else f" --project {visit.project}"
    command = f"baton submit cases.yaml --agent NAME --server {host}{project}"
    return View("evaluations.html", {**context, "command_line": command}, "Evaluations")


def _rows_part(visit: Visit) -> View:
    """Return only the rows, which the page replaces while something runs."""
    return View("evaluation_rows.html", _listed(visit))


def _listed(visit: Visit) -> dict[str, Any]:
    chosen = _Chosen(visit.query("name") or "", visit.query("state") or "")
    if chosen.state not in ("", *_OUTCOMES):
        raise InputError(f"`state` is one of {', '.join(_OUTCOMES)}, not `{chosen.state[:50]}`")
    store, project = visit.state.store, visit.caller.project
    before = _number(visit, "before")
    rows: list[EvaluationJob] = []
    looked, more = 0, True
    while more and len(rows) <= _ROWS and looked < _LISTED:
        page = jobs.jobs_of(store, project, _ROWS + 1, before)
        more = len(page) > _ROWS
        looked += len(page)
        rows += [one for one in page if chosen.meets(one)]
        before = page[-1].id if page else None
    asked = {name: visit.query(name) for name in ("name", "state", "before")}
    return {
        "rows": [(one, _outcome(one)) for one in rows[:_ROWS]],
        "rows_address": visit.link(f"{NAV.path}/rows", **asked),
        "chosen": chosen,
        "outcomes": _OUTCOMES,
        "next": rows[_ROWS - 1].id if len(rows) > _ROWS else None,
        "live": any(one.state in _OPEN for one in rows[:_ROWS]),
        "filtered": bool(chosen.name or chosen.state or visit.query("before")),
    }


def _number(visit: Visit, name: str) -> int | None:
    """Read a number of the address.

    Raises:
        InputError: it is not one.
    """
    text = visit.query(name)
    if text is None:
        return None
    if not text.isascii() or not text.isdigit() or len(text) > 15:
        raise InputError(f"`{name}` is a number, not `{text[:50]}`")
    return int(text)


def _job(visit: Visit, number: int) -> EvaluationJob:
    try:
        return jobs.job_of(visit.state.store, visit.caller.project, number)
    except KeyError:
        said = f"there is no evaluation {number} in this project"
        raise Denied(404, said, "the list of evaluations has all of them") from None


def _opened(visit: Visit, number: int) -> Opened:
    """Open the folder of an evaluation.

    Raises:
        Denied: 404 if there is none.
    """
    try:
        folder = jobs.folder_of(visit.state.store, visit.caller.project, number)
    except KeyError:
        said = f"evaluation {number} has no results here"
        advice = "it has not started yet, or its folder was removed"
        raise Denied(404, said, advice) from None
    return open_evaluation(folder)


def _one(visit: Visit) -> View:
    number = visit.path["id"]
    job = _job(visit, number)
    try:
        opened: Opened | None = _opened(visit, number)
    except Denied:
        opened = None
    others = [
        one
        for one in jobs.jobs_of(visit.state.store, visit.caller.project, 200)
        if one.id != number and one.results
    ]
    # The probable choice: the previous one of the same name.
    others.sort(key=lambda one: (one.name != job.name, one.id > number, -one.id))
    host = f"{visit.request.url.scheme}://{visit.request.url.netloc}"
    project = "" if visit.project == DEFAULT else f" --project {visit.project}"
    context = {
        "job": job,
        "outcome": _outcome(job),
        "is_open": job.state in _OPEN,
        "progress": _progress(job, opened),
        "others": others[:100],
        "data": None if opened is None else _page_data(visit, job, opened),
        "position": visit.path.get("position"),
        "stored": None if opened is None else opened.stored.header,
        "left_out": 0 if opened is None else len(opened.rows) - len(opened.listed),
        "source": f"baton report --server {host}{project} {number}",
    }
    return View("evaluation.html", context, visible_line(job.name or f"Evaluation {number}"))


class _Going(NamedTuple):
    """The progress of an evaluation; ``rate`` is in cases per second, ``left`` in seconds."""

    results: int
    planned: int | None
    seconds: float | None
    rate: float | None
    left: float | None
    cost_usd: float | None


def _progress(job: EvaluationJob, opened: Opened | None) -> _Going | None:
    if opened is None:
        return None
    known: jobs.Progress = jobs.progress_of(opened.stored.folder)
    until = known.ended
    if job.state in _OPEN:
        until = time.time()
    elif until is None and job.ended is not None:
        until = job.ended.timestamp()
    seconds = None if known.started is None or until is None else max(0.0, until - known.started)
    rate = known.results / seconds if seconds and known.results else None
    left = None
    if rate and known.planned is not None and job.state in _OPEN:
        left = max(0, known.planned - known.results) / rate
    costs = [
        row.efficiency.cost_usd
        for row in opened.rows
        if row.efficiency is not None and row.efficiency.cost_usd is not None
    ]
    cost = sum(costs) if costs else None
    return _Going(known.results, known.planned, seconds, rate, left, cost)


def _page_data(visit: Visit, job: EvaluationJob, opened: Opened) -> PageData:
    return page_data(opened.stored.folder, job.state in _OPEN, visit.web.templates)


def _state(visit: Visit) -> Response:
    """Return the progress of an evaluation, for an open page."""
    job = _job(visit, visit.path["id"])
    try:
        opened: Opened | None = _opened(visit, visit.path["id"])
    except Denied:
        opened = None
    going = _progress(job, opened)
    return visit.json(
        {
            "state": job.state,
            "outcome": _outcome(job),
            "cases": job.cases,
            "progress": None if going is None else going._asdict(),
        }
    )


def _list_data(visit: Visit) -> Response:
    job, opened = _job(visit, visit.path["id"]), _opened(visit, visit.path["id"])
    return Response(_page_data(visit, job, opened).whole, media_type="application/json")


def _texts(visit: Visit) -> Response:
    """Return texts of some results by their numbers in the list: input, reason, and agents."""
    opened = _opened(visit, visit.path["id"])
    asked, listed = visit.query("rows"), opened.listed
    try:
        numbers: Sequence[int] = (
            range(len(listed)) if asked is None else [int(word) for word in asked.split(",")]
        )
        chosen = [(number, listed[number]) for number in numbers if number >= 0]
    except (ValueError, IndexError):
        raise InputError("`rows` are numbers of this list, with commas between them") from None
    results = [(number, opened.stored.result(row)) for number, row in chosen]
    return visit.json([[n, first_input(each.trace), reason_of(each)] for n, each in results])


def _case(visit: Visit) -> Response:
    """Return everything that is shown of a result; `repeat` counts from 0."""
    job, opened = _job(visit, visit.path["id"]), _opened(visit, visit.path["id"])
    position, repeat = visit.path["position"], _number(visit, "repeat")
    rows = [row for row in opened.at(position) if repeat in (None, row.repeat)]
    if not rows:
        said = f"evaluation {visit.path['id']} has no case {position}"
        raise Denied(404, said, "the page of the evaluation lists its cases")
    # Of several repeats, the user probably wants the worst one.
    row = min(rows, key=lambda row: (WORST_FIRST[row.status], row.repeat))
    result, trace_or_why = opened.stored.result_with_trace(row)
    rule = opened.stored.header.pass_rule
    needed = rule.get("mean") if isinstance(rule, dict) else None
    if job.made_here and result.where is not None:
        # The name of the sent file: its path on the server during the run is not revealed.
        name = Path(result.where.file).name
        result.where = Location(file=name, line=result.where.line)
    view = case_view(result, trace_or_why, needed)
    return visit.json({**view, "id": row.case_id, "repeat": row.repeat, "status": row.status})


def _report(visit: Visit) -> Response:
    """Return the one-file report, to be kept."""
    opened = _opened(visit, visit.path["id"])
    made = io.StringIO()
    write_html(opened.stored, made)
    name = f"evaluation-{visit.path['id']}.html"
    # Saved, not shown: its script is inside, which the policy of the pages does not allow.
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(made.getvalue(), headers=headers, media_type="text/html")


def _stop(visit: Visit) -> Response:
    number = visit.path["id"]
    _job(visit, number)
    jobs.stop(visit.state.store, visit.caller.project, number, visit.caller.name)
    return visit.redirect(f"{NAV.path}/{number}")


def _again(visit: Visit) -> Response:
    number = visit.path["id"]
    _job(visit, number)
    state = visit.state
    settings = state.live_settings()
    made = jobs.again(state.store, visit.caller.project, number, visit.caller.name, settings)
    return visit.redirect(f"{NAV.path}/{made.id}")


class _Axis(NamedTuple):
    """An axis as it is drawn; places are from 0 to 100 on a scale that all axes share."""

    change: AxisChange
    figures: str
    line: str
    low: float | None
    high: float | None
    value: float


class _Side(NamedTuple):
    job: EvaluationJob
    opened: Opened


def _side(visit: Visit, name: str) -> _Side:
    number = _number(visit, name)
    if number is None:
        raise InputError(f"`{name}` is missing: choose two evaluations in the list")
    job = _job(visit, number)
    return _Side(job, _opened(visit, number))


def _compare(visit: Visit) -> View | Response:
    """Compare two; with `of` twice, as the list sends it, the older one comes first."""
    of = sorted(int(each) for each in visit.request.query_params.getlist("of") if each.isdigit())
    if of:
        if len(of) != 2:
            raise InputError(f"choose two evaluations to compare, not {len(of)}")
        return visit.redirect(f"{NAV.path}/compare", before=of[0], after=of[1])
    before, after = _side(visit, "before"), _side(visit, "after")
    made, better = _compared(
        before.opened.stored.folder,
        after.opened.stored.folder,
        *marks_of(before.opened.stored.folder),
        *marks_of(after.opened.stored.folder),
    )
    context = {
        "before": before.job,
        "after": after.job,
        "made": made,
        "axes": _axes(made),
        "worse": made.cases[:_MOST_CHANGED],
        "better": better[:_MOST_CHANGED],
        "counts": (len(made.cases), len(better)),
        "source": _compare_command(before, after),
    }
    title = f"{before.job.name or before.job.id} and {after.job.name or after.job.id}"
    return View("compare.html", context, visible_line(title))


def _compare_command(before: _Side, after: _Side, **options: object) -> str:
    words = ["baton", "compare"]
    words += [f".baton/evaluations/{one.opened.stored.folder.name}" for one in (before, after)]
    for name, value in options.items():
        if value is not None:
            words += [f"--{name.replace('_', '-')}", str(value)]
    return shell_line(words)


@lru_cache(maxsize=16)
def _compared(before: Path, after: Path, *_: tuple[int, int]) -> tuple[Compared, list[_Better]]:
    """Compare again only when one of them changed: many cases take a second."""
    made = compare(before, after, force=True)
    return made, _better(made)


class _Better(NamedTuple):
    case: str
    before: float
    after: float


def _better(made: Compared) -> list[_Better]:
    """Return the cases that pass more often now, those that changed most first."""
    old, new = made.before.values(), made.after.values()
    rates: list[_Better] = []
    for case in old.keys() & new.keys():
        before, after = (side[case].values.get(Axis(PASSED)) for side in (old, new))
        if before and after and fmean(after) > fmean(before):
            rates.append(_Better(case, fmean(before), fmean(after)))
    return sorted(rates, key=lambda one: (one.before - one.after, one.case))


def _axes(made: Compared) -> list[_Axis]:
    ends = [0.05]
    for one in made.comparison.axes:
        apart = one.difference.difference
        ends += [abs(end) for end in (apart.value, apart.low, apart.high) if end is not None]
    most = max(ends)

    def place(value: float | None) -> float | None:
        return None if value is None else round(50 + 48 * value / most, 2)

    axes = []
    for one in made.comparison.axes:
        apart = one.difference.difference
        at = place(apart.value)
        assert at is not None  # noqa: S101 - a difference has a value
        axes.append(
            _Axis(one, figures(one), axis_line(one), place(apart.low), place(apart.high), at)
        )
    return axes


_REPEATS = ("before_repeat", "after_repeat")


def _compare_case(visit: Visit) -> View:
    before, after = _side(visit, "before"), _side(visit, "after")
    case = visit.query("case") or ""
    sides = []
    for side in (before, after):
        rows = [row for row in side.opened.rows if row.case_id == case]
        worst = min(rows, key=lambda row: (WORST_FIRST[row.status], row.repeat), default=None)
        sides.append((side.job, rows, worst))
    if not any(rows for _, rows, _ in sides):
        said = f"neither of them has a case `{visible_line(case)[:200]}`"
        raise Denied(404, said, "the comparison lists the cases that changed")
    repeats = [_number(visit, name) for name in _REPEATS]
    context = {
        "case": case,
        "source": _compare_command(
            before,
            after,
            case=case,
            **{
                name: None if repeat is None else repeat + 1
                for name, repeat in zip(_REPEATS, repeats, strict=True)
            },
        ),
        "before": before.job,
        "after": after.job,
        "sides": [
            {
                "job": job,
                "repeats": rows,
                "chosen": next((row for row in rows if row.repeat == repeat), worst),
            }
            for (job, rows, worst), repeat in zip(sides, repeats, strict=True)
        ],
    }
    return View("compare_case.html", context, visible_line(case))
