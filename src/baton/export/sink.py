"""The target of an export: a file of JSON lines, JSON or protobuf, or an endpoint."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Literal, NamedTuple, Protocol
from urllib.parse import unquote

from baton.formats.own_files import make_folder, naming, open_own
from baton.http.client import Beside, Client, Request, Retries, Words, access
from baton.http.credentials import Credentials, plain_address, with_scheme
from baton.http.responses import EXPORT_MIB, NoAnswer, Refused
from baton.http.responses import Limits as AnswerLimits
from baton.model import BatonError, InputError, Problem
from baton.model.option_spelling import option
from baton.plugins import is_installed
from baton.plugins.origin import install, requirement
from baton.readers.otlp.span import Span

from .wire_json import LogRecord, Signal, encode_json, rejected_of

_BUSY = (429, 502, 503, 504)
"""Statuses that OTLP allows to retry."""
_LONGEST_WAIT = 120.0
"""The longest wait that an endpoint may ask for, in seconds."""
_ANSWER_SECONDS = 600.0
"""Seconds for one whole request: 2 MiB are sent, and a few bytes come back."""
_FIXED = ("max_answer_mib", "max_seconds")
"""Limits without an option: an answer that holds two numbers is short."""
_MEDIA = {"json": "application/json", "protobuf": "application/x-protobuf"}
_PATHS: dict[Signal, str] = {"traces": "/v1/traces", "logs": "/v1/logs"}


class NotDelivered(BatonError):  # noqa: N818 - says what happened
    """An endpoint that did not accept the data."""


class Limits(NamedTuple):
    """``timeout`` and ``delay`` in seconds; the delay is doubled for each attempt after it."""

    timeout: float = 30
    attempts: int = 5
    delay: float = 1


class Endpoint:
    """An OTLP endpoint; ``headers`` may hold secrets, which no message shows."""

    def __init__(
        self, url: str, *, encoding: str, headers: Mapping[str, str], limits: Limits
    ) -> None:
        """Open no connection yet.

        Raises:
            InputError: the address is not valid, or holds credentials.
        """
        text = url.strip().rstrip("/")
        for path in _PATHS.values():
            text = text.removesuffix(path)
        self.url = plain_address(text, "the endpoint", option("headers_from"))
        self._media = _MEDIA[encoding]
        self._given = Credentials(headers=dict(headers))
        self._limits = AnswerLimits(
            limits.timeout, _ANSWER_SECONDS, EXPORT_MIB, options="command", fixed=_FIXED
        )
        self._retries = Retries(
            limits.attempts,
            limits.delay,
            statuses=_BUSY,
            faults=("unreachable", "silent", "broken"),
            longest_delay=30,
            longest_wait=_LONGEST_WAIT,
        )
        self._open: tuple[Beside, Client] | None = None

    def close(self) -> None:
        """Close all connections."""
        if self._open is not None:
            beside, client = self._open
            self._open = None
            beside.run(client.close())
            beside.close()

    def send(self, signal: Signal, body: bytes) -> bytes:
        """Send one export and return the answer.

        Raises:
            InputError: the endpoint needs other credentials, or does not accept this data.
            NotDelivered: no connection, no answer in time, or a refusal, after all attempts.
        """
        if self._open is None:
            client = Client(
                access(self.url, self._given),
                self._limits,
                words=Words("endpoint", "is that the address of an OTLP endpoint?"),
                headers={"Content-Type": self._media, "Accept": self._media},
                success=range(200, 300),
            )
            self._open = Beside(), client
        beside, client = self._open
        request = Request("POST", self.url + _PATHS[signal], body, whole=True)
        try:
            return beside.run(client.ask(request, self._retries)).body.data
        except Refused as error:
            raise _refusal(request.url, error) from None
        except NoAnswer as error:
            raise NotDelivered(f"not delivered: {error}") from None


def _refusal(url: str, error: Refused) -> BatonError:
    message = str(error).removeprefix("POST ")
    if error.status in (401, 403):
        return InputError(f"{message}; give other headers with {option('headers_from')}")
    if error.status in (404, 405) and url.endswith("logs"):
        only = option("only", "spans")
        return InputError(
            f"{message}; it does not accept log records, as which results are sent: {only}"
        )
    if error.status == 415:
        return InputError(f"{message}; try another {option('encoding')}")
    return NotDelivered(error.with_attempts().removeprefix("POST "))


Encoding = Literal["json", "protobuf"]
AT_ONCE = 512
"""Spans or records in one request: as many as an OpenTelemetry SDK sends."""
LARGE = 2 << 20
"""Characters of attributes after which a new request starts."""
Items = Sequence[Span | LogRecord]


class Sink(Protocol):
    """Accepts spans and log records."""

    def add(self, items: Items) -> None:
        """Add spans or log records, not both."""

    def finish(self) -> None:
        """Complete the output."""

    def close(self) -> None:
        """Release everything; an incomplete file is removed."""


def _is_http(target: str) -> bool:
    return target.startswith(("http://", "https://"))


def open_sink(
    target: str, *, encoding: Encoding | None, headers: Mapping[str, str], limits: Limits
) -> Sink:
    """Open a file or an endpoint, depending on the target.

    Raises:
        InputError: the file cannot be written, its suffix is no known format, the address is not
            valid, or the protobuf library is missing.
    """
    if _is_http(target):
        return open_endpoint(target, encoding=encoding, headers=headers, limits=limits)
    path = Path(target)
    if path.suffix == ".pb":
        _need_proto()
        return _Pb(path)
    if path.suffix in (".jsonl", ".json"):
        return _Lines(path) if path.suffix == ".jsonl" else _OneJson(path)
    meant = with_scheme(target) or "FILE.jsonl, FILE.json, FILE.pb or http://HOST:PORT"
    message = f"write to {meant}"
    raise InputError(Problem(file=target, message=message))


def open_endpoint(
    address: str, *, encoding: Encoding | None, headers: Mapping[str, str], limits: Limits
) -> Sink:
    """Open an endpoint without sending anything; raises like :func:`open_sink`."""
    chosen = encoding or ("protobuf" if is_installed("opentelemetry.proto") else "json")
    if chosen == "protobuf":
        _need_proto()
    return _ToEndpoint(address, chosen, headers, limits)


def batches(items: Items) -> Iterator[Items]:
    """Cut an export into requests of a size that endpoints take."""
    start, size = 0, 0
    for index, item in enumerate(items):
        size += sum(len(v) for v in item.attributes.values() if isinstance(v, str))
        if index + 1 - start >= AT_ONCE or size > LARGE:
            yield items[start : index + 1]
            start, size = index + 1, 0
    if start < len(items):
        yield items[start:]


class _File:
    """A file that is replaced when everything is written: a failed export does not change it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._draft = path.with_name(f"{path.name}.part")
        try:
            make_folder(self._draft.parent)
            self._draft.unlink(missing_ok=True)  # left by a crash, or a link to another place
            self._file: IO[bytes] | None = open_own(self._draft, "xb")
        except OSError as error:
            message = f"cannot be written: {error.strerror}"
            raise InputError(Problem(file=str(path), message=message)) from None

    def write(self, data: bytes) -> None:
        assert self._file is not None  # noqa: S101 - nothing is written after the end
        with naming(self._path):
            self._file.write(data)

    def finish(self) -> None:
        if self._file is not None:
            with naming(self._path):
                self._file.close()
            self._draft.replace(self._path)
            self._file = None

    def close(self) -> None:
        if self._file is not None:
            try:
                with naming(self._path):
                    self._file.close()
            finally:
                self._draft.unlink(missing_ok=True)
            self._file = None


