"""Receiving over HTTP: OTLP, and recordings. What is accepted is stored."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from .access import Denied, caller_of
from .database import Unavailable, without_reason
from .otlp_bodies import (
    Form,
    Signal,
    answer,
    status,
)
from .receiver import RETRY_AFTER, Receiver, Refused

_PATIENCE = 60.0
"""Seconds for a body to arrive. A sender that is slower would keep others from their turn."""

_FORMS: dict[str, Form] = {
    "application/x-protobuf": "protobuf",
    "application/protobuf": "protobuf",
    "application/json": "json",
}
_TYPES = {"protobuf": "application/x-protobuf", "json": "application/json"}
# A page of another site can send these without a preflight request.
_OF_PAGES = ("", "text/plain", "multipart/form-data", "application/x-www-form-urlencoded")


def routes() -> list[Route]:
    """Return the routes; the state of the application has a ``receiver`` and an ``access``."""
    return [
        Route("/v1/traces", partial(_export, signal="traces"), methods=["POST"]),
        Route("/v1/logs", partial(_export, signal="logs"), methods=["POST"]),
        Route("/v1/metrics", partial(_export, signal="metrics"), methods=["POST"]),
        Route("/api/recordings", _recording, methods=["POST"]),
    ]


async def _export(request: Request, signal: Signal) -> Response:
    receiver: Receiver = request.app.state.receiver
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    form = _FORMS.get(kind, "json")
    try:
        with receiver.turn(), receiver.memory() as hold:
            project = _project(request)
            if kind not in _FORMS:
                known = " or ".join(_FORMS)
                message = f"the content type `{kind[:100]}` is not one of OTLP: {known}"
                raise Refused(415, message)
            body = await _body(request, receiver.limits.body, hold)
            if signal == "metrics":
                rejected, reason = 0, ""
            else:
                encoding = request.headers.get("content-encoding", "")
                taken = await receiver.export(project, signal, form, body, encoding)
                rejected, reason = taken.rejected, taken.reason
    except Refused as refused:
        receiver.counts[signal, f"refused {refused.status}"] += 1
        encoded = status(form, refused.code, refused.message)
        return _refusal(refused, Response(encoded, refused.status, media_type=_TYPES[form]))
    receiver.counts[signal, "requests"] += 1
    return Response(answer(signal, form, rejected, reason), media_type=_TYPES[form])


async def _recording(request: Request) -> Response:
    receiver: Receiver = request.app.state.receiver
    try:
        with receiver.turn(), receiver.memory() as hold:
            project = _project(request)
            kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
            if kind in _OF_PAGES:
                message = "send the file itself, as `Content-Type: application/octet-stream`"
                raise Refused(415, message)
            name = request.query_params.get("name", "")
            body = await _body(request, receiver.limits.upload, hold)
            if not body:
                raise Refused(400, "the body is empty")
            files, kept = await receiver.recording(project, name, kind[:100], body)
    except Refused as refused:
        receiver.counts["recordings", f"refused {refused.status}"] += 1
        return _refusal(refused, JSONResponse({"error": refused.message}, refused.status))
    return JSONResponse({"files": files, "new": kept}, 202)


def _project(request: Request) -> int:
    try:
        caller = caller_of(request)
        caller.need("ingest")
    except Denied as denied:
        raise Refused(denied.status_code, f"{denied.detail}; {denied.advice}") from None
    except Unavailable as error:
        raise Refused(503, without_reason(error)) from None
    return caller.project


async def _body(request: Request, most: int, hold: Callable[[int], None]) -> bytes:
    stated = request.headers.get("content-length", "")
    too_large = Refused(413, f"the body is larger than {most:,} bytes")
    if stated.isdecimal() and int(stated[:20]) > most:
        raise too_large
    pieces: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(_PATIENCE):
            async for piece in request.stream():
                size += len(piece)
                hold(len(piece))
                if size > most:
                    raise too_large
                pieces.append(piece)
    except TimeoutError:
        raise Refused(408, f"the body did not arrive within {_PATIENCE:.0f} s") from None
    except ClientDisconnect:
        raise Refused(400, "the connection was closed in the middle of the body") from None
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _refusal(refused: Refused, response: Response) -> Response:
    if refused.again:
        response.headers["Retry-After"] = str(RETRY_AFTER)
    elif refused.status in (408, 413):
        # The rest of the body is not read.
        response.headers["Connection"] = "close"
    elif refused.status == 401:
        response.headers["WWW-Authenticate"] = "Bearer"
    return response
