"""How the endpoints of the API are written, and how requests reach them.

Each endpoint is a row: routes, parameters and the OpenAPI document come from it. Errors are JSON:
``error`` says what is wrong, ``do`` what to do.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from baton.formats.explain_mistakes import explain
from baton.model import InputError, suggestion
from baton.model import Problem as Fault
from baton.model.filter import Bound, Fields, Filter, Sign, Term, filter_of, term_of
from baton.session.server_rows import Failure

from . import guards
from .access import Access, Caller, Denied, Right, caller_of, need_json
from .database import TooLong, Unavailable, Unfit, without_reason
from .settings import Settings
from .store import Store

API = "/api/v1"
_VALUE = 2000
"""Maximum characters of a parameter."""
_HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
}


_NOBODY = Caller(0, "", frozenset())


class ApiState(NamedTuple):
    """The state that the API shows.

    ``rules`` returns the rules of a project as plain data; ``counters`` are the numbers of requests
    that this process received, by their content and outcome (``traces``, ``refused 413``).
    ``live_settings`` are the current settings of the server. ``guards`` count for programs.
    """

    store: Store
    access: Access
    rules: Callable[[str], list[Any]] = lambda _: []
    counters: Callable[[], Mapping[tuple[str, str], int]] = dict
    live_settings: Callable[[], Settings] = Settings
    guards: guards.GuardStores = guards.GuardStores(Path(Settings().folder))


def described(text: str, **limits: Any) -> Any:
    """Describe a parameter for the OpenAPI document; ``limits`` are those of msgspec."""
    return msgspec.Meta(description=text, **limits)


class Params(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The parameters of every endpoint."""

    project: Annotated[
        str | None, described("The project; by default the project of the key, or `default`.")
    ] = None


class Call(NamedTuple):
    """One request: caller, parameters and body."""

    state: ApiState
    caller: Caller
    params: Any
    chosen: Filter
    path: Mapping[str, Any]
    body: bytes


class Endpoint(NamedTuple):
    """A row of the API. ``fields`` are filters that are parameters as well."""

    method: Literal["GET", "POST"]
    path: str
    right: Right | None
    summary: str
    answer: Any
    run: Callable[[Call], Any]
    params: type[Params] = Params
    fields: Fields = {}  # noqa: RUF012 - rows are never changed
    body: Any = None
    media: str = "application/json"
    most: int = 1 << 20
    """Maximum bytes of a request's body: a few thousand labels, unless it contains files."""


def routes_of(
    state: ApiState, endpoints: Iterable[Endpoint], outside: Iterable[Endpoint]
) -> list[Route]:
    """Return the routes of endpoints below ``/api/v1``, and of those ``outside``.

    The state of their application needs ``state.access``.
    """
    by_path: dict[str, list[Endpoint]] = {}
    for each in endpoints:
        by_path.setdefault(each.path, []).append(each)
    rules = by_path["/rules"]
    # Routes are tried in order, and an agent waits for the answer to a guard's request.
    by_path = dict(sorted(by_path.items(), key=lambda one: not one[0].startswith("/guard/")))
    return [
        *(_route(state, API + path, there) for path, there in by_path.items()),
        _route(state, "/api/rules", rules),
        *(_route(state, each.path, [each]) for each in outside),
        Route(f"{API}/{{rest:path}}", _nowhere(list(by_path)), methods=_METHODS),
    ]


_METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"]
"""Routes accept all methods, so that a refused one gets its answer in JSON."""


def _route(state: ApiState, path: str, endpoints: list[Endpoint]) -> Route:
    async def handle(request: Request) -> Response:
        try:
            return await _answer(state, endpoints, request)
        except Denied as denied:
            return denied.answer()
        except (InputError, Unfit) as error:
            failure = Failure(error=str(error), do=f"{API}/openapi.json says what may be sent")
            return _json(failure, 400)
        except TooLong as error:
            failure = Failure(error=str(error), do="ask for less: a shorter time, a simpler filter")
            return _json(failure, 503)
        except Unavailable as error:
            failure = Failure(error=without_reason(error), do="try again in a few seconds")
            return _json(failure, 503, {"Retry-After": "2"})

    return Route(path, handle, methods=_METHODS)


