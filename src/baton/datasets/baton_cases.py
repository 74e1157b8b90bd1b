"""Baton's own files of cases: to cases, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec
from msgspec import structs, to_builtins

from baton.datasets.dispatch_cases import (
    DispatchCaseSpec,
    answers_of,
    dispatch_data,
    read_dispatch,
    turns_of,
)
from baton.datasets.stand_in_files import with_file
from baton.datasets.writers import Blobs, Writer, stated, text_of
from baton.formats.document import Document, refuse_misspelt
from baton.formats.key_case import ExtraKey
from baton.model import (
    AnyOrder,
    Case,
    CaseRubric,
    Content,
    ExpectedDispatch,
    ExpectedToolCall,
    ExpectedTurn,
    ExpectedVisit,
    InputError,
    Session,
    StandIns,
)
from baton.model.stand_ins import merged


class Own(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Base of the parts of Baton's own files: an unknown key stops the run."""


class DispatchSpec(Own, kw_only=True):
    """A dispatch that should happen; ``to`` alone may be written as plain text."""

    to: str
    kind: Literal["transfer", "delegate", "sequence", "return"] | None = None
    prompt_contains: str | list[str] | None = None
    tools: list[str] | None = None
    parallel: bool | None = None


class ToolSpec(Own, kw_only=True):
    """A tool call that should happen; a name alone may be written as plain text."""

    name: str
    arguments: dict[str, Any] | None = None
    agent: str | None = None


class VisitSpec(Own, kw_only=True):
    """An agent that should speak, after which agent, and what it should say."""

    agent: str
    after: str | list[str] | None = None
    says: str | list[str] | None = None


class RubricSpec(Own, kw_only=True):
    """A statement the answer is judged by; the text alone may be written as plain text."""

    text: str
    id: str | None = None
    type: str | None = None


class SessionSpec(Own, kw_only=True):
    """The session a case is played in."""

    app: str | None = None
    user: str | None = None
    id: str | None = None


class Expectations(Own, kw_only=True):
    """The expected result of a user message; what is left out is not checked."""

    response: str | None = None
    response_contains: str | list[str] | None = None
    response_not_contains: str | list[str] | None = None
    structured: dict[str, Any] | None = None
    agents: list[str | dict[str, list[str] | None]] | None = None
    dispatches: list[str | DispatchSpec] | None = None
    tools: list[str | ToolSpec] | None = None
    interactions: list[VisitSpec] | None = None
    rubrics: list[str | RubricSpec] | None = None

    def __post_init__(self) -> None:
        if self.agents == []:
            raise ValueError(
                "`agents: []` is not possible: an agent always runs; for no dispatch write "
                "`dispatches: []`"
            )
        for stage in self.agents or ():
            _stage(stage)


class TurnSpec(Expectations, kw_only=True):
    """A user message and the expected result.

    ``restart`` and ``new_session`` are done before it is sent.
    """

    input: str
    new_session: bool = False
    restart: bool = False


class CaseSpec(Expectations, kw_only=True):
    """One conversation: ``turns``, or the fields of a single turn right here."""

    id: str
    turns: list[TurnSpec] | None = None
    input: str | None = None
    dispatch: DispatchCaseSpec | None = None
    stand_ins: StandIns | None = None
    session: SessionSpec | None = None
    state: dict[str, Any] | None = None
    final_state: dict[str, Any] | None = None
    evaluators: dict[str, dict[str, Any]] | None = None
    labels: dict[str, str] | None = None
    tags: list[str] | None = None
    metadata: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        stated = [name for name in _TURN_FIELDS if getattr(self, name) is not None]
        if self.dispatch is not None:
            if self.turns is not None or stated:
                what = "turns" if self.turns is not None else stated[0]
                raise ValueError(
                    f"`{what}` cannot be used in a dispatch case: it is played from its `context`"
                )
            return
        if self.turns is None and self.input is None:
            raise ValueError("a case needs `input`, or `turns` that have one each")
        if self.turns is not None and stated:
            raise ValueError(
                f"`{stated[0]}` belongs in one of the `turns`, because the case has `turns`"
            )
        if self.turns == []:
            raise ValueError("`turns` is empty; a case needs at least one user message")


class DatasetSpec(Own, kw_only=True):
    """A dataset file of Baton."""

    cases: list[CaseSpec]
    name: str | None = None
    description: str | None = None
    stand_ins: StandIns | None = None


# Rubrics of a case with turns apply to the whole conversation.
_TURN_FIELDS = ["input", *(n for n in Expectations.__struct_fields__ if n != "rubrics")]


def own_case(document: Document, stand_ins: StandIns | None = None) -> Case:
    """Read one case of a file with these stand-ins; raises InputError that lists every problem."""
    spec = document.decode(CaseSpec)
    spec.stand_ins = with_file(spec.stand_ins, document)
    case = to_case(spec, stand_ins)
    # A recorded one can be scored as recorded too: as a decision, unless a form is given.
    moment = case.dispatch
    if moment is not None and moment.lacks and (moment.record is None or moment.form != "decision"):
        at = ("dispatch", "call") if moment.record is None else ("dispatch",)
        raise InputError(document.problem_at(at, moment.lacks))
    return case


