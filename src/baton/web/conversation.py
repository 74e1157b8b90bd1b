"""A conversation: summary, tree and lanes, dispatches, verdicts and comments."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode
from weakref import WeakKeyDictionary

import msgspec
from markupsafe import Markup
from starlette.responses import Response
from starlette.routing import BaseRoute

from baton.datasets.draft_case import draft_yaml
from baton.datasets.labels import Label
from baton.evaluators.judged import Judged
from baton.evaluators.judging.judge_prompt import Question
from baton.feed.blame import Blame, blame
from baton.feed.failures import failures_of
from baton.model import Content, InputError, Said, Score, ToolCall, Trace
from baton.model.redact import ON
from baton.reports.html.page import json_in_page, score_view
from baton.reports.html.trace_view import Plain, card_view, facts_view, text_at, trace_view
from baton.runner.loop import run_anywhere
from baton.server import queries
from baton.server.access import Denied
from baton.server.labels import add_label, agreement_with_people, labels_of
from baton.server.queries import Stored
from baton.server.rubrics import evaluator_of
from baton.server.store import Store
from baton.session.server_rows import Conversation, ScoreRow

from .datasets import WAIT, folders, need_run
from .frame import View, Visit, Web
from .rendering import hue_of

PATH = "/conversations/{id:int}"
COMMENT = "comment"
"""The rubric of a label that is a comment: its ``note`` is the text, and its ``subject`` is a step
or a range of steps (``s3..s9``). No judge has this rubric, so calibration ignores it."""
_LARGEST = 600_000
"""Maximum characters of all texts that a page loads before "show all"."""
_MOST = (20_000, 4_000, 1_000, 250, 60)
"""Limits for the characters of one text; the first with which all texts fit is used."""
_CALLS = 1_000
"""Maximum tool calls whose texts a page loads; the texts of others are loaded when opened."""
_MOST_SCORES = 2_000
"""Maximum scores that a page reads, the newest ones: rescoring adds some for each dispatch."""
_KEPT = 16 << 20
"""Maximum characters of drawn records in memory: 25 records of 10,000 steps."""
_LONGEST_NOTE = 10_000
"""Maximum characters of a comment."""
_RIGHT_BY = "dispatch_correctness"
"""The rubric for "right" and "wrong" if no other judge examined a dispatch."""


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


def _stored(visit: Visit) -> Stored:
    id_ = visit.path["id"]
    there = queries.stored_conversation(visit.state.store, visit.caller.project, id_)
    if there is None:
        raise Denied(
            404,
            f"there is no conversation {id_} in this project",
            "the list of conversations has all that are kept; others may be in another project, "
            "or older than this store",
        )
    return there


def _record(visit: Visit) -> Trace:
    there = _stored(visit)
    record = there.record()
    if record is None:
        raise Denied(404, there.deleted or "its record is gone", "only its figures are kept")
    return record


def _page(visit: Visit) -> View:
    there = _stored(visit)
    rows = _rows(visit)
    drawn = DRAWN.get(visit, there, rows)
    data = None
    if drawn is not None:
        about = json_in_page(_about_scores(visit, there.conversation, rows, drawn.agents))
        # Both are JSON in which no text can end the element that it is in.
        data = Markup(f'{about[:-1]},"trace":{drawn.trace}}}')  # noqa: S704
    may_save = visit.may("run") and visit.state.live_settings().may_run
    context = _about(visit, there.conversation, there.deleted) | {
        "blamed": drawn.blamed if drawn is not None else None,
        "data": data,
        "may_save": may_save,
        "folders": _datasets(visit) if may_save else [],
        "name": drawn.name if drawn is not None else "",
    }
    title = there.conversation.preview or there.conversation.key
    return View("conversation.html", context, title[:80])


class _Drawing(NamedTuple):
    """The data of a record that a page shows: its trace as JSON, and more."""

    trace: str
    agents: list[str]
    name: str
    blamed: Blame | None


class _Drawings:
    """A cache of drawn records: one of 10,000 steps takes 50 ms to read and to serialise.

    A record is never changed in place: new data gives a new version. The faults found by scores are
    part of the drawing. Whether a record still exists is checked each time.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: WeakKeyDictionary[Store, OrderedDict[tuple[Any, ...], _Drawing]] = (
            WeakKeyDictionary()
        )

    def get(self, visit: Visit, there: Stored, rows: Sequence[ScoreRow]) -> _Drawing | None:
        """Return what a page shows; ``None`` if retention deleted the record."""
        if there.deleted is not None:
            return None
        failed = frozenset(row.id for row in rows if row.status == "failed")
        key = (*there.key, bool(there.conversation.failed), failed)
        with self._lock:
            kept = self._kept.setdefault(visit.state.store, OrderedDict())
            if key in kept:
                kept.move_to_end(key)
                return kept[key]
        record = there.record()
        if record is None:
            return None
        made = _Drawing(
            trace=json_in_page(_trace(record, rows)),
            agents=sorted(_agents(record)),
            name=record.case or record.id,
            blamed=_blamed(there.conversation, record, rows),
        )
        with self._lock:
            kept[key] = made
            while sum(len(each.trace) for each in kept.values()) > _KEPT and len(kept) > 1:
                kept.popitem(last=False)
        return made

    def clear(self) -> None:
        """Forget all drawings, to measure what the first view of a conversation takes."""
        with self._lock:
            self._kept.clear()


