"""Rubrics: read, write and version them, and try one on dispatches before it is saved."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import unified_diff
from typing import Any, NamedTuple
from urllib.parse import quote

import msgspec
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute

from baton.evaluators.judging.rubric import Rubric
from baton.evaluators.judging.rubric_files import shipped
from baton.model import InputError
from baton.server.access import Denied
from baton.server.review import labelled_rubrics, verdict_counts
from baton.server.rubrics import (
    ChangedMeanwhileError,
    RubricText,
    ToSave,
    former_texts,
    own_files,
    rubric_of_text,
    rubric_text,
    rubrics_of_rules,
    save_rubric,
)
from baton.server.trials import (
    MOST,
    TrialRequest,
    start_trial,
    stop_trial,
    text_of_trial,
    trial_of,
)
from baton.session.server_rows import Trial, TrialAnswer

from . import lists
from .datasets import need_run
from .frame import NavItem, View, Visit, Web

NAV = NavItem("Rubrics", "/rubrics", "u")
_NEW = """\
name: my_rubric
summary: whether the result answers what was asked
unit: dispatch
version: "1"
threshold: 1
inputs: [call, result?]
prompt: |
  The question: does the result answer all that the caller asked for?
answer:
  choices:
    answered: {score: 1, means: all that was asked is in it}
    missing: {score: 0, means: something that was asked is not in it}
"""


def routes(web: Web) -> list[BaseRoute]:
    """Return the routes of these pages."""
    return [
        web.page(NAV.path, _list),
        web.page(f"{NAV.path}/new", _new),
        web.action(f"{NAV.path}/save", _save, "run"),
        web.action(f"{NAV.path}/check", _check, "read"),
        web.action(f"{NAV.path}/try", _try, "run"),
        web.page(f"{NAV.path}/trials/{{id:int}}", _trial),
        web.page(f"{NAV.path}/trials/{{id:int}}/part", _trial_part),
        web.action(f"{NAV.path}/trials/{{id:int}}/stop", _stop, "run"),
        web.page(f"{NAV.path}/{{name}}", _one),
    ]


class _Row(NamedTuple):
    """A rubric of the list."""

    name: str
    rubric: Rubric | None
    problems: Sequence[Any]
    own: bool
    in_rules: bool
    labels: int
    passed: int
    failed: int


def _list(visit: Visit) -> View:
    settings = visit.state.live_settings()
    asked = rubrics_of_rules(settings, visit.project)
    own = own_files(settings)
    project = visit.caller.project
    store = visit.state.store
    labels = labelled_rubrics(store, project)
    verdicts = verdict_counts(store, project, [one.name for one in asked.values()])

    def row(name: str, rubric: Rubric | None, mine: bool, problems: Sequence[Any] = ()) -> _Row:
        passed, failed = (verdicts.get((name, status), 0) for status in ("passed", "failed"))
        said = [_shown(each, settings.rubrics) for each in problems]
        given = labels.get(name, 0)
        return _Row(name, rubric, said, mine, name in asked, given, passed, failed)

    rows = [row(each.name, each.rubric, True, each.problems) for each in own]
    rows += [row(name, rubric, False) for name, rubric in shipped().items()]
    rows.sort(key=_usefulness)
    units = {each.unit: each.unit.replace("_", " ") for row in rows if (each := row.rubric)}
    wanted = lists.read_whole(
        visit, NAV.path, lists.Choice("unit", "unit", dict(sorted(units.items()))), _WHERE
    )
    context = {
        "rows": [row for row in rows if _is_asked(row, wanted)],
        "asked": wanted,
        "folder": settings.rubrics,
        "shown_folder": settings.rubrics if visit.may("run") else None,
        "may_write": bool(settings.rubrics) and settings.may_run and visit.may("run"),
        "answer_of": _answer_of,
        "path_of": lambda name: visit.link(_path(name)),
    }
    return View("rubrics.html", context, "Rubrics")


_WHERE = lists.Choice(
    "in",
    "use",
    {
        "own": "own",
        "rules": "in rules",
        "judged": "with verdicts",
        "labelled": "with labels",
        "broken": "with an error",
    },
)


def _is_asked(row: _Row, asked: lists.Whole) -> bool:
    rubric = row.rubric
    uses = {
        "own": row.own,
        "rules": row.in_rules,
        "judged": bool(row.passed + row.failed),
        "labelled": bool(row.labels),
        "broken": rubric is None,
        "": True,
    }
    shown: list[object] = [row.name, *row.problems]
    if rubric is not None:
        shown += [rubric.summary, rubric.unit, f"version {rubric.version}", _answer_of(rubric)]
    unit = asked.chosen["unit"]
    is_unit = not unit or (rubric is not None and rubric.unit == unit)
    return is_unit and uses[asked.chosen["in"]] and asked.has_words(*shown)


def _usefulness(row: _Row) -> tuple[bool, bool, bool, bool, str]:
    """Order rubrics: the user's own, those in use, those for dispatches, and others, by name."""
    of_dispatches = row.rubric is not None and row.rubric.unit == "dispatch"
    return not row.own, not row.in_rules, not row.labels, not of_dispatches, row.name