class JsonFile(_File, ABC):
    """A file of exports as OTLP JSON."""

    def add(self, items: Items) -> None:
        """Add spans or log records, not both."""
        self.add_encoded(encode_json(items))

    @abstractmethod
    def add_encoded(self, data: bytes) -> None:
        """Add an export that is JSON already, on one line."""


class _Lines(JsonFile):
    """A line for each export, like the file exporter of an OpenTelemetry Collector."""

    def add_encoded(self, data: bytes) -> None:
        self.write(data + b"\n")


class _OneJson(JsonFile):
    """One JSON document, written part by part, so that nothing waits in memory."""

    _started = False

    def add_encoded(self, data: bytes) -> None:
        self.write((b",\n" if self._started else b"[") + data)
        self._started = True

    def finish(self) -> None:
        self.write(b"]\n" if self._started else b"[]\n")
        super().finish()


class _Pb(_File):
    """Serialised exports one after the other, which together are one export."""

    _kind: type | None = None

    def add(self, items: Items) -> None:
        from .wire_proto import encode_proto

        kind = type(items[0])
        if self._kind not in (None, kind):
            ways = f"{option('only', 'spans')} or {option('only', 'results')}"
            message = f"holds spans or results, not both: {ways}"
            raise InputError(Problem(file=str(self._path), message=message))
        self._kind = kind
        self.write(encode_proto(items))