async def _answer(state: ApiState, endpoints: list[Endpoint], request: Request) -> Response:
    method = "GET" if request.method == "HEAD" else request.method
    endpoint = next((each for each in endpoints if each.method == method), None)
    if endpoint is None:
        allowed = ", ".join(each.method for each in endpoints)
        raise Denied(405, f"{request.method} is not possible here", f"use {allowed}")
    body = b""
    if endpoint.method == "POST":
        need_json(request)
        body = await _body_of(request, endpoint.most)

    def run() -> bytes:
        values = request.query_params.multi_items()
        if endpoint.right is None:
            caller = _NOBODY
        else:
            caller = caller_of(request, request.query_params.get("project"))
            caller.need(endpoint.right)
        params, chosen = _params(endpoint, values)
        answer = endpoint.run(Call(state, caller, params, chosen, request.path_params, body))
        return answer if isinstance(answer, bytes) else msgspec.json.encode(answer)

    content = await run_in_threadpool(run)
    return Response(content, headers=_HEADERS, media_type=endpoint.media)


async def _body_of(request: Request, most: int) -> bytes:
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > most:
            raise Denied(413, f"the body is longer than {most >> 10} KiB", "send less at once")
    return bytes(body)


_LATE_PLUS = re.compile(r" (\d\d:\d\d)$")


def _params(endpoint: Endpoint, pairs: list[tuple[str, str]]) -> tuple[Any, Filter]:
    """Split the parameters of a request: those of the endpoint, and a filter.

    Raises:
        InputError: there are unknown parameters; the message lists all, with similar names.
    """
    own = {field.name: field for field in msgspec.structs.fields(endpoint.params)}
    plain: dict[str, str] = {}
    terms: list[Term] = []
    problems: list[Fault] = []
    for name, value in pairs:
        try:
            if len(value) > _VALUE:
                raise InputError(f"longer than {_VALUE} characters")
            if "\0" in value:
                raise InputError("contains a NUL character, which the store cannot hold")
            if name in own:
                if name in plain:
                    raise InputError("is given twice")
                # A plus sign in an address means a space: `2026-01-31T09:00:00+01:00`.
                plain[name] = _LATE_PLUS.sub(r"+\1", value) if name in _RANGE else value
            elif name in endpoint.fields:
                terms.append(term_of(f"{name}:{value}", endpoint.fields))
            else:
                known = suggestion(name, [*own, *endpoint.fields])
                raise InputError(f"unknown parameter; {known}")
        except InputError as error:
            problems += [Fault(path=name, message=each.message) for each in error.problems]
    if problems:
        raise InputError(problems)
    try:
        params = msgspec.convert(plain, endpoint.params, strict=False)
    except msgspec.ValidationError as error:
        wrong = [_unusable(name, value, own[name].type) for name, value in plain.items()]
        faults = [fault for fault in wrong if fault is not None]
        raise InputError(faults or [Fault(message=str(error))]) from None
    # A filter of an endpoint without fields is about something else, which parses it itself.
    if endpoint.fields:
        terms += filter_of(getattr(params, "filter", None), endpoint.fields).terms
    when = "at" if "at" in endpoint.fields else "started"
    if when in endpoint.fields:
        for name, sign in _RANGE.items():
            at = getattr(params, name)
            if at is not None:
                terms.append(Term(field=when, bounds=((Bound(sign, at.timestamp()),),)))
    return params, Filter(terms=tuple(terms))


_RANGE: Mapping[str, Sign] = {"since": ">=", "until": "<"}


def _unusable(name: str, value: str, type_: Any) -> Fault | None:
    """Return what is wrong with the value of a parameter, and what to write instead."""
    try:
        msgspec.convert(value, type_, strict=False)
    except msgspec.ValidationError as error:
        if "RFC3339" in str(error) or "timezone" in str(error):
            message = f"`{value[:40]}` is not a time with its zone, such as 2026-11-22T09:30:00Z"
            return Fault(path=name, message=message)
        found = explain(int(value) if _WHOLE.fullmatch(value) else value, type_)
        return Fault(path=name, message=found[0].message if found else str(error))
    return None


_WHOLE = re.compile(r"-?\d{1,18}")


def _nowhere(paths: list[str]) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        known = suggestion(request.url.path, [API + path for path in paths])
        return _json(Failure(error=f"there is no {request.url.path[:200]}", do=known), 404)

    return answer


def _json(value: Any, status: int, headers: Mapping[str, str] | None = None) -> Response:
    return Response(
        msgspec.json.encode(value),
        status,
        {**_HEADERS, **(headers or {})},
        "application/json",
    )
