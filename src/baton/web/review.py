"""Review: dispatches that wait for a label, one by one, and how far people agree.

A judge's verdict is shown only after a label, so that it does not influence the person.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from shlex import quote as shell_word
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, quote, unquote, urlencode

import msgspec
from starlette.responses import Response
from starlette.routing import BaseRoute

from baton.evaluators.judged import Judged
from baton.model import (
    Content,
    Dispatch,
    EvalContext,
    GotBack,
    HandedOff,
    InputError,
    Said,
    Step,
    ToolCall,
    Trace,
    known,
)
from baton.model.views import dispatch_view, round_trip
from baton.runner.judged_subjects import terms_of
from baton.server import queries
from baton.server.access import Denied
from baton.server.labels import add_label
from baton.server.review import (
    WHYS,
    Asked,
    Item,
    labels_of_dispatch,
    person,
    review,
    skip,
    take,
    verdicts_of_dispatch,
)
from baton.server.rubrics import evaluator_of, known_rubrics, rubrics_of_rules
from baton.server.store import DEFAULT
from baton.session.server_rows import Why
from baton.stats.calibration import FAILED, LEAST_ITEMS, PASSED

from . import lists
from .frame import NavItem, View, Visit, Web

NAV = NavItem("Review", "/review", "r")
REASONS: Mapping[Why, tuple[str, str]] = {
    "disputed": ("people differ", "two people gave different labels, and none has a majority"),
    "judges": ("judges differ", "two judges differ, or a judge passed what the record disproves"),
    "votes": ("close votes", "samples of a judge, or judges of a panel, voted differently"),
    "failed": ("failed", "a rule failed it"),
    "sample": ("sample", "drawn from all dispatches, the same ones for everybody"),
}
_USUAL = "dispatch_correctness"
_NAME = "baton_reviewer"
_KEYS = "123456789"


def routes(web: Web) -> list[BaseRoute]:
    """Return the routes of these pages."""
    return [
        web.page(NAV.path, _queue),
        web.action(f"{NAV.path}/next", _next, "review"),
        web.action(f"{NAV.path}/label", _label, "review"),
        web.action(f"{NAV.path}/skip", _skip, "review"),
        web.action(f"{NAV.path}/name", _name, "review"),
        web.action(f"{NAV.path}/views", _save_view, "review"),
        web.action(f"{NAV.path}/views/{{id:int}}/delete", _delete_view, "review"),
        web.page(f"{NAV.path}/{{conversation:int}}/{{subject:path}}", _item),
    ]


def project_evaluator(visit: Visit, name: str) -> Judged:
    """Return the evaluator of a rubric in a page's project; raises InputError if there is none."""
    return evaluator_of(visit.state.live_settings(), visit.project, name)


def _asked(visit: Visit, value: Any) -> Asked:
    """Read what is reviewed, from an address or a form.

    Raises:
        InputError: it is wrong.
    """
    given = {
        "rubric": value("rubric") or _usual(visit),
        "filter": value("filter"),
        "why": [each for each in (value("why") or "").split(",") if each],
        "share": value("share") or "0.1",
        "people": value("people") or "1",
        "by": reviewer(visit),
    }
    try:
        return msgspec.convert(given, Asked, strict=False)
    except msgspec.ValidationError as error:
        raise InputError(str(error).replace(" - at `$.", " - in `")) from None


def _from_form(visit: Visit) -> Asked:
    return _asked(visit, lambda name: (visit.form.get(name) or [""])[-1] or None)


def reviewer(visit: Visit) -> str:
    """Return the name that labels of this browser have."""
    stated = unquote(visit.request.cookies.get(_cookie(visit), ""))
    return person(visit.caller, stated[:200] or None)


def _cookie(visit: Visit) -> str:
    # Browsers send cookies to all ports of a machine, and each may be another server.
    return f"{_NAME}_{visit.request.scope['server'][1]}"


def _usual(visit: Visit) -> str:
    """Return the default rubric: the first one that rules use."""
    asked = rubrics_of_rules(visit.state.live_settings(), visit.project)
    return next((name for name, one in asked.items() if one.rubric.unit == "dispatch"), _USUAL)


def _state(asked: Asked) -> dict[str, Any]:
    """Return the parameters of a review's address, without default values."""
    return {
        "rubric": asked.rubric,
        "filter": asked.filter,
        "why": ",".join(asked.why),
        "share": None if asked.share == 0.1 else f"{asked.share:g}",
        "people": None if asked.people == 1 else asked.people,
    }


