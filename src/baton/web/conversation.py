"""A conversation: what happened in short, its tree and lanes, dispatches, verdicts and comments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from urllib.parse import quote, urlencode

import msgspec
from markupsafe import Markup
from starlette.responses import Response
from starlette.routing import BaseRoute

from baton.datasets.draft import draft_yaml
from baton.datasets.labels import Label
from baton.evaluators.judged import Judged
from baton.evaluators.judging.question import Question
from baton.feed.blame import Blame, blame
from baton.feed.failures import failures_of
from baton.model import Content, InputError, Said, Score, ToolCall, Trace
from baton.model.redact import ON
from baton.reports.html.page import json_in_page, score_view
from baton.reports.html.run import Plain, card_view, facts_view, text_at, trace_view
from baton.runner.loop import run_anywhere
from baton.server import queries
from baton.server.access import Denied
from baton.server.labels import add_label, agreement_with_people, labels_of
from baton.server.rubrics import evaluator_of
from baton.session.server_rows import Conversation, ConversationRecord, ScoreRow

from .datasets import WAIT, folders, need_run
from .frame import View, Visit, Web
from .rendering import hue_of

PATH = "/conversations/{id:int}"
COMMENT = "comment"
"""The rubric of a label that is a comment: its ``note`` is the text, its ``subject`` a step, or the
first and last of some (``s3..s9``). No judge has this rubric, so calibrating leaves it out."""
_LARGEST = 600_000
"""Characters of all texts that a page loads before "show all"."""
_MOST = (20_000, 4_000, 1_000, 250, 60)
"""Characters of one text, of which the first is taken that keeps all texts to that."""
_CALLS = 1_000
"""Tool calls whose texts a page loads: those of others come when they are opened."""
_SCORES = 2_000
_NOTE = 10_000
_RIGHT_BY = "dispatch_correctness"
"""The rubric that "right" and "wrong" are about where no other judge looked at a dispatch."""


def routes(web: Web) -> list[BaseRoute]:
    """Return the routes of this page."""
    return [
        web.page(PATH, _page),
        web.page(PATH + "/head", _head),
        web.data(PATH + "/data", _data),
        web.data(PATH + "/text", _text),
        web.data(PATH + "/card", _card),
        web.data(PATH + "/facts", _facts),
        web.page(PATH + "/case.yaml", _case_file),
        web.action(PATH + "/labels", _label, "review"),
        web.action(PATH + "/cases", _save_case, "run"),
    ]


def _found(visit: Visit) -> ConversationRecord:
    id_ = visit.path["id"]
    there = queries.one_conversation(visit.state.store, visit.caller.project, id_)
    if there is None:
        raise Denied(
            404,
            f"there is no conversation {id_} in this project",
            "the list of conversations has all that are kept; others may be in another project, "
            "or of before this store",
        )
    return there


def _record(visit: Visit) -> Trace:
    there = _found(visit)
    if there.record is None:
        raise Denied(404, there.deleted or "its record is gone", "only its figures are kept")
    return there.record


def _page(visit: Visit) -> View:
    there = _found(visit)
    data = None
    if there.record is not None:
        plain = _plain(visit, there.conversation, there.record)
        data = Markup(json_in_page(plain))  # noqa: S704 - no text in it can end its element
    may_save = visit.may("run") and visit.state.live_settings().may_run
    context = _about(visit, there) | {
        "blamed": _blamed(visit, there),
        "data": data,
        "may_save": may_save,
        "folders": _datasets(visit) if may_save else [],
        "name": there.record.case or there.record.id if there.record is not None else "",
    }
    title = there.conversation.preview or there.conversation.key
    return View("conversation.html", context, title[:80])


def _blamed(visit: Visit, there: ConversationRecord) -> Blame | None:
    """Say what made a conversation fail, as far as the record proves it; ``None`` if none did."""
    one, record = there.conversation, there.record
    if not one.failed or record is None:
        return None
    chosen = queries.score_filter(f"conversation_id:{one.id} verdict:failed")
    rows = queries.scores(visit.state.store, visit.caller.project, chosen, limit=_SCORES).items
    failures = failures_of(record, [_as_score(row) for row in rows])
    return run_anywhere(blame(record, list(failures)))


def _head(visit: Visit) -> View:
    return View("conversation_head.html", _about(visit, _found(visit)))


def _about(visit: Visit, there: ConversationRecord) -> Plain:
    one = there.conversation
    path = f"/conversations/{one.id}"
    named = urlencode({"conversation": one.key})
    host = visit.request.url.netloc
    return {
        "one": one,
        "deleted": there.deleted,
        "path": path,
        "seconds": one.ended.timestamp() - one.started.timestamp()
        if one.ended is not None and one.started is not None
        else None,
        "shell": f"baton show 'server://{host}/{quote(visit.project)}?{named}'",
        "addresses": {
            name: visit.link(f"{path}/{name}")
            for name in ("data", "text", "card", "facts", "labels", "cases", "head")
        },
    }


def _data(visit: Visit) -> Response:
    there = _found(visit)
    if there.record is None:
        return visit.json({"deleted": there.deleted})
    if visit.query("stamp") == _stamp(there.conversation):
        return visit.json({"same": True})
    return visit.json(_plain(visit, there.conversation, there.record))


def _stamp(one: Conversation) -> str:
    """Return what changes when more of a conversation was read, or it is over."""
    return f"{one.version}-{one.state}-{one.spans}-{one.read.timestamp():.3f}"


def _plain(visit: Visit, one: Conversation, record: Trace) -> Plain:
    """Return what the scripts draw; texts are cut further where it would be too much."""
    store, project = visit.state.store, visit.caller.project
    chosen = queries.score_filter(f"conversation_id:{one.id}")
    rows = queries.scores(store, project, chosen, limit=_SCORES).items
    labels = labels_of(store, project, conversation_id=one.id, limit=1000).items
    about: Plain = {
        "stamp": _stamp(one),
        "state": one.state,
        "labels": [label for label in labels if label.rubric != COMMENT],
        "comments": [label for label in labels if label.rubric == COMMENT],
        "rubrics": _rubrics(visit, rows),
        "hues": {name: int(hue_of(name)[4:]) for name in _agents(record)},
        "may_label": visit.may("review"),
        "scores": list(_scores(visit, rows)),
    }
    at_fault = {id_ for row in rows if row.status == "failed" for id_ in row.subject}
    return about | {
        "trace": trace_view(
            record, most=_fitting(record), calls=_CALLS, failed=at_fault, cards="runs"
        )
    }


def _fitting(record: Trace) -> int:
    """Return how long texts may be, so that all of them together are not too much for a page."""
    lengths: list[int] = []
    for turn in record.turns:
        contents = [turn.input, turn.output]
        contents += [each for run in turn.runs for each in (run.input, run.output)]
        contents += [each for made in turn.dispatches for each in (made.prompt, made.result)]
        for run in turn.runs:
            for step in run.steps:
                if isinstance(step, Said):
                    contents.append(step.content)
                elif isinstance(step, ToolCall):
                    contents += [step.result, Content(data=step.arguments)]
        lengths += [len(each.plain()) for each in contents if each is not None]
    fitting = (most for most in _MOST if sum(min(n, most) for n in lengths) <= _LARGEST)
    return next(fitting, _MOST[-1])


def _agents(record: Trace) -> set[str]:
    names = {run.agent for turn in record.turns for run in turn.runs}
    for turn in record.turns:
        for dispatch in turn.dispatches:
            names |= {dispatch.to_agent, dispatch.from_agent or dispatch.to_agent}
    return names


def _rubrics(visit: Visit, rows: Sequence[ScoreRow]) -> list[str]:
    """Return what a dispatch can be labelled by: the judges that looked at it, and of the rules."""
    names = [row.type for row in rows if row.judge is not None and row.unit == "dispatch"]
    for rule in visit.state.live_settings().live_rules.rules:
        for part in rule.judged:
            each = (planned.evaluator for planned in part.plan.evaluators)
            names += [one.type for one in each if isinstance(one, Judged)]
    return list(dict.fromkeys([*names, _RIGHT_BY]))


def _scores(visit: Visit, rows: Sequence[ScoreRow]) -> Iterator[Plain]:
    judged = {row.type for row in rows if row.judge is not None}
    told = {type_: _calibration(visit, type_) for type_ in judged}
    for row in rows:
        view = score_view(_as_score(row))
        view |= {"rule": row.rule}
        if row.judge is not None:
            view["question"] = {"text": "", "more": 1, "at": f"question/{row.id}"}
            view["calibration"] = told[row.type]
        yield view


def _as_score(row: ScoreRow) -> Score:
    named = {name: getattr(row, name) for name in Score.__struct_fields__ if hasattr(row, name)}
    return msgspec.convert(
        named | {"version": row.evaluator_version, "reason": row.reason or ""}, Score
    )


def _calibration(visit: Visit, type_: str) -> str:
    try:
        evaluator = evaluator_of(visit.state.live_settings(), visit.project, type_)
    except InputError:
        return "its rubric is not known here any more"
    labels, same = agreement_with_people(visit.state.store, visit.caller.project, evaluator)
    if not labels:
        return "nothing that it judges has been labelled here yet"
    return f"people said the same on {same} of {labels} that they labelled here"


def _text(visit: Visit) -> Response:
    at = visit.query("at") or ""
    kind, _, number = at.partition("/")
    record = _record(visit)
    if kind == "question" and number.isdigit():
        return visit.json({"text": _question(visit, record, int(number))})
    text = text_at(record, at)
    if text is None:
        raise Denied(404, "this text is not in the record any more", "load the page again")
    return visit.json({"text": text})


def _question(visit: Visit, record: Trace, score: int) -> str:
    """Return what a judge was asked: put together from the record once more."""
    chosen = queries.score_filter(f"conversation_id:{visit.path['id']}")
    rows = queries.scores(visit.state.store, visit.caller.project, chosen, limit=_SCORES).items
    row = next((each for each in rows if each.id == score), None)
    if row is None:
        raise Denied(404, "this score was replaced by a newer one", "load the page again")
    rule = visit.state.live_settings().live_rules.named(row.rule)
    if rule is None:
        return "The rule that asked is no longer in server.yaml, so its question is not known."
    for part in rule.judged:
        for planned in part.plan.evaluators:
            evaluator = planned.evaluator
            if not isinstance(evaluator, Judged) or evaluator.name != row.evaluator:
                continue
            for subject in evaluator.subjects(record, None, part.plan.context):
                if subject.id not in row.subject:
                    continue
                question = evaluator.question(subject)
                if not isinstance(question, Question):
                    return f"It could not be asked now: {question.says}"
                request = question.request
                asked = f"{request.instructions}\n\n{request.content}"
                if (row.judge or {}).get("rubric_version") != request.version:
                    changed = f"The rubric is now version {request.version}; this is its question."
                    return f"{changed}\n\n{asked}"
                return asked
    return "The rule does not ask this any more, so its question is not known."


def _card(visit: Visit) -> Response:
    return visit.json(_of_dispatch(card_view(_record(visit), visit.query("dispatch") or "")))


def _facts(visit: Visit) -> Response:
    return visit.json(_of_dispatch(facts_view(_record(visit), visit.query("dispatch") or "")))


def _of_dispatch(made: Plain | None) -> Plain:
    if made is None:
        raise Denied(404, "this dispatch is not in the record any more", "load the page again")
    return made


def _label(visit: Visit) -> Response:
    record = _found(visit)
    note = (visit.form.get("note") or [""])[-1].strip()
    if len(note) > _NOTE:
        raise InputError(f"a comment has up to {_NOTE:,} characters, this one {len(note):,}")
    rubric, value = visit.value("rubric"), visit.value("value")
    if rubric == COMMENT and not note:
        raise InputError("the comment is empty: write what you see")
    line = {
        "trace": record.conversation.key,
        "subject": visit.value("subject"),
        "rubric": rubric,
        "value": value,
        "origin": "page",
        **({"note": note} if note else {}),
    }
    label: Label = add_label(visit.state.store, visit.caller, msgspec.json.encode(line))
    return visit.json(label)


def _case_file(visit: Visit) -> Response:
    record = ON.trace(_record(visit))
    name = f"conversation-{visit.path['id']}.yaml"
    return Response(
        draft_yaml([record]),
        media_type="application/yaml",
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )


def _datasets(visit: Visit) -> list[str]:
    if not visit.state.live_settings().may_run:
        return []
    # One that is not read yet may take cases; saving says where it does not.
    listed = folders(visit).datasets(WAIT)
    return [row.name for row in listed if row.reading or row.target is not None]


def _save_case(visit: Visit) -> Response:
    need_run(visit)
    record = _record(visit)
    name, case = visit.value("dataset"), visit.value("case").strip()
    try:
        notes = folders(visit).add_session(name, case, record)
    except KeyError:
        raise InputError(f"there is no dataset `{name}`: load the page again") from None
    return visit.json({"dataset": name, "case": case, "notes": notes})
