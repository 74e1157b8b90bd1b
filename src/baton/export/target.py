"""Where to export to, and with which headers; the environment counts only when asked for."""

from __future__ import annotations

import os
from urllib.parse import unquote

from baton.model import InputError

_ENDPOINT, _HEADERS = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_HEADERS"


def target_of(otlp: str, headers_from: str | None) -> tuple[str, dict[str, str]]:
    """Return a file or an address, and headers; ``env`` is what OpenTelemetry's variables say.

    Raises:
        InputError: a variable that is asked for is not set, or holds no headers.
    """
    if otlp != "env":
        return otlp, headers_of(headers_from) if headers_from is not None else {}
    endpoint = os.environ.get(_ENDPOINT)
    if not endpoint:
        raise InputError(f"--otlp env: {_ENDPOINT} is not set")
    name = headers_from or (_HEADERS if os.environ.get(_HEADERS) else None)
    return endpoint, headers_of(name) if name is not None else {}


def headers_of(variable: str) -> dict[str, str]:
    """Read headers as OpenTelemetry writes them: ``NAME=VALUE,NAME=VALUE``, values quoted by %.

    Raises:
        InputError: the variable is not set, or holds no headers.
    """
    told = os.environ.get(variable)
    if told is None:
        raise InputError(f"the headers of the endpoint: {variable} is not set")
    headers: dict[str, str] = {}
    for pair in filter(None, (each.strip() for each in told.split(","))):
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            raise InputError(f"{variable} holds no headers: write NAME=VALUE,NAME=VALUE")
        headers[name.strip()] = unquote(value.strip())
    return headers