class Choice(NamedTuple):
    """A label that can be given: the key, the value, what it means, and whether it passes."""

    key: str
    value: str
    means: str
    passes: bool


def choices_of(evaluator: Judged) -> list[Choice]:
    """Return the labels of a rubric; none if the answer is a number on a scale."""
    terms = terms_of(evaluator)
    answer = evaluator.rubric.answer
    labels = answer.labels if terms.labels else None
    names = list(labels or ([] if answer.scale is not None else [PASSED, FAILED]))
    made = []
    for place, name in enumerate(names):
        value = terms.labels.get(name, {PASSED: 1.0, FAILED: 0.0}.get(name))
        means = labels[name].means if labels else ""
        key = _KEYS[place] if place < len(_KEYS) else ""
        made.append(Choice(key, name, means, value is not None and terms.passes(value)))
    return made


def _queue(visit: Visit) -> View:
    asked = _asked(visit, visit.query)
    evaluator = project_evaluator(visit, asked.rubric)
    by = reviewer(visit)
    seen = review(visit.state.store, visit.caller.project, evaluator, asked, by)
    state = _state(asked)
    chips = [
        {
            "name": REASONS[why][0],
            "means": REASONS[why][1],
            "count": seen.waiting.get(why),
            "on": why in asked.why,
            "href": visit.link(NAV.path, **{**state, "why": _toggled(asked.why, why)}),
        }
        for why in WHYS
    ]
    every = known_rubrics(visit.state.live_settings(), visit.project)
    in_rules = rubrics_of_rules(visit.state.live_settings(), visit.project)
    rubrics = [name for name, one in every.items() if one.rubric.unit == "dispatch"]
    context = {
        "asked": asked,
        "evaluator": evaluator,
        "by": by,
        "named": not visit.caller.proxied,
        "seen": seen,
        "chips": chips,
        "state": state,
        "reasons": REASONS,
        "rubrics": [each for each in rubrics if each in in_rules],
        "other_rubrics": sorted(each for each in rubrics if each not in in_rules),
        "total": sum(seen.waiting.values()),
        "full": any(count == seen.counted for count in seen.waiting.values()),
        "needed": LEAST_ITEMS,
        "previews": queries.previews(
            visit.state.store,
            visit.caller.project,
            {one.dispatch.conversation_id for one in seen.items},
        ),
        "item_link": lambda one: _link(visit, one.dispatch.conversation_id, one.dispatch.id, state),
        "command_line": _calibrate(visit, evaluator),
        "done": visit.query("done") is not None,
        "views": lists.views(visit, NAV.path),
        "query": _query(asked),
    }
    return View("review.html", context, "Review")


def _query(asked: Asked) -> str:
    """Return the state of a review as a saved view keeps it."""
    return urlencode({name: value for name, value in _state(asked).items() if value})


def _save_view(visit: Visit) -> Response:
    """Save what is reviewed under a name, for all who read the project."""
    given = dict(parse_qsl(visit.value("query")))
    asked = _asked(visit, given.get)
    project_evaluator(visit, asked.rubric)
    _ = asked.chosen  # a filter that is wrong is refused
    return lists.keep(visit, NAV.path, dict(parse_qsl(_query(asked))))


def _delete_view(visit: Visit) -> Response:
    lists.remove(visit)
    return visit.redirect(NAV.path)


def _toggled(chosen: Sequence[Why], why: Why) -> str:
    return ",".join(each for each in WHYS if (each in chosen) != (each == why))


def _link(visit: Visit, conversation: int, subject: str, state: Mapping[str, Any]) -> str:
    return visit.link(f"{NAV.path}/{conversation}/{quote(subject, safe='')}", **state)


def _calibrate(visit: Visit, evaluator: Judged) -> str:
    """Return the command that compares a judge with the labels."""
    url = visit.request.url
    scheme = "server+https" if url.scheme == "https" else "server"
    project = "" if visit.project == DEFAULT else f"/{quote(visit.project, safe='')}"
    where = shell_word(f"{scheme}://{url.netloc}{project}")
    return f"baton calibrate {shell_word(evaluator.type)} {where} -c baton.yaml"


def _next(visit: Visit) -> Response:
    asked = _from_form(visit)
    return _to_next(visit, asked, project_evaluator(visit, asked.rubric))


