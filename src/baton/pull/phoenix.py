"""Arize Phoenix: the spans of a project; what a span is there: ``phoenix_spans``."""

from __future__ import annotations

from collections.abc import AsyncIterator
from urllib.parse import quote

import msgspec

from baton.model import BatonError, InputError

from .http import Name, NotFound, NotJson, Params, PullError, Store
from .phoenix_spans import Span, SpanPage, trace_of
from .query import Query, iso
from .spans import Json

AT_ONCE = 20  # traces asked for together
PAGE = 1000  # what an answer holds at most


class _Trace(msgspec.Struct):
    trace_id: Name


class _TracePage(msgspec.Struct):
    data: list[_Trace]
    next_cursor: Name | None = None


async def traces(
    store: Store, query: Query, *, project: str = "default", page: int = PAGE
) -> AsyncIterator[Json]:
    """Yield the traces that start in the time range, oldest first; or those that are named.

    ``page`` is how many traces or spans are asked for at once.

    Raises:
        InputError: no such project.
        PullError: as ``Store.get`` does; or a named trace is not there.
    """
    base = f"/v1/projects/{quote(project, safe='')}"
    missing: list[str] = []
    async for ids in _in_batches(_ids(store, base, query, page)):
        found = await _fetched(store, base, ids, page)
        for trace_id in ids:
            if trace_id in found:
                yield trace_of(found[trace_id], project)
            else:
                missing.append(trace_id)
    if missing and query.traces:
        raise PullError(f"project `{project}` of {store.url} has no trace {', '.join(missing)}")


async def _in_batches(ids: AsyncIterator[str]) -> AsyncIterator[list[str]]:
    batch: list[str] = []
    async for each in ids:
        batch.append(each)
        if len(batch) == AT_ONCE:
            yield batch
            batch = []
    if batch:
        yield batch


async def _ids(store: Store, base: str, query: Query, size: int) -> AsyncIterator[str]:
    """Name the traces to fetch."""
    if query.traces:
        for trace_id in dict.fromkeys(query.traces):
            yield trace_id.lower()
        return
    params: Params = [
        ("start_time", iso(query.since)),
        ("end_time", iso(query.until)),
        ("session_identifier", query.session),
        ("order", "asc"),
        ("limit", size),
    ]
    try:
        async for each in store.listed(f"{base}/traces", _TracePage, params):
            yield each.trace_id
    except NotJson:
        raise PullError(
            f"{store.url} lists no traces: is that Phoenix, and a recent one? "
            "An older one gives those that are named by --trace"
        ) from None
    except NotFound as error:
        raise _worded(error) from None


async def _fetched(store: Store, base: str, ids: list[str], size: int) -> dict[str, list[Span]]:
    """Fetch all spans of some traces, by trace."""
    found: dict[str, list[Span]] = {}
    params: Params = [*(("trace_id", trace_id) for trace_id in ids), ("limit", size)]
    try:
        async for span in store.listed(f"{base}/spans/otlpv1", SpanPage, params, kept=True):
            found.setdefault(span.trace_id, []).append(span)
    except NotFound as error:
        raise _worded(error) from None
    return found


def _worded(error: NotFound) -> BatonError:
    return InputError(f"{error}; is --project right?") if error.status == 404 else error
