"""Eval sets of Google ADK and judge-llm: to cases, and back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, TypeVar

from msgspec.structs import replace

from baton.datasets.writers import Blobs, Head, Writer, placed, stated, text_of
from baton.formats.adk import (
    TRANSFER_TOOL,
    EvalCase,
    FunctionCall,
    IntermediateData,
    Invocation,
    LegacyCase,
    LegacyTurn,
    SessionInput,
    WireContent,
    WireRubric,
    attachments,
    author_pair,
    stated_agents,
    target_of,
)
from baton.formats.document import Document, refuse_misspelt
from baton.formats.explain_mistakes import Path
from baton.formats.key_case import ExtraKey
from baton.model import (
    Case,
    CaseRubric,
    Content,
    ExpectedToolCall,
    ExpectedTurn,
    ExpectedVisit,
    InputError,
    Part,
    Scenario,
    Session,
)

W = TypeVar("W")


def eval_case(document: Document, extra_keys: list[ExtraKey]) -> Case:
    """Read one case of an eval set; raises InputError that lists every problem."""
    wire = document.decode(EvalCase, extra_keys=extra_keys, or_camel=True)
    refuse_misspelt(document, extra_keys)
    if (wire.conversation is None) == (wire.conversation_scenario is None):
        message = "needs `conversation` or `conversation_scenario`, but not both"
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
            # judge-llm requires the names; empty ones mean no name.
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


def legacy_case(document: Document, extra_keys: list[ExtraKey]) -> Case:
    """Read one conversation of ADK's first eval set format."""
    wire = document.decode(LegacyCase, extra_keys=extra_keys)
    refuse_misspelt(document, extra_keys)
    start = wire.initial_session or wire.initial_state or {}
    session = start.get("session", start) if isinstance(start.get("session"), dict) else start
    return Case(
        id=wire.name,
        turns=_turns(document, ("data",), wire.data, _legacy_turn),
        session=Session(app=session.get("app_name"), user=session.get("user_id")),
        state=session.get("state") or {},
    )


def initial_session(document: Document) -> tuple[Session, dict[str, Any]]:
    """Read the file of a session that cases start from: app, user, and the state.

    It is the ``initial_session_file`` of ADK's ``migrate_eval_data_to_new_schema``, or a session
    that ADK saved. Its id is left out: many cases may start from it, each in a new session.

    Raises:
        InputError: it is not an object, or has none of the three.
    """
    value = document.value()
    inner = value.get("session") if isinstance(value, dict) else None
    at: Path = ("session",) if isinstance(inner, dict) else ()
    start = document.convert(inner if at else value, SessionInput, path=at)
    if start.app_name is None and start.user_id is None and start.state is None:
        message = "contains no session: none of `app_name`, `user_id` and `state`"
        raise InputError(document.problem_at(at, message))
    return Session(app=start.app_name or None, user=start.user_id or None), start.state or {}


def legacy_flat(document: Document, extra_keys: list[ExtraKey], case_id: str) -> Case:
    """Read a flat test file: a list of turns, one case."""
    turns = document.decode(list[LegacyTurn], extra_keys=extra_keys)
    refuse_misspelt(document, extra_keys)
    return Case(id=case_id, turns=_turns(document, (), turns, _legacy_turn))


def _turns(
    document: Document, path: Path, wires: Sequence[W], turn: Callable[[W], ExpectedTurn]
) -> list[ExpectedTurn]:
    """Read all turns, then report all their problems together."""
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
    """Return a text; ``""`` if a part states it, ``None`` if nothing is stated."""
    if not isinstance(wire, WireContent):
        return None if wire is None else Content(text=wire)
    text = wire.text()
    if text is None:
        stated = any(part.text is not None and not part.thought for part in wire.parts or ())
        return Content(text="") if stated else None
    return Content(text=text)


