"""Exports of a server's conversations, in parts: the workers of a backend fetch and convert them.

The server says where to cut, so parts, their order and the files made of them are the same with
every backend and any number of workers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from baton import __version__
from baton.config import load_config
from baton.config.config import chosen_backend
from baton.model import InputError
from baton.model.option_spelling import option
from baton.model.redact import ON, Redaction
from baton.runner.backends.distribute import finished, in_order
from baton.runner.backends.registry import make_backend

from .prepare import PathLike
from .server_rows import Part, Parts, Records
from .server_source import Source, source_of

if TYPE_CHECKING:
    from .server_client import Server


class PartJob(msgspec.Struct, frozen=True, kw_only=True):
    """A part to fetch; the key is in the environment of the worker (``BATON_API_KEY``)."""

    baton: str
    url: str
    project: str | None
    fields: dict[str, Any]
    part: Part
    most: int | None
    redact: Redaction = ON


class Fetched(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A part as its worker made it.

    A ``fault`` ends the export; ``is_away``: no server answers. ``items`` are tables or
    conversations. For conversations, ``spans`` counts the spans of each, and ``deleted`` those
    whose records retention deleted.
    """

    items: list[bytes] = []
    spans: list[int] = []
    deleted: int = 0
    fault: str | None = None
    is_away: bool = False


class PartWorker(ABC):
    """Fetches parts, in a process of a backend."""

    def do(self, text: bytes) -> bytes:
        """Fetch a part; the outcome includes errors."""
        from .server_client import ServerError, connect

        try:
            job = msgspec.json.decode(text, type=PartJob)
            if job.baton != __version__:
                message = f"Baton is {__version__} here, and {job.baton} where it was started"
                raise InputError(message)
            fetched = self.fetch(connect(job.url, project=job.project), job)
        except ServerError as error:
            fetched = Fetched(fault=str(error), is_away=True)
        except (InputError, msgspec.DecodeError) as error:
            fetched = Fetched(fault=str(error))
        return msgspec.json.encode(fetched)

    def close(self) -> None:  # noqa: B027 - the same for all workers
        """Do nothing: there is nothing to release."""

    @abstractmethod
    def fetch(self, server: Server, job: PartJob) -> Fetched:
        """Fetch and convert a part; its filter is :func:`asked`."""


def asked(job: PartJob) -> dict[str, Any]:
    """Return the filter of a part, with its end."""
    return {**job.fields, "last": job.part.last}


def backend_of(
    config: PathLike | None, backend: str | None, workers: int | None, jobs: int
) -> dict[str, Any]:
    """Return the backend of an export: this process, unless a config or the options name one.

    Raises:
        InputError: there is no such backend, or options that exclude each other.
    """
    if jobs < 1:
        raise InputError(f"{option('jobs')} has to be at least 1, got {jobs}")
    configured = load_config(Path(config)).backend if config is not None else None
    chosen = chosen_backend(configured, backend, workers)
    if chosen is None:
        return {"type": "local", "workers": jobs}
    if jobs != 1:
        raise InputError(f"{option('jobs')} cannot be used with a backend; use {option('workers')}")
    if ":" in chosen["type"]:
        raise InputError("exports run on the backends `local` and `ray`")
    return chosen


def fetched_parts(
    source: Source,
    worker: Callable[[], PartWorker],
    backend: Mapping[str, Any],
    redact: Redaction = ON,
) -> Generator[Fetched, None, None]:
    """Yield the parts of some conversations of a server, in their order.

    Raises:
        InputError: the server refuses the request, or workers cannot work.
        ServerError: it does not answer, or a worker was lost repeatedly.
    """
    from .server_client import ServerError

    def parts() -> Iterator[PartJob]:
        for page in source.server.pages("/rows/parts", Parts, source.fields, source.most):
            for part in page.items:
                yield PartJob(
                    baton=__version__,
                    url=source.server.url,
                    project=source.server.project,
                    fields=source.fields,
                    part=part,
                    most=None if source.most is None else part.conversations,
                    redact=redact,
                )

    def read(outcome: bytes) -> Fetched:
        return msgspec.json.decode(outcome, type=Fetched)

    with make_backend(backend, Path(), worker) as workers:
        for done in in_order(finished(workers, parts(), read)):
            if done.outcome is None:
                raise ServerError(f"a part could not be exported: {done.lost}")
            if done.outcome.fault is not None:
                error = ServerError if done.outcome.is_away else InputError
                raise error(done.outcome.fault)
            yield done.outcome


class OneExport(NamedTuple):
    """A conversation as OTLP JSON on one line, and the number of its spans."""

    data: bytes
    spans: int


class _Scope(msgspec.Struct, rename="camel"):
    spans: list[msgspec.Raw] = []


class _Resource(msgspec.Struct, rename="camel"):
    scope_spans: list[_Scope] = []


class _Export(msgspec.Struct, rename="camel"):
    resource_spans: list[_Resource] = []


class OtlpWorker(PartWorker):
    """Fetches conversations as OTLP JSON, and redacts them."""

    def fetch(self, server: Server, job: PartJob) -> Fetched:
        """Fetch the conversations of a part."""
        fetched = Fetched()
        for page in server.pages(
            "/otlp", Records[msgspec.Raw], asked(job), job.most, job.part.cursor
        ):
            fetched.deleted += page.deleted
            for item in page.items:
                data = bytes(item)
                if job.redact.may_hold(data):
                    data = msgspec.json.encode(job.redact.value(msgspec.json.decode(data)))
                groups = msgspec.json.decode(data, type=_Export).resource_spans
                fetched.items.append(data)
                fetched.spans.append(
                    sum(len(scope.spans) for one in groups for scope in one.scope_spans)
                )
        return fetched


def exports_of(
    address: str, redaction: Redaction, backend: Mapping[str, Any]
) -> Generator[OneExport | None, None, None]:
    """Yield conversations as OTLP JSON, redacted; ``None`` for what retention deleted.

    Raises:
        InputError: the server refuses the request, or workers cannot work.
        ServerError: it does not answer, or a worker was lost repeatedly.
    """
    with closing(fetched_parts(source_of(address), OtlpWorker, backend, redaction)) as parts:
        for part in parts:
            for data, spans in zip(part.items, part.spans, strict=True):
                yield OneExport(data, spans)
            yield from [None] * part.deleted