def _to_next(visit: Visit, asked: Asked, evaluator: Judged, **more: Any) -> Response:
    by = reviewer(visit)
    one = take(visit.state.store, visit.caller.project, evaluator, asked, by)
    if one is None:
        return visit.redirect(NAV.path, **_state(asked), done=1)
    state = {**_state(asked), **more}
    path = f"{NAV.path}/{one.dispatch.conversation_id}/{quote(one.dispatch.id, safe='')}"
    return visit.redirect(path, **state)


def _label(visit: Visit) -> Response:
    """Keep a label and continue to the next dispatch."""
    asked = _from_form(visit)
    evaluator = project_evaluator(visit, asked.rubric)
    item = _item_of(visit)
    trace, dispatch = _found(visit, item.conversation_id, item.subject)
    value = _value(evaluator, visit.value("value"))
    note = (visit.form.get("note") or [""])[-1].strip()[:10_000]
    line = {
        "trace": trace.id,
        "subject": dispatch.id,
        "rubric": evaluator.type,
        "value": value,
        "by": reviewer(visit),
        "origin": "review",
        **({"note": note} if note else {}),
    }
    add_label(visit.state.store, visit.caller, msgspec.json.encode(line))
    return _to_next(visit, asked, evaluator, last=f"{item.conversation_id}/{item.subject}")


def _value(evaluator: Judged, text: str) -> str | float:
    """Return a label of the rubric, or a number on its scale; raises InputError for any other."""
    names = [each.value for each in choices_of(evaluator)]
    if text in names:
        return text
    if names:
        raise InputError(f"`{text[:100]}` is not a label of `{evaluator.type}`: {', '.join(names)}")
    try:
        number = float(text.replace(",", "."))
        terms_of(evaluator).score(number)
    except ValueError:
        low, high = terms_of(evaluator).bounds
        raise InputError(f"`{text[:100]}` is not a number from {low:g} to {high:g}") from None
    return number


def _item_of(visit: Visit) -> Item:
    given = {name: visit.value(name) for name in ("rubric", "conversation_id", "subject")}
    try:
        return msgspec.convert(given, Item, strict=False)
    except msgspec.ValidationError as error:
        raise InputError(str(error)) from None


def _skip(visit: Visit) -> Response:
    asked, item = _from_form(visit), _item_of(visit)
    evaluator = project_evaluator(visit, asked.rubric)
    skip(visit.state.store, visit.caller.project, evaluator, item, reviewer(visit))
    return _to_next(visit, asked, evaluator)


def _name(visit: Visit) -> Response:
    """Set the name for labels from now on."""
    name = " ".join(visit.value("by").split())[:200]
    answer = visit.redirect(NAV.path, **_state(_from_form(visit)))
    answer.set_cookie(
        _cookie(visit),
        quote(name, safe=""),
        max_age=365 * 86_400,
        httponly=True,
        samesite="strict",
        secure=visit.request.url.scheme == "https",
    )
    return answer


def _found(visit: Visit, conversation: int, subject: str) -> tuple[Trace, Dispatch]:
    one = queries.one_conversation(visit.state.store, visit.caller.project, conversation)
    if one is None or one.record is None:
        why = "it is not there" if one is None else f"its record is gone: {one.deleted}"
        raise Denied(404, f"conversation {conversation} cannot be reviewed: {why}", _ADVICE)
    for turn in one.record.turns:
        for each in turn.dispatches:
            if each.id == subject:
                return one.record, each
    raise Denied(404, f"conversation {conversation} has no dispatch `{subject[:100]}`", _ADVICE)


_ADVICE = "the review page lists what waits for a label"


