"""The reporter ``otlp`` of a config: results, and spans that are nowhere yet."""

from __future__ import annotations

from typing import IO

from baton.store import StoredEvaluation

from .http import Limits
from .run import Exported, export_evaluation
from .sink import Items, Sink, open_endpoint
from .target import headers_of
from .wire import encode_json


def write_otlp(evaluation: StoredEvaluation, out: IO[str]) -> None:
    """Write JSON lines: events of the results, and the spans of what was not read from spans."""
    export_evaluation(evaluation, _Text(out), Exported())


def endpoint_of(address: str, headers_from: str | None) -> Sink:
    """Open the endpoint that a config names; nothing is sent yet.

    Raises:
        InputError: the address is none, or the variable with the headers is not set.
    """
    headers = headers_of(headers_from) if headers_from is not None else {}
    return open_endpoint(address, encoding=None, headers=headers, limits=Limits())


def send_otlp(evaluation: StoredEvaluation, address: str, headers_from: str | None) -> None:
    """Send what :func:`write_otlp` writes.

    Raises:
        InputError: the endpoint wants other headers, or takes no such data.
        NotDelivered: it could not be sent.
    """
    sink = endpoint_of(address, headers_from)
    try:
        export_evaluation(evaluation, sink, Exported())
    finally:
        sink.close()


class _Text:
    def __init__(self, out: IO[str]) -> None:
        self._out = out

    def add(self, items: Items) -> None:
        self._out.write(encode_json(items).decode() + "\n")

    def finish(self) -> None:
        pass

    def close(self) -> None:
        pass