def _shown(problem: Any, folder: str | None) -> str:
    """Describe a problem with the name of the file, not with its folder."""
    return str(problem).removeprefix(f"{folder}/")


def _path(name: str) -> str:
    return f"{NAV.path}/{quote(name, safe='')}"


def _answer_of(rubric: Rubric) -> str:
    """Describe in a few words how a rubric is answered."""
    answer = rubric.answer
    if answer.scale is not None and not answer.labels:
        low, high = answer.scale.bounds
        return f"{low:g} to {high:g}"
    return " / ".join(answer.labels or ())


def _new(visit: Visit) -> View:
    """Start a rubric: an empty one, or a copy of an existing one under another name."""
    base = visit.query("from")
    text = _NEW
    if base is not None:
        text = rubric_text(visit.state.live_settings(), base).text
        lines = [
            f"name: my_{base}" if line.startswith("name:") else line
            for line in text.splitlines()
            if not line.startswith("aliases:")
        ]
        text = "\n".join(lines) + "\n"
    fresh = RubricText(name="", text=text, digest="", file="", own=True)
    return _editor(visit, fresh, title="New rubric", labels=base)


def _one(visit: Visit) -> View:
    settings = visit.state.live_settings()
    try:
        there = rubric_text(settings, visit.path["name"])
    except InputError as error:
        raise Denied(404, str(error), "the list has every rubric") from None
    problems = [_shown(each, settings.rubrics) for each in there.problems]
    return _editor(visit, there, problems=problems, title=there.name)


def _editor(
    visit: Visit,
    there: RubricText,
    *,
    title: str,
    problems: Sequence[str] = (),
    conflict: RubricText | None = None,
    fine: str | None = None,
    trial: Trial | None = None,
    labels: str | None = None,
    status: int = 200,
) -> View:
    settings = visit.state.live_settings()
    rubric: Rubric | None = None
    if not problems:
        try:
            rubric = rubric_of_text(there.text)
        except InputError as error:
            problems = [str(each) for each in error.problems]
    labelled = list(labelled_rubrics(visit.state.store, visit.caller.project))
    former = former_texts(settings, there.name) if there.own else []
    context = {
        "there": there,
        "rubric": rubric,
        "problems": problems,
        "conflict": conflict,
        "conflict_diff": _diff(conflict.text, there.text) if conflict else [],
        "fine": fine,
        "trial": trial,
        "answers": _sorted(trial),
        "folder": settings.rubrics,
        "judges": sorted(settings.judges),
        "budget": settings.trials,
        "most": MOST,
        "labelled": labelled,
        "labels_of": labels or there.name,
        "former": [(each, _diff(each.text, there.text)) for each in former],
        "may_write": bool(settings.rubrics) and settings.may_run and visit.may("run"),
        "in_rules": there.name in rubrics_of_rules(settings, visit.project),
        "rows": min(32 if trial is None else 18, max(14, there.text.count("\n") + 2)),
        # The server's paths are not shown to users who may only read.
        "shown_folder": settings.rubrics if visit.may("run") else None,
        "conversation_link": lambda one: (
            visit.link(f"/conversations/{one.conversation_id}") + f"#d-{quote(one.subject)}"
        ),
    }
    return View("rubric.html", context, title, status)


def _diff(before: str, after: str) -> list[str]:
    return list(unified_diff(before.splitlines(), after.splitlines(), n=2, lineterm=""))[2:]


def _given(visit: Visit) -> RubricText:
    """Return the text of the form; a browser writes lines with a carriage return."""
    text = visit.value("text").replace("\r\n", "\n")
    name = (visit.form.get("name") or [""])[-1]
    digest = (visit.form.get("digest") or [""])[-1]
    return RubricText(name=name, text=text, digest=digest, file="", own=True)


