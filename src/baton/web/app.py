"""The pages of a server: the modules that have them.

A module has ``routes(web)``, made of ``web.page``, ``web.data`` and ``web.action``
(:mod:`baton.web.frame`), and is in the navigation by its ``NAV``.
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from baton.server.endpoints import ApiState
from baton.server.process import Pages

from . import (
    agents,
    collect,
    conversation,
    conversations,
    datasets,
    evaluations,
    issues,
    playground,
    review,
    rubrics,
    signin,
    status,
)
from .frame import Web

_MODULES = (
    conversations,
    issues,
    agents,
    evaluations,
    playground,
    datasets,
    review,
    rubrics,
    status,
)
"""The modules with pages, in the order of the navigation."""


def pages(state: ApiState) -> Pages:
    """Return the pages of a server."""
    web = Web(state, [each.NAV for each in _MODULES])
    routes: list[BaseRoute] = [web.assets.route(), Route("/", _start), *signin.routes(web)]
    talking = playground.Playground()
    for each in _MODULES:
        routes += (talking if each is playground else each).routes(web)
    routes += [*conversation.routes(web), *collect.routes(web)]

    def link() -> str:
        if not state.access.has_keys():
            return "/"
        return f"/sign-in?token={web.sessions.link_token()}"

    return Pages(routes, web.nowhere, web.broken, link, talking.close)


async def _start(request: Request) -> Response:
    query = f"?{request.url.query}" if request.url.query else ""
    return RedirectResponse(conversations.NAV.path + query, 303)
