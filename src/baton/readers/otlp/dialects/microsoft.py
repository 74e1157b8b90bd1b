"""Microsoft's Agent Framework: hand-offs between the executors of its workflows, and approvals."""

from __future__ import annotations

from typing import Any

from baton.readers.otlp.attribute_values import text
from baton.readers.otlp.messages import ASKS_A_PERSON
from baton.readers.otlp.span import Event, Span
from baton.readers.otlp.span_content import (
    AgentSpan,
    HandoffSpan,
    Node,
    PlainSpan,
    Reading,
    WorkflowSpan,
    as_plain,
)

from .dialect import Dialect, Framework

SCOPE = "agent_framework"
"""The scope of its spans, also on spans without attributes of the convention."""
# The executors that choose who speaks next: `AgentBasedGroupChatOrchestrator`,
# `MagenticOrchestrator`.
_ORCHESTRATOR = "Orchestrator"


def read(span: Span) -> Reading:
    """Read a span of a workflow: only a message to one executor hands work over."""
    attributes = span.attributes
    if span.name == "workflow.run":
        return WorkflowSpan(name=text(attributes.get("workflow.name")))
    if attributes.get("message.type") == "AgentExecutorRequest":
        target = text(attributes.get("message.destination_executor_id"))
        if target is not None:
            return HandoffSpan(target=target)
    return PlainSpan(name=text(attributes.get("executor.id")))


def asks_a_person(messages: Any) -> bool:
    """Return whether an agent ends with calls that a person has to allow."""
    last = messages[-1] if isinstance(messages, list) and messages else None
    parts = last.get("parts") if isinstance(last, dict) else None
    return isinstance(parts, list) and any(
        isinstance(part, dict) and part.get("type") == ASKS_A_PERSON for part in parts
    )


def resolve(nodes: list[Node], _logs: list[Event]) -> list[Node]:
    """Find the agents that a message of a workflow hands work from and to.

    Each executor links to the message that started it.
    """
    started: dict[str, list[Node]] = {}
    messages: list[tuple[Node, HandoffSpan]] = []
    for node in nodes:
        if node.span.scope != SCOPE:
            continue
        if type(node.says) is HandoffSpan:
            messages.append((node, node.says))
        elif type(node.says) is PlainSpan and "executor.id" in node.span.attributes:
            _without_prompt(node)
            _join_rounds(node)
            for link in node.span.links:
                started.setdefault(link.span_id, []).append(node)
    for node, says in messages:
        executor = node.parent
        before = [says for at, says in _agents_in(executor) if at <= node.started]
        reached = started.get(node.span.span_id, [])
        receivers = [says for other in reached for _, says in _agents_in(other)]
        broke = any(other.says.failed for other in reached)
        # Microsoft's hand-offs are broadcast: a message goes to all executors, also to those that
        # only note it. Only a message from an executor in which an agent worked hands work over,
        # and, where executors link to messages, only if it started an agent (or broke its
        # executor). A group chat's manager sends the last answer to all others, for example.
        if not before or (started and not receivers and not broke):
            node.says = as_plain(says)
            continue
        # An executor may have another name than its agent: `magentic_orchestrator`.
        says.agent = before[-1].name
        says.target = receivers[0].name if receivers else says.target
    return []


def _agents_in(executor: Node | None) -> list[tuple[float, AgentSpan]]:
    """Return the agents that an executor ran itself, with their start."""
    children = executor.children if executor is not None else ()
    return [(node.started, says) for node in children if type(says := node.says) is AgentSpan]


def _join_rounds(executor: Node) -> None:
    """Make one run of several calls of an agent by one executor.

    Magentic's orchestrator asks its manager for facts, for a plan, and who speaks next.
    """
    agents = [says for _, says in _agents_in(executor)]
    if len(agents) > 1 and agents[0].name is not None:
        if all(says.name == agents[0].name for says in agents):
            for says in agents:
                says.run = says.run or executor.span.span_id


def _without_prompt(executor: Node) -> None:
    """Set the user's question for a workflow that opens with the agent of an orchestrator.

    Such an agent gets the question, and then a prompt of the orchestrator: "Decide what to do next.
    Respond with a JSON object of the following format". Nothing else records the question.
    """
    kind, workflow = str(executor.span.attributes.get("executor.type")), executor.parent
    says = workflow.says if workflow is not None else None
    if workflow is None or type(says) is not WorkflowSpan or says.heard is not None:
        return
    opens = all(o.started >= executor.started for o in workflow.children if _agents_in(o))
    agents = _agents_in(executor)
    if opens and agents and kind.endswith(_ORCHESTRATOR):
        heard = agents[0][1].heard_messages()
        if len(heard) > 1 and all(message.role == "user" for message in heard):
            says.heard = lambda: heard[:-1]


DIALECT = Dialect(
    name="microsoft-agent-framework",
    resolve=resolve,
    scopes=(SCOPE,),
    framework=Framework(answers_together=True),
    refusals=("Error: Tool call invocation was rejected by user.",),
)
