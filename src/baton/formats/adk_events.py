"""Events of Google ADK as servers stream them and sessions keep them (ADK 1.x and 2.x)."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Iterable
from typing import Any

import msgspec

from baton.model import Part

from .evalset import Part as WirePart
from .evalset import UsageMetadata, Wire, WireContent


class Actions(Wire, kw_only=True):
    """Side effects of an event."""

    transfer_to_agent: str | None = None
    transfer_reason: str | None = None
    escalate: bool | None = None
    skip_summarization: bool | None = None
    state_delta: dict[str, Any] | None = None
    artifact_delta: dict[str, Any] | None = None
    requested_auth_configs: dict[str, Any] | None = None
    requested_tool_confirmations: dict[str, Any] | None = None
    compaction: Any = None
    end_of_agent: bool | None = None
    agent_state: Any = None
    rewind_before_invocation_id: str | None = None
    route: Any = None
    render_ui_widgets: Any = None
    set_model_response: Any = None


class NodeInfo(msgspec.Struct, kw_only=True):
    """Where an event comes from: ``router@1/billing@1``, counting visits; often empty."""

    path: str | None = None


class Transcription(msgspec.Struct, kw_only=True):
    """Spoken words, as text."""

    text: str | None = None


class Event(Wire, kw_only=True):
    """One event; or a server's error frame, which has ``error`` or ``detail`` alone."""

    id: str | None = None
    invocation_id: str | None = None
    author: str | None = None
    timestamp: float | None = None
    content: WireContent | None = None
    partial: bool | None = None
    branch: str | None = None
    node_info: NodeInfo | None = None
    actions: Actions | None = None
    long_running_tool_ids: list[str] | None = None
    usage_metadata: UsageMetadata | None = None
    model_version: str | None = None
    finish_reason: str | None = None
    error_code: str | None = None
    error_message: str | None = None
    error: Any = None
    error_details: Any = None
    detail: Any = None
    output: Any = None
    grounding_metadata: Any = None
    citation_metadata: Any = None
    input_transcription: Transcription | None = None
    output_transcription: Transcription | None = None
    interrupted: bool | None = None
    turn_complete: bool | None = None
    turn_complete_reason: Any = None
    interaction_status: Any = None
    custom_metadata: Any = None
    live_session_resumption_update: Any = None
    live_session_id: Any = None
    go_away: Any = None
    voice_activity: Any = None
    avg_logprobs: Any = None
    logprobs_result: Any = None
    cache_metadata: Any = None
    interaction_id: Any = None
    environment_id: Any = None
    isolation_scope: Any = None


class SessionFile(Wire, kw_only=True):
    """A session as `GET .../sessions/{id}` answers it, or as ADK saves it."""

    id: str
    app_name: str | None = None
    user_id: str | None = None
    state: dict[str, Any] | None = None
    events: list[Event]
    last_update_time: float | None = None


_KINDS = ("inline_data", "file_data")


def attachments(parts: Iterable[WirePart]) -> list[Part] | None:
    """Return the files of a message; ``None`` when there are none."""
    blobs = [(kind, getattr(part, kind)) for part in parts for kind in _KINDS]
    return [_attachment(kind, blob) for kind, blob in blobs if blob] or None


def _attachment(kind: str, blob: dict[str, Any]) -> Part:
    data = blob.get("data")
    return Part(
        type=kind,
        mime=blob.get("mime_type") or blob.get("mimeType"),
        uri=blob.get("file_uri") or blob.get("fileUri"),
        sha256=hashlib.sha256(_bytes(data)).hexdigest() if isinstance(data, str) else None,
    )


def _bytes(data: str) -> bytes:
    """Decode base64 in either alphabet; what is neither counts as it stands."""
    try:
        return base64.b64decode(data.replace("-", "+").replace("_", "/"), validate=True)
    except binascii.Error:
        return data.encode()
