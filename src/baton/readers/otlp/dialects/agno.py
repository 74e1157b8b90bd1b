"""Agno's additions to the conventions of its spans."""

from __future__ import annotations

import re
from collections import defaultdict, deque

import msgspec

from baton.readers.otlp.attribute_values import content, first, name_key, printed_value, text
from baton.readers.otlp.handover_calls import asks_all
from baton.readers.otlp.span import Event, Span, lie_within
from baton.readers.otlp.span_content import (
    AgentSpan,
    ModelSpan,
    Node,
    Overlaps,
    PlainSpan,
    Reading,
    ToolSpan,
    as_agent,
    as_workflow,
)

from .dialect import Dialect, Framework

_FRAMEWORK = "agno"
# "Member with ID lawyer not found in the team ..." is the tool's normal result, with the status OK.
_NO_MEMBER = re.compile(r"Member with ID \S+ not found\b")
# Traceloop prints the whole object: `status='success' result='alpha: 4' error=None updated_...`.
_PRINTED = re.compile(r"status='(?P<status>\w+)' result=")
# A delegation's result is a generator, which is read only after the span has ended.
_UNREAD = ("<generator object ", "<async_generator object ")
# Traceloop's name of an agent without one: `None.agent`.
_NAMELESS = "None"
_TEAM = "agno.team.name"
_STEPS = "agno.workflow.steps_count"
_STEP, _PARALLEL = "agno.step.type", "agno.parallel.step_count"
_RUN = re.compile(r"\.a?run$")
_NODE = "graph.node.id"
# The arguments of Agno's function that runs an agent, which OpenInference recorded before 0.1.16:
# `{"run_response": "RunResponse(content=None, ...", "run_messages": "RunMessages(messages=[...`.
_ARGUMENTS = re.compile(r'\{\s*"run_response": ?"')
# All that OpenInference says of a run that failed: `run status: error`.
_STATUS = "run status: "


def refine(says: Reading, span: Span) -> Reading:
    """Name teams, read Traceloop's results, and mark delegations to unknown members as failed."""
    if type(says) is AgentSpan and says.name == _NAMELESS and span.name.startswith(_NAMELESS):
        says.name = None
    if type(says) is PlainSpan and _TEAM in span.attributes:
        team = as_agent(says, text(span.attributes[_TEAM]))
        team.heard = span.attributes.get("traceloop.entity.input")
        team.spoken = span.attributes.get("traceloop.entity.output")
        return team
    if type(says) is PlainSpan and _STEPS in span.attributes:
        return as_workflow(says, _RUN.sub("", span.name))
    if type(says) is AgentSpan and _NODE in span.attributes:
        _name(says, span)
    if type(says) is AgentSpan and says.failed and (says.error or "").startswith(_STATUS):
        # Agno returns the error of the model as the content of the run.
        told = content(says.spoken)
        says.error = (told.text if told is not None else None) or says.error
        says.spoken = None
    if type(says) is not ToolSpan:
        return says
    said = says.result.text if says.result is not None else None
    if said is not None and said.startswith(_UNREAD):
        says.result, says.tells_result = None, False
        return says
    if said is not None and _unpack(says, said):
        return says
    _refuse(says, said)
    return says


def _refuse(says: ToolSpan, said: str | None) -> None:
    """Mark a delegation to an unknown member as failed, by the answer to the call."""
    if says.mode == "delegate" and said is not None and _NO_MEMBER.match(said):
        says.failed, says.error, says.result = True, said, None


def _name(says: AgentSpan, span: Span) -> None:
    """Name an agent of OpenInference, whose nodes have random ids, and read what older ones lack.

    ``agent.name`` is newer, and ``graph.node.name`` of a team could be that of its last member.
    """
    attributes = span.attributes
    named = (text(attributes.get(key)) for key in ("agno.team", "agno.agent", "agent.name"))
    says.name = next((name for name in named if name), None)
    says.after = None
    if isinstance(says.heard, str) and _ARGUMENTS.match(says.heard):
        says.heard = None


def _unpack(says: ToolSpan, said: str) -> bool:
    """Read a printed result; return whether it is one."""
    head = _PRINTED.match(said)
    if head is None:
        return False
    # Split instead of matched, as a pattern would take quadratic time for a hostile text.
    result, _, rest = said[head.end() :].partition(" error=")
    printed, ends, _ = rest.partition(" updated_session_state=")
    if not ends:
        return False
    error = printed_value(printed, otherwise=printed)
    says.tells_result = not result.startswith(_UNREAD)
    says.result = (
        None if result.startswith("<") else content(printed_value(result, otherwise=result))
    )
    if head["status"] != "success":
        says.failed, says.error = True, text(error) or text(result)
    return True