def _tool_calls(data: IntermediateData | None) -> list[ExpectedToolCall] | None:
    if data is None or (data.tool_uses is None and data.invocation_events is None):
        return None
    calls: list[ExpectedToolCall] = []
    # Events tell more than a list of the same calls beside them.
    for call in () if data.invocation_events else data.tool_uses or ():
        calls.append(ExpectedToolCall(name=call.name or "", arguments=call.arguments()))
    for event in data.invocation_events or ():
        for part in (event.content.parts if event.content else None) or ():
            if part.function_call is not None:
                name, arguments = part.function_call.name or "", part.function_call.arguments()
                calls.append(ExpectedToolCall(name=name, arguments=arguments, agent=event.author))
    return calls


def _visits(data: IntermediateData | None) -> list[ExpectedVisit] | None:
    records = (data.intermediate_responses if data else None) or ()
    pairs = [author_pair(record) for record in records if isinstance(record, list)]
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


BEGINNING = 0.0
"""A constant creation time, so that writing a file twice gives the same bytes."""


def user_content(content: Content, blobs: Blobs) -> dict[str, Any]:
    """Write a message of the user, with the attachments that have known bytes or addresses."""
    text = text_of(content)
    files = [_attachment(part, blobs) for part in content.parts or ()]
    parts = [] if text is None else [{"text": text}]
    return {"parts": [*parts, *(each for each in files if each)], "role": "user"}


def answer(content: Content | None) -> dict[str, Any] | None:
    """Write a final response."""
    text = text_of(content)
    return None if text is None else {"parts": [{"text": text}], "role": "model"}


def _attachment(part: Part, blobs: Blobs) -> dict[str, Any] | None:
    if part.type == "file_data" and part.uri:
        return {"file_data": stated({"file_uri": part.uri, "mime_type": part.mime})}
    blob = blobs.get(part.sha256 or "")
    return {"inline_data": blob} if part.type == "inline_data" and blob else None


def plain_chain(turn: ExpectedTurn) -> list[str] | None:
    """Return the agents of a turn if they have one order and names."""
    names = [stage for stage in turn.agents or () if isinstance(stage, str) and stage]
    return names if names and len(names) == len(turn.agents or ()) else None


def spoken(turn: ExpectedTurn) -> list[ExpectedVisit]:
    """Return the visits with a text; others cannot be written."""
    return [visit for visit in turn.interactions or () if any(visit.says or ())]


def by_agent(
    turn: ExpectedTurn, chain: Sequence[str] | None
) -> list[tuple[str, list[ExpectedVisit]]] | None:
    """Return the agents of a chain, each with the visits after it that have a text.

    ``None`` if there is nothing to write: no chain, or one that the transfers already state.
    """
    visits = spoken(turn)
    if chain is None or (not visits and transfers(turn.tool_calls or ()) == chain):
        return None
    places = placed(chain, [visit.agent for visit in visits]) or [[] for _ in chain]
    return [
        (agent, [visits[n] for n in positions])
        for agent, positions in zip(chain, places, strict=True)
    ]


def pair(agent: str, texts: Sequence[str] | None = ()) -> list[Any]:
    """Write ADK's ``[author, parts]``."""
    return [agent, [{"text": text} for text in texts or ()]]


def transfers(calls: Sequence[ExpectedToolCall]) -> list[str] | None:
    """Return the agents named by calls of the transfer tool; ``None`` if a call names none."""
    targets = [target_of(call.arguments) for call in calls if call.name == TRANSFER_TOOL]
    named = [target for target in targets if target is not None]
    return named if len(named) == len(targets) else None


def case_extras(case: Case) -> dict[str, Any]:
    """Write the fields beside the conversation that both dialects have."""
    return stated({"evaluator_config": case.evaluators or None, "metadata": case.metadata or None})


def whole_set(head: Head, cases: list[dict[str, Any]]) -> dict[str, Any]:
    """Put cases into a set."""
    return {
        "eval_set_id": head.name,
        "name": head.name,
        **stated({"description": head.description}),
        "creation_timestamp": BEGINNING,
        "eval_cases": cases,
    }


APP, USER = "app", "user"
"""Default names of a session: ADK requires them."""


