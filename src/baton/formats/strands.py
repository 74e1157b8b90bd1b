"""Files of Strands Agents, of its evaluation SDK, and of AWS's accelerator."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec

from .simulations import ChaosEffects

Count = Annotated[int, msgspec.Meta(ge=0)]
AGENT, TOOL, MODEL = "invoke_agent", "execute_tool", "inference"


class Wire(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Base of structs for Strands' JSON: unknown keys are noticed."""


class SpanInfo(Wire, kw_only=True):
    """The ids and times of a span; times without a zone are UTC."""

    start_time: datetime
    end_time: datetime
    session_id: str | None = None
    trace_id: str | None = None
    span_id: str | None = None
    parent_span_id: str | None = None


class CalledTool(Wire, kw_only=True):
    """A tool call as it was made."""

    name: str
    arguments: Any = None
    tool_call_id: str | None = None


class ToolResult(Wire, kw_only=True):
    """A tool's result; ``error`` may be only the word."""

    content: str | None = None
    error: str | None = None
    tool_call_id: str | None = None


class OfferedTool(Wire, kw_only=True):
    """A tool that an agent could call."""

    name: str
    description: str | None = None
    parameters: Any = None


class Item(Wire, kw_only=True):
    """A piece of a message: ``text``, ``tool_use`` or ``tool_result``."""

    content_type: str | None = None
    text: str | None = None
    name: str | None = None
    arguments: Any = None
    content: str | None = None
    error: str | None = None
    tool_call_id: str | None = None


class Message(Wire, kw_only=True):
    """A message of a model call."""

    role: str
    content: list[Item]


class Span(Wire, kw_only=True):
    """An agent, a tool call, or a model call with all messages until its answer."""

    span_info: SpanInfo
    span_type: str
    metadata: dict[str, Any] | None = None
    messages: list[Message] = msgspec.field(default_factory=list)
    tool_call: CalledTool | None = None
    tool_result: ToolResult | None = None
    agent_span_id: str | None = None
    user_prompt: str | None = None
    agent_response: str | None = None
    available_tools: list[OfferedTool] | None = None
    system_prompt: str | None = None


class SpanTrace(Wire, kw_only=True):
    """The spans of one invocation."""

    spans: list[Span]
    trace_id: str | None = None
    session_id: str | None = None


class Session(Wire, kw_only=True):
    """A conversation."""

    traces: list[SpanTrace]
    session_id: str | None = None


class Interaction(msgspec.Struct, kw_only=True):
    """The last message of a node of a swarm or graph, and the nodes it follows."""

    node_name: str | None = None
    dependencies: list[Any] | None = None
    messages: list[Any] | str | None = None


class Row(msgspec.Struct, kw_only=True):
    """A case under one evaluator; its expectations are not read.

    Rows of a task that broke have no ``actual_output`` key at all.
    """

    input: Any = None
    name: str | None = None
    evaluator: str | None = None
    session_id: str | None = None
    actual_output: Any = msgspec.UNSET
    actual_trajectory: Session | list[Any] | None = None
    actual_interactions: list[Interaction] | None = None
    actual_environment_state: list[Any] | None = None


class TaskOutput(msgspec.Struct, kw_only=True):
    """The return value of a task function of the evaluation SDK."""

    output: Any
    trajectory: Session | list[Any] | None = None
    interactions: list[Interaction] | None = None
    environment_state: list[Any] | None = None
    input: Any = msgspec.UNSET


class Report(msgspec.Struct, kw_only=True):
    """A report: rows side by side with their reasons."""

    cases: list[msgspec.Raw]
    reasons: list[str | None] = msgspec.field(default_factory=list)


class TokenUsage(msgspec.Struct, kw_only=True):
    """Tokens; cached ones are beside the input tokens."""

    input_tokens: Count | None = msgspec.field(default=None, name="inputTokens")
    output_tokens: Count | None = msgspec.field(default=None, name="outputTokens")
    total: Count | None = msgspec.field(default=None, name="totalTokens")
    cache_read: Count | None = msgspec.field(default=None, name="cacheReadInputTokens")
    cache_write: Count | None = msgspec.field(default=None, name="cacheWriteInputTokens")


class NodeResult(Wire, kw_only=True):
    """The result of a node's last visit; usage is its agent's total until then.

    ``result`` is an ``agent_result``, an ``exception`` or a ``multiagent_result``.
    """

    result: dict[str, Any] | None = None
    status: str = "pending"
    execution_time: float | None = None
    accumulated_usage: TokenUsage | None = None
    accumulated_metrics: Any = None
    execution_count: int = 0
    interrupts: list[dict[str, Any]] = msgspec.field(default_factory=list)


class MultiAgentResult(Wire, kw_only=True):
    """A swarm or graph: its result, or its saved state.

    ``node_history`` (swarm) and ``execution_order`` (graph) hold each completed visit, ``edges``
    pairs of nodes. A node is its id, or an object with its ``node_id``.
    """

    type: str
    status: str = "pending"
    results: dict[str, NodeResult] = msgspec.field(default_factory=dict)
    node_results: dict[str, NodeResult] = msgspec.field(default_factory=dict)
    execution_count: int | None = None
    execution_time: float | None = None
    accumulated_usage: TokenUsage | None = None
    accumulated_metrics: Any = None
    interrupts: list[dict[str, Any]] = msgspec.field(default_factory=list)
    id: str | None = None
    current_task: Any = msgspec.UNSET
    node_history: list[Any] | None = None
    execution_order: list[Any] | None = None
    edges: list[list[Any]] | None = None
    entry_points: list[Any] | None = None
    next_nodes_to_execute: list[Any] | None = None
    total_nodes: int | None = None
    completed_nodes: Any = None
    failed_nodes: Any = None
    interrupted_nodes: Any = None
    context: dict[str, Any] | None = None
    internal_state: Any = msgspec.field(default=None, name="_internal_state")


def seconds(moment: datetime) -> float:
    """Return seconds since the epoch."""
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


CASE_KEYS = frozenset(
    {
        "name",
        "session_id",
        "expected_output",
        "expected_assertion",
        "expected_trajectory",
        "expected_interactions",
        "expected_environment_state",
    }
)
"""Beside ``input``, one of these makes an object a case; ``actual_output`` makes it a result."""


class ExpectedInteraction(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A visit of a node, the nodes it follows, and what it says."""

    node_name: str
    dependencies: list[str] | None = None
    messages: str | list[Any] | None = None


class EnvironmentState(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A named state of what agents work on."""

    name: str
    state: Any = None


class StrandsCase(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A case. ``state`` is an object, maybe as JSON text; the session id is that of one run.

    ``effects`` are of a chaos case.
    """

    input: Any
    name: str | None = None
    session_id: str | None = None
    expected_output: Any = None
    expected_assertion: str | None = None
    expected_trajectory: list[Any] | dict[str, Any] | None = None
    expected_interactions: list[ExpectedInteraction] | None = None
    expected_environment_state: list[EnvironmentState] | None = None
    state: dict[str, Any] | str | None = None
    metadata: dict[str, Any] | None = None
    effects: ChaosEffects | None = None