def resolve(nodes: list[Node], _logs: list[Event]) -> list[Node]:
    """Put members below the call that delegates to them, and mark agents that got no answer.

    Traceloop ends the span of a delegation before the member begins.
    """
    _rejoin(nodes)
    for node in nodes:
        if type(node.says) is not AgentSpan or node.says.framework != _FRAMEWORK:
            continue
        if node.says.name is None and _has_agent_above(node):
            # A member without a name is called by its id.
            node.says.name = text(first(node.span.attributes, "agno.team.id", "agno.agent.id"))
        requests = [child.says for child in node.children if type(child.says) is ModelSpan]
        # Agno catches the error of a request, and the member's answer is its text.
        if requests and requests[-1].failed and not node.says.failed:
            node.says.failed, node.says.error = True, requests[-1].error
        _read_answers(node.children)
        waiting: defaultdict[str, deque[Node]] = defaultdict(deque)
        to_all: Node | None = None
        stay: list[Node] = []
        for child in node.children:
            says = child.says
            if type(says) is ToolSpan and not child.children and not says.failed:
                if says.mode == "delegate" and says.target:
                    waiting[name_key(says.target)].append(child)
                elif asks_all(says.name or ""):
                    to_all = child
            elif type(says) is ModelSpan:
                to_all = None
            elif type(says) is AgentSpan and waiting.get(name_key(says.name or "")):
                _put_below(child, waiting[name_key(says.name or "")].popleft())
                continue
            elif type(says) is AgentSpan and to_all is not None:
                _put_below(child, to_all)
                continue
            stay.append(child)
        node.children = stay
    for node in nodes:
        says = node.says
        if type(says) is ToolSpan and says.framework == _FRAMEWORK and says.mode == "delegate":
            # Streamed runs that Traceloop records fall apart: nothing tells how this one ended.
            says.launched = not says.tells_result and not says.failed and not node.children
    return []


def goes_on(before: list[Span], spans: list[Span]) -> bool:
    """Return whether spans are steps of a workflow that ran side by side with others.

    Before 1.0, OpenInference's spans of steps that run in threads are traces of their own.
    """
    parallel = [span for span in before if _PARALLEL in span.attributes]
    return bool(parallel) and lie_within(spans, parallel)


def _rejoin(nodes: list[Node]) -> None:
    """Put steps without a parent below the parallel step that was running all the time."""
    loose = [node for node in nodes if node.parent is None and _STEP in node.span.attributes]
    if loose:
        parallel = Overlaps(node for node in nodes if _PARALLEL in node.span.attributes)
        for node in loose:
            around = [
                other
                for other in parallel.around(node)
                if lie_within([node.span], [other.span]) and _top(other) is not node
            ]
            node.parent = max(around, key=lambda each: each.started, default=None)
            if node.parent is not None:
                node.parent.children.append(node)


def _top(node: Node) -> Node:
    while node.parent is not None:
        node = node.parent
    return node


def _read_answers(children: list[Node]) -> None:
    """Read the results of generators from the next request, whose answers have no ids.

    Of a request that answers as many calls as were made, the answers are in the order of the calls.
    """
    calls: list[ToolSpan] = []
    for child in children:
        says = child.says
        if type(says) is ToolSpan:
            calls.append(says)
        elif type(says) is ModelSpan:
            if any(not call.tells_result for call in calls):
                heard = says.heard_messages()
                last = max((i for i, m in enumerate(heard) if m.role == "assistant"), default=-1)
                answers = [answer for message in heard[last + 1 :] for answer in message.answers]
                for call, answer in zip(calls, answers, strict=False):
                    if len(calls) == len(answers) and not call.tells_result:
                        call.result, call.tells_result = answer.result, True
                        _refuse(call, answer.result.text if answer.result is not None else None)
            calls = []


def _has_agent_above(node: Node) -> bool:
    above = node.parent
    while above is not None and type(above.says) is not AgentSpan:
        above = above.parent
    return above is not None


def _put_below(member: Node, call: Node) -> None:
    """Put a member's span below the span of its call, which then lasts as long as the member."""
    member.parent = call
    call.children.append(member)
    if call.ended < member.ended:
        call.ended = member.ended
        call.span = msgspec.structs.replace(call.span, ended=member.span.ended)
    if type(call.says) is not ToolSpan or asks_all(call.says.name or ""):
        return
    if type(member.says) is AgentSpan:
        call.says.failed, call.says.error = member.says.failed, member.says.error


DIALECT = Dialect(
    name=_FRAMEWORK,
    refine=refine,
    resolve=resolve,
    goes_on=goes_on,
    # A team that routes answers with its member's words, and `stop_after_tool_call` ends a run.
    framework=Framework(ends_with_tool=True),
)
