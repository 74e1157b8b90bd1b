"""Conversations: the list, by filter."""

from __future__ import annotations

from starlette.routing import BaseRoute

from baton.model.filter import Filter
from baton.server import queries

from .frame import NavItem, View, Visit, Web

NAV = NavItem("Conversations", "/conversations", "c")


def routes(web: Web) -> list[BaseRoute]:
    """Return the routes of this page."""
    return [web.page(NAV.path, _list)]


def _list(visit: Visit) -> View:
    page = queries.conversations(visit.state.store, visit.caller.project, Filter())
    return View("conversations.html", {"page": page}, "Conversations")
