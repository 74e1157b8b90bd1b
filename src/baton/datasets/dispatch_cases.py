"""Dispatch cases in Baton's own files: what led to a dispatch, the call, the child's run, the rest.

- id: refund-17
  dispatch:
    form: decision
    context:
    - user: I want my money back for order 4411.
    - agent: desk
      said: Let me look.
      calls: [{tool: look_up, arguments: {order: 4411}, result: {total: 40}}]
    call: {from: desk, to: refunds, prompt: Refund order 4411.}
    expect: {to: [refunds]}
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from baton.model import (
    Content,
    DispatchCase,
    ExpectedDispatch,
    ExpectedHandling,
    ExpectedTurn,
    Form,
    MadeCall,
    MadeDispatch,
    MadeRun,
    Message,
    Origin,
    StandIns,
)
from baton.model.stand_ins import RecordedAnswer, StandIn
from baton.model.trace import CallStatus, DispatchKind, DispatchStatus, RunStatus


class Part(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Base of the parts of a dispatch case: a key that is not known stops the run."""


class CallSpec(Part, kw_only=True):
    """A call of a tool, with its answer."""

    tool: str
    arguments: Any = None
    result: Any = None
    status: CallStatus = "ok"
    refused_by: Literal["runtime", "policy", "user"] | None = None
    error: str | None = None
    unknown: list[str] = msgspec.field(default_factory=list)


class MessageSpec(Part, kw_only=True):
    """What the ``user`` said, or what an ``agent`` ``said`` and which tools it called then."""

    user: str | None = None
    agent: str | None = None
    said: str | None = None
    calls: list[CallSpec] = msgspec.field(default_factory=list)

    def __post_init__(self) -> None:
        if (self.user is None) == (self.agent is None):
            raise ValueError("a message is of the `user` or of an `agent`: name one of them")
        if self.user is not None and (self.said is not None or self.calls):
            raise ValueError("`said` and `calls` are of an `agent`")


class MadeSpec(Part, kw_only=True):
    """The call that handed work on, as it was made, and what came back."""

    sender: str | None = msgspec.field(default=None, name="from")
    to: str
    kind: DispatchKind = "delegate"
    tool: str | None = None
    arguments: Any = None
    prompt: Any = None
    tools: list[str] | Literal["all"] | None = None
    tools_source: Literal["definition", "request", "listing", "offered"] | None = None
    basis: Literal["stated", "structure", "order"] = "stated"
    result: Any = None
    status: DispatchStatus = "completed"
    error: str | None = None
    unknown: list[str] = msgspec.field(default_factory=list)


class RunSpec(Part, kw_only=True):
    """The whole run of the agent that work was handed to."""

    said: list[MessageSpec] = msgspec.field(default_factory=list)
    given: list[str] | None = None
    tools_offered: list[str] | None = None
    output: Any = None
    status: RunStatus = "completed"
    error: str | None = None
    unknown: list[str] = msgspec.field(default_factory=list)


class HandlingSpec(Part, kw_only=True):
    """What should come of it; ``to: []`` says that nothing should be handed on."""

    to: list[str] | str | None = None
    prompt_contains: list[str] | str | None = None
    tools: list[str] | None = None
    follow_through: list[str] | str | None = None


class OriginSpec(Part, kw_only=True):
    """Where the case comes from."""

    trace: str | None = None
    dispatch: str | None = None
    recording: str | None = None
    framework: str | None = None


class DispatchCaseSpec(Part, kw_only=True):
    """A dispatch as a case of its own, played as a decision, a child or an integration."""

    context: list[MessageSpec]
    call: MadeSpec
    form: Form = "decision"
    child: RunSpec | None = None
    next: list[MessageSpec] | None = None
    expect: HandlingSpec = msgspec.field(default_factory=HandlingSpec)
    failure_modes: list[str] = msgspec.field(default_factory=list)
    origin: OriginSpec | None = None
    versions: dict[str, str] = msgspec.field(default_factory=dict)

    def __post_init__(self) -> None:
        if not any(message.user is not None for message in self.context):
            raise ValueError("`context` needs a message of the `user`: what the dispatch was for")


def read_dispatch(spec: DispatchCaseSpec) -> DispatchCase:
    """Spell a dispatch case out."""
    call, child, expect = spec.call, spec.child, spec.expect
    return DispatchCase(
        form=spec.form,
        context=_messages(spec.context),
        call=MadeDispatch(
            sender=call.sender,
            to=call.to,
            kind=call.kind,
            tool=call.tool,
            arguments=call.arguments,
            prompt=_content(call.prompt),
            tools=call.tools,
            tools_source=call.tools_source,
            basis=call.basis,
            result=_content(call.result),
            status=call.status,
            error=call.error,
            unknown=call.unknown,
        ),
        child=None
        if child is None
        else MadeRun(
            said=_messages(child.said),
            given=child.given,
            tools_offered=child.tools_offered,
            output=_content(child.output),
            status=child.status,
            error=child.error,
            unknown=child.unknown,
        ),
        next=None if spec.next is None else _messages(spec.next),
        expected=ExpectedHandling(
            to=_list(expect.to),
            prompt_contains=_list(expect.prompt_contains),
            tools=expect.tools,
            follow_through=_list(expect.follow_through),
        ),
        failure_modes=spec.failure_modes,
        origin=None if spec.origin is None else Origin(**msgspec.structs.asdict(spec.origin)),
        versions=spec.versions,
    )


