"""The page to sign in, and signing out."""

from __future__ import annotations

import re

from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute

from baton.server.access import Denied

from .frame import View, Visit, Web

_OWN = re.compile(r"/(?![/\\])[^\\\x00-\x20]*")
r"""Addresses on this server: `//evil.example` and `/\evil.example` are of others."""
_START = "/conversations"


def routes(web: Web) -> list[BaseRoute]:
    """Return the routes of signing in and out: open to all, as callers are not known yet."""
    return [
        web.page("/sign-in", _page, None),
        web.action("/sign-in", _sign_in, None),
        web.action("/sign-out", _sign_out, None),
    ]


def _page(visit: Visit) -> View | Response:
    token = visit.query("token")
    if token is not None:
        try:
            session = visit.web.sessions.use_link(token)
        except Denied as denied:
            if visit.session.by == "link":  # the address was loaded again
                return _go(visit.query("next"))
            return _form(denied, visit.query("next"))
        # The token is removed from the address bar at once.
        response = _go(visit.query("next"))
        visit.web.sessions.keep(visit.request, session, response)
        return response
    if not visit.state.access.has_keys():
        return _go(visit.query("next"))
    return _form(None, visit.query("next"))


def _sign_in(visit: Visit) -> View | Response:
    wanted = visit.form.get("next", [""])[-1]
    try:
        session = visit.web.sessions.sign_in(visit.value("key"))
    except Denied as denied:
        return _form(denied, wanted)
    response = _go(wanted)
    visit.web.sessions.keep(visit.request, session, response)
    return response


def _sign_out(visit: Visit) -> Response:
    response = RedirectResponse("/sign-in", 303)
    visit.web.sessions.keep(visit.request, visit.web.sessions.signed_out(), response)
    return response


def _form(denied: Denied | None, wanted: str | None) -> View:
    context = {"denied": denied, "next": wanted if wanted and _OWN.fullmatch(wanted) else _START}
    return View("signin.html", context, "Sign in", 200 if denied is None else 401)


def _go(wanted: str | None) -> Response:
    there = wanted if wanted and _OWN.fullmatch(wanted) else _START
    return RedirectResponse(there, 303)
