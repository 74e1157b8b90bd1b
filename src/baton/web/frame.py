"""The common parts of all pages: turning requests into visits, and results into responses.

Handlers run in threads, as they read from a database. They get a :class:`Visit` and return a
:class:`View`, or any response.
"""

from __future__ import annotations

import gzip
import hmac
import logging
import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, quote

import msgspec
import zstandard
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from baton import __version__
from baton.model import InputError
from baton.server.access import Caller, Denied, Right
from baton.server.database import Unavailable, Unfit, without_reason
from baton.server.endpoints import ApiState
from baton.server.store import DEFAULT

from .assets import Assets
from .rendering import address, environment
from .sessions import Session, Sessions

LOG = logging.getLogger("baton.server")
POLICY = (
    "default-src 'none'; script-src {own}; style-src {own}; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'; "
    "require-trusted-types-for 'script'; trusted-types htmx"
)
"""The policy for what a page may load. Only scripts and styles with the nonce of the response hold.
Only htmx turns text into elements, and only from this server's responses; it acts only on elements
with that nonce."""
HEADERS = {
    "Cache-Control": "no-cache, private",
    "Content-Security-Policy": POLICY.format(own="'none'"),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    # The origin is sent only to this server, which checks writes by it.
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}
_PACKED = 2000
"""Bytes from which an answer is packed."""
_REFUSED = re.compile(r";\s*q\s*=\s*0(?:\.0*)?\s*$")
_FORM = 2 << 20
"""Bytes of a form: a file of cases that is edited."""
_JSON = "application/json"
CSRF = "csrf"
CSRF_HEADER = "x-baton-csrf"


class NavItem(NamedTuple):
    """An entry of the navigation: its address, and the letter that leads there after ``g``.

    ``also`` are other addresses that belong to it.
    """

    name: str
    path: str
    key: str
    also: tuple[str, ...] = ()


class View(NamedTuple):
    """A template with what it shows. ``title`` is that of the page, empty for a part of one."""

    template: str
    context: Mapping[str, Any]
    title: str = ""
    status: int = 200


class Visit(NamedTuple):
    """A user's request for a page, or with a form.

    ``project`` is the name of the user's project, and ``form`` has the sent fields by name; a name
    may have several values.
    """

    web: Web
    request: Request
    caller: Caller
    project: str
    session: Session
    form: Mapping[str, list[str]]

    @property
    def state(self) -> ApiState:
        """The state of the API, which pages share."""
        return self.web.state

    @property
    def path(self) -> Mapping[str, Any]:
        """The parts of the address that a route names."""
        return self.request.path_params

    def query(self, name: str) -> str | None:
        """Return a parameter of the address, ``None`` if it is missing or empty."""
        return self.request.query_params.get(name) or None

    def value(self, name: str) -> str:
        """Return a field of the form.

        Raises:
            InputError: it is missing.
        """
        values = self.form.get(name)
        if not values:
            raise InputError(f"`{name}` is missing in what was sent")
        return values[-1]

    def may(self, right: Right) -> bool:
        """Return whether the user has a right."""
        return right in self.caller.rights

    def link(self, path: str, **given: Any) -> str:
        """Return the address of a page in the project of this one."""
        named = given if self.project == DEFAULT else {**given, "project": self.project}
        return address(path, named)

    def json(self, value: Any, status_code: int = 200) -> Response:
        """Answer with data for a script."""
        return Response(msgspec.json.encode(value), status_code, media_type=_JSON)

    def show(self, view: View) -> Response:
        """Return a page as a response, for a handler that adds to it."""
        return self.web.render(self, view)

    def redirect(self, path: str, **given: Any) -> Response:
        """Go to another page after a form was sent."""
        return RedirectResponse(self.link(path, **given), 303)


Handler = Callable[[Visit], View | Response]


