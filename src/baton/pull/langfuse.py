"""Langfuse: its observations, asked for by the newest API that the server has.

Servers that write the events of version 4 have ``/v2/observations`` and may have nothing else;
older ones have ``/traces``. What an observation is as a span: ``langfuse_spans``.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import quote

import msgspec

from .http import Name, NotFound, NotJson, Params, PullError, Store
from .langfuse_spans import Observation, Trace, trace_of
from .query import Query, iso
from .spans import Json

PAGE = 1000  # observations in an answer, the most that Langfuse gives
_OBSERVATIONS = "/api/public/v2/observations"
_TRACES = "/api/public/traces"
_FIELDS = "core,basic,time,io,metadata,model,usage,trace_context"
_SHORT = 200  # characters after which a value of the metadata is cut, unless it is asked for
_NO_SUCH_ROUTE = (404, 405, 501)


class _Cursor(msgspec.Struct):
    cursor: Name | None = None


class _Observations(msgspec.Struct):
    data: list[Observation]
    meta: _Cursor | None = None

    @property
    def next_cursor(self) -> str | None:
        return self.meta.cursor if self.meta else None


class _Listed(msgspec.Struct):
    id: Name


class _Pages(msgspec.Struct, rename="camel"):
    page: int
    total_pages: int = 0


class _Traces(msgspec.Struct):
    data: list[_Listed]
    meta: _Pages

    @property
    def next_cursor(self) -> str | None:
        more = self.data and self.meta.page < self.meta.total_pages
        return str(self.meta.page + 1) if more else None


async def traces(store: Store, query: Query, *, page: int = PAGE) -> AsyncIterator[Json]:
    """Yield the traces with an observation in the time range, oldest first; or those named.

    ``page`` is how many observations are asked for at once.

    Raises:
        PullError: as ``Store.get`` does; or a named trace is not there.
    """
    newest = await _has_v2(store)
    missing: list[str] = []
    for trace_id in await _ids(store, query, page, newest=newest):
        found = await (_by_v2(store, trace_id, page) if newest else _by_v1(store, trace_id))
        if found is not None and query.session in (None, found.session_id):
            yield trace_of(found)
        else:
            missing.append(trace_id)
    if missing and query.traces:
        where = f" of session `{query.session}`" if query.session else ""
        raise PullError(f"{store.url} has no observations of trace {', '.join(missing)}{where}")


async def _has_v2(store: Store) -> bool:
    try:
        await store.get(_OBSERVATIONS, _Observations, [("limit", 1), ("fields", "core")])
    except NotFound as error:
        if error.status not in _NO_SUCH_ROUTE:
            raise
        return False
    except NotJson:
        return False
    return True


async def _ids(store: Store, query: Query, size: int, *, newest: bool) -> list[str]:
    """Name the traces to fetch."""
    if query.traces:
        return list(dict.fromkeys(query.traces))
    return await (_ids_by_v2 if newest else _ids_by_v1)(store, query, size)


async def _ids_by_v2(store: Store, query: Query, size: int) -> list[str]:
    ids: dict[str, None] = {}
    params: Params = [
        ("fields", "core,basic"),
        ("fromStartTime", iso(query.since)),
        ("toStartTime", iso(query.until)),
        ("sessionId", query.session),
    ]
    async for each in _pages(store, params, size, kept=False):
        # a server that does not know `sessionId` as a filter gives all
        if each.trace_id and query.session in (None, each.session_id):
            ids[each.trace_id] = None
    return list(ids)[::-1]  # the newest came first


async def _by_v2(store: Store, trace_id: str, size: int) -> Trace | None:
    """Fetch a trace with nothing in its metadata cut short."""
    params: list[tuple[str, str | int | None]] = [("traceId", trace_id), ("fields", _FIELDS)]
    found = [each async for each in _pages(store, params, size)]
    cut = sorted({key for each in found for key in _cut(each.metadata)})
    if cut:
        params.append(("expandMetadata", ",".join(cut)))
        found = [each async for each in _pages(store, params, size)]
    if not found:
        return None
    return Trace(
        id=trace_id,
        name=next((each.trace_name for each in found if each.trace_name), None),
        session_id=next((each.session_id for each in found if each.session_id), None),
        user_id=next((each.user_id for each in found if each.user_id), None),
        tags=next((each.tags for each in found if each.tags), None),
        observations=found,
    )


def _pages(
    store: Store, params: Params, size: int, *, kept: bool = True
) -> AsyncIterator[Observation]:
    asked = [*params, ("limit", size)]
    return store.listed(_OBSERVATIONS, _Observations, asked, kept=kept)


def _cut(metadata: Any, prefix: str = "") -> list[str]:
    """Name what may have been cut short, by the path that Langfuse knows it by."""
    if not isinstance(metadata, dict):
        return []
    found: list[str] = []
    for key, value in metadata.items():
        if isinstance(value, str) and len(value) >= _SHORT:
            found.append(f"{prefix}{key}")
        found += _cut(value, f"{prefix}{key}.")
    return found


async def _ids_by_v1(store: Store, query: Query, size: int) -> list[str]:
    params: Params = [
        ("fromTimestamp", iso(query.since)),
        ("toTimestamp", iso(query.until)),
        ("sessionId", query.session),
        ("orderBy", "timestamp.asc"),
        ("fields", "core"),
        ("limit", min(size, 100)),
    ]
    ids: dict[str, None] = {}
    try:
        async for each in store.listed(_TRACES, _Traces, params, by="page"):
            ids[each.id] = None
    except NotFound as error:
        if error.status not in _NO_SUCH_ROUTE:
            raise
        raise PullError(f"{error}; is {store.url} the address of Langfuse?") from None
    return list(ids)


async def _by_v1(store: Store, trace_id: str) -> Trace | None:
    try:
        found = await store.get(f"{_TRACES}/{quote(trace_id, safe='')}", Trace)
    except NotFound as error:
        if error.status == 404:
            return None
        raise
    return found if found.observations else None
