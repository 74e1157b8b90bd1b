"""From an HTTP call to what a client asked, and from a reply to what is sent back."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from .apis import DIALECTS, Route
from .apis.bedrock import error_name
from .exchange import Api, Received, Reply, schema_in
from .reply import said
from .wire import Call, Response

_SECRETS = ("authorization", "key", "token", "cookie", "secret", "signature")
_JSON = {"content-type": "application/json"}
_ENDS: dict[str, Literal["before", "within"]] = {"disconnect": "before", "cut": "within"}
_PAGE = b"<html><body><h1>Bad gateway</h1></body></html>"


def received(call: Call, route: Route, number: int, at: float) -> Received:
    """Read a call.

    Raises:
        ValueError: it is no request of the API.
    """
    try:
        body: dict[str, Any] = msgspec.json.decode(call.body, type=dict[str, Any])
        asked = DIALECTS[route.api].read(body)
    except (msgspec.DecodeError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"no request of this API: {error!r}") from error
    return _with_prompted_schema(
        Received(
            number=number,
            api=route.api,
            model=route.model or asked.model,
            messages=asked.messages,
            mode=asked.mode,
            schema=asked.schema,
            tool=asked.tool,
            tools=asked.tools,
            stream=route.stream or asked.stream,
            body=body,
            headers={name: _without_secret(name, value) for name, value in call.headers.items()},
            at=at,
        )
    )


def _with_prompted_schema(received: Received) -> Received:
    if received.schema is not None or received.mode == "tool":
        return received
    schema = schema_in(received.system)
    return received if schema is None else replace(received, mode="json", schema=schema)


def response(reply: Reply, received: Received) -> Response:
    """Return what is sent for a reply, its faults worked in."""
    if reply.failing is not None:
        return failure(
            received.api,
            reply.failing,
            reply.message or f"scripted to fail with {reply.failing}",
            retry_after=reply.retry_after,
            delay=reply.delay,
        )
    if reply.fault == "garbage":
        return Response(200, _JSON, _PAGE, reply.delay)
    dialect = DIALECTS[received.api]
    words = said(reply, received)
    if received.stream:
        headers = {"content-type": dialect.stream_type}
        body = dialect.events(dialect.stream(words, received.body))
    else:
        headers, body = _JSON, msgspec.json.encode(dialect.answer(words))
    ends = _ENDS.get(reply.fault or "")
    return Response(200, headers, body, reply.delay, received.stream, ends)


def failure(
    api: Api, status: int, message: str, *, retry_after: float | None = None, delay: float = 0.0
) -> Response:
    """Return an error in the words of an API."""
    body = DIALECTS[api].error(status, message)
    headers = dict(_JSON)
    if api == "bedrock":
        headers["x-amzn-errortype"] = error_name(status)
    if retry_after is not None:
        headers["retry-after"] = f"{retry_after:g}"
        if api == "google":
            kind = "type.googleapis.com/google.rpc.RetryInfo"
            body["error"]["details"] = [{"@type": kind, "retryDelay": f"{retry_after:g}s"}]
    return Response(status, headers, msgspec.json.encode(body), delay)


def _without_secret(name: str, value: str) -> str:
    return "***" if any(word in name for word in _SECRETS) else value