class Web:
    """The state that all pages share: the API, templates, and the signed-in person."""

    def __init__(self, state: ApiState, nav: Sequence[NavItem]) -> None:
        self.state = state
        self.assets = Assets()
        self.templates = environment(self.assets)
        self.sessions = Sessions(state.store, state.access)
        self._nav = nav

    def page(self, path: str, run: Handler, right: Right | None = "read") -> Route:
        """Return the route of a page, or of a part of one; without a right it is open to all."""
        return Route(path, self._handler(run, right), methods=["GET"])

    data = page
    """The route of JSON that a script asks for; it answers with :meth:`Visit.json`."""

    def action(self, path: str, run: Handler, right: Right | None) -> Route:
        """Return the route of a form: with a token that only pages of this server know."""
        return Route(path, self._handler(run, right), methods=["POST"])

    def _handler(self, run: Handler, right: Right | None) -> Callable[[Request], Any]:
        async def handle(request: Request) -> Response:
            form: Mapping[str, list[str]] = {}
            try:
                if request.method == "POST":
                    form = await _form(request)
                return await run_in_threadpool(self._answer, request, run, right, form)
            except Denied as denied:
                return await run_in_threadpool(self.denied, request, denied)

        return handle

    def _answer(
        self,
        request: Request,
        run: Handler,
        right: Right | None,
        form: Mapping[str, list[str]],
    ) -> Response:
        try:
            if right is None:
                session = self.sessions.session(request)
                visit = Visit(self, request, _NOBODY, DEFAULT, session, form)
            else:
                visit = self._visit(request, form)
                visit.caller.need(right)
            if request.method == "POST":
                given = (form.get(CSRF) or [request.headers.get(CSRF_HEADER, "")])[-1]
                if not hmac.compare_digest(given.encode(), visit.session.csrf.encode()):
                    raise Denied(
                        403,
                        "the page that sent this belongs to another session",
                        "load the page again and repeat what you did",
                    )
            answer = run(visit)
            response = answer if isinstance(answer, Response) else self.render(visit, answer)
            if "set-cookie" not in response.headers:
                self.sessions.keep(request, visit.session, response)
            return _with_headers(request, response)
        except (InputError, Unfit) as error:
            return self.failed(request, 400, "Request not accepted", str(error))
        except Unavailable as error:
            said = without_reason(error)
            return self.failed(
                request, 503, "The store does not answer", said, "try again in a few seconds"
            )

    def _visit(self, request: Request, form: Mapping[str, list[str]]) -> Visit:
        session, caller = self.sessions.visitor(request)
        names = {number: name for name, number in self.state.store.projects().items()}
        return Visit(self, request, caller, names[caller.project], session, form)

    def render(self, visit: Visit, view: View) -> Response:
        """Fill in the template of a page."""
        here = f"{visit.request.url.path}/"
        known = visit.caller is not _NOBODY
        # A key opens only one project.
        choice = known and visit.session.by != "key"
        context = {
            "visit": visit,
            "link": visit.link,
            "may": visit.may,
            "csrf": visit.session.csrf,
            "title": view.title,
            "nav": [
                (each, any(here.startswith(f"{path}/") for path in (each.path, *each.also)))
                for each in self._nav
                if known
            ],
            "projects": sorted(self.state.store.projects()) if choice else [],
            "version": __version__,
            "signed_in": known and visit.session.signed_in,
            **view.context,
        }
        return self._filled(view.template, context, view.status)

    def _filled(self, template: str, context: Mapping[str, Any], status: int) -> Response:
        nonce = secrets.token_urlsafe(16)
        text = self.templates.get_template(template).render(**context, nonce=nonce)
        response = Response(text, status, media_type="text/html")
        policy = POLICY.format(own=f"'nonce-{nonce}'")
        response.headers["Content-Security-Policy"] = policy
        return response

    def denied(self, request: Request, denied: Denied) -> Response:
        """Answer a refused request, with the way to sign in if that would help."""
        asked = request.method == "GET" and _wants_html(request)
        if denied.status_code == 401 and asked and self.state.access.has_keys():
            here = request.url.path + (f"?{request.url.query}" if request.url.query else "")
            return RedirectResponse(f"/sign-in?next={quote(here, safe='')}", 303, HEADERS)
        title = _TITLES.get(denied.status_code, "Request not accepted")
        said = str(denied.detail)
        return self.failed(request, denied.status_code, title, said, denied.advice)

    def failed(
        self, request: Request, status_code: int, title: str, said: str, advice: str = ""
    ) -> Response:
        """Answer with an error: what is wrong and what to do, as on the command line.

        Scripts get it as JSON, as from the API.
        """
        if not _wants_html(request):
            body = {"error": said, "do": advice}
            data = msgspec.json.encode(body)
            return _with_headers(request, Response(data, status_code, media_type=_JSON))
        context = {
            "title": title,
            "said": said.removesuffix("."),
            "advice": advice.removesuffix("."),
            "status": status_code,
            # A user who has to sign in first, or to wait, is not redirected.
            "nav": [] if status_code in (401, 503) else [(each, False) for each in self._nav],
            "link": lambda path: path,
            "version": __version__,
        }
        response = self._filled("error.html", context, status_code)
        if status_code == 503:
            response.headers["Retry-After"] = "2"
        return _with_headers(request, response)

    def broken(self, request: Request) -> Response:
        """Answer a request that failed through a bug in Baton; the server logs the traceback."""
        said = "a fault of Baton ended this request; the log of the server has the traceback"
        return self.failed(request, 500, "Something went wrong", said, "report it, see SECURITY.md")

    def nowhere(self, request: Request) -> Response | None:
        """Answer a browser's request for an unknown path; ``None`` for a program."""
        if not _wants_html(request):
            return None
        said = f"there is nothing at {request.url.path[:200]}"
        return self.failed(request, 404, "Not found", said, "the navigation has every page")


