"""Collecting: dispatches of production become cases of a dataset, also those of one issue."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from shlex import join
from typing import NamedTuple

from starlette.responses import Response
from starlette.routing import BaseRoute

from baton.feed.collect import COUNT, FEWEST, GREEN, LEAST, MOST, Collected
from baton.feed.fixes import form_of
from baton.feed.issue_progress import Promoted, Promotion
from baton.feed.promote import PASSES, make_cases
from baton.model import Case, InputError, Problem
from baton.model.filter import filter_of
from baton.model.subjects import FIELDS
from baton.server.access import Denied
from baton.server.collecting import FromStore, collect_stored
from baton.server.issue_list import NoIssue, Progress, keep_progress, one_issue
from baton.server.store import DEFAULT
from baton.session.collect import cases_of, shortcomings

from . import lists
from .datasets import WAIT, folders, need_run
from .frame import View, Visit, Web

PATH = "/collect"
_OF_ISSUE = 20
"""Cases of an issue with passing neighbours."""


def routes(web: Web) -> list[BaseRoute]:
    """Return the routes of this page."""
    return [
        web.page(PATH, _page),
        web.action("/do/collect", _save, "run"),
    ]


class _Options(NamedTuple):
    """The options of a set; ``since`` is unparsed."""

    size: int
    seed: int
    filter: str
    failing: bool
    since: str
    issue: str | None

    @property
    def parameters(self) -> dict[str, str | int | None]:
        """The same as parameters of an address."""
        return {
            "count": self.size,
            "seed": self.seed or None,
            "filter": self.filter,
            "failing": "1" if self.failing else None,
            "since": self.since,
            "issue": self.issue,
        }


def _options(given: dict[str, str]) -> _Options:
    problems: list[Problem] = []

    def number(name: str, usual: int, least: int, most: int) -> int:
        text = given.get(name, "").strip() or str(usual)
        if not (text.isascii() and text.isdecimal() and least <= int(text[:9]) <= most):
            message = f"`{text[:40]}` is not a whole number from {least:,} to {most:,}"
            problems.append(Problem(path=name, message=message))
            return usual
        return int(text)

    issue = given.get("issue") or None
    failing = bool(given.get("failing"))
    free = failing or issue is not None
    options = _Options(
        size=number("count", _OF_ISSUE if issue else COUNT, 1 if free else FEWEST, MOST),
        seed=number("seed", 0, 0, 999_999),
        filter=given.get("filter", "").strip(),
        failing=failing,
        since=given.get("since", "").strip(),
        issue=issue,
    )
    if problems:
        raise InputError(problems)
    return options


def _choose(visit: Visit, options: _Options) -> FromStore:
    terms = lists.since_terms(options.since, "started")
    try:
        return collect_stored(
            visit.state.store,
            visit.caller.project,
            count=options.size,
            seed=options.seed,
            where=filter_of(options.filter, FIELDS["dispatch"]),
            failing=options.failing,
            since=terms[0].bounds[0][0].number if terms else None,
            issue=options.issue,
        )
    except NoIssue as error:
        raise Denied(404, str(error), "the list of issues has all of them") from None


def _page(visit: Visit) -> View:
    given = dict(visit.request.query_params)
    problem: InputError | None = None
    chosen: FromStore | None = None
    options = _Options(COUNT, 0, given.get("filter", ""), False, "", given.get("issue") or None)
    took = 0.0
    try:
        options = _options(given)
        if "count" in given or options.issue:
            began = time.perf_counter()
            chosen = _choose(visit, options)
            took = time.perf_counter() - began
    except InputError as error:
        problem = error
    may_save = visit.may("run") and visit.state.live_settings().may_run
    issue = None
    if options.issue is not None and problem is None:
        issue = one_issue(visit.state.store, visit.caller.project, options.issue, members=1).issue
    collected = chosen.collected if chosen is not None else None
    context = {
        "options": options,
        "chosen": chosen,
        "collected": collected,
        "issue": issue,
        "took": took,
        "notes": list(shortcomings(collected, options.size, failing=options.failing))
        if collected is not None
        else [],
        "problem": problem,
        "shell": _command(visit, options) if chosen is not None else "",
        "periods": lists.PERIODS,
        "limits": (FEWEST, MOST, LEAST, round(GREEN * 100)),
        "may_save": may_save,
        "sets": _sets(visit) if may_save else [],
        "places": [each.name for each in folders(visit).places()] if may_save else [],
    }
    return View("collect.html", context, "Collect a test set", 400 if problem else 200)


def _command(visit: Visit, options: _Options) -> str:
    """Return the command that writes the cases of this selection."""
    project = "" if visit.project == DEFAULT else f"/{visit.project}"
    words = ["baton", "collect", f"server://{visit.request.url.netloc}{project}"]
    words += ["--count", str(options.size)]
    if options.issue is not None:
        words += ["--issue", options.issue]
    if options.filter:
        words += ["--filter", options.filter]
    for term in lists.since_terms(options.since, "started"):
        since = datetime.fromtimestamp(term.bounds[0][0].number, UTC)
        words += ["--since", since.isoformat(timespec="seconds").replace("+00:00", "Z")]
    if options.failing:
        words.append("--failing")
    if options.seed:
        words += ["--seed", str(options.seed)]
    return join([*words, "-o", "cases/"])


def _sets(visit: Visit) -> list[str]:
    """Return the datasets that take cases of dispatches."""
    listed = folders(visit).datasets(WAIT)
    return [row.name for row in listed if row.target == "baton"]


def _save(visit: Visit) -> Response:
    """Write the shown set into a dataset; the choice is the same, as it only depends on ids."""
    need_run(visit)
    options = _options({name: values[-1] for name, values in visit.form.items()})
    collected = _choose(visit, options).collected
    if not collected.chosen:
        raise InputError("no dispatch can be chosen: none that matches the filters has a verdict")
    promoted: list[Promoted] = []
    if options.issue is None:
        cases = cases_of(collected)
    else:
        cases, promoted = _of_issue(visit, options.issue, collected)
    datasets = folders(visit)
    name = (visit.form.get("dataset") or [""])[-1]
    if not name:
        title = visit.value("title").strip()
        name = datasets.create(visit.value("place"), title, "baton").name
    try:
        datasets.add_recorded(name, cases)
    except KeyError:
        raise InputError(f"there is no dataset `{name}`: load the page again") from None
    if options.issue is None:
        return visit.redirect(f"/datasets/{name}")
    _link(visit, options.issue, name, promoted)
    return visit.redirect(f"/issues/{options.issue}")


def _of_issue(visit: Visit, key: str, collected: Collected) -> tuple[list[Case], list[Promoted]]:
    """Make cases of an issue: the expectations for each member, and passing neighbours."""
    one = one_issue(visit.state.store, visit.caller.project, key).issue
    form = form_of(one.subtype, has_dispatch=True) or "decision"
    failing = len(collected.chosen) - collected.green
    made = make_cases(one, collected.chosen, form=form, most=failing, neighbours=collected.green)
    return made.cases, [member for _, member in made.members]


def _link(visit: Visit, key: str, dataset: str, promoted: Sequence[Promoted]) -> None:
    """Link an issue with its cases: those that fail and should pass."""
    one = one_issue(visit.state.store, visit.caller.project, key, members=0)
    there = {each.case: each for each in one.promotion.cases} if one.promotion else {}
    there |= {each.case: each for each in promoted}
    promotion = Promotion(
        dataset=dataset, cases=list(there.values()), passes=PASSES, at=time.time()
    )
    keep_progress(visit.state.store, visit.caller, key, Progress(promotion=promotion))
