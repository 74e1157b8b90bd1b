"""Files and events of Google ADK, and the eval sets of judge-llm, as types (ADK 1.x and 2.x)."""

import base64
import binascii
import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import msgspec

from baton.model import Part as Attachment


class Wire(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, gc=False):
    """Base of structs for other tools' JSON: unknown keys are noticed."""


class FunctionCall(Wire, kw_only=True):
    """A tool call; ``args`` may be left out; judge-llm calls it ``input_data``."""

    name: str | None = None
    id: str | None = None
    args: dict[str, Any] | None = None
    input_data: str | dict[str, Any] | None = None
    partial_args: Any = None
    will_continue: bool | None = None

    def arguments(self) -> dict[str, Any] | None:
        """Return the arguments as an object; ``None`` when none are written.

        Raises:
            ValueError: ``input_data`` is not a JSON object.
        """
        if self.args is not None or self.input_data is None:
            return self.args
        if isinstance(self.input_data, dict):
            return self.input_data
        try:
            return msgspec.json.decode(self.input_data, type=dict[str, Any])
        except msgspec.DecodeError as error:
            raise ValueError(f"`input_data` of {self.name} is not a JSON object: {error}") from None


class FunctionResponse(Wire, kw_only=True):
    """The result of a tool."""

    name: str | None = None
    id: str | None = None
    response: Any = None
    scheduling: Any = None
    parts: Any = None
    will_continue: bool | None = None


class Part(Wire, kw_only=True):
    """One piece of a content: a text, a call, an answer, a file."""

    text: str | None = None
    thought: bool | str | None = None
    function_call: FunctionCall | None = None
    function_response: FunctionResponse | None = None
    inline_data: dict[str, Any] | None = None
    file_data: dict[str, Any] | None = None
    executable_code: dict[str, Any] | None = None
    code_execution_result: dict[str, Any] | None = None
    thought_signature: Any = None
    video_metadata: Any = None
    media_resolution: Any = None
    tool_call: Any = None
    tool_response: Any = None
    part_metadata: Any = None
    audio_transcription: Any = None
    media_processing: Any = None
    speech_metadata: Any = None


class WireContent(Wire, kw_only=True):
    """A message: parts and who they are from."""

    parts: list[Part] | None = None
    role: str | None = None

    def text(self) -> str | None:
        """Return the text parts without thoughts, joined by newlines; ``None`` without any."""
        texts = [part.text for part in self.parts or () if part.text and not part.thought]
        return "\n".join(texts) if texts else None


class UsageMetadata(msgspec.Struct, kw_only=True):
    """Token counts of one model request; the prompt's include cached ones."""

    prompt_token_count: int | None = None
    candidates_token_count: int | None = None
    thoughts_token_count: int | None = None
    cached_content_token_count: int | None = None
    tool_use_prompt_token_count: int | None = None


class InvocationEvent(Wire, kw_only=True):
    """One event of a saved session; what else an :class:`Event` has is never in it."""

    author: str
    content: WireContent | None = None
    grounding_metadata: Any = None
    usage_metadata: UsageMetadata | None = None
    model_version: str | None = None

    timestamp: ClassVar[None] = None
    partial: ClassVar[None] = None
    branch: ClassVar[None] = None
    node_info: ClassVar[None] = None
    actions: ClassVar[None] = None
    long_running_tool_ids: ClassVar[None] = None
    error_code: ClassVar[None] = None
    error_message: ClassVar[None] = None
    error: ClassVar[None] = None
    detail: ClassVar[None] = None
    output: ClassVar[None] = None
    citation_metadata: ClassVar[None] = None
    input_transcription: ClassVar[None] = None
    output_transcription: ClassVar[None] = None
    isolation_scope: ClassVar[None] = None


class IntermediateData(Wire, kw_only=True):
    """The events before the final response, in either of ADK's two shapes."""

    tool_uses: list[FunctionCall] | None = None
    tool_responses: list[FunctionResponse] | None = None
    intermediate_responses: list[Any] | None = None
    invocation_events: list[InvocationEvent] | None = None


class WireRubric(Wire, kw_only=True):
    """A statement that an answer is judged by."""

    rubric_id: str | None = None
    rubric_content: dict[str, Any] | None = None
    description: str | None = None
    type: str | None = None


class Invocation(Wire, kw_only=True):
    """One turn."""

    user_content: WireContent | str
    invocation_id: str | None = None
    final_response: WireContent | str | None = None
    intermediate_data: IntermediateData | None = None
    creation_timestamp: float | None = None
    duration: float | None = None
    model_duration: float | None = None
    tool_duration: float | None = None
    rubrics: list[WireRubric] | None = None
    app_details: dict[str, Any] | None = None


class SessionInput(msgspec.Struct, kw_only=True):
    """The session a case starts from; further keys are allowed and ignored, as in ADK."""

    app_name: str | None = None
    user_id: str | None = None
    session_id: str | None = None
    state: dict[str, Any] | None = None


class ConversationScenario(Wire, kw_only=True):
    """A conversation for a simulated user."""

    starting_prompt: str
    conversation_plan: str
    user_persona: Any = None