def to_case(spec: CaseSpec, stand_ins: StandIns | None = None) -> Case:
    """Spell a case out; ``stand_ins`` are those of its file."""
    if spec.stand_ins is not None and spec.stand_ins.from_ is not None:
        raise InputError(
            "`from` of `stand_ins:` names a file beside the file of cases, but these cases have "
            "no file"
        )
    moment = None if spec.dispatch is None else read_dispatch(spec.dispatch)
    single = spec.turns is None
    turns = spec.turns or [
        TurnSpec(**{name: getattr(spec, name) for name in _TURN_FIELDS}, rubrics=spec.rubrics)
    ]
    session = spec.session or SessionSpec()
    return Case(
        id=spec.id,
        dispatch=moment,
        stand_ins=merged(
            answers_of(moment) if moment is not None else None, merged(stand_ins, spec.stand_ins)
        ),
        turns=turns_of(moment)
        if moment is not None
        else [
            ExpectedTurn(
                input=Content(text=turn.input),
                new_session=turn.new_session,
                restart=turn.restart,
                response=None if turn.response is None else Content(text=turn.response),
                response_contains=_list(turn.response_contains),
                response_not_contains=_list(turn.response_not_contains),
                structured=turn.structured,
                agents=None if turn.agents is None else [_stage(stage) for stage in turn.agents],
                dispatches=None
                if turn.dispatches is None
                else [_dispatch(d) for d in turn.dispatches],
                tool_calls=None if turn.tools is None else [_tool(tool) for tool in turn.tools],
                interactions=_visits(turn.interactions),
                rubrics=_rubrics(turn.rubrics),
            )
            for turn in turns
        ],
        session=Session(app=session.app, user=session.user, id=session.id),
        state=spec.state or {},
        final_state=spec.final_state,
        rubrics=[] if single and moment is None else _rubrics(spec.rubrics) or [],
        evaluators=spec.evaluators or {},
        labels=spec.labels or {},
        tags=spec.tags or [],
        metadata=spec.metadata or {},
    )


def _stage(spec: str | dict[str, list[str] | None]) -> str | AnyOrder:
    """Read one place of a chain: a name, ``{any_order: [a, b]}``, or ``{a, b}`` for short."""
    if isinstance(spec, str):
        return spec
    stated = spec.get("any_order")
    names = stated if stated is not None and len(spec) == 1 else list(spec)
    if len(names) < 2 or (names is not stated and any(spec.values())):
        raise ValueError(
            "agents that may run in any order are written `{a, b}` or `{any_order: [a, b]}`, "
            f"at least two; got {spec!r}"
        )
    return AnyOrder(any_order=names)


def _dispatch(spec: str | DispatchSpec) -> ExpectedDispatch:
    if isinstance(spec, str):
        return ExpectedDispatch(to=spec)
    return ExpectedDispatch(
        to=spec.to,
        kind=spec.kind,
        prompt_contains=_list(spec.prompt_contains),
        tools=spec.tools,
        parallel=spec.parallel,
    )


def _tool(spec: str | ToolSpec) -> ExpectedToolCall:
    if isinstance(spec, str):
        return ExpectedToolCall(name=spec)
    return ExpectedToolCall(name=spec.name, arguments=spec.arguments, agent=spec.agent)


def _visits(specs: list[VisitSpec] | None) -> list[ExpectedVisit] | None:
    if specs is None:
        return None
    return [
        ExpectedVisit(agent=spec.agent, after=_list(spec.after), says=_list(spec.says))
        for spec in specs
    ]


def _rubrics(specs: list[str | RubricSpec] | None) -> list[CaseRubric] | None:
    if specs is None:
        return None
    return [
        CaseRubric(text=spec)
        if isinstance(spec, str)
        else CaseRubric(**msgspec.structs.asdict(spec))
        for spec in specs
    ]


def _list(value: str | list[str] | None) -> list[str] | None:
    return [value] if isinstance(value, str) else value


Texts = str | list[str]


