"""Issues: grouped failures; and one issue with its members, rates, events and progress."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from shlex import quote as shell_word
from typing import NamedTuple, get_args
from urllib.parse import quote

from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute

from baton.feed.issue_progress import DIMENSIONS, ENDINGS, FIX_KINDS, Fix
from baton.feed.issues import STATES, Member, Rate, State
from baton.feed.taxonomy import CATEGORIES, subtype_named
from baton.model import InputError
from baton.server.access import Caller, Denied
from baton.server.fix_proofs import (
    ask_to_improve,
    ask_to_prove,
    cannot_improve,
    cannot_prove,
    fix_of,
    proving_of,
)
from baton.server.issue_list import (
    ISSUE_FIELDS,
    NoIssue,
    StateChange,
    change_state,
    issue_states,
    issues,
    one_issue,
)
from baton.server.issue_work import ask_to_investigate, work_of
from baton.server.jobs import usual_judge
from baton.server.settings import Settings
from baton.server.store import DEFAULT, Store
from baton.session.server_rows import IssueRecord, IssueRow, Page

from . import lists
from .agents import line_changes
from .datasets import need_run
from .frame import NavItem, View, Visit, Web

NAV = NavItem("Issues", "/issues", "i", ("/collect",))
_ROWS = 50
"""Issues of a page; the next page starts where it ends."""
_MEMBERS = 50
"""Members of an issue that are read, the first ones."""
_FEW = 12
"""The number of failures to show at once: they are similar."""
_BAR = 5
"""Width of a bar of a trend, its gap included."""
_HIGH = 22
"""Height of a trend in pixels, and of its highest bar."""
_ORDERS = {"count": "most frequent", "last": "failed last"}
_EVENTS = {
    "new": "failed for the first time",
    "regressed": "failed again after it was fixed",
    "burst": "came while many agents failed at once",
    "state": "got a state",
    "merged": "was merged with another issue, because their texts say the same",
    "split": "was split off another issue, because its texts say different things",
    "gone": "was merged into another issue",
    "investigation": "was investigated",
    "fix": "got a fix",
    "promotion": "got cases",
    "cases": "its cases say",
}


def routes(web: Web) -> list[BaseRoute]:
    """Return the routes of these pages."""
    return [
        web.page(NAV.path, _list),
        web.page("/issues/{key}", _one),
        web.action("/issues/{key}/state", _state, "review"),
        web.action("/issues/{key}/investigate", _investigate, "run"),
        web.action("/issues/{key}/prove", _prove, "run"),
        web.action("/issues/{key}/improve", _improve, "run"),
    ]


class _Bar(NamedTuple):
    x: int
    y: float
    height: float


class _Trend(NamedTuple):
    """Failures by day as bars; ``says`` is the same in words."""

    bars: list[_Bar]
    width: int
    height: int
    says: str


def _trend(counts: Sequence[int]) -> _Trend:
    most = max(counts, default=0)
    bars = [
        _Bar(place * _BAR, _HIGH - height, height)
        for place, count in enumerate(counts)
        # A day with one failure stays visible next to a day with a thousand.
        for height in [max(2.0, round(_HIGH * count / most, 1)) if count else 0.6]
    ]
    today = counts[-1] if counts else 0
    says = (
        f"Failures of the last {len(counts)} days: {sum(counts):,}, today {today:,}, most {most:,}"
    )
    return _Trend(bars, len(counts) * _BAR - 1, _HIGH, says)


class _Span(NamedTuple):
    """A rate with its interval on a line from 0 to the highest of the table, in hundredths."""

    name: str
    rate: Rate
    low: float
    high: float
    at: float


def _spans(rates: Mapping[str, Rate]) -> list[_Span]:
    known = [r.per_1000 for r in rates.values() if r.per_1000 is not None]
    top = max((e.high if e.high is not None else e.value for e in known), default=0.0) or 1.0
    spans = []
    for name, rate in rates.items():
        per = rate.per_1000
        low, high, at = 0.0, 0.0, 0.0
        if per is not None:
            low = 100 * (per.low if per.low is not None else per.value) / top
            high = 100 * (per.high if per.high is not None else per.value) / top
            at = 100 * per.value / top
        spans.append(_Span(name, rate, round(low, 1), round(high, 1), round(at, 1)))
    return sorted(spans, key=lambda span: -span.rate.failed)


def _list(visit: Visit) -> View | Response:
    store, project = visit.state.store, visit.caller.project
    order = visit.query("order") or "count"
    problem: InputError | None = None
    page: Page[IssueRow] = Page(items=[])
    try:
        if order not in _ORDERS:
            raise InputError(f"`order` is one of {', '.join(_ORDERS)}, not `{order[:50]}`")
        listing = lists.read_listing(visit, NAV.path, ISSUE_FIELDS, "last", also=("order",))
        word = lists.added_word(visit, ISSUE_FIELDS)
        if word is not None:
            words = " ".join(dict.fromkeys([*listing.words, word]))
            there = visit.link(NAV.path, **listing.parameters(filter=words), order=order)
            return RedirectResponse(there, 303)
        page = issues(
            store, project, listing.chosen, order=order, limit=_ROWS, cursor=listing.cursor,  # type: ignore[arg-type]
        )  # fmt: skip
    except InputError as error:
        problem = error
        written = " ".join(visit.request.query_params.getlist("filter"))
        listing = lists.as_written(visit, NAV.path, written)
    counts = issue_states(store, project)
    state = next((w.partition(":")[2] for w in listing.words if w.startswith("state:")), None)
    others = [word for word in listing.words if not word.startswith("state:")]

    def tab(name: str | None) -> str:
        words = " ".join([*others, *([f"state:{name}"] if name else [])])
        return visit.link(NAV.path, **listing.parameters(filter=words), order=visit.query("order"))

    active = sum(counts.get(name, 0) for name in ("new", "open", "regressed"))
    tabs = [("active", active, tab(None), state is None)]
    tabs += [(name, counts.get(name, 0), tab(name), state == name) for name in get_args(State)]
    context = {
        "page": page,
        "listing": listing,
        "problem": problem,
        "order": order,
        "orders": _ORDERS,
        "tabs": tabs,
        "any": sum(counts.values()),
        "trend": _trend,
        "periods": lists.PERIODS,
        "chips": [] if problem else listing.chips(visit),
        "states": STATES,
        "categories": CATEGORIES,
        "command": _command(visit),
        "next": page.next
        and visit.link(
            NAV.path, **listing.parameters(cursor=page.next), order=visit.query("order")
        ),
        "first": listing.cursor and visit.link(NAV.path, **listing.parameters()),
    }
    return View("issues.html", context, "Issues", 400 if problem else 200)


def _command(visit: Visit, *words: str) -> str:
    """Return the command that shows the same."""
    project = [] if visit.project == DEFAULT else ["--project", visit.project]
    url = visit.request.url
    given = ["--server", f"{url.scheme}://{url.netloc}", *project, *words]
    return f"baton issues {' '.join(map(shell_word, given))}"


def _found(visit: Visit) -> IssueRecord:
    try:
        return one_issue(
            visit.state.store, visit.caller.project, visit.path["key"], members=_MEMBERS
        )
    except NoIssue as error:
        raise Denied(404, str(error), "the list of issues has all of them") from None


class _Shown(NamedTuple):
    """A member with the place that shows it."""

    member: Member
    href: str | None


def _one(visit: Visit) -> View:
    record = _found(visit)
    one = record.issue
    subtype = subtype_named(one.subtype)
    source = f"server://{visit.request.url.netloc}"
    if visit.project != DEFAULT:
        source += f"/{quote(visit.project, safe='')}"
    fix = fix_of(record)
    settings = visit.state.live_settings()
    context = {
        "one": one,
        "record": record,
        "subtype": subtype,
        "means": CATEGORIES,
        "states": {name: means for name, means in STATES.items() if name != "regressed"},
        "all_states": STATES,
        "trend": _trend(one.trend),
        "versions": _spans(one.by_version),
        "models": _spans(one.by_model),
        "members": [_Shown(each, _place(visit, each)) for each in one.members],
        "work": work_of(visit.state.store, visit.caller.project, one.key),
        "has_judge": usual_judge(settings) is not None,
        "proving": proving_of(visit.state.store, visit.caller.project, one.key),
        "cannot_prove": cannot_prove(record, settings),
        "cannot_improve": cannot_improve(record, settings),
        "may_run": settings.may_run,
        "players": sorted(settings.agents),
        "few": _FEW,
        "more": one.count - len(one.members),
        "events": [(each, _EVENTS.get(each.kind, each.kind)) for each in record.events],
        "fix": fix,
        "changes": line_changes(fix.before, fix.after) if fix is not None else [],
        "proof": _fix_words(fix) if fix is not None else "",
        "fix_kind": FIX_KINDS[fix.kind] if fix is not None else "",
        "endings": ENDINGS,
        "dimensions": DIMENSIONS,
        "quote_link": lambda each: _quote_link(visit, one.members, each.trace, each.step),
        "show": _command(visit, "--show", one.key),
        "collect": f"baton collect {shell_word(source)} --issue {one.key} -o cases/",
        "conversations": _conversations(visit, one),
    }
    return View("issue.html", context, one.title[:80])


def _place(visit: Visit, member: Member) -> str | None:
    """Return where a failure is shown: the dispatch, or its step, in the conversation."""
    if member.number is None:
        return None
    page = visit.link(f"/conversations/{member.number}")
    if member.dispatch is not None:
        return f"{page}#d-{quote(member.dispatch, safe='')}"
    return f"{page}#s-{quote(member.evidence[0], safe='')}" if member.evidence else page


def _quote_link(visit: Visit, members: Sequence[Member], trace: str, step: str) -> str | None:
    number = next((each.number for each in members if each.conversation == trace), None)
    if number is None:
        return None
    return f"{visit.link(f'/conversations/{number}')}#s-{quote(step, safe='')}"


def _conversations(visit: Visit, one: IssueRow) -> str | None:
    """Return the list of conversations in which this was found; none if a judge found it."""
    if not one.proven:
        return None
    words = [lists.word_of("finding", one.fault)]
    for name, value in (("from", one.sender), ("to", one.receiver)):
        if value and '"' not in value:
            words.append(lists.word_of(name, value))
    return visit.link("/conversations", filter=" ".join(words))


def _state(visit: Visit) -> Response:
    """Give an issue the state that a form has, and show the issue again."""
    state = visit.value("state")
    given = [name for name in get_args(State) if name != "regressed"]
    if state not in given:
        raise InputError(
            f"`{state[:50]}` is not a state of issues; it is one of {', '.join(given)}"
        )

    def stated(name: str) -> str | None:
        return (visit.form.get(name) or [""])[-1].strip() or None

    change = StateChange(
        state=state,  # type: ignore[arg-type]
        version=stated("version") if state == "fixed" else None,
        note=stated("note"),
    )
    key = visit.path["key"]
    try:
        change_state(visit.state.store, visit.caller, key, change)
    except NoIssue as error:
        raise Denied(404, str(error), "the list of issues has all of them") from None
    return visit.redirect(f"/issues/{key}")


def _investigate(visit: Visit) -> Response:
    """Have a worker investigate an issue; its page shows how far that is."""
    key = visit.path["key"]
    try:
        ask_to_investigate(visit.state.store, visit.caller, key, visit.state.live_settings())
    except NoIssue as error:
        raise Denied(404, str(error), "the list of issues has all of them") from None
    return visit.redirect(f"/issues/{key}")


def _prove(visit: Visit) -> Response:
    """Have the fix of an issue played; its page shows how far that is."""
    return _play(visit, ask_to_prove)


def _improve(visit: Visit) -> Response:
    """Have a fix of an issue searched for; its page shows how far that is."""
    return _play(visit, ask_to_improve)


def _play(
    visit: Visit, ask: Callable[[Store, Caller, str, str | None, Settings], None]
) -> Response:
    need_run(visit)
    key, agent = visit.path["key"], visit.value("agent")
    try:
        ask(visit.state.store, visit.caller, key, agent, visit.state.live_settings())
    except NoIssue as error:
        raise Denied(404, str(error), "the list of issues has all of them") from None
    return visit.redirect(f"/issues/{key}")


def _fix_words(fix: Fix) -> str:
    """Describe the result of a fix: ``fixed 7 of 9 [0.45, 0.94], broke 0 of 30 [0.00, 0.11]``."""
    if fix.proof is None:
        return "not played yet"
    return f"fixed {fix.proof.fixed}, broke {fix.proof.broke}"