class EvalCase(Wire, kw_only=True):
    """One conversation and what should happen in it."""

    eval_id: str
    conversation: list[Invocation] | None = None
    conversation_scenario: ConversationScenario | None = None
    session_input: SessionInput | None = None
    creation_timestamp: float | None = None
    rubrics: list[WireRubric] | None = None
    final_session_state: dict[str, Any] | None = None
    evaluator_config: dict[str, dict[str, Any]] | None = None
    metadata: dict[str, Any] | None = None


class LegacyToolUse(Wire, kw_only=True):
    """An expected call in ADK's first file format."""

    tool_name: str
    tool_input: dict[str, Any] | None = None
    mock_tool_output: Any = None


class LegacyResponse(Wire, kw_only=True):
    """An expected intermediate text in ADK's first file format."""

    author: str
    text: str


class LegacyTurn(Wire, kw_only=True):
    """One turn in ADK's first file format."""

    query: str
    expected_tool_use: list[LegacyToolUse] | None = None
    expected_intermediate_agent_responses: list[LegacyResponse] | None = None
    reference: str | None = None


class LegacyCase(Wire, kw_only=True):
    """One conversation in ADK's first eval set format."""

    name: str
    data: list[LegacyTurn]
    initial_session: dict[str, Any] | None = None
    initial_state: dict[str, Any] | None = None


TRANSFER_TOOL = "transfer_to_agent"


def stated_agents(data: IntermediateData | None) -> list[str] | None:
    """Return the agent chain that a turn states; ``None`` when it states none.

    Raises:
        ValueError: the name of an agent is not text.
    """
    if data is None:
        return None
    if data.invocation_events:
        chain: list[str] = []
        for name in (e.author for e in data.invocation_events if e.author != "user"):
            if not chain or chain[-1] != name:
                chain.append(name)
        return chain or None
    return _from_responses(data.intermediate_responses or []) or _from_tools(data.tool_uses or [])


def _from_responses(records: list[Any]) -> list[str]:
    chain: list[str] = []
    for record in records:
        if isinstance(record, dict):
            kind = record.get("type")
            if kind == "agent_transfer":
                opener = record.get("from_agent")
                if opener is not None and not chain:
                    chain.append(_name(opener, "from_agent"))
                if record.get("to_agent") is not None:
                    chain.append(_name(record["to_agent"], "to_agent"))
            elif kind not in ("function_call", "function_response"):
                if record.get("agent_name") is not None:
                    chain.append(_name(record["agent_name"], "agent_name"))
            continue
        pair = author_pair(record)
        if pair is not None and pair[0] != "user" and (not chain or chain[-1] != pair[0]):
            chain.append(pair[0])
    return chain


def _from_tools(calls: list[FunctionCall]) -> list[str] | None:
    targets = [target_of(call.arguments()) for call in calls if call.name == TRANSFER_TOOL]
    return [target for target in targets if target is not None] or None


def target_of(arguments: Mapping[str, Any] | None) -> str | None:
    """Return the agent that a call of ``transfer_to_agent`` names.

    ``None`` if it names none, which happens to models: ADK answers such a call with an error.
    """
    name = (arguments or {}).get("agent_name")
    return name if isinstance(name, str) and name.strip() else None


def author_pair(record: Any) -> tuple[str, list[str]] | None:
    """Read ADK's ``[author, parts]``: the author and its texts; ``None`` for anything else."""
    if not (isinstance(record, list) and len(record) == 2 and isinstance(record[0], str)):
        return None
    parts = record[1] if isinstance(record[1], list) else []
    texts = [part.get("text") for part in parts if isinstance(part, dict)]
    return record[0], [text for text in texts if isinstance(text, str) and text]


def _name(value: Any, what: str) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError(f"{what} has to be an agent's name, got {value!r}")
    return value


class Actions(Wire, kw_only=True):
    """The side effects of an event."""

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
    """The origin of an event: ``router@1/billing@1``, counting visits; often empty.

    ``output_for``: paths of the nodes, and of the workflows around them, whose output it is.
    """

    path: str | None = None
    output_for: list[str] | None = None


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


AnyEvent = Event | InvocationEvent


class SessionFile(Wire, kw_only=True):
    """A session as `GET .../sessions/{id}` answers it, or as ADK saves it."""

    id: str
    app_name: str | None = None
    user_id: str | None = None
    state: dict[str, Any] | None = None
    events: list[Event]
    last_update_time: float | None = None


_KINDS = ("inline_data", "file_data")


def attachments(parts: Iterable[Part]) -> list[Attachment] | None:
    """Return the files of a message; ``None`` when there are none."""
    blobs = [(kind, getattr(part, kind)) for part in parts for kind in _KINDS]
    return [_attachment(kind, blob) for kind, blob in blobs if blob] or None


def _attachment(kind: str, blob: dict[str, Any]) -> Attachment:
    data = blob.get("data")
    return Attachment(
        type=kind,
        mime=blob.get("mime_type") or blob.get("mimeType"),
        uri=blob.get("file_uri") or blob.get("fileUri"),
        sha256=hashlib.sha256(_bytes(data)).hexdigest() if isinstance(data, str) else None,
    )


def _bytes(data: str) -> bytes:
    """Decode base64 in either alphabet; other text is used as it is."""
    try:
        return base64.b64decode(data.replace("-", "+").replace("_", "/"), validate=True)
    except binascii.Error:
        return data.encode()