_NOBODY = Caller(0, "", frozenset())
_TITLES = {401: "Sign in first", 403: "Not allowed", 404: "Not found"}


async def _form(request: Request) -> Mapping[str, list[str]]:
    """Read a form, or JSON with texts by name as scripts send it.

    Raises: Denied: 413 if it is too large, 415 if it is neither.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in ("application/x-www-form-urlencoded", "application/json"):
        raise Denied(415, f"the body has the content type `{kind[:100]}`", "send a form")
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > _FORM:
            raise Denied(413, f"the form is longer than {_FORM >> 20} MiB", "send less at once")
    form: dict[str, list[str]] = {}
    try:
        if kind == "application/json":
            given = msgspec.json.decode(bytes(body), type=dict[str, str | list[str]])
            return {name: [v] if isinstance(v, str) else v for name, v in given.items()}
        for name, value in parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=10_000):
            form.setdefault(name, []).append(value)
    except ValueError:
        raise Denied(400, "what was sent is not a form", "load the page again") from None
    return form


def _wants_html(request: Request) -> bool:
    return "text/html" in request.headers.get("accept", "")


def _with_headers(request: Request, response: Response) -> Response:
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    body = getattr(response, "body", b"")
    if len(body) >= _PACKED and "content-encoding" not in response.headers:
        how, packed = _packed(body, request.headers.get("accept-encoding", ""))
        if how:
            response.body = packed
            response.headers["Content-Encoding"] = how
            response.headers["Content-Length"] = str(len(packed))
        response.headers["Vary"] = "Accept-Encoding"
    return response


def _packed(body: bytes, accepted: str) -> tuple[str, bytes]:
    """Return the best encoding that a client accepts, empty for none, and the body in it.

    Chromium and Firefox accept zstd from loopback and over TLS. It takes a third of the time of
    gzip at its lowest level, and half of the bytes.
    """
    listed = (each for each in accepted.split(",") if not _REFUSED.search(each))
    names = {each.partition(";")[0].strip().lower() for each in listed}
    if "zstd" in names:
        return "zstd", zstandard.ZstdCompressor().compress(body)
    return ("gzip", gzip.compress(body, 1, mtime=0)) if "gzip" in names else ("", body)
