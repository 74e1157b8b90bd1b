"""Status: how the server is."""

from __future__ import annotations

from starlette.routing import BaseRoute

from .frame import NavItem, View, Visit, Web

NAV = NavItem("Status", "/status", "s")


def routes(web: Web) -> list[BaseRoute]:
    """Return the routes of this page."""
    return [web.page(NAV.path, _page)]


def _page(visit: Visit) -> View:
    return View("status.html", {"project": visit.project}, "Status")