def _item(visit: Visit) -> View:
    asked = _asked(visit, visit.query)
    evaluator = project_evaluator(visit, asked.rubric)
    number, subject = visit.path["conversation"], visit.path["subject"]
    trace, dispatch = _found(visit, number, subject)
    by = reviewer(visit)
    given = labels_of_dispatch(
        visit.state.store, visit.caller.project, evaluator, (number, subject)
    )
    about = evaluator.subjects(trace, None, EvalContext(only=frozenset([subject])))
    state = _state(asked)
    terms = terms_of(evaluator)
    context = {
        "asked": asked,
        "evaluator": evaluator,
        "by": by,
        "trace": trace,
        "dispatch": dispatch,
        "dispatch_page": dispatch_page(trace, dispatch),
        "number": number,
        "choices": choices_of(evaluator),
        "bounds": terms.bounds,
        "mine": given.get(by),
        # Other people's labels are shown once the user has labelled it.
        "others": [one for name, one in given.items() if name != by] if by in given else [],
        "is_about": bool(about),
        "state": state,
        "last": _last(visit, evaluator, by, state),
        "queue_link": visit.link(NAV.path, **state),
        "conversation_link": visit.link(f"/conversations/{number}") + f"#d-{quote(subject)}",
    }
    title = f"Review {dispatch.from_agent or 'user'} → {dispatch.to_agent}"
    return View("review_item.html", context, title)


def _last(
    visit: Visit, evaluator: Judged, by: str, state: Mapping[str, Any]
) -> dict[str, Any] | None:
    """Return what was labelled just before, with the verdicts of judges and other people."""
    conversation, _, subject = (visit.query("last") or "").partition("/")
    if not conversation.isdecimal() or not subject:
        return None
    key = (int(conversation[:18]), subject)
    store, project = visit.state.store, visit.caller.project
    given = labels_of_dispatch(store, project, evaluator, key)
    if by not in given:
        return None
    return {
        "mine": given[by],
        "others": [one for name, one in given.items() if name != by],
        "judged": verdicts_of_dispatch(store, project, evaluator, key),
        "href": _link(visit, *key, state),
    }


class Line(NamedTuple):
    """A step as the page shows it: what it is, a headline, and a text below it."""

    kind: str
    head: str
    text: str = ""
    status: str = ""
    result: str | None = None
    agent: str | None = None


class DispatchPage(NamedTuple):
    """A dispatch from the user's message to what the caller did with the result."""

    user: str | None
    before: list[Line]
    prompt: str | None
    tools: list[str] | None
    received: str | None
    runs: list[tuple[str, str, list[Line]]]
    result: str | None
    status: str
    after: list[Line]
    unknown: list[str]


def dispatch_page(trace: Trace, dispatch: Dispatch) -> DispatchPage:
    """Gather what a person needs to judge a dispatch, as `baton label` shows it."""
    made = {one.id: one for turn in trace.turns for one in turn.dispatches}
    turn = next(each for each in trace.turns if any(d is dispatch for d in each.dispatches))
    view, trip = dispatch_view(trace, dispatch), round_trip(trace, dispatch)
    prompt = _text(dispatch.prompt) or dispatch.description
    run = next(iter(trip.runs), None)
    received = None if run is None else _text(run.input)
    tools = dispatch.tools_allowed
    unknown = [
        words
        for name, words in (("prompt", "what was asked"), ("result", "what came back"))
        if not known(trace, dispatch, name)
    ]
    return DispatchPage(
        user=_text(turn.input),
        before=_lines(view.before, made),
        prompt=prompt,
        tools=[tools] if isinstance(tools, str) else tools,
        received=None if received == prompt else received,
        runs=[(each.agent, each.status, _lines(each.steps, made)) for each in trip.runs],
        result=_text(trip.result),
        status=dispatch.status,
        after=_lines(trip.after, made),
        unknown=unknown,
    )


def _lines(steps: Sequence[Step], made: Mapping[str, Dispatch]) -> list[Line]:
    lines = []
    for step in steps:
        match step:
            case Said():
                kind = "thought" if step.thought else "said"
                lines.append(Line(kind, "", _text(step.content) or ""))
            case ToolCall() if step.dispatch is None:
                arguments = msgspec.json.encode(step.arguments).decode() if step.arguments else ""
                result = _text(step.result) or step.error
                lines.append(Line("call", step.name, arguments, step.status, result))
            case HandedOff() if step.dispatch in made:
                to = made[step.dispatch]
                lines.append(Line("hands", "", _text(to.prompt) or "", agent=to.to_agent))
            case GotBack() if step.dispatch in made:
                back = made[step.dispatch]
                lines.append(Line("back", "", _text(back.result) or "", agent=back.to_agent))
    return lines


def _text(content: Content | None) -> str | None:
    if content is None:
        return None
    if content.text is not None:
        return content.text
    if content.data is not None:
        return msgspec.json.format(msgspec.json.encode(content.data), indent=2).decode()
    return ", ".join(f"[{part.type} {part.mime or ''}]" for part in content.parts or ()) or None