def dispatch_data(case: DispatchCase) -> dict[str, Any]:
    """Write a dispatch case as its file has it, in as few words as it needs."""
    call, child, expected = case.call, case.child, case.expected
    spec = DispatchCaseSpec(
        form=case.form,
        context=_specs(case.context),
        call=MadeSpec(
            **{
                **msgspec.structs.asdict(call),
                "prompt": _plain(call.prompt),
                "result": _plain(call.result),
            }
        ),
        child=None
        if child is None
        else RunSpec(
            **{
                **msgspec.structs.asdict(child),
                "said": _specs(child.said),
                "output": _plain(child.output),
            }
        ),
        next=None if case.next is None else _specs(case.next),
        expect=HandlingSpec(**msgspec.structs.asdict(expected)),
        failure_modes=case.failure_modes,
        origin=None if case.origin is None else OriginSpec(**msgspec.structs.asdict(case.origin)),
        versions=case.versions,
    )
    written: dict[str, Any] = msgspec.to_builtins(spec)
    return written


def turns_of(dispatch: DispatchCase) -> list[ExpectedTurn]:
    """Return the one turn that a dispatch case is, with what is expected of it in its form."""
    expected, call = dispatch.expected, dispatch.call
    if dispatch.form == "child":
        return [ExpectedTurn(input=call.prompt or Content(text=""))]
    said = [each.text for each in dispatch.context if each.role == "user" and each.text is not None]
    turn = ExpectedTurn(input=Content(text=said[-1] if said else ""))
    if dispatch.form == "integration":
        turn.response_contains = expected.follow_through
    elif expected.to is not None:
        turn.dispatches = [
            ExpectedDispatch(to=to, prompt_contains=expected.prompt_contains, tools=expected.tools)
            for to in expected.to
        ]
    return [turn]


def answers_of(dispatch: DispatchCase) -> StandIns:
    """Return the stand-ins that a dispatch case is played with: every answer it holds.

    Tools that the recording does not answer are refused.
    """
    child = dispatch.child.said if dispatch.child is not None else []
    calls = [
        (message.agent or (dispatch.call.to if message in child else None), call)
        for message in [*dispatch.context, *child, *(dispatch.next or ())]
        for call in message.calls
    ]
    recorded = [
        RecordedAnswer(
            name=call.name,
            agent=agent,
            input=call.arguments,
            result=_plain(call.result),
            error=call.error or ("the call failed" if call.status == "failed" else None),
            refused=call.status == "refused",
        )
        for agent, call in calls
        if "result" not in call.unknown and call.status != "unanswered"
    ]
    call = dispatch.call
    agents = {}
    if call.result is not None:
        recorded.append(
            RecordedAnswer(
                kind="agent", name=call.to, input=_plain(call.prompt), result=_plain(call.result)
            )
        )
        if dispatch.form == "integration":
            agents = {call.to: StandIn(mode="replay")}
    return StandIns(mode="replay", recorded=recorded, agents=agents)


def _messages(specs: Sequence[MessageSpec]) -> list[Message]:
    return [
        Message(role="user", text=spec.user)
        if spec.user is not None
        else Message(
            role="agent",
            agent=spec.agent,
            text=spec.said,
            calls=[
                MadeCall(
                    name=call.tool,
                    arguments=call.arguments,
                    result=_content(call.result),
                    status=call.status,
                    refused_by=call.refused_by,
                    error=call.error,
                    unknown=call.unknown,
                )
                for call in spec.calls
            ],
        )
        for spec in specs
    ]


def _specs(messages: Sequence[Message]) -> list[MessageSpec]:
    return [
        MessageSpec(user=message.text or "")
        if message.role == "user"
        else MessageSpec(
            agent=message.agent or "",
            said=message.text,
            calls=[
                CallSpec(
                    tool=call.name,
                    arguments=call.arguments,
                    result=_plain(call.result),
                    status=call.status,
                    refused_by=call.refused_by,
                    error=call.error,
                    unknown=call.unknown,
                )
                for call in message.calls
            ],
        )
        for message in messages
    ]


def _content(value: Any) -> Content | None:
    if value is None:
        return None
    return Content(text=value) if isinstance(value, str) else Content(data=value)


def _plain(content: Content | None) -> Any:
    if content is None:
        return None
    return content.data if content.text is None and content.data is not None else content.plain()


def _list(value: str | list[str] | None) -> list[str] | None:
    return [value] if isinstance(value, str) else value