def _case(case: Case, blobs: Blobs) -> dict[str, Any]:
    scenario = case.scenario
    plan = scenario and {
        "starting_prompt": scenario.start,
        "conversation_plan": scenario.plan,
    }
    turns = [_turn_data(turn, number, blobs) for number, turn in enumerate(case.turns, 1)]
    return {
        "eval_id": case.id,
        **({"conversation_scenario": plan} if plan else {"conversation": turns}),
        **stated(
            {
                "session_input": _session(case),
                "rubrics": _rubrics_data(case.rubrics) or None,
                "final_session_state": case.final_state or None,
            }
        ),
        **case_extras(case),
    }


def _session(case: Case) -> dict[str, Any] | None:
    session = case.session
    if not (session.app or session.user or session.id or case.state):
        return None
    return {
        "app_name": session.app or APP,
        "user_id": session.user or USER,
        **stated({"session_id": session.id}),
        "state": case.state,
    }


def _turn_data(turn: ExpectedTurn, number: int, blobs: Blobs) -> dict[str, Any]:
    turn = _as_adk_sees_it(turn)
    return {
        "invocation_id": f"turn-{number}",
        "user_content": user_content(turn.input, blobs),
        **stated(
            {
                "final_response": answer(turn.response),
                "intermediate_data": _events(turn)
                or _data(turn, _responses(turn), lambda _, call: _call(call))
                or None,
                "rubrics": None if turn.rubrics is None else _rubrics_data(turn.rubrics),
            }
        ),
    }


def _as_adk_sees_it(turn: ExpectedTurn) -> ExpectedTurn:
    """Leave out calls of delegates: ADK runs an agent tool in a separate session."""
    started = {d.to for d in turn.dispatches or () if d.kind == "delegate"}
    takes_over = {d.to for d in turn.dispatches or () if d.kind != "delegate"}
    delegates = started - takes_over - set((plain_chain(turn) or [])[:1])
    if not delegates or turn.tool_calls is None:
        return turn
    calls = [call for call in turn.tool_calls if call.agent not in delegates]
    return replace(turn, tool_calls=calls)


def _events(turn: ExpectedTurn) -> dict[str, Any] | None:
    """Write calls with their agents, which only events can state; events hold no visits."""
    chain, calls = _chain(turn), turn.tool_calls
    if chain is None or not calls or turn.interactions or "user" in {c.agent for c in calls}:
        return None
    owners = [call.agent for call in calls if call.agent]
    places = placed(chain, owners) if len(owners) == len(calls) else None
    if places is None:
        return None
    return {
        "invocation_events": [
            {
                "author": agent,
                "content": {
                    "parts": [{"function_call": _call(calls[n])} for n in positions],
                    "role": "model",
                },
            }
            for agent, positions in zip(chain, places, strict=True)
        ]
    }


def _data(
    turn: ExpectedTurn,
    responses: list[Any] | None,
    written: Callable[[int, ExpectedToolCall], dict[str, Any]],
) -> dict[str, Any]:
    """Write calls and the texts between them; ``written`` takes a call and its number."""
    calls = turn.tool_calls
    return stated(
        {
            "tool_uses": None
            if calls is None
            else [written(*each) for each in enumerate(calls, 1)],
            "intermediate_responses": responses,
        }
    )


def _responses(turn: ExpectedTurn) -> list[Any] | None:
    """State agents as authors, with their texts if the visits follow the chain."""
    speakers = by_agent(turn, _chain(turn))
    if speakers is None:
        return None
    pairs: list[Any] = []
    for agent, visits in speakers:
        if all(visit.agent == "user" for visit in visits):
            pairs.append(pair(agent))
        pairs += [pair(visit.agent, visit.says) for visit in visits]
    return pairs


def _chain(turn: ExpectedTurn) -> list[str] | None:
    """Return the agents if authors can state them."""
    chain = plain_chain(turn)
    if chain is None or "user" in chain or any(a == b for a, b in pairwise(chain)):
        return None
    return chain


def _call(call: ExpectedToolCall) -> dict[str, Any]:
    return stated({"name": call.name, "args": call.arguments})


def _rubrics_data(rubrics: Sequence[CaseRubric]) -> list[dict[str, Any]]:
    return [
        {
            "rubric_id": f"rubric-{number}" if rubric.id is None else rubric.id,
            "rubric_content": {"text_property": rubric.text},
            **stated({"type": rubric.type}),
        }
        for number, rubric in enumerate(rubrics, 1)
    ]


