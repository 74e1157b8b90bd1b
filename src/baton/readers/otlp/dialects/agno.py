"""Agno's additions to the conventions of its spans."""

from __future__ import annotations

import re
from collections import defaultdict, deque

import msgspec

from baton.readers.otlp.attribute_values import content, name_key, printed_value, text
from baton.readers.otlp.span import Event, Span
from baton.readers.otlp.span_content import (
    AgentSpan,
    ModelSpan,
    Node,
    PlainSpan,
    Reading,
    ToolSpan,
    as_agent,
    as_workflow,
)

from .dialect import Dialect

_FRAMEWORK = "agno"
# "Member with ID lawyer not found in the team ..." is the tool's normal result, with the status OK.
_NO_MEMBER = re.compile(r"Member with ID \S+ not found\b")
# Traceloop prints the whole object: `status='success' result='alpha: 4' error=None updated_...`.
_PRINTED = re.compile(r"status='(?P<status>\w+)' result=")
_TEAM = "agno.team.name"
_STEPS = "agno.workflow.steps_count"
_RUN = ".run"
# All that OpenInference says of a run that failed: `run status: error`.
_STATUS = "run status: "


def refine(says: Reading, span: Span) -> Reading:
    """Name teams, read Traceloop's results, and mark delegations to unknown members as failed."""
    if type(says) is PlainSpan and _TEAM in span.attributes:
        team = as_agent(says, text(span.attributes[_TEAM]))
        team.heard = span.attributes.get("traceloop.entity.input")
        team.spoken = span.attributes.get("traceloop.entity.output")
        return team
    if type(says) is PlainSpan and _STEPS in span.attributes:
        return as_workflow(says, span.name.removesuffix(_RUN))
    if type(says) is AgentSpan and says.failed and (says.error or "").startswith(_STATUS):
        # Agno returns the error of the model as the content of the run.
        told = content(says.spoken)
        says.error = (told.text if told is not None else None) or says.error
        says.spoken = None
    if type(says) is not ToolSpan:
        return says
    said = says.result.text if says.result is not None else None
    if said is not None and _unpack(says, said):
        return says
    if says.mode == "delegate" and said is not None and _NO_MEMBER.match(said):
        says.failed, says.error, says.result = True, said, None
    return says


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
    # A delegation's result is a generator, which is read only after the span has ended.
    says.tells_result = not result.startswith(("<generator", "<async_generator"))
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
    for node in nodes:
        if type(node.says) is not AgentSpan or node.says.framework != _FRAMEWORK:
            continue
        requests = [child.says for child in node.children if type(child.says) is ModelSpan]
        # Agno catches the error of a request, and the member's answer is its text.
        if requests and requests[-1].failed and not node.says.failed:
            node.says.failed, node.says.error = True, requests[-1].error
        waiting: defaultdict[str, deque[Node]] = defaultdict(deque)
        stay: list[Node] = []
        for child in node.children:
            says = child.says
            if (
                type(says) is ToolSpan
                and says.mode == "delegate"
                and says.target
                and not child.children
            ):
                waiting[name_key(says.target)].append(child)
            elif type(says) is AgentSpan and waiting.get(name_key(says.name or "")):
                _put_below(child, waiting[name_key(says.name or "")].popleft())
                continue
            stay.append(child)
        node.children = stay
    return []


def _put_below(member: Node, call: Node) -> None:
    """Put a member's span below the span of its call, which then lasts as long as the member."""
    member.parent = call
    call.children.append(member)
    call.ended = max(call.ended, member.ended)
    call.span = msgspec.structs.replace(call.span, ended=member.span.ended)
    if type(call.says) is ToolSpan and type(member.says) is AgentSpan:
        call.says.failed, call.says.error = member.says.failed, member.says.error


DIALECT = Dialect(name=_FRAMEWORK, refine=refine, resolve=resolve)