def _check(visit: Visit) -> View:
    given = _given(visit)
    title = given.name or "New rubric"
    try:
        rubric = rubric_of_text(given.text)
    except InputError as error:
        problems = [str(each) for each in error.problems]
        return _editor(visit, given, problems=problems, title=title, status=422)
    fine = f"`{rubric.name}` is a rubric: nothing is wrong with it."
    return _editor(visit, given, fine=fine, title=title)


def _save(visit: Visit) -> View | Response:
    need_run(visit)
    given = _given(visit)
    next_version = "next_version" in visit.form
    to_save = ToSave(text=given.text, digest=given.digest, next_version=next_version)
    title = given.name or "New rubric"
    try:
        kept = save_rubric(visit.state.live_settings(), to_save)
    except ChangedMeanwhileError as error:
        # The next attempt overwrites what is shown now.
        again = msgspec.structs.replace(given, digest=error.there.digest)
        return _editor(visit, again, conflict=error.there, title=title, status=409)
    except InputError as error:
        problems = [str(each) for each in error.problems]
        return _editor(visit, given, problems=problems, title=title, status=422)
    return visit.redirect(_path(kept.name), saved=1)


def _try(visit: Visit) -> View | Response:
    given = _given(visit)
    chosen = (visit.form.get("on") or ["labelled"])[-1] == "chosen"
    try:
        request = msgspec.convert(
            {
                "text": given.text,
                "judge": (visit.form.get("judge") or [""])[-1] or None,
                "on": "chosen" if chosen else "labelled",
                "labels": (visit.form.get("labels") or [""])[-1] or None,
                "filter": (visit.form.get("filter") or [""])[-1] or None,
                "most": (visit.form.get("most") or ["20"])[-1],
            },
            TrialRequest,
            strict=False,
        )
        settings = visit.state.live_settings()
        by, store = visit.caller.name, visit.state.store
        number = start_trial(store, visit.caller.project, by, request, settings)
    except msgspec.ValidationError as error:
        return _editor(visit, given, problems=[str(error)], title=given.name, status=422)
    except InputError as error:
        problems = [str(each) for each in error.problems]
        return _editor(visit, given, problems=problems, title=given.name, status=422)
    more = {"of": given.name, "digest": given.digest, "labels": request.labels}
    # The answers are below the text, which may be long.
    return RedirectResponse(visit.link(f"{NAV.path}/trials/{number}", **more) + "#answers", 303)


def _trial_there(visit: Visit) -> Trial:
    try:
        return trial_of(visit.state.store, visit.caller.project, visit.path["id"])
    except KeyError:
        message = f"there is no trial {visit.path['id']} in this project"
        raise Denied(
            404, message, "the list of rubrics leads to each, and Try starts one"
        ) from None


def _trial(visit: Visit) -> View:
    """Show the text on trial, as it was sent, and its result so far."""
    trial = _trial_there(visit)
    there = RubricText(
        name=visit.query("of") or "",
        text=text_of_trial(visit.state.store, visit.caller.project, trial.id),
        digest=visit.query("digest") or "",
        file="",
        own=True,
    )
    labels = visit.query("labels")
    return _editor(visit, there, trial=trial, title=f"Trying {trial.rubric}", labels=labels)


def _trial_part(visit: Visit) -> View:
    trial = _trial_there(visit)
    context = {
        "trial": trial,
        "answers": _sorted(trial),
        "conversation_link": lambda one: (
            visit.link(f"/conversations/{one.conversation_id}") + f"#d-{quote(one.subject)}"
        ),
    }
    return View("rubric_trial.html", context)


def _sorted(trial: Trial | None) -> list[TrialAnswer]:
    """Return answers; first those on which the judge and people, or two versions, differ."""
    if trial is None:
        return []

    def order(one: TrialAnswer) -> int:
        said = one.label or one.status
        people = {str(value) for value in one.people.values()}
        if people and said not in people:
            return 0
        return 1 if one.before is not None and one.before != said else 2 if not one.trouble else 3

    return sorted(trial.answers, key=order)


def _stop(visit: Visit) -> Response:
    number = visit.path["id"]
    stop_trial(visit.state.store, visit.caller.project, number)
    given = {name: (visit.form.get(name) or [""])[-1] for name in ("of", "digest", "labels")}
    return visit.redirect(f"{NAV.path}/trials/{number}", **given)