class StepSpec(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A message of the user, what to do before sending it, and what its answer has to contain."""

    input: str
    new_session: bool = False
    restart: bool = False
    expected_response_contains: Texts | None = None
    expected_response_not_contains: Texts | None = None


class StepsSpec(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A case; its first step always opens a session."""

    test_case: str
    steps: list[StepSpec]
    description: str | None = None
    metadata: dict[str, Any] | None = None


def steps_case(document: Document, extra_keys: list[ExtraKey]) -> Case:
    """Read one case; raises InputError that lists every problem."""
    unknown: list[ExtraKey] = []
    spec = document.decode(StepsSpec, extra_keys=unknown)
    refuse_misspelt(document, unknown)
    # A case must not pass because an unknown expectation was ignored.
    problems = [
        document.problem_at(extra_key.path, "unknown expectation; it would not be checked")
        for extra_key in unknown
        if str(extra_key.path[-1]).startswith("expect")
    ]
    if problems:
        raise InputError(problems)
    extra_keys += unknown
    if not spec.steps:
        message = "is empty; a case needs at least one user message"
        raise InputError(document.problem_at(("steps",), message))
    described = {"description": spec.description} if spec.description else {}
    return Case(
        id=spec.test_case,
        turns=[
            ExpectedTurn(
                input=Content(text=step.input),
                new_session=step.new_session,
                restart=step.restart,
                response_contains=_list(step.expected_response_contains),
                response_not_contains=_list(step.expected_response_not_contains),
            )
            for step in spec.steps
        ],
        metadata={**described, **(spec.metadata or {})},
    )


def own_yaml(cases: Sequence[Case]) -> str:
    """Write cases, each with turns or a dispatch, as a dataset."""
    from baton.formats.yaml import dump_yaml  # not needed to read JSON

    return dump_yaml({"cases": [_case_data(case, {}) for case in cases]}, lines=True)


def _case_data(case: Case, _: Blobs) -> dict[str, Any] | None:
    """Write a case in the shortest form; a single turn is written in the case itself."""
    if case.scenario is not None or not case.turns:
        return None
    if case.dispatch is not None:
        return {"id": case.id, "dispatch": dispatch_data(case.dispatch), **_rest(case)}
    turns = [_turn_data(turn) for turn in case.turns]
    first = case.turns[0]
    alone = len(turns) == 1 and not (case.rubrics or first.new_session or first.restart)
    return {
        "id": case.id,
        **(turns[0] if alone else {"turns": turns}),
        **({} if alone or not case.rubrics else {"rubrics": [*map(_rubric_data, case.rubrics)]}),
        **_rest(case),
    }


def _rest(case: Case) -> dict[str, Any]:
    """Write what a case states beside its turns, or its dispatch."""
    own = case.stand_ins
    if own is not None and case.dispatch is not None:
        # What the recording already holds is not written twice.
        of_recording = answers_of(case.dispatch)
        own = None if own == of_recording else structs.replace(own, recorded=[])
    return stated(
        {
            "stand_ins": None if own is None else to_builtins(own),
            "session": to_builtins(case.session) or None,
            "state": case.state or None,
            "final_state": case.final_state,
            "evaluators": case.evaluators or None,
            "labels": case.labels or None,
            "tags": case.tags or None,
            "metadata": case.metadata or None,
        }
    )


def _turn_data(turn: ExpectedTurn) -> dict[str, Any]:
    dispatches, calls = turn.dispatches, turn.tool_calls
    chain: list[str | dict[str, Any]] = []
    for stage in turn.agents or ():
        if isinstance(stage, str):
            chain.append(stage)
        elif len(stage.any_order) > 1:
            chain.append({"any_order": stage.any_order})
        else:
            chain += stage.any_order
    return {
        "input": turn.input.plain(),
        **stated(
            {
                "new_session": turn.new_session or None,
                "restart": turn.restart or None,
                "response": text_of(turn.response),
                "response_contains": turn.response_contains,
                "response_not_contains": turn.response_not_contains,
                "structured": turn.structured,
                "agents": chain or None,
                "dispatches": None
                if dispatches is None
                else [_dispatch_data(d) for d in dispatches],
                "tools": None if calls is None else [_tool_data(call) for call in calls],
                "interactions": None if (v := turn.interactions) is None else to_builtins(v),
                "rubrics": None
                if (r := turn.rubrics) is None
                else [_rubric_data(each) for each in r],
            }
        ),
    }


def _dispatch_data(dispatch: ExpectedDispatch) -> str | dict[str, Any]:
    fields: dict[str, Any] = to_builtins(dispatch)
    return dispatch.to if fields.keys() == {"to"} else fields


def _tool_data(call: ExpectedToolCall) -> str | dict[str, Any]:
    fields: dict[str, Any] = to_builtins(call)
    return call.name if fields.keys() == {"name"} else fields


def _rubric_data(rubric: CaseRubric) -> str | dict[str, Any]:
    fields: dict[str, Any] = to_builtins(rubric)
    return rubric.text if fields.keys() == {"text"} else fields


_TEXT_ONLY = "a message is text here: data is written as JSON, attachments are left out"
OWN = Writer(
    case=_case_data,
    file=lambda head, cases: {
        "name": head.name,
        **stated({"description": head.description}),
        "cases": cases,
    },
    reasons={
        "scenario": "a simulated user is not part of this format: the case is left out",
        "turns.input": _TEXT_ONLY,
        "+turns.input": _TEXT_ONLY,
        "turns.response": _TEXT_ONLY,
        "+turns.response": _TEXT_ONLY,
        "turns.agents": "a chain names at least one agent, or two where the order is open",
    },
    notes={},
)
