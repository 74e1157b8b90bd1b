"""Receives over gRPC, for exporters that only support gRPC; it uses the same inbox as HTTP."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

import grpc

from baton.model import InputError, Problem

from .access import Access, Denied
from .database import Unavailable, without_reason
from .otlp_bodies import Signal, answer, varint
from .receiver import RETRY_AFTER, Receiver, Refused

_SERVICES: dict[str, Signal] = {
    "opentelemetry.proto.collector.trace.v1.TraceService": "traces",
    "opentelemetry.proto.collector.logs.v1.LogsService": "logs",
    "opentelemetry.proto.collector.metrics.v1.MetricsService": "metrics",
}
_CODES = {code.value[0]: code for code in grpc.StatusCode}
_GRACE = 4.0
"""Seconds to finish answers at the end."""


async def start(
    receiver: Receiver, access: Access, host: str, port: int
) -> tuple[int, Callable[[], Coroutine[None, None, None]]]:
    """Listen; returns the port, and what stops it.

    gRPC does not decode bodies: the receiver checks and stores them as they arrived. gRPC itself
    unpacks the content encoding gzip, up to the limit of a message.

    Raises:
        InputError: the address cannot be used.
    """
    limits = receiver.limits
    server = grpc.aio.server(
        maximum_concurrent_rpcs=limits.requests,
        options=[
            ("grpc.max_receive_message_length", limits.body),
            ("grpc.max_send_message_length", 1 << 20),
            # Two servers on one port would each get half of what is sent.
            ("grpc.so_reuseport", 0),
        ],
    )
    for service, signal in _SERVICES.items():
        method = grpc.unary_unary_rpc_method_handler(partial(_export, receiver, access, signal))
        server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(service, {"Export": method}),)
        )
    shown = f"[{host}]" if ":" in host else host
    try:
        taken = server.add_insecure_port(f"{shown}:{port}")
    except RuntimeError:
        taken = 0
    if not taken:
        await server.stop(None)
        hint = "another server may use it: stop that, take another port, or none: --no-grpc"
        message = f"cannot listen on {host}:{port}; {hint}"
        raise InputError(Problem(path="--grpc-port", message=message))
    await server.start()

    async def stop() -> None:
        await server.stop(_GRACE)

    return taken, stop


async def _export(
    receiver: Receiver, access: Access, signal: Signal, body: bytes, context: Any
) -> bytes:
    try:
        with receiver.turn(), receiver.memory() as hold:
            hold(len(body))
            project = _project(access, context)
            rejected, reason = 0, ""
            if signal != "metrics":
                taken = await receiver.export(project, signal, "protobuf", body)
                rejected, reason = taken.rejected, taken.reason
    except Refused as refused:
        receiver.counts[signal, f"refused {refused.status}"] += 1
        trailing: tuple[tuple[str, bytes], ...] = ()
        if refused.again:
            # A sender tries RESOURCE_EXHAUSTED and UNAVAILABLE again after this time.
            details = _status(refused.code, refused.message, RETRY_AFTER)
            trailing = (("grpc-status-details-bin", details),)
        await context.abort(_CODES[refused.code], refused.message, trailing)
        raise
    receiver.counts[signal, "requests"] += 1
    return answer(signal, "protobuf", rejected, reason)


def _project(access: Access, context: Any) -> int:
    headers = {key: value for key, value in context.invocation_metadata() if isinstance(value, str)}
    try:
        caller = access.caller(headers, _peer(context.peer()))
        caller.need("ingest")
    except Denied as denied:
        raise Refused(denied.status_code, f"{denied.detail}; {denied.advice}") from None
    except Unavailable as error:
        raise Refused(503, without_reason(error)) from None
    return caller.project


def _peer(text: str) -> str | None:
    """Return the address of the other end: of `ipv4:127.0.0.1:4242` or `ipv6:%5B::1%5D:4242`."""
    kind, _, rest = text.partition(":")
    if kind not in ("ipv4", "ipv6"):
        return None
    host = rest.rpartition(":")[0].replace("%5B", "[").replace("%5D", "]")
    return host.strip("[]")


def _status(code: int, message: str, seconds: int) -> bytes:
    """Write a ``google.rpc.Status`` with a ``google.rpc.RetryInfo``, which says when to try again.

    Their fields: https://github.com/googleapis/googleapis/tree/master/google/rpc
    """
    delay = b"\x08" + varint(seconds)  # google.protobuf.Duration: seconds
    retry = b"\x0a" + varint(len(delay)) + delay
    kind = b"type.googleapis.com/google.rpc.RetryInfo"
    details = b"\x0a" + varint(len(kind)) + kind + b"\x12" + varint(len(retry)) + retry
    text = message.encode("utf-8", "replace")
    body = b"\x08" + varint(code) + b"\x12" + varint(len(text)) + text
    return body + b"\x1a" + varint(len(details)) + details