class _ToEndpoint:
    """Requests to an endpoint; a partial refusal is an error."""

    def __init__(
        self, url: str, encoding: Encoding, headers: Mapping[str, str], limits: Limits
    ) -> None:
        self._encoding = encoding
        self._endpoint = Endpoint(url, encoding=encoding, headers=headers, limits=limits)

    def add(self, items: Items) -> None:
        for batch in batches(items):
            signal: Signal = "traces" if isinstance(batch[0], Span) else "logs"
            if self._encoding == "json":
                encoded = encode_json(batch)
            else:
                from .wire_proto import encode_proto

                encoded = encode_proto(batch)
            self._check(signal, self._endpoint.send(signal, encoded))

    def finish(self) -> None:
        pass

    def close(self) -> None:
        self._endpoint.close()

    def _check(self, signal: Signal, answer: bytes) -> None:
        try:
            if self._encoding == "json":
                count, reason = rejected_of(signal, answer)
            else:
                from .wire_proto import rejected_of as proto_rejected_of

                count, reason = proto_rejected_of(signal, answer)
        except (ValueError, TypeError):
            return  # the status says delivered; many stores answer with other text
        if count:
            what = "spans" if signal == "traces" else "results"
            suffix = f": {reason}" if reason else ""
            raise NotDelivered(f"{self._endpoint.url} refused {count} {what}{suffix}")


def _need_proto() -> None:
    if not is_installed("opentelemetry.proto"):
        raise InputError(f"protobuf needs a library: {install(requirement('otel'))}")


_ENDPOINT, _HEADERS = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_HEADERS"


def is_endpoint(target: str) -> bool:
    """Tell whether a target is an address, or `env`, and not a file."""
    return target == "env" or _is_http(target)


def target_of(otlp: str, headers_from: str | None) -> tuple[str, dict[str, str]]:
    """Return a file or an address, and headers; ``env`` is what OpenTelemetry's variables say.

    Raises:
        InputError: a variable that is needed is not set, or contains no headers.
    """
    if otlp != "env":
        return otlp, headers_of(headers_from) if headers_from is not None else {}
    endpoint = os.environ.get(_ENDPOINT)
    if not endpoint:
        raise InputError(f"{option('target', 'env')}: {_ENDPOINT} is not set")
    name = headers_from or (_HEADERS if os.environ.get(_HEADERS) else None)
    return endpoint, headers_of(name) if name is not None else {}


def headers_of(variable: str) -> dict[str, str]:
    """Read headers as OpenTelemetry writes them: ``NAME=VALUE,NAME=VALUE``, values quoted by %.

    Raises:
        InputError: the variable is not set, or contains no headers.
    """
    headers_text = os.environ.get(variable)
    if headers_text is None:
        raise InputError(f"the headers of the endpoint: {variable} is not set")
    headers: dict[str, str] = {}
    for pair in filter(None, (each.strip() for each in headers_text.split(","))):
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            raise InputError(f"{variable} contains no headers: write NAME=VALUE,NAME=VALUE")
        headers[name.strip()] = unquote(value.strip())
    return headers