DRAWN = _Drawings()


def _rows(visit: Visit) -> list[ScoreRow]:
    """Return the scores of a conversation, the newest first."""
    chosen = queries.score_filter(f"conversation_id:{visit.path['id']}")
    store, project = visit.state.store, visit.caller.project
    return queries.scores(store, project, chosen, limit=_MOST_SCORES).items


def _blamed(one: Conversation, record: Trace, rows: Sequence[ScoreRow]) -> Blame | None:
    """Return what made a conversation fail, if the record proves it; ``None`` if nothing did."""
    if not one.failed:
        return None
    failed = [_as_score(row) for row in rows if row.status == "failed"]
    return run_anywhere(blame(record, list(failures_of(record, failed))))


def _head(visit: Visit) -> View:
    there = _stored(visit)
    return View("conversation_head.html", _about(visit, there.conversation, there.deleted))


def _about(visit: Visit, one: Conversation, deleted: str | None) -> Plain:
    path = f"/conversations/{one.id}"
    named = urlencode({"conversation": one.key})
    host = visit.request.url.netloc
    return {
        "one": one,
        "deleted": deleted,
        "path": path,
        "seconds": one.ended.timestamp() - one.started.timestamp()
        if one.ended is not None and one.started is not None
        else None,
        "shell": f"baton show 'server://{host}/{quote(visit.project)}?{named}'",
        "addresses": {
            name: visit.link(f"{path}/{name}")
            for name in ("data", "text", "card", "facts", "labels", "cases")
        },
        "head": visit.link(f"{path}/head"),
    }


def _data(visit: Visit) -> Response:
    there = _stored(visit)
    if there.deleted is not None:
        return visit.json({"deleted": there.deleted})
    if visit.query("stamp") == _stamp(there.conversation):
        return visit.json({"same": True})
    record, rows = _record(visit), _rows(visit)
    about = _about_scores(visit, there.conversation, rows, sorted(_agents(record)))
    return visit.json(about | {"trace": _trace(record, rows)})


def _stamp(one: Conversation) -> str:
    """Return what changes when more of a conversation was read, or it is over."""
    return f"{one.version}-{one.state}-{one.spans}-{one.read.timestamp():.3f}"


def _about_scores(
    visit: Visit, one: Conversation, rows: Sequence[ScoreRow], agents: Sequence[str]
) -> Plain:
    """Return what the scripts draw in addition to the trace: scores, labels and comments."""
    store, project = visit.state.store, visit.caller.project
    labels = labels_of(store, project, conversation_id=one.id, limit=1000).items
    return {
        "stamp": _stamp(one),
        "state": one.state,
        "labels": [label for label in labels if label.rubric != COMMENT],
        "comments": [label for label in labels if label.rubric == COMMENT],
        "rubrics": _rubrics(visit, rows),
        "hues": {name: int(hue_of(name)[4:]) for name in agents},
        "may_label": visit.may("review"),
        "scores": list(_scores(visit, rows)),
    }


