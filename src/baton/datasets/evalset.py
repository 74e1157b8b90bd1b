"""Cases of eval sets: ADK's, judge-llm's, and ADK's two older formats."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from baton.formats.adk_events import attachments
from baton.formats.document import Document
from baton.formats.evalset import (
    EvalCase,
    FunctionCall,
    IntermediateData,
    Invocation,
    LegacyCase,
    LegacyTurn,
    WireContent,
    WireRubric,
    author_pair,
    stated_agents,
)
from baton.formats.explain import Path
from baton.formats.spelling import Stray, camel_twin
from baton.model import (
    Case,
    CaseRubric,
    Content,
    ExpectedToolCall,
    ExpectedTurn,
    ExpectedVisit,
    InputError,
    Scenario,
    Session,
)

from .strays import refuse_misspelt

W = TypeVar("W")


def eval_case(document: Document, strays: list[Stray]) -> Case:
    """Read one case of an eval set; raises InputError with every fault it has."""
    wire = document.decode(EvalCase, strays=strays, spellings=(camel_twin(EvalCase),))
    refuse_misspelt(document, strays)
    if (wire.conversation is None) == (wire.conversation_scenario is None):
        message = "needs `conversation` or `conversation_scenario`, and not both"
        raise InputError(document.problem_at((), message))
    turns = _turns(document, ("conversation",), wire.conversation or (), _turn)
    session = wire.session_input
    scenario = wire.conversation_scenario
    return Case(
        id=wire.eval_id,
        turns=turns,
        scenario=Scenario(start=scenario.starting_prompt, plan=scenario.conversation_plan)
        if scenario
        else None,
        session=Session(
            # judge-llm cannot do without the names; empty ones name nothing.
            app=session.app_name or None,
            user=session.user_id or None,
            id=session.session_id or None,
        )
        if session
        else Session(),
        state=(session.state if session else None) or {},
        final_state=wire.final_session_state or None,
        rubrics=_rubrics(wire.rubrics) or [],
        evaluators=wire.evaluator_config or {},
        metadata=wire.metadata or {},
    )


def legacy_case(document: Document, strays: list[Stray]) -> Case:
    """Read one conversation of ADK's first eval set format."""
    wire = document.decode(LegacyCase, strays=strays)
    refuse_misspelt(document, strays)
    start = wire.initial_session or wire.initial_state or {}
    session = start.get("session", start) if isinstance(start.get("session"), dict) else start
    return Case(
        id=wire.name,
        turns=_turns(document, ("data",), wire.data, _legacy_turn),
        session=Session(app=session.get("app_name"), user=session.get("user_id")),
        state=session.get("state") or {},
    )


def legacy_flat(document: Document, strays: list[Stray], case_id: str) -> Case:
    """Read a flat test file: a list of turns, one case."""
    turns = document.decode(list[LegacyTurn], strays=strays)
    refuse_misspelt(document, strays)
    return Case(id=case_id, turns=_turns(document, (), turns, _legacy_turn))


def _turns(
    document: Document, path: Path, wires: Sequence[W], turn: Callable[[W], ExpectedTurn]
) -> list[ExpectedTurn]:
    """Read all turns, then say of all of them what is wrong."""
    turns, problems = [], []
    for index, wire in enumerate(wires):
        try:
            turns.append(turn(wire))
        except ValueError as error:
            problems.append(document.problem_at((*path, index), str(error)))
    if problems:
        raise InputError(problems)
    return turns


def _turn(wire: Invocation) -> ExpectedTurn:
    data = wire.intermediate_data
    return ExpectedTurn(
        input=_input(wire.user_content),
        response=_content(wire.final_response),
        agents=stated_agents(data),
        tool_calls=_tool_calls(data),
        interactions=_visits(data),
        rubrics=_rubrics(wire.rubrics),
    )


def _input(wire: WireContent | str | None) -> Content:
    content = _content(wire) or Content()
    if isinstance(wire, WireContent):
        content.parts = attachments(wire.parts or ())
    return content


def _content(wire: WireContent | str | None) -> Content | None:
    """Return a text; ``""`` where a part states it, ``None`` where nothing is stated."""
    if isinstance(wire, WireContent):
        stated = any(part.text is not None and not part.thought for part in wire.parts or ())
        wire = wire.text() or ("" if stated else None)
    return None if wire is None else Content(text=wire)


def _tool_calls(data: IntermediateData | None) -> list[ExpectedToolCall] | None:
    if data is None or (data.tool_uses is None and data.invocation_events is None):
        return None
    calls: list[ExpectedToolCall] = []
    for call in data.tool_uses or ():
        calls.append(ExpectedToolCall(name=call.name or "", arguments=call.arguments()))
    for event in data.invocation_events or ():
        for part in (event.content.parts if event.content else None) or ():
            if part.function_call is not None:
                name, arguments = part.function_call.name or "", part.function_call.arguments()
                calls.append(ExpectedToolCall(name=name, arguments=arguments, agent=event.author))
    return calls


def _visits(data: IntermediateData | None) -> list[ExpectedVisit] | None:
    pairs = [
        author_pair(record) for record in (data.intermediate_responses if data else None) or ()
    ]
    visits = [ExpectedVisit(agent=pair[0], says=pair[1]) for pair in pairs if pair and pair[1]]
    return visits or None


def _rubrics(wires: list[WireRubric] | None) -> list[CaseRubric] | None:
    if wires is None:
        return None
    rubrics = []
    for wire in wires:
        content: dict[str, Any] = wire.rubric_content or {}
        text = content.get("text_property") or content.get("textProperty") or wire.description
        rubrics.append(CaseRubric(text=text or "", id=wire.rubric_id, type=wire.type))
    return rubrics


def _legacy_turn(wire: LegacyTurn) -> ExpectedTurn:
    uses, responses = wire.expected_tool_use, wire.expected_intermediate_agent_responses
    data = IntermediateData(
        tool_uses=[FunctionCall(name=u.tool_name, args=u.tool_input) for u in uses or ()],
        intermediate_responses=[[r.author, [{"text": r.text}]] for r in responses or ()],
    )
    return ExpectedTurn(
        input=Content(text=wire.query),
        response=Content(text=wire.reference) if wire.reference else None,
        agents=stated_agents(data),
        tool_calls=None if uses is None else _tool_calls(data),
        interactions=_visits(data),
    )
