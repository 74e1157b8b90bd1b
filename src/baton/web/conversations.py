"""Conversations: the filtered list, with sums and the number of new conversations."""

from __future__ import annotations

from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute

from baton.model import InputError
from baton.server import queries
from baton.server.queries import CONVERSATION_FIELDS
from baton.session.server_rows import Conversation, Page

from . import lists
from .frame import NavItem, View, Visit, Web
from .getting_started import lines_to_send

NAV = NavItem("Conversations", "/conversations", "c")
# Conversations of a page; the next page starts where it ends.
_ROWS = 50
_MENU = (
    ("agent", "Agent that took part"),
    ("from", "Sender of a dispatch"),
    ("to", "Receiver of a dispatch"),
    ("kind", "Kind of a dispatch"),
    ("verdict", "Verdict"),
    ("evaluator", "Evaluator"),
    ("finding", "Finding"),
    ("rule", "Rule"),
    ("status", "Status"),
    ("state", "State"),
    ("service", "Service"),
    ("framework", "Framework"),
    ("cost", "Cost in USD"),
    ("tokens", "Tokens"),
    ("duration", "Duration"),
    ("dispatches", "Dispatches"),
    ("depth", "Depth of a dispatch"),
    ("turns", "Turns"),
    ("conversation", "Id of the conversation"),
)
_HINTS = {"number": ">=2", "seconds": ">=2s", "time": ">=2026-01-31", "text": "name or glob*"}


def routes(web: Web) -> list[BaseRoute]:
    """Return the routes of this page."""
    return [
        web.page(NAV.path, _list),
        web.page("/parts/conversations/sums", _sums),
        web.data("/data/conversations/new", _new),
        web.data("/data/conversations/values", _values),
        web.action("/conversations/views", _save, "review"),
        web.action("/conversations/views/{id:int}/delete", _delete, "review"),
    ]


def _listing(visit: Visit) -> lists.Listing:
    return lists.read_listing(visit, NAV.path, CONVERSATION_FIELDS, "started")


def _list(visit: Visit) -> View | Response:
    store, project = visit.state.store, visit.caller.project
    problem: InputError | None = None
    try:
        listing = _listing(visit)
        word = lists.added_word(visit, CONVERSATION_FIELDS)
        if word is not None:
            words = " ".join(dict.fromkeys([*listing.words, word]))
            return RedirectResponse(visit.link(NAV.path, **listing.parameters(filter=words)), 303)
        # Before the rows: a conversation that comes in between is announced twice rather than
        # never.
        newest = queries.newest_conversation(store, project)
        page = queries.conversations(
            store, project, listing.chosen, text=listing.text, limit=_ROWS, cursor=listing.cursor
        )
    except InputError as error:
        # The form keeps the input, so that it can be corrected.
        problem, newest, page = error, 0, Page[Conversation](items=[])
        written = " ".join(visit.request.query_params.getlist("filter"))
        listing = lists.as_written(visit, NAV.path, written)
    empty = problem is None and listing.is_plain and not page.items and listing.cursor is None
    context = {
        "page": page,
        "listing": listing,
        "problem": problem,
        "chips": [] if problem else listing.chips(visit),
        "newest": newest,
        "menu": [(name, label, _HINTS[CONVERSATION_FIELDS[name].kind]) for name, label in _MENU],
        "periods": lists.PERIODS,
        "views": lists.views(visit, NAV.path),
        "command": lists.server_command(visit, listing, "show", _ROWS) if not problem else None,
        "ways": lines_to_send(visit) if empty else None,
        "sums": visit.link("/parts/conversations/sums", **listing.parameters()),
        "news": visit.link("/data/conversations/new", **listing.parameters()),
        "values": visit.link("/data/conversations/values"),
        "next": page.next and visit.link(NAV.path, **listing.parameters(cursor=page.next)),
        "first": listing.cursor and visit.link(NAV.path, **listing.parameters()),
    }
    return View("conversations.html", context, "Conversations", 400 if problem else 200)


def _sums(visit: Visit) -> View:
    listing = _listing(visit)
    sums = queries.conversation_sums(visit.state.store, visit.caller.project, listing.chosen)
    return View("conversations_sums.html", {"sums": sums, "listing": listing})


def _new(visit: Visit) -> Response:
    """Count the conversations since the list was made; a text search is not repeated for that."""
    after = visit.query("after") or ""
    if not (after.isascii() and after.isdecimal() and len(after) < 19):
        raise InputError(f"`after` is the number of a conversation, not `{after[:50]}`")
    chosen = _listing(visit).chosen
    store, project = visit.state.store, visit.caller.project
    return visit.json({"new": queries.conversations_after(store, project, chosen, int(after))})


def _values(visit: Visit) -> Response:
    field = visit.query("field") or ""
    if field not in CONVERSATION_FIELDS:
        raise InputError(f"there is no field `{field[:50]}`")
    known = queries.values_of(visit.state.store, visit.caller.project, field)
    return visit.json({"values": known})


def _save(visit: Visit) -> Response:
    return lists.save(visit, NAV.path, CONVERSATION_FIELDS)


def _delete(visit: Visit) -> Response:
    lists.remove(visit)
    return visit.redirect(NAV.path)
