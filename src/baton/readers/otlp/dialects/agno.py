"""Agno's additions to the conventions of its spans."""

from __future__ import annotations

import re

import msgspec

from baton.readers.otlp.readings import (
    AgentSpan,
    ModelSpan,
    Node,
    PlainSpan,
    Reading,
    ToolSpan,
    as_agent,
)
from baton.readers.otlp.span import Event, Span
from baton.readers.otlp.values import content, printed_value, same_name, text

from .base import Dialect

_FRAMEWORK = "agno"
# "Member with ID lawyer not found in the team ..." is the tool's normal result, with the status OK.
_NO_MEMBER = re.compile(r"Member with ID \S+ not found\b")
# Traceloop prints the whole object: `status='success' result='alpha: 4' error=None updated_...`.
_PRINTED = re.compile(
    r"status='(?P<status>\w+)' result=(?P<result>.*?) error=(?P<error>.*?)"
    r" updated_session_state=.*",
    re.DOTALL,
)
_TEAM = "agno.team.name"


def refine(says: Reading, span: Span) -> Reading:
    """Name teams, read Traceloop's results, and mark delegations to unknown members as failed."""
    if type(says) is PlainSpan and _TEAM in span.attributes:
        team = as_agent(says, text(span.attributes[_TEAM]))
        team.heard = span.attributes.get("traceloop.entity.input")
        team.spoken = span.attributes.get("traceloop.entity.output")
        return team
    if type(says) is not ToolSpan:
        return says
    said = says.result.text if says.result is not None else None
    printed = _PRINTED.fullmatch(said) if said is not None else None
    if printed is not None:
        _unpack(says, printed)
    elif says.mode == "delegate" and said is not None and _NO_MEMBER.match(said):
        says.failed, says.error, says.result = True, said, None
    return says


def _unpack(says: ToolSpan, printed: re.Match[str]) -> None:
    result, error = printed["result"], printed_value(printed["error"], otherwise=printed["error"])
    # A delegation's result is a generator, which is read only after the span has ended.
    says.result = (
        None if result.startswith("<") else content(printed_value(result, otherwise=result))
    )
    if printed["status"] != "success":
        says.failed, says.error = True, text(error) or text(result)


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
        waiting: list[tuple[str, Node]] = []
        for child in list(node.children):
            says = child.says
            if (
                type(says) is ToolSpan
                and says.mode == "delegate"
                and says.target
                and not child.children
            ):
                waiting.append((says.target, child))
            elif type(says) is AgentSpan and says.name is not None:
                call = next((each for each in waiting if same_name(each[0], says.name)), None)
                if call is not None:
                    waiting.remove(call)
                    _move(child, call[1])
    return []


def _move(member: Node, call: Node) -> None:
    """Put a member's span below the span of its call, which then lasts as long as the member."""
    if member.parent is not None:
        member.parent.children.remove(member)
    member.parent = call
    call.children.append(member)
    call.ended = max(call.ended, member.ended)
    call.span = msgspec.structs.replace(call.span, ended=member.span.ended)
    if type(call.says) is ToolSpan and type(member.says) is AgentSpan:
        call.says.failed, call.says.error = member.says.failed, member.says.error


DIALECT = Dialect(name=_FRAMEWORK, refine=refine, resolve=resolve)
