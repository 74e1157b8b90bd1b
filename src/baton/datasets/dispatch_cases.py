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

A case that was drafted from a recording has ``record`` and ``at`` instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from baton.model import (
    Case,
    Content,
    DispatchCase,
    ExpectedDispatch,
    ExpectedHandling,
    ExpectedTurn,
    Form,
    InputError,
    MadeCall,
    MadeDispatch,
    MadeRun,
    Message,
    Origin,
    StandIns,
    Trace,
    integrity_problems,
)
from baton.model.stand_ins import RecordedAnswer, StandIn
from baton.model.trace import CallStatus, DispatchKind, DispatchStatus, RunStatus
from baton.model.views import index_of

from .recorded_dispatches import CONTEXT_TURNS, no_dispatch, part_of, read_record, versions_of


class Part(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Base of the parts of a dispatch case: an unknown key stops the run."""


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
    """A message of the ``user``, or what an ``agent`` ``said`` and the tools it called then."""

    user: str | None = None
    agent: str | None = None
    said: str | None = None
    calls: list[CallSpec] = msgspec.field(default_factory=list)

    def __post_init__(self) -> None:
        if (self.user is None) == (self.agent is None):
            raise ValueError("a message is from the `user` or from an `agent`: name one of them")
        if self.user is not None and (self.said is not None or self.calls):
            raise ValueError("`said` and `calls` belong to an `agent`")


class MadeSpec(Part, kw_only=True):
    """The call that made the dispatch, and its result."""

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
    """The whole run of the receiving agent."""

    said: list[MessageSpec] = msgspec.field(default_factory=list)
    given: list[str] | None = None
    tools_offered: list[str] | None = None
    output: Any = None
    status: RunStatus = "completed"
    error: str | None = None
    unknown: list[str] = msgspec.field(default_factory=list)


class HandlingSpec(Part, kw_only=True):
    """The expected result; ``to: []`` says that no dispatch should be made."""

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
    """A single dispatch as a case, played as a decision, a child or an integration.

    If it was recorded, ``record`` is the part of the recording about it, and ``at`` its id there;
    otherwise ``context``, ``call``, ``child`` and ``next`` are written out.
    """

    form: Form = "decision"
    context: list[MessageSpec] | None = None
    call: MadeSpec | None = None
    child: RunSpec | None = None
    next: list[MessageSpec] | None = None
    expect: HandlingSpec = msgspec.field(default_factory=HandlingSpec)
    failure_modes: list[str] = msgspec.field(default_factory=list)
    origin: OriginSpec | None = None
    versions: dict[str, str] = msgspec.field(default_factory=dict)
    at: str | None = None
    record: Trace | None = None

    def __post_init__(self) -> None:
        parts = {"context": self.context, "call": self.call, "child": self.child, "next": self.next}
        if self.record is not None or self.at is not None:
            if self.record is None or self.at is None:
                raise ValueError(
                    "a recorded dispatch has both `record` and `at`, which is its id there"
                )
            written = next((name for name, part in parts.items() if part is not None), None)
            if written is not None:
                raise ValueError(
                    f"`{written}` cannot be used with `record`, which already contains it"
                )
            for problem in integrity_problems(self.record):
                raise ValueError(f"`record` is inconsistent: {problem}")
            if self.at not in index_of(self.record).dispatches:
                raise ValueError(f"`at`: {no_dispatch(self.at, [self.record])}")
            return
        if self.context is None or self.call is None:
            lacks = "context" if self.context is None else "call"
            raise ValueError(f"a dispatch case needs `context` and `call`; `{lacks}` is missing")
        if not any(message.user is not None for message in self.context):
            raise ValueError("`context` needs a message of the `user`: what the dispatch was for")


def dispatch_case(
    trace: Trace,
    dispatch_id: str,
    *,
    form: Form = "decision",
    context_turns: int = CONTEXT_TURNS,
    expected: ExpectedHandling | None = None,
    failure_modes: Sequence[str] = (),
    id: str | None = None,
) -> Case:
    """Make a case from one dispatch of a trace.

    Args:
        trace: the recording; the case contains its secrets, so redact it first.
        dispatch_id: the dispatch, by its id in the trace.
        form: how the case is played.
        context_turns: the number of turns before and after the dispatch that the case holds in
            full; of other turns it holds the user's message and the answer.
        expected: the expected result; nothing is stated when left out.
        failure_modes: tags for what went wrong.
        id: the id of the case; that of the trace with that of the dispatch when left out.

    Raises:
        InputError: the trace has no such dispatch.
    """
    dispatch = index_of(trace).dispatches.get(dispatch_id)
    if dispatch is None:
        raise InputError(no_dispatch(dispatch_id, [trace]))
    case_id = id if id is not None else f"{trace.id}-{dispatch_id}"
    record = part_of(trace, dispatch, context_turns)
    record.case = case_id
    moment = read_record(record, dispatch_id, form=form)
    moment.expected = expected if expected is not None else ExpectedHandling()
    moment.failure_modes = list(dict.fromkeys(failure_modes))
    source = trace.source
    moment.origin = Origin(
        trace=trace.id,
        dispatch=dispatch_id,
        recording=source.location,
        framework=source.framework,
    )
    moment.versions = versions_of(trace, dispatch)
    return Case(id=case_id, dispatch=moment, stand_ins=answers_of(moment), turns=turns_of(moment))


def read_dispatch(spec: DispatchCaseSpec) -> DispatchCase:
    """Spell a dispatch case out."""
    if spec.record is not None and spec.at is not None:
        case = read_record(spec.record, spec.at, form=spec.form)
    else:
        case = _written_out(spec)
    expect = spec.expect
    case.expected = ExpectedHandling(
        to=_list(expect.to),
        prompt_contains=_list(expect.prompt_contains),
        tools=expect.tools,
        follow_through=_list(expect.follow_through),
    )
    case.failure_modes = spec.failure_modes
    case.origin = None if spec.origin is None else Origin(**msgspec.structs.asdict(spec.origin))
    case.versions = spec.versions
    return case


def _written_out(spec: DispatchCaseSpec) -> DispatchCase:
    call, child = spec.call, spec.child
    assert call is not None  # noqa: S101 - the spec has checked it
    return DispatchCase(
        form=spec.form,
        context=_messages(spec.context or ()),
        call=MadeDispatch(
            sender=call.sender,
            to=call.to,
            kind=call.kind,
            tool=call.tool,
            arguments=call.arguments,
            prompt=Content.of(call.prompt),
            tools=call.tools,
            tools_source=call.tools_source,
            basis=call.basis,
            result=Content.of(call.result),
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
            output=Content.of(child.output),
            status=child.status,
            error=child.error,
            unknown=child.unknown,
        ),
        next=None if spec.next is None else _messages(spec.next),
    )


def dispatch_data(case: DispatchCase) -> dict[str, Any]:
    """Write a dispatch case as in its file, in the shortest form."""
    spec = DispatchCaseSpec(
        form=case.form,
        expect=HandlingSpec(**msgspec.structs.asdict(case.expected)),
        failure_modes=case.failure_modes,
        origin=None if case.origin is None else OriginSpec(**msgspec.structs.asdict(case.origin)),
        versions=case.versions,
        at=case.at,
        record=case.record,
        **({} if case.record is not None else _parts(case)),
    )
    written: dict[str, Any] = msgspec.to_builtins(spec)
    return {name: value for name, value in written.items() if value != {}}


def _parts(case: DispatchCase) -> dict[str, Any]:
    call, child = case.call, case.child
    return {
        "context": _specs(case.context),
        "call": MadeSpec(
            **{
                **msgspec.structs.asdict(call),
                "prompt": _plain(call.prompt),
                "result": _plain(call.result),
            }
        ),
        "child": None
        if child is None
        else RunSpec(
            **{
                **msgspec.structs.asdict(child),
                "said": _specs(child.said),
                "output": _plain(child.output),
            }
        ),
        "next": None if case.next is None else _specs(case.next),
    }


def turns_of(dispatch: DispatchCase) -> list[ExpectedTurn]:
    """Return the single turn of a dispatch case, with the expectations of its form."""
    expected, call = dispatch.expected, dispatch.call
    shares_history = call.prompt is None and call.kind == "transfer"
    if dispatch.form == "child" and not shares_history:
        return [ExpectedTurn(input=call.prompt or Content())]
    texts = [
        each.text for each in dispatch.context if each.role == "user" and each.text is not None
    ]
    turn = ExpectedTurn(input=Content(text=texts[-1]) if texts else Content())
    if dispatch.form == "integration":
        turn.response_contains = expected.follow_through
    elif dispatch.form == "decision" and expected.to is not None:
        turn.dispatches = [
            ExpectedDispatch(to=to, prompt_contains=expected.prompt_contains, tools=expected.tools)
            for to in expected.to
        ]
    return [turn]


def answers_of(dispatch: DispatchCase) -> StandIns:
    """Return the stand-ins for playing a dispatch case: every answer it holds.

    Tools without a recorded answer are refused.
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
    recorded += _made_before(dispatch)
    if call.result is not None:
        recorded.append(
            RecordedAnswer(
                kind="agent", name=call.to, input=_plain(call.prompt), result=_plain(call.result)
            )
        )
        if dispatch.form == "integration":
            agents = {call.to: StandIn(mode="replay")}
    return StandIns(mode="replay", recorded=recorded, agents=agents)


def _made_before(dispatch: DispatchCase) -> list[RecordedAnswer]:
    """Return the recorded answers to earlier dispatches of the sender.

    A plain function starts again and makes those dispatches again: these are the answers.
    """
    if dispatch.record is None or dispatch.at is None:
        return []
    index = index_of(dispatch.record)
    made, turn = index.dispatches[dispatch.at], index.turn_of[dispatch.at]
    return [
        RecordedAnswer(
            kind="agent",
            name=each.to_agent,
            input=_plain(each.prompt),
            result=_plain(each.result),
            before=True,
        )
        for each in turn.dispatches[: turn.dispatches.index(made)]
        if each.from_run == made.from_run and each.kind == "delegate" and each.result is not None
    ]


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
                    result=Content.of(call.result),
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


def _plain(content: Content | None) -> Any:
    return None if content is None else content.value()


def _list(value: str | list[str] | None) -> list[str] | None:
    return [value] if isinstance(value, str) else value