_NO_BYTES = "a message is text and files: data, and files without their bytes, cannot be written"
_REASONS = {
    "turns.input": _NO_BYTES,
    "+turns.input": _NO_BYTES,
    "turns.new_session": "a case is played in one session",
    "turns.restart": "nothing is restarted during a case",
    "turns.response": "an answer is text: data is written as JSON, attachments are left out",
    "+turns.response": "an answer is text: data is written as JSON",
    "turns.response_contains": "only a whole answer can be stated",
    "turns.response_not_contains": "only a whole answer can be stated",
    "turns.structured": "an answer is text, and has no fields",
    "+turns.agents": "calls of `transfer_to_agent` also state the agents",
    "turns.dispatches": "dispatches are not stated, apart from calls of `transfer_to_agent`",
    "turns.tool_calls": "calls of agents that run as tools are not stated",
    "turns.interactions": "what agents say is stated along the chain of agents, and in words",
    "session": "a session without a name has none",
    "labels": "a case has no labels",
    "tags": "a case has no tags",
}
"""Fields that neither tool can hold."""
ADK = Writer(
    case=_case,
    file=whole_set,
    reasons={
        **_REASONS,
        "turns": "a conversation has either turns or a plan for a simulated user",
        "turns.agents": (
            "agents are stated by who speaks: in one order, and an agent twice in a row counts once"
        ),
        "turns.tool_calls.agent": (
            "who calls is stated by events only: for all calls of a turn, in the order of its "
            "agents, and without visits"
        ),
        "+turns.rubrics.id": "a rubric needs an id",
        "+rubrics.id": "a rubric needs an id",
        "+session": "a session needs an app and a user",
        "final_state": "an empty final state is no expectation in this format",
    },
    notes={".yaml": "ADK itself reads only JSON", ".yml": "ADK itself reads only JSON"},
)


def _judge_llm_case(case: Case, blobs: Blobs) -> dict[str, Any] | None:
    if case.scenario is not None:
        return None
    session = case.session
    return {
        "eval_id": case.id,
        "creation_timestamp": BEGINNING,
        "session_input": {
            "app_name": session.app or "",
            "user_id": session.user or "",
            **stated({"session_id": session.id}),
            "state": case.state,
        },
        "conversation": [_judge_llm_turn(turn, n, blobs) for n, turn in enumerate(case.turns, 1)],
        **case_extras(case),
    }


def _judge_llm_turn(turn: ExpectedTurn, number: int, blobs: Blobs) -> dict[str, Any]:
    data = _data(turn, _judge_llm_responses(turn), _judge_llm_call)
    return {
        "invocation_id": f"turn-{number}",
        "creation_timestamp": BEGINNING,
        "user_content": user_content(turn.input, blobs),
        "final_response": answer(turn.response) or {"parts": [], "role": "model"},
        **stated({"intermediate_data": data or None}),
    }


def _judge_llm_call(number: int, call: ExpectedToolCall) -> dict[str, Any]:
    """Write a call with the id and arguments that judge-llm requires."""
    return {"id": f"call-{number}", "name": call.name, "args": call.arguments or {}}


def _judge_llm_responses(turn: ExpectedTurn) -> list[Any] | None:
    """State agents by name; their texts follow in ADK's form, which judge-llm ignores."""
    speakers = by_agent(turn, plain_chain(turn))
    if speakers is None:
        return None
    records: list[Any] = []
    for agent, visits in speakers:
        records.append({"agent_name": agent})
        records += [pair(visit.agent, visit.says) for visit in visits]
    return records


JUDGE_LLM = Writer(
    case=_judge_llm_case,
    file=whole_set,
    reasons={
        **_REASONS,
        "scenario": "a simulated user is not part of this format: the case is left out",
        "turns.agents": "agents are stated by name, in one order",
        "turns.tool_calls.agent": "who makes a call is not stated",
        "+turns.tool_calls.arguments": "a call needs arguments: `{}` is written, which matches any",
        "turns.rubrics": "rubrics are not known",
        "rubrics": "rubrics are not known",
        "final_state": "the state at the end is not stated",
    },
    notes={},
)