def _trace(record: Trace, rows: Sequence[ScoreRow]) -> Plain:
    """Return the trace that the scripts draw; texts are shortened further if it is too large."""
    at_fault = {id_ for row in rows if row.status == "failed" for id_ in row.subject}
    most = _fitting(record)
    return trace_view(record, most=most, calls=_CALLS, failed=at_fault, cards="runs")


def _fitting(record: Trace) -> int:
    """Return how long texts may be, so that all of them together fit on a page."""
    lengths: list[int] = []
    calls = 0
    for turn in record.turns:
        contents = [turn.input, turn.output]
        contents += [each for run in turn.runs for each in (run.input, run.output)]
        contents += [each for made in turn.dispatches for each in (made.prompt, made.result)]
        for run in turn.runs:
            for step in run.steps:
                if isinstance(step, Said):
                    contents.append(step.content)
                elif calls < _CALLS and isinstance(step, ToolCall):
                    calls += 1
                    contents += [step.result, Content(data=step.arguments)]
        lengths += [
            len(each.plain() if each.text is None else each.text)
            for each in contents
            if each is not None
        ]
    # Most texts are short: those are added up once.
    long = [n for n in lengths if n > _MOST[-1]]
    short = sum(lengths) - sum(long)
    fits = (most for most in _MOST if short + sum(min(n, most) for n in long) <= _LARGEST)
    return next(fits, _MOST[-1])


def _agents(record: Trace) -> set[str]:
    names = {run.agent for turn in record.turns for run in turn.runs}
    for turn in record.turns:
        for dispatch in turn.dispatches:
            names |= {dispatch.to_agent, dispatch.from_agent or dispatch.to_agent}
    return names


def _rubrics(visit: Visit, rows: Sequence[ScoreRow]) -> list[str]:
    """Return the rubrics for labelling a dispatch: those of judges and rules that examined it."""
    names = [row.type for row in rows if row.judge is not None and row.unit == "dispatch"]
    for rule in visit.state.live_settings().live_rules.rules:
        for part in rule.judged:
            each = (planned.evaluator for planned in part.plan.evaluators)
            names += [one.type for one in each if isinstance(one, Judged)]
    return list(dict.fromkeys([*names, _RIGHT_BY]))


def _scores(visit: Visit, rows: Sequence[ScoreRow]) -> Iterator[Plain]:
    judged = {row.type for row in rows if row.judge is not None}
    calibrations = {type_: _calibration(visit, type_) for type_ in judged}
    for row in rows:
        view = score_view(_as_score(row))
        view |= {"rule": row.rule}
        if row.judge is not None:
            view["question"] = {"text": "", "more": 1, "at": f"question/{row.id}"}
            view["calibration"] = calibrations[row.type]
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
        return "its rubric is no longer known here"
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
        raise Denied(404, "this text is no longer in the record", "load the page again")
    return visit.json({"text": text})


def _question(visit: Visit, record: Trace, score: int) -> str:
    """Return what a judge was asked: combined from the record once more."""
    row = next((each for each in _rows(visit) if each.id == score), None)
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
    return "The rule no longer asks this, so its question is unknown."


def _card(visit: Visit) -> Response:
    return visit.json(_of_dispatch(card_view(_record(visit), visit.query("dispatch") or "")))


def _facts(visit: Visit) -> Response:
    return visit.json(_of_dispatch(facts_view(_record(visit), visit.query("dispatch") or "")))


def _of_dispatch(made: Plain | None) -> Plain:
    if made is None:
        raise Denied(404, "this dispatch is no longer in the record", "load the page again")
    return made


def _label(visit: Visit) -> Response:
    there = _stored(visit)
    note = (visit.form.get("note") or [""])[-1].strip()
    if len(note) > _LONGEST_NOTE:
        raise InputError(
            f"a comment has up to {_LONGEST_NOTE:,} characters, this one {len(note):,}"
        )
    rubric, value = visit.value("rubric"), visit.value("value")
    if rubric == COMMENT and not note:
        raise InputError("the comment is empty: write what you see")
    line = {
        "trace": there.conversation.key,
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
    # A dataset that is not read yet may accept cases; saving reports if it does not.
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
